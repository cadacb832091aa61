/*
 * gsort - an external sort for fixed-size records and for lines of text
 *
 * One sort is one handle. The caller sets the record format, the inputs and the output. Then the
 * sort runs in its own threads, within its memory limit, and uses temporary files if necessary.
 *
 *	struct gsort *sort;
 *
 *	gsort_open(&sort);
 *	gsort_set(sort, "type", "u64");
 *	gsort_put(sort, numbers, nbytes);	any number of times
 *	gsort_finish(sort);
 *	while (gsort_get(sort, buffer, sizeof buffer, &n) == 0 && n > 0)
 *		...				in order
 *	gsort_close(sort);
 *
 * Inputs: paths (gsort_add_input_path), open descriptors (gsort_add_input_fd) and records of
 *	gsort_put(), in any combination. Equal records keep the order of their inputs. Records of
 *	gsort_put() are the last input.
 * Output: a path (gsort_set_output_path) or an open descriptor (gsort_set_output_fd). Without one
 *	of these, gsort_get() returns the output.
 *
 * Errors: functions that can fail return 0 or a negative errno, for example -EINVAL.
 * gsort_message() then returns the reason in one line. A sort that has failed stays failed. A call
 * that is refused before the sort begins has no effect. NULL for a required pointer is -EINVAL.
 * The library prints nothing, sets no signal handlers, reads no environment variables, changes no
 * process attributes and never ends the process.
 *
 * Threads: different handles are independent. One handle is used by one thread at a time, with two
 * exceptions: any thread may call gsort_cancel() and gsort_get_progress() at any time before
 * gsort_close(). Threads of the sort block all signals, unless the program has called
 * gsort_set_process().
 *
 * Ownership: buffers and strings are read only during the call. Descriptors must stay open until
 * the sort has ended; the library never closes them. Returned strings belong to the handle, and
 * are valid until the next call or gsort_close().
 *
 * Compatibility: as long as the version is 0.x, an incompatible change of the ABI changes the
 * soname (libgsort.so.0.3). The CHANGELOG lists incompatible changes. Structs that the library
 * fills may grow at their end, so the caller passes their size.
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

/* Return the version of the loaded library, "0.3.0". */
GSORT_API const char *gsort_version(void);

/* Create a sort. Returns 0, -ENOMEM or -EINVAL. */
GSORT_API int gsort_open(struct gsort **ret_sort);

/*
 * Free the sort. A running sort is cancelled first, and its output path is left unchanged. NULL is
 * ignored. No other thread may use the handle.
 */
GSORT_API void gsort_close(struct gsort *sort);

/* --- Configuration: before the first gsort_put(), gsort_finish() or gsort_get() --- */

/*
 * Set an option by its long name on the command line, without the dashes, or by its letter.
 * docs/manual/gsort.md lists all options. value: as on the command line; NULL for an option
 * without a value.
 *
 *	gsort_set(sort, "key", "0:u32");	adds a key, less significant than earlier keys
 *	gsort_set(sort, "buffer-size", "2G");
 *	gsort_set(sort, "unique", NULL);
 *
 * Errors:
 * -ENOTSUP	an option that only a program can implement (--help, --progress, ...) or that has
 *		its own function (--check, --explain, --assume-size): use gsort_set_from_cli()
 * -EINVAL	an unknown option, a wrong value, or a second value that differs from the first
 *		("1M" and "1024K" are equal)
 * -EBUSY	the sort has begun
 *
 * The call that begins the sort checks combinations of options, missing inputs and files with two
 * roles. If it fails, the sort has not begun: the caller can correct the options and try again.
 * Messages use the names of the command line.
 */
GSORT_API int gsort_set(struct gsort *sort, const char *name, const char *value);

/*
 * Sort lines of text with the options of --lines, as GNU sort does. Set this before all other
 * options. Their names are then those of "gsort --lines --help"; of an option that is set twice,
 * the last value counts, as on the command line. Records are lines, including those of gsort_put()
 * and gsort_get(): bytes with a newline (option zero-terminated: NUL) after each line. A last line
 * without one gets one.
 *
 *	gsort_set(sort, "lines", NULL);
 *	gsort_set(sort, "key", "2,2n");
 *	gsort_set(sort, "header", "1");
 *
 * gsort_check() returns the number of a line, which counts header lines. gsort_explain() returns
 * the plan of lines, and ignores assumed_nbytes. Types, record sizes and ranks are for records.
 */

/*
 * Set frequent options. Errors are those of gsort_set(). gsort_set_memory() limits host memory,
 * and raises values below 1 MiB to 1 MiB.
 */
