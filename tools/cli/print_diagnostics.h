/*
 * print_diagnostics - messages, as lines on standard error
 */
#pragma once

#include "src/base/diagnostics.h"

/*
 * From now on what the calling thread says, and those say that it starts, is printed to standard
 * error: "PROGRAM: MESSAGE\n", or "PROGRAM: warning: MESSAGE\n", of a detail "MESSAGE\n"; one line
 * each and nothing but text, whatever names are in it. There is one such printer in a process: if
 * it is asked for again, nothing has failed yet, and no other thread may have it. `program` must
 * outlive it.
 */
void print_diagnostics_as(const char *program);
