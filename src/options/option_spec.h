/*
 * option_spec.h - options described by a table
 *
 * A program's options are one const table: names, argument, help, and a function that parses the
 * argument. The command line (src/cli/option_parse.h), gsort_set(), the messages and --help use
 * the table. Options that exclude each other are rows of a second table.
 *
 * Messages name an option by all its names ("-S, --buffer-size"). Errors are negative errno values
 * (reported).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word that an option accepts, and its value. */
struct option_choice {
	const char *word;
	int value;
};

enum { OPTION_WORD_NBYTES = 32, OPTION_MAX_ROWS = 64 };

/* Whether several MPI ranks support an option. */
enum option_mpi_support {
	OPTION_MPI_YES,         /* yes; rows need not state it */
	OPTION_MPI_NO,          /* no; mpi_substitute says what to use */
	OPTION_MPI_SAME_ON_ALL, /* yes, if all ranks were given the same value */
	OPTION_MPI_ONLY,        /* a single process does not know the option */
};

struct option_spec {
	const char *name;          /* long name without the dashes; or only the letter */
	char letter;               /* short name; 0: none */
	const char *argument;      /* name of the argument in --help; NULL: takes none */
	const char *help;          /* one line of any length; begins with a verb */
	const char *default_value; /* value without an argument, which is then optional */
	bool repeats;              /* may be given several times with different arguments */
	bool cli_only;             /* only a program can implement it, not the library */
	bool is_of_gnu_sort;       /* of lines: GNU sort has the option, too */
	enum option_mpi_support mpi_support;
	const char *mpi_substitute; /* OPTION_MPI_NO: what to use with several ranks instead */
	const char *required;       /* name of a row that must be given, too; NULL: none */
	const char *section;        /* heading that begins with this option; NULL: none */
	/*
	 * Store the argument (NULL: none) in the caller's struct `target`. Returns 0, a negative
	 * errno (reported), or a positive number to stop parsing.
	 */
	int (*parse)(const struct option_spec *spec, const char *argument, void *target);
	/*
	 * Return 1 if two spellings mean the same value, 0 if not, or a negative errno (reported)
	 * if the second is invalid. NULL: compare the member (see below).
	 */
	int (*same_value)(const char *first, const char *second);
	/*
	 * The member of the caller's struct that parse() sets (OPTION_MEMBER). Two arguments are
	 * equal if they give the member the same bytes; so it must not own memory. Size 0: only
	 * equal texts are equal arguments.
	 */
	size_t offset, member_nbytes;
	int value;
	const struct option_choice *choices; /* ends with a NULL word */
	/* Return word number i for shell completion, possibly in `text`; NULL after the last. */
	const char *(*get_word)(unsigned i, char text[static OPTION_WORD_NBYTES]);
	uint64_t min, max; /* of a count, size in bytes or number; max 0: that of the type */
};

#define OPTION_MEMBER(type, member)                                                                \
	.offset = offsetof(type, member), .member_nbytes = sizeof(((type *)NULL)->member)

/* Return the member that an option sets. */
static inline void *option_member(const struct option_spec *spec, void *target)
{
	return (char *)target + spec->offset;
}

enum { CONFLICT_MAX_A = 3, CONFLICT_MAX_B = 10 };

/* Each option in `a` excludes each one in `b`; `reason` ends the message. */
struct option_conflict {
	const char *a[CONFLICT_MAX_A], *b[CONFLICT_MAX_B]; /* names of rows; the rest is NULL */
	const char *reason;
};

struct option_table {
	const struct option_spec *specs;
	unsigned n_specs; /* at most OPTION_MAX_ROWS */
	const struct option_conflict *conflicts;
	unsigned n_conflicts;
	bool replaces_values; /* a second value of an option replaces the first, as in GNU sort */
};

/* The options that were given. Zero-initialised. */
struct option_arguments {
	const char *values[OPTION_MAX_ROWS]; /* first argument of each row; NULL: none */
	uint64_t present;                    /* bit i: row i was given */
};

static inline bool option_is_present(const struct option_arguments *arguments, unsigned row)
{
	return arguments->present >> row & 1;
}