GSORT_API int gsort_set_type(struct gsort *sort, const char *type);       /* "u64", "f32be" */
GSORT_API int gsort_set_record_size(struct gsort *sort, uint64_t nbytes); /* 1 to 65536 */
GSORT_API int gsort_add_key(struct gsort *sort, const char *key);         /* "8:i32:r" */
GSORT_API int gsort_set_descending(struct gsort *sort);                   /* all keys */
GSORT_API int gsort_set_unique(struct gsort *sort);                    /* keep one of equal keys */
GSORT_API int gsort_set_limit(struct gsort *sort, uint64_t n_records); /* keep the first ones */
GSORT_API int gsort_set_memory(struct gsort *sort, uint64_t nbytes);   /* limit */
GSORT_API int gsort_set_threads(struct gsort *sort, unsigned n);       /* CPU threads */
GSORT_API int gsort_add_temporary_directory(struct gsort *sort,
					    const char *path); /* default /tmp */

/*
 * Add an input file. "-" is standard input, as on the command line ("./-" is a file); "" is
 * -EINVAL. The file is opened when the sort begins. Opening a named pipe waits for its writer.
 */
GSORT_API int gsort_add_input_path(struct gsort *sort, const char *path);

/*
 * Add an input that is open for reading: a pipe, a socket, or a file, which is read from its
 * current offset to its end. The offset is at the end afterwards. A negative descriptor is -EINVAL
 * at once. Other errors are reported when the sort begins.
 */
GSORT_API int gsort_add_input_fd(struct gsort *sort, int fd);

/*
 * Write the output to this path. The file is replaced atomically when the output is complete and
 * verified; it may be one of the inputs. "-" is a file of that name, as on the command line; "" is
 * -EINVAL. "/dev/fd/1" and similar paths are open descriptors, written from their current offset.
 */
GSORT_API int gsort_set_output_path(struct gsort *sort, const char *path);

/*
 * Write the output to an open descriptor, from its current offset. A pipe whose reader does not
 * read blocks the sort, even a cancelled one. A pipe without a reader is -EPIPE, without a signal.
 * A negative descriptor is -EINVAL at once.
 */
GSORT_API int gsort_set_output_fd(struct gsort *sort, int fd);

/* --- Running --- */

/*
 * Pass nbytes of records to the sort, in pieces of any size. Large pieces are faster. Blocks while
 * the buffers of the sort are full. The first call with nbytes > 0 begins the sort. Returns 0, the
 * error of a sort that has failed, or -EINVAL after gsort_finish().
 */
GSORT_API int gsort_put(struct gsort *sort, const void *records, size_t nbytes);

/*
 * End the records of gsort_put(), and begin the sort if it has not begun. If gsort_get() returns
 * the output, this call does not wait, and gsort_get() may report errors of the inputs. Otherwise
 * it waits until the output is complete or the sort has failed. -EINVAL if the last record is
 * incomplete; a merge may report that from gsort_get().
 */
GSORT_API int gsort_finish(struct gsort *sort);

/*
 * Read the next nbytes of the output, and wait for them. The output is records, the data of
 * --count, --keys-only or --argsort, or a zstd stream with --zstd. *ret_nbytes is less than nbytes
 * only at the end, and then 0. It is not set on errors. The output is valid only when the end is
 * reached without an error, because the last checks happen there. -EINVAL after gsort_put() without
 * gsort_finish().
 */
GSORT_API int gsort_get(struct gsort *sort, void *buffer, size_t nbytes, size_t *ret_nbytes);

/* Sort the inputs into the output: gsort_finish() without gsort_put(). */
GSORT_API int gsort_run(struct gsort *sort);

/* --- Checks and plans: a handle does one operation; a second one is -EBUSY --- */

/*
 * Check the order of the only input. With `unique`, equal keys are disorder. *ret_first_unsorted
 * is the number, from 1, of the first record that is out of order, or 0 if the input is sorted.
 */
GSORT_API int gsort_check(struct gsort *sort, uint64_t *ret_first_unsorted);

/*
 * Plan the sort, and return the JSON of --explain=json (docs/formats.md). assumed_nbytes: the size
 * of the records that gsort_put() would pass; 0: unknown. The call takes about 0.1 s for
 * measurements.
 */
GSORT_API int gsort_explain(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_json);

/* Plan the sort, and return the text of --explain. */
GSORT_API int gsort_explain_text(struct gsort *sort, uint64_t assumed_nbytes,
				 const char **ret_text);

/* --- Cancellation --- */

/*
 * Cancel the sort: it fails with -ECANCELED, and blocked calls return. A complete output stays.
 * NULL is ignored. Any thread may call this function, but no signal handler.
 */
GSORT_API void gsort_cancel(struct gsort *sort);

