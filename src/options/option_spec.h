/*
 * option_spec - options described by a table
 *
 * A program's options are one const table: names, argument, help, and a function that takes the
 * argument. The command line (src/cli/option_parse.h), the library's gsort_set(), the error
 * messages and the text of --help are all made from it, so an option cannot exist in one of them
 * only. A pair of options that makes no sense together is a row of a second table.
 *
 * Every error is said with fail(), names the option by all its names ("-S, --buffer-size"), and is
 * returned as a negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word that an option takes, and the value it stands for. */
struct option_choice {
	const char *word;
	int value;
};

enum { OPTION_WORD_NBYTES = 32, OPTION_MAX_ROWS = 64 };

/* Who can do what it asks for: a process by itself, several ranks (src/comm/), or both. */
enum option_mpi_support {
	OPTION_MPI_NO, /* ranks refuse it */
	OPTION_MPI_YES,
	OPTION_MPI_SAME_ON_ALL, /* ranks can, if all of them are asked for the same */
	OPTION_MPI_ONLY,        /* who is alone does not even know it */
};

struct option_spec {
	const char *name;     /* long name, without the dashes; or only the letter */
	char letter;          /* short name, 0 if none */
	const char *argument; /* what its argument is called in the help, NULL if it takes none */
	const char *help;     /* wrapped when it is printed */
	const char *default_value; /* what it means without its argument, which is then optional */
	bool repeats;  /* may be given more than once, each time with another argument */
	bool cli_only; /* what it asks for only a program can do, and no library */
	enum option_mpi_support mpi_support;
	const char *mpi_substitute; /* where ranks refuse it: what is to be done instead */
	const char *section; /* heading printed before this option, NULL if the section goes on */
	/*
	 * Take the argument (NULL if none) into the caller's struct element_at `target`.
	 * Returns 0, a negative errno after fail(), or a positive number to stop parsing.
	 */
	int (*parse)(const struct option_spec *spec, const char *argument, void *target);
	/*
	 * Do two arguments that are written in different ways mean the same? 1 or 0, or a negative
	 * errno after a message: the second means nothing. NULL: the member tells (below).
	 */
	int (*same_value)(const char *first, const char *second);
	/*
	 * For the take functions below: a member of the caller's struct (OPTION_MEMBER), and what
	 * goes in there, and nothing that would have to be freed if it is to be compared. If its
	 * size is 0, and nothing else tells, only equal texts are equal arguments.
	 */
	size_t offset, member_nbytes;
	int value;
	const struct option_choice *choices; /* ends with a word of NULL */
	/* Other words that it may be, for completion: the i-th, written to `text` or not. */
	const char *(*get_word)(unsigned i, char text[static OPTION_WORD_NBYTES]);
	uint64_t min, max; /* of a count, nbytes or (most) number; most 0: that of its type */
};

#define OPTION_MEMBER(type, member)                                                                \
	.offset = offsetof(type, member), .member_nbytes = sizeof(((type *)NULL)->member)

/* Rows a and b (indices of the table) cannot be given together: `why` ends the message. */
struct option_conflict {
	unsigned a, b;
	const char *reason;
};

struct option_table {
	const struct option_spec *specs;
	unsigned n_specs; /* at most OPTION_MAX_ROWS */
	const struct option_conflict *conflicts;
	unsigned n_conflicts;
};

/* What the rows have got so far; zeroed in the beginning. */
struct option_arguments {
	const char *values[OPTION_MAX_ROWS]; /* each the first of its row; NULL: none */
	uint64_t present;                    /* bit i, if row i was there */
};

/* The row of that name, or letter; NULL: there is none. */
const struct option_spec *option_find(const struct option_table *table, const char *name);
const struct option_spec *option_find_letter(const struct option_table *table, int letter);

/*
 * The i-th word that the argument of an option can be, for completion; NULL: there are no more. It
 * may be in `text`.
 */
const char *option_word(const struct option_spec *spec, unsigned i,
			char text[static OPTION_WORD_NBYTES]);

/*
 * A row of the table gets an argument (NULL: none), for the struct element_at `target`. A second
 * that means something else than the first is refused, and changes nothing, unless the row says
 * that each adds something. Returns what its take() does. The arguments are pointed to, not copied.
 */
int option_set(const struct option_table *table, const struct option_spec *spec,
	       const char *argument, struct option_arguments *arguments, void *target);

/* Of the rows that were given, do two exclude each other? 0, or -EINVAL after a message. */
int option_check_conflicts(const struct option_table *table,
			   const struct option_arguments *arguments);

/* Write the names of an option for messages, "-S, --buffer-size", and return `text`. */
enum { OPTION_SPELLING_NBYTES = 48 };
const char *option_format_name(const struct option_spec *spec,
			       char text[static OPTION_SPELLING_NBYTES]);

/*
 * take() functions. The member of the caller's struct is a
 *	flag	bool, which becomes true
 *	value	int or enum, which becomes the row's value
 *	choice	int or enum, of the row's choices
 *	text	const char *, which is never empty
 *	size	uint64_t, in bytes; a number without suffix is KiB; 0 is an error
 *	nbytes	uint64_t, in bytes; a number without suffix is bytes; the row's bounds
 *	count	unsigned; the row's bounds, and 0 is an error
 *	number	uint64_t; the row's upper bound, and 0 is allowed
 */
int option_parse_flag(const struct option_spec *spec, const char *argument, void *target);
int option_parse_value(const struct option_spec *spec, const char *argument, void *target);
int option_parse_choice(const struct option_spec *spec, const char *argument, void *target);
int option_parse_text(const struct option_spec *spec, const char *argument, void *target);
int option_parse_size(const struct option_spec *spec, const char *argument, void *target);
int option_parse_nbytes(const struct option_spec *spec, const char *argument, void *target);
int option_parse_count(const struct option_spec *spec, const char *argument, void *target);
int option_parse_number(const struct option_spec *spec, const char *argument, void *target);
