/*
 * messages - the error vocabulary
 *
 * Every function that can fail returns 0 (or a count) or a negative errno. The message is printed
 * once, by the function that knows the facts, through fail(); everyone above passes the number on.
 *
 * Only the first failure of a process is printed: what follows it (rings that close, stages that
 * drain) is its consequence, and the user gets one line, as from any other tool.
 * It is one line, and nothing but text, whatever names are in it (legible.h).
 */
#pragma once

#include <stdbool.h>

/* The largest code the tools leave with: 1 means "disorder found" to -c, 2 everything else. */
enum exit_status { EXIT_SORTED = 0, EXIT_DISORDER = 1, EXIT_TROUBLE = 2 };

/* Name before each message, "gsort" unless set; `name` must outlive the process's last message. */
void messages_set_program(const char *name);

/*
 * Print "PROGRAM: MESSAGE\n" to standard error, unless a failure was printed before, and return
 * `r`. r: a negative errno; %m in the format means that errno. Thread-safe.
 */
int fail(int r, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* Print "PROGRAM: warning: MESSAGE\n". Thread-safe. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Print "PROGRAM: MESSAGE\n": what the user should know and need not do anything about. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/*
 * Between messages_mute(true) and messages_mute(false) fail() and warn() print nothing, and nothing
 * has failed; only messages_last() tells: for what may fail. Nobody else may be at work meanwhile.
 */
void messages_mute(bool muted);

/* Has fail() printed? */
bool messages_failed(void);

/* Forget that fail() printed, and keep quiet if asked: for tests, which fail many times. */
void messages_reset(bool quiet);

/* The text of the last message of fail(), muted or not; "" if none. Not thread-safe. */
const char *messages_last(void);

/* The same of warn(). */
const char *messages_last_warning(void);