/* --- Messages, progress and statistics --- */

/* Return the error of the last call that used the handle; "" if it succeeded. Never NULL. */
GSORT_API const char *gsort_message(const struct gsort *sort);

enum gsort_severity {
	GSORT_WARNING = 1, /* needs attention */
	GSORT_NOTICE = 2,  /* information */
	GSORT_ERROR = 3,   /* the text that gsort_message() will return */
	GSORT_DEBUG = 4,   /* a line of the option debug */
};

/*
 * Set a function that receives messages: one line each, without a newline, valid only during the
 * call. Threads of the sort and callers of its functions call it, one at a time. It must not call
 * functions of this handle. -EBUSY once the sort has begun.
 */
typedef void gsort_message_callback(void *context, enum gsort_severity severity, const char *text);
GSORT_API int gsort_set_message_callback(struct gsort *sort, gsort_message_callback *callback,
					 void *context);

/* Progress in bytes. Unknown totals are 0. */
struct gsort_progress {
	const char *phase; /* static string, such as "run generation"; "" before the first phase */
	uint64_t done_nbytes, total_nbytes; /* bytes done and total bytes of the phase */
	uint64_t overall_done_nbytes, overall_total_nbytes; /* the same for all phases */
	uint64_t elapsed_ns;       /* nanoseconds since the first phase began */
	uint64_t phase_elapsed_ns; /* nanoseconds since this phase began */
};

/* Read the progress, at any time. size: sizeof *ret_progress. */
GSORT_API void gsort_get_progress(struct gsort *sort, struct gsort_progress *ret_progress,
				  size_t size);

/*
 * Set a function that receives the progress every interval_ms milliseconds (at least 1) while the
 * sort runs, and once when it has succeeded, before the call that waits for the sort returns: then
 * done_nbytes is total_nbytes, unless a check found a disorder. A separate thread calls it. It may
 * call gsort_cancel(), but no other function of the handle. -EBUSY once the sort has begun.
 */
typedef void gsort_progress_callback(void *context, const struct gsort_progress *progress);
GSORT_API int gsort_set_progress_callback(struct gsort *sort, gsort_progress_callback *callback,
					  void *context, unsigned interval_ms);

/*
 * Format progress as one line without a newline, like --progress: "run generation: 43 %, 1.2
 * GiB/s, 0:12 left; total 20 %, 0:40 left"; "" before the first phase. size: sizeof *progress;
 * nbytes: of the line, which is truncated. Any thread.
 */
GSORT_API void gsort_format_progress(const struct gsort_progress *progress, size_t size, char *line,
				     size_t nbytes);

/* Statistics of a sort that has succeeded. */
struct gsort_stats {
	uint64_t record_nbytes;
	uint64_t n_records_in, n_records_out;
	uint64_t memory_limit_nbytes; /* the effective limit */
	uint64_t peak_temporary_nbytes;
	uint64_t n_runs, n_runs_spilled;
	uint64_t n_passes; /* merges of each record */
	uint64_t elapsed_ns;
	char type[64];     /* "u64le" */
	char backend[128]; /* "CPU, 2 threads" */
};

/* Read statistics. size: sizeof *ret_stats. -EINVAL unless the sort has succeeded. */
GSORT_API int gsort_get_stats(struct gsort *sort, struct gsort_stats *ret_stats, size_t size);

/*
 * Return all statistics as the JSON of --stats-json (docs/manual/statistics.md). CPU times and peak
 * memory are those of the whole process. NULL on errors: see gsort_message().
 */
GSORT_API const char *gsort_stats_json(struct gsort *sort);

/*
 * Return all statistics as the table of --stats. With the option stats, peak rates of slow stages
 * are included.
 */
GSORT_API const char *gsort_stats_text(struct gsort *sort);

/*
 * Write the files of the options stats-json, trace and report, after the sort has succeeded. The
 * beginning of the sort opens these files, and each is replaced atomically here. Without this call
 * older files stay. Later calls do nothing. Returns 0 or the first error; the sort has succeeded
 * in any case.
 */
GSORT_API int gsort_write_reports(struct gsort *sort);

/* --- Command lines: for programs that offer the options of gsort --- */

/* A row of the option table. All texts are static. */
struct gsort_option {
	const char *name;          /* long name without the dashes: "key"; else the letter */
	const char *argument;      /* name of the value: "FILE", "auto|npy|raw"; NULL: no value */
	const char *default_value; /* used if the option has no value; NULL: a value is required */
	const char *help;          /* description in one line of any length */
	const char *section;       /* heading that begins with this option; NULL: none */
	int letter;                /* short name; 0: none */
	int repeatable;            /* 1: may be given several times */
	int cli_only;              /* 1: gsort_set() refuses it */
};

