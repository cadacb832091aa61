/*
 * gsort - sort records of fixed size, more of them than memory holds
 *
 * One sort is one handle. It is told what a record is and where records come from and go to; then
 * it runs, in threads of its own, within its limit of memory, with temporary files if need be.
 *
 *	struct gsort *sort;
 *
 *	gsort_open(&sort);
 *	gsort_set(sort, "type", "u64");
 *	gsort_put(sort, numbers, nbytes);	as often as you like
 *	gsort_finish(sort);
 *	while (gsort_get(sort, buffer, sizeof buffer, &n) == 0 && n > 0)
 *		...				in order
 *	gsort_close(sort);
 *
 * In:	paths (gsort_add_input_path), open descriptors (gsort_add_input_fd), and at most once what
 *	is put (gsort_put), in any combination; equal records come out in the order of their
 *	inputs, of which what is put is the last.
 * Out:	a path (gsort_set_output_path), an open descriptor (gsort_set_output_fd), or else what is
 *	got (gsort_get).
 *
 * Errors. A function that can fail returns 0 or a negative errno, -EINVAL say, and then
 * gsort_message() is the reason in one line. A sort that has failed stays failed; one that could
 * not be told something goes on as if it had not been told. A NULL where something is needed, the
 * handle included, is -EINVAL. Nothing is printed, no signal handler
 * is set, nothing of the process is changed, no environment is read; the process is never ended.
 *
 * Threads. Different handles have nothing in common: use as many at once as you like. One handle
 * is used by one thread at a time, but for gsort_cancel() and gsort_get_progress(), which any
 * thread may call at any time before gsort_close(). Threads of the sort have all signals blocked,
 * unless a program that handles them says so (gsort_lend_process()).
 *
 * Ownership. What is passed in is only read during the call, but descriptors, which must stay open
 * until the sort has ended; they are never closed. Strings that are returned are the handle's, and
 * stay as they are until the next call or gsort_close().
 *
 * Compatibility. As long as the version is 0.x the soname (libgsort.so.0) changes whenever a
 * program that was linked before could break, and what is said here may change with any version
 * that the CHANGELOG says it of. Structs that are filled in may grow at their end, which is why
 * their size is passed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GSORT_API __attribute__((visibility("default")))
#else
#define GSORT_API
#endif

struct gsort;

/* "0.2.0": of the library that is loaded. */
GSORT_API const char *gsort_version(void);

/* A new sort. Returns 0 and a handle to gsort_close(), or -ENOMEM, or -EINVAL of NULL. */
GSORT_API int gsort_open(struct gsort **ret_sort);

/*
 * Free it; if it runs, cancel it and wait for it first. An output that is a path is then untouched.
 * NULL is fine. Nobody else may be using it.
 */
GSORT_API void gsort_close(struct gsort *sort);

/* --- what is to be sorted: before the first gsort_put(), gsort_finish(), gsort_get() --- */

/*
 * Set an option by its long name on the command line, without the dashes, or its letter:
 * docs/cli.md has all of them. value: as it would be written there; NULL for an option without one.
 *
 *	gsort_set(sort, "key", "0:u32");	more keys are added, each the less significant
 *	gsort_set(sort, "buffer-size", "2G");
 *	gsort_set(sort, "unique", NULL);
 *
 * What only a program can do (--help, --progress, ...) is refused with -ENOTSUP, and so is what has
 * a function of its own (--check, --explain, --assume-size): gsort_take() has those, too. An option
 * that is unknown, or has another value already, is -EINVAL; the same one again, as "1M" and
 * "1024K" are, does nothing. Combinations, an input that is not
 * there, and a file that is two things are refused by what begins the sort, which then has not
 * begun: mend it, and begin again. What depends on what is in the inputs is found while it runs,
 * and it has failed. -EBUSY once it has begun. Messages name options as the command line does.
 */
GSORT_API int gsort_set(struct gsort *sort, const char *name, const char *value);

/*
 * The frequent ones, typed. Errors as of gsort_set(). Memory is that of the host; less than 1 MiB
 * is taken as 1 MiB.
 */
GSORT_API int gsort_set_type(struct gsort *sort, const char *type);       /* "u64", "f32be" */
GSORT_API int gsort_set_record_size(struct gsort *sort, uint64_t nbytes); /* 1 to 65536 */
GSORT_API int gsort_add_key(struct gsort *sort, const char *key);         /* "8:i32:r" */
GSORT_API int gsort_set_descending(struct gsort *sort);                   /* all keys */
GSORT_API int gsort_set_unique(struct gsort *sort);                       /* equal keys: one */
GSORT_API int gsort_set_limit(struct gsort *sort, uint64_t n_records);    /* the first ones */
GSORT_API int gsort_set_memory(struct gsort *sort, uint64_t nbytes);      /* a limit */
GSORT_API int gsort_set_threads(struct gsort *sort, unsigned n);          /* of the CPU */
GSORT_API int gsort_add_temporary_directory(struct gsort *sort, const char *path); /* else /tmp */

