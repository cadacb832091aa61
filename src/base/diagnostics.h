/*
 * diagnostics.h - report errors, warnings and notices of a job
 *
 * A function that can fail returns 0 (or a count) or a negative errno. The function that knows the
 * facts reports the error once, with fail(); its callers only pass the number on.
 *
 *	main            struct diagnostics         each thread reports to the diagnostics of
 *	  sort          fail(), warn(), notice()   its job; threads that it starts inherit
 *	    threads     fail(), warn(), notice()   them (thread.h)
 *
 * So several jobs in one process do not see each other's messages. Only the first error of a job is
 * reported: later ones (closed queues, stages that stop) are its consequences. The program that
 * starts a job decides what happens to messages: the command line prints them, a caller of the
 * library may keep the text.
 *
 * A text may contain file names, which may contain any bytes (quote_text() in text.h). It may name
 * an option that helps: the command line and the library have the same options.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Bytes of a text with its '\0': room for two paths of maximum length and some words. */
enum { MESSAGE_NBYTES = 9216 };

enum message_kind {
	MESSAGE_ERROR,   /* the job fails */
	MESSAGE_WARNING, /* the job goes on, but the user should act */
	MESSAGE_NOTICE,  /* information; nothing need be done */
	MESSAGE_DEBUG,   /* a line of requested output, such as how keys were parsed */
};

struct message {
	enum message_kind kind;
	const char *text;
};

/*
 * Called for every message of a job except errors after the first. Calls are serialised and come
 * from the reporting thread. The text is valid only during the call. Must not report messages
 * itself.
 */
typedef void message_callback(void *context, const struct message *message);

/* The diagnostics of one job. Members are private to diagnostics.c after diagnostics_init(). */
struct diagnostics {
	message_callback *callback; /* NULL: only the first error is kept */
	void *context;
	pthread_mutex_t lock;
	bool failed;
	char text[MESSAGE_NBYTES]; /* of the first error; "" if there is none */
};

void diagnostics_init(struct diagnostics *diagnostics, message_callback *callback, void *context);

/* No thread may use them any more. */
void diagnostics_destroy(struct diagnostics *diagnostics);

/*
 * Make the calling thread, and threads that it starts from now on, report to `diagnostics`; NULL
 * (the initial state) discards messages. Returns the previous value, which the caller must restore
 * with another call.
 */
struct diagnostics *diagnostics_push(struct diagnostics *diagnostics);

/* Return the diagnostics of the calling thread, or NULL. */
struct diagnostics *diagnostics_current(void);

/*
 * Report why the job cannot go on, unless an error was reported before. r is a negative errno,
 * which is returned, and which %m in the format stands for. -EMFILE adds the hint to raise ulimit
 * -n. This and all functions below are thread-safe.
 */
int fail(int r, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Report a message that is no error. */
void message_report(enum message_kind kind, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

/* Report a problem that the user should know of; the job goes on. */
#define warn(...) message_report(MESSAGE_WARNING, __VA_ARGS__)

/* Report information that needs no action. */
#define notice(...) message_report(MESSAGE_NOTICE, __VA_ARGS__)

/* Report a line of output that the user asked for. */
#define debug_line(...) message_report(MESSAGE_DEBUG, __VA_ARGS__)

struct message_capture;

/* A captured error. */
struct captured_error {
	char *text; /* to be freed with free(); NULL: there was no error */
};

/*
 * Run an optional step without reporting its errors. Between begin and end, errors of the calling
 * thread and of threads that it starts are captured; warnings and notices are reported as usual.
 * Returns 0, or -ENOMEM without a message.
 */
int message_capture_begin(struct message_capture **ret_capture);

void message_capture_end(struct message_capture *capture, struct captured_error *ret_error);