/*
 * Read option number i, from 0, in the order of --help. Returns 0, or -ENOENT after the last one.
 * size: sizeof *ret_option. Any thread may call this and the next two functions.
 */
GSORT_API int gsort_get_option(unsigned i, struct gsort_option *ret_option, size_t size);

/* Like gsort_get_option(), for the options of lines. */
GSORT_API int gsort_get_line_option(unsigned i, struct gsort_option *ret_option, size_t size);

/*
 * Return word number n, from 0, of the possible values of option number i, for shell completion;
 * NULL after the last one. `text` is a buffer of GSORT_WORD_NBYTES that may hold the word.
 */
enum { GSORT_WORD_NBYTES = 32 };
GSORT_API const char *gsort_get_option_word(unsigned i, unsigned n, char *text);

/* Describe TYPE in several lines, to be printed below the options. */
GSORT_API const char *gsort_describe_types(void);

/*
 * Set an option of a command line. This works like gsort_set(), and accepts options with cli_only
 * as well. The program implements these and reads them with gsort_get_set(). The options check, C
 * and explain announce a call of gsort_check() or gsort_explain() instead of gsort_run(). With
 * check, the first disorder is also a notice. assume-size is for gsort_explain().
 */
GSORT_API int gsort_set_from_cli(struct gsort *sort, const char *name, const char *value);

/*
 * Return the value of an option that was set: the first of several, or "" for an option without a
 * value. NULL: the option was not set. The text is valid until gsort_close().
 */
GSORT_API const char *gsort_get_set(const struct gsort *sort, const char *name);

/*
 * Quote text, for example a file name, for one line of a terminal, as messages do. Unprintable
 * characters are escaped as in a shell. Writes at most nbytes, including the final NUL, to `line`,
 * and returns it. Any thread.
 */
GSORT_API const char *gsort_quote(const char *text, char *line, size_t nbytes);

/*
 * Return the one of n words that is most similar to the nbytes of `word`; NULL: none is similar.
 * Any thread.
 */
GSORT_API const char *gsort_suggest(const char *word, size_t nbytes, const char *const *words,
				    unsigned n);

/* --- Signals: for programs that handle them --- */

/*
 * Signals and standard streams belong to the process, so by default a sort does not use them. A
 * program that handles signals can share one struct gsort_process with any number of sorts. Then:
 *
 * - large records are sorted in the page cache, because faults there can be handled;
 * - unfinished files are removed by every signal that ends the process;
 * - no signal ends the process while the output is being committed;
 * - threads of the sort block the signals that are blocked in the thread that begins the sort;
 * - no file of the sort may be standard error, or standard output unless that is the output;
 * - a notice says when standard input is read from a terminal.
 */
struct gsort_process;

/* Create the object. Returns 0, -ENOMEM or -EINVAL. */
GSORT_API int gsort_open_process(struct gsort_process **ret_process);

/* Free the object. No open sort and no signal handler may use it. NULL is ignored. */
GSORT_API void gsort_close_process(struct gsort_process *process);

/*
 * Share the object with a sort that has not begun. From now on signal handlers must call the
 * functions below.
 */
GSORT_API int gsort_set_process(struct gsort *sort, struct gsort_process *process);

/*
 * Handle SIGBUS: if the address belongs to a sort, repair the mapping and return 1, so that the
 * thread can continue. Otherwise return 0. Async-signal-safe, as are the next two functions.
 */
GSORT_API int gsort_handle_sigbus(struct gsort_process *process, const void *address);

enum gsort_signal_action {
	GSORT_SIGNAL_TERMINATE = 1, /* end the process; no output is committed any more */
	GSORT_SIGNAL_IGNORE = 2,    /* ignore the signal; the output is (being) committed */
	/* The output is committed. Only reports are missing: the process may end without them. */
	GSORT_SIGNAL_TERMINATE_AFTER_REPORT = 3,
};

/* Return the action for a signal that would end the process and is no fault. */
GSORT_API enum gsort_signal_action gsort_signal_action(struct gsort_process *process,
						       int signal_number);

/*
 * Remove unfinished files, and truncate an output that is written in place to its old size. The
 * process must end afterwards: truncating sets the limit RLIMIT_FSIZE to 0 (ignore SIGXFSZ), and
 * threads of the sort wait for the end.
 */
GSORT_API void gsort_cleanup_files(struct gsort_process *process);

/*
 * Return the signal that was ignored for a commit that then failed. The process must end by this
 * signal after the sort. 0: none.
 */
GSORT_API int gsort_pending_signal(const struct gsort_process *process);

#ifdef __cplusplus
}
#endif