/*
 * Read this file, too. "-" is standard input, as on the command line ("./-" is a file); "" is
 * -EINVAL. It is opened when the sort begins; a pipe with a name, which waits for its writer, then
 * as well.
 */
GSORT_API int gsort_add_input_path(struct gsort *sort, const char *path);

/*
 * The same, of what is open for reading: a file from where it stands to its end, where it stands
 * afterwards; or a pipe or socket. A negative number is -EINVAL at once; what else is wrong with it
 * is found when the sort has begun.
 */
GSORT_API int gsort_add_input_fd(struct gsort *sort, int fd);

/*
 * Write to this file, which appears when it is complete and checked, or not at all; it may be one
 * of the inputs. "-" is a file of that name, as on the command line; "" is -EINVAL. "/dev/fd/1" and
 * its like are what the process has open there, written to from where it stands.
 */
GSORT_API int gsort_set_output_path(struct gsort *sort, const char *path);

/*
 * The same, to what is open for writing, from where it stands. A pipe whose reader does not read
 * keeps the sort waiting, also if it is cancelled; one whose reader is gone is -EPIPE, and no
 * signal. A negative number is -EINVAL at once.
 */
GSORT_API int gsort_set_output_fd(struct gsort *sort, int fd);

/* --- running --- */

/*
 * Put nbytes of records, in any pieces; many at a time are faster. Waits while the sort cannot take
 * them. The first call begins the sort, unless it puts nothing. Returns 0, or a negative errno: of
 * the sort, if it has failed; after gsort_finish() else -EPIPE.
 */
GSORT_API int gsort_put(struct gsort *sort, const void *records, size_t nbytes);

/*
 * Nothing more will be put; begins a sort that has not begun. If the output is got, that is all,
 * unless the sort has failed already: any error, also of opening an input, may come with
 * gsort_get() only. Else waits until the output is complete, or the sort has failed. Returns 0 or a
 * negative errno.
 */
GSORT_API int gsort_finish(struct gsort *sort);

/*
 * Get the next nbytes of the output: records, or what --count, --keys-only, --argsort write in their
 * place, or with --zstd their compressed form. *ret_nbytes is less only at the end, and 0 from then
 * on. Waits for them. Returns 0, or a negative errno, and *ret_nbytes is not set. Only when the end
 * was reached has everything been checked: what was got before is worth nothing if then there is an
 * error. -EINVAL if records are put and gsort_finish() was not called yet.
 */
GSORT_API int gsort_get(struct gsort *sort, void *buffer, size_t nbytes, size_t *ret_nbytes);

/* Sort the inputs that were added into the output that was set: gsort_finish() of nothing put. */
GSORT_API int gsort_run(struct gsort *sort);

/* --- instead of sorting: a handle does one thing, and these once (then -EBUSY) --- */

/*
 * Is the one input that was added in order? With `unique`, equal keys are not. Returns 0, and in
 * *ret_record the number of the first record, from 1, that is not in order with the one before it,
 * or 0: all are; or a negative errno.
 */
GSORT_API int gsort_check(struct gsort *sort, uint64_t *ret_record);

/*
 * What the sort would do, and how long that would take, as the JSON of --explain=json
 * (docs/formats.md): from the inputs that were added, or of what would be put, of which there are
 * assumed_nbytes (0: not known). Takes a tenth of a second or so, for measurements. Returns 0 and a
 * text, or a negative errno.
 */
GSORT_API int gsort_explain(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_json);

/* The same, as the text of --explain for a person. */
GSORT_API int gsort_explain_text(struct gsort *sort, uint64_t assumed_nbytes,
				 const char **ret_text);

/* --- from elsewhere --- */

/*
 * Let it fail with -ECANCELED, soon: whoever waits in one of the functions above is woken. Once the
 * output is complete, or if `sort` is NULL, nothing happens. Any thread, but no signal handler.
 */
GSORT_API void gsort_cancel(struct gsort *sort);

/* --- what is told of it --- */

/* Why the last call of this handle that failed did, or the sort; "" if none has. Never NULL. */
GSORT_API const char *gsort_message(const struct gsort *sort);

