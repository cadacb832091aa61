/*
 * fatal_signals - whatever ends the process, no unfinished file is left under a name
 */
#pragma once

/*
 * From now on every signal that would end the process, and that can be caught, first removes the
 * names that unfinished outputs have at the moment, however many more signals come meanwhile. Then
 * the process dies of the first; where signals cannot end it, as process 1 of a container, it exits
 * with 128 and the signal's number.
 * Signals that whoever started it had it pass over stay so, and what has a handler keeps it.
 *
 * Once an output gets its name they are passed over, but those of the program's own
 * faults: the process goes on to its end. If all that is left to do is to tell of it, which may
 * take long, as where a report is written depends on others, a signal ends the process with a
 * message and EXIT_TROUBLE.
 */
void fatal_signals_install(void);

/* A limit on the size of files is told of by who writes one (EFBIG), and ends nothing. */
void fatal_signals_ignore_size_limit(void);

/*
 * All is over: if the output could not get its name, and a signal was passed over for that, the
 * process dies of it now.
 */
void fatal_signals_raise_pending(void);
