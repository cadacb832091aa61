/*
 * diagnostics - the error vocabulary, and who hears what is said
 *
 * Every function that can fail returns 0 (or a count) or a negative errno. What is to be said of it
 * is said once, by the function that knows the facts, through fail(); everyone above passes the
 * number on.
 *
 *	main            struct diagnostics           a thread has messages, of the job that it
 *	  sort          fail(), warn(), tell()    works for; so have the threads that it starts
 *	    threads     fail(), warn(), tell()    (thread.h), and nobody hands them down
 *
 * So jobs in one process hear nothing of each other. Only the first failure of a job counts: what
 * follows it (rings that close, stages that drain) is its consequence, and the user gets one line,
 * as from any other tool. What becomes of a message is for whoever began the job to say: a front
 * end prints it, another program may want the text.
 *
 * A text is as it was made; names of files in it can hold anything (quote.h). It may name
 * an option that helps: the options of the command line are those of the library too.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Of a text with its end: two of the longest names, and what is said of them. */
enum { MESSAGE_NBYTES = 9216 };

enum message_kind {
	MESSAGE_ERROR,   /* the job cannot be done */
	MESSAGE_WARNING, /* it can, but somebody should see to it */
	MESSAGE_NOTICE,  /* good to know, and nothing need be done about it */
	MESSAGE_DEBUG,   /* a line of what was asked for, such as how keys were understood */
};

struct message {
	enum message_kind kind;
	int error; /* of a failure: the negative errno */
	const char *text;
};

/*
 * Is given every message of a job but failures after the first, one at a time, by the thread that
 * has said it. The text is gone when it returns. It must say nothing itself.
 */
typedef void message_callback(void *context, const struct message *message);

/* The diagnostics of one job. Members are private to diagnostics.c after diagnostics_init(). */
struct diagnostics {
	message_callback *callback; /* NULL: only the first failure is kept */
	void *context;
	pthread_mutex_t lock;
	bool failed;
	int error;                 /* of the first failure, as the rest */
	char text[MESSAGE_NBYTES]; /* "" if none */
};

void diagnostics_init(struct diagnostics *diagnostics, message_callback *callback, void *context);

/* No thread that has them is left. */
void diagnostics_destroy(struct diagnostics *diagnostics);

/*
 * From now on the calling thread, and those that it starts, say what they say to `messages`; NULL,
 * as in the beginning: to nobody. Returns those before, which are to be entered again at the end.
 */
struct diagnostics *diagnostics_push(struct diagnostics *diagnostics);

/* Of the calling thread; NULL: none. */
struct diagnostics *diagnostics_current(void);

/*
 * Report why the job cannot go on, unless an error was reported before. r: a negative errno, which
 * is returned; %m in the format means it. -EMFILE adds the advice to raise ulimit -n. Any thread,
 * as all functions below.
 */
int fail(int r, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Say what the user should see to, although the job goes on. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Say what the user should know and need not do anything about. */
void notice(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Say a line of a text that the user has asked for. */
void debug_line(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