enum gsort_kind {
	GSORT_WARNING = 1, /* somebody should see to it */
	GSORT_NOTE = 2,    /* good to know */
	GSORT_FAILURE = 3, /* what gsort_message() is going to say, as soon as it is known */
	GSORT_DETAIL = 4,  /* a line of what the option debug asks for */
};

/*
 * What is to be said of a sort, or of a call that fails: one line, without its end, which is gone
 * when the function returns. It is called by any thread of the sort, and by the one that has called
 * a function of the handle, one at a time, and must not call functions of this handle. Before the
 * sort begins; else -EBUSY.
 */
typedef void gsort_listener(void *context, enum gsort_kind kind, const char *text);
GSORT_API int gsort_on_message(struct gsort *sort, gsort_listener *listener, void *context);

/* How far it is. Bytes; totals are 0 where they are not known. */
struct gsort_progress {
	const char *phase;                          /* "run generation"; "" before the first */
	uint64_t done_nbytes, total_nbytes;         /* of the phase */
	uint64_t all_done_nbytes, all_total_nbytes; /* of all phases */
	uint64_t elapsed_ns;                        /* since the first phase began */
	uint64_t phase_elapsed_ns;                  /* since this one began */
};

/* At any time. size: sizeof *ret_progress. */
GSORT_API void gsort_get_progress(struct gsort *sort, struct gsort_progress *ret_progress,
				  size_t size);

/*
 * Call watcher(context, ...) every so many milliseconds (1 and more) while the sort runs, by a
 * thread that does nothing else; gsort_cancel() may be called there, and nothing else of the
 * handle. Before the sort begins; else -EBUSY.
 */
typedef void gsort_watcher(void *context, const struct gsort_progress *progress);
GSORT_API int gsort_on_progress(struct gsort *sort, gsort_watcher *watcher, void *context,
				unsigned interval_ms);

/*
 * The same as a line for a person, without its end, as --progress shows it: "run generation: 43 %,
 * 1.2 GiB/s, 0:12 left; total 20 %, 0:40 left"; "" before the first phase. size: sizeof *progress;
 * nbytes: of the line, which is cut there. Any thread.
 */
GSORT_API void gsort_format_progress(const struct gsort_progress *progress, size_t size, char *line,
				     size_t nbytes);

/* What is known of a sort that has succeeded. Bytes, unless the name says something else. */
struct gsort_stats {
	uint64_t record_nbytes;
	uint64_t n_records_in, n_records_out;
	uint64_t memory_nbytes; /* the limit, as decided */
	uint64_t peak_temporary_nbytes;
	uint64_t n_runs, n_runs_spilled;
	uint64_t n_passes; /* merges that a record went through */
	uint64_t elapsed_ns;
	char type[64];     /* of the records: "u64le" */
	char backend[128]; /* "CPU, 2 threads" */
};

/* size: sizeof *ret_stats. -EINVAL if it has not succeeded, or is still at it. */
GSORT_API int gsort_get_stats(struct gsort *sort, struct gsort_stats *ret_stats, size_t size);

/*
 * The same and much more, phase by phase, as the JSON of --stats-json (docs/cli.md). Times of
 * processors and peak memory are those of the whole process. NULL if there is nothing to be told,
 * or no memory: gsort_message() says it.
 */
GSORT_API const char *gsort_stats_json(struct gsort *sort);

/*
 * The same as the table of --stats, for a person. With the option stats it also says how fast what
 * took long could be.
 */
GSORT_API const char *gsort_stats_text(struct gsort *sort);

/*
 * It has succeeded: write the files that the options stats-json, trace and report ask for. They
 * were opened when it began, so that what cannot be written fails there; each appears when it is
 * complete, and if this is not called older ones stay as they are. Once; more often nothing
 * happens. Returns 0, or a negative errno: of the first that could not be written. The sort has
 * succeeded all the same.
 */
GSORT_API int gsort_write_reports(struct gsort *sort);

/* --- for programs that have its options as theirs, as gsort itself --- */

/* An option, as the table has it that everything is made from. Texts are there for ever. */
struct gsort_option {
	const char *name; /* long, without the dashes: "key" */
	const char
		*argument; /* what its value is called: "FILE", "auto|npy|raw"; NULL: it has none */
	const char *otherwise; /* its value where none is given; NULL: one must be */
	const char *help;      /* what it does, in one line of any length */
	const char *section;   /* what is above it and those that follow; NULL: nothing new */
	int letter;            /* its short name; 0: none */
	int repeats;           /* may be given several times: 1; else 0 */
	int of_program;        /* gsort_set() refuses it: 1; else 0 */
};