/* Return the row with this long name or letter, or NULL. */
const struct option_spec *option_find(const struct option_table *table, const char *name);

/* Return word number i of an option's argument, possibly in `text`; NULL after the last. */
const char *option_word(const struct option_spec *spec, unsigned i,
			char text[static OPTION_WORD_NBYTES]);

/*
 * Parse an argument (NULL: none) into the struct `target`. A second, different value is refused
 * unless the row repeats or the table replaces values. Returns what spec->parse() returns. The text
 * must outlive the struct.
 */
int option_set(const struct option_table *table, const struct option_spec *spec,
	       const char *argument, struct option_arguments *arguments, void *target);

/* Check the given options against table->conflicts and `required`. Returns 0 or -EINVAL. */
int option_check_conflicts(const struct option_table *table,
			   const struct option_arguments *arguments);

/* The names of an option: "-S, --buffer-size". */
struct option_name {
	char text[48];
};
struct option_name option_format_name(const struct option_spec *spec);

/*
 * parse() functions. They set a member of type
 *	flag	bool, to true
 *	value	int or enum, to the row's value
 *	choice	bool, int or enum, to one of the row's choices
 *	text	const char *, not empty
 *	limit	uint64_t, in bytes; a number without a suffix is KiB
 *	size	uint64_t, like a limit; 0 is an error
 *	nbytes	uint64_t, in bytes, within the row's bounds
 *	count	unsigned, within the row's bounds; 0 is an error
 *	number	uint64_t, within the row's upper bound
 * and `nothing` sets none.
 */
int option_parse_nothing(const struct option_spec *spec, const char *argument, void *target);
int option_parse_flag(const struct option_spec *spec, const char *argument, void *target);
int option_parse_value(const struct option_spec *spec, const char *argument, void *target);
int option_parse_choice(const struct option_spec *spec, const char *argument, void *target);
int option_parse_text(const struct option_spec *spec, const char *argument, void *target);
int option_parse_limit(const struct option_spec *spec, const char *argument, void *target);
int option_parse_size(const struct option_spec *spec, const char *argument, void *target);
int option_parse_nbytes(const struct option_spec *spec, const char *argument, void *target);
int option_parse_count(const struct option_spec *spec, const char *argument, void *target);
int option_parse_number(const struct option_spec *spec, const char *argument, void *target);

/* Return a hint for an argument that is a number with a suffix, such as 10K; else "". */
const char *option_suffix_hint(const char *argument);

/*
 * Return the level at which an output is compressed: the given one, or for a name *.zst the default
 * one; 0: it is not compressed. Warns of a name *.gz. path: NULL: standard output.
 */
int option_find_zstd_level(const char *path, int level);

/* --- Options that every program has; they end the parsing --- */

enum option_shell { SHELL_NONE, SHELL_BASH, SHELL_ZSH, SHELL_FISH };

/* Results of option_parse_builtin(). The value of the shell is added to the last one. */
enum { BUILTIN_OPTION_HELP = 1, BUILTIN_OPTION_VERSION, BUILTIN_OPTION_COMPLETION };

#define BUILTIN_OPTIONS_ROW_COMPLETION                                                             \
	.name = "completion", .argument = "bash|zsh|fish",                                         \
	.help = "print a completion script for this shell and exit",                               \
	.parse = option_parse_builtin, .value = BUILTIN_OPTION_COMPLETION,                         \
	.choices = option_shells
#define BUILTIN_OPTIONS_ROW_HELP                                                                   \
	.name = "help", .help = "print this help and exit", .parse = option_parse_builtin,         \
	.value = BUILTIN_OPTION_HELP
#define BUILTIN_OPTIONS_ROW_VERSION                                                                \
	.name = "version", .help = "print the version and exit", .parse = option_parse_builtin,    \
	.value = BUILTIN_OPTION_VERSION

extern const struct option_choice option_shells[];

/* Return the row's value plus that of the choice, if the row has choices. */
int option_parse_builtin(const struct option_spec *spec, const char *argument, void *target);

/* Return the name of the shell of a result of BUILTIN_OPTION_COMPLETION and more. */
const char *option_shell_name(int result);
