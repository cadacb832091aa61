/*
 * process - what this process has once, and lends to the jobs in it
 *
 * Signals, and with them pages that cannot be had and names that must not be left behind, are of
 * the whole process. What is below src/cli/ does not touch them: it gets here what it needs of
 * them, beside the system's calls (struct syscalls).
 */
#pragma once

#include "io/file/mapping.h"
#include "io/output/commitment.h"
#include "io/output/hidden_names.h"

extern struct process {
	struct mapping_guards guards;
	struct hidden_names names;    /* for deadly_signals.c, which removes them */
	struct commitment commitment; /* the same */
} process;

/*
 * Handle SIGBUS: what is mapped and cannot be had becomes zeros (mapping.h); any other does what it
 * would have done before. Once more is fine. One thread.
 */
void process_lend(void);

/*
 * So many files will be open at a time: let the process have them, as far as it may. What it may
 * not, whoever opens them will say.
 */
void process_allow_files(unsigned n);

/* The system's calls, with what is lent; before process_lend() nothing is. */
const struct syscalls *process_calls(void);