/*
 * Option number i, from 0, in the order of --help. Returns 0, or -ENOENT: there are no more. size:
 * sizeof *ret_option. Any thread, as the next two.
 */
GSORT_API int gsort_get_option(unsigned i, struct gsort_option *ret_option, size_t size);

/*
 * Word number n, from 0, of those that the value of option number i can be, as a shell completes
 * it; NULL: there are no more. It may be written to `text`, which is to have room for
 * GSORT_WORD_NBYTES.
 */
enum { GSORT_WORD_NBYTES = 32 };
GSORT_API const char *gsort_get_option_word(unsigned i, unsigned n, char *text);

/* What TYPE can be in values of options: some lines, for below them. */
GSORT_API const char *gsort_describe_types(void);

/*
 * Take an option from the words of a command line: like gsort_set(), but those that only a program
 * can do are taken, too. What they ask for it does: gsort_get_taken(). check, C and
 * explain say that one of those functions will be called, and not gsort_run(); check also has the
 * disorder told, as a note; assume-size is for gsort_explain().
 */
GSORT_API int gsort_take(struct gsort *sort, const char *name, const char *value);

/*
 * The value that the option has been given, the first of several; "" if it has none; NULL if it was
 * not given. The handle's, and stays until gsort_close().
 */
GSORT_API const char *gsort_get_taken(const struct gsort *sort, const char *name);

/*
 * Text from outside, the name of a file say, fit for one line of a terminal, as all messages are:
 * what would not be printed is escaped as the shell does it. Writes at most nbytes with the end to
 * `line`, and returns it. Any thread.
 */
GSORT_API const char *gsort_printable(const char *text, char *line, size_t nbytes);

/*
 * Of n words, names of options say, the one that is so like the nbytes of `word` that it may have
 * been meant; NULL: none. Any thread.
 */
GSORT_API const char *gsort_nearest_word(const char *word, size_t nbytes, const char *const *words,
					 unsigned n);

/* --- what a process has once --- */

/*
 * Signals and standard streams are of the whole process, so a sort does not touch them, and does
 * without what it could have of them. A program that handles signals can lend it that: large
 * records are then sorted where the page cache has them, unfinished files are removed by whatever
 * signal ends the process, and none ends it once the output has its name. Also:
 *
 * - threads of the sort have the signals blocked that the thread has which begins it;
 * - standard error, and standard output where it is not the output, have texts of the program: no
 *   file of the sort may be one of them;
 * - it is told, as a note, that standard input is read where that is a terminal.
 *
 * One for the whole process, that is lent to any number of sorts.
 */
struct gsort_process;

/* Returns 0, or -ENOMEM, or -EINVAL of NULL. */
GSORT_API int gsort_open_process(struct gsort_process **ret_process);

/* No sort that it was lent to is open, and no handler uses it. NULL is fine. */
GSORT_API void gsort_close_process(struct gsort_process *process);

/*
 * Lend it to the sort, which has not begun. From now on handlers have to call the functions below
 * for their signals, if not those of `process`. Returns 0 or a negative errno.
 */
GSORT_API int gsort_lend_process(struct gsort *sort, struct gsort_process *process);

/*
 * For a handler of SIGBUS: is the fault at that address the sort's? Then it is mended, 1 is
 * returned, and the thread can go on. Else 0. Async-signal-safe, as the next two.
 */
GSORT_API int gsort_catch_fault(struct gsort_process *process, const void *address);

enum gsort_verdict {
	GSORT_DIE = 1,     /* the process is to end; no output gets its name any more */
	GSORT_GO_ON = 2,   /* the output has its name, or is getting it: pass the signal over */
	GSORT_REPORTS = 3, /* the same, and only what is to be told of it is still to be done */
};

/* For a handler of a signal that ends the process, and is none of a fault: is it to? */
GSORT_API enum gsort_verdict gsort_judge_signal(struct gsort_process *process, int signal_number);

/*
 * Remove the names of unfinished files, and cut an output that is written in place, and that has
 * grown, to where it began. In that case no file of the process can grow any more (its limit
 * RLIMIT_FSIZE is 0 then; have SIGXFSZ ignored). Threads of the sort that find it so, or would make
 * another file, wait for the end: the process has to end now.
 */
GSORT_API void gsort_remove_names(struct gsort_process *process);

/*
 * All is over. The signal that was passed over for an output which then did not get its name: the
 * process is to die of it now; 0: there was none.
 */
GSORT_API int gsort_get_missed_signal(const struct gsort_process *process);

#ifdef __cplusplus
}
#endif
