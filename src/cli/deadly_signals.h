/*
 * deadly_signals - whatever ends the process, no unfinished file is left under a name
 */
#pragma once

/*
 * From now on every signal that would end the process, and that can be caught, first removes the
 * names that unfinished outputs have at the moment. Then the process dies of the signal; where
 * signals cannot end it, as process 1 of a container, it exits with 128 and the signal's number.
 * Signals that whoever started it had it pass over stay so, and what has a handler keeps it.
 */
void deadly_signals_handle(void);
