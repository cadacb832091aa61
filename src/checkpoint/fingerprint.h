/*
 * fingerprint - what a checkpoint is of, in words that can be compared
 *
 * A list of names and values, each ended by a NUL: everything that decides what the output's bytes
 * are. How they are made (memory, threads, back end, compression) may be different the next time.
 */
#pragma once

#include "io/file/file.h"
#include "src/plan/sort_spec.h"

struct fingerprint {
	char *text; /* free() */
	size_t nbytes;
};

/*
 * Describe the sort, of several ranks this one's part; looks at the input files. 0, or a negative
 * errno after a message.
 */
int fingerprint_create(const struct sort_spec *spec, struct fingerprint *ret_fingerprint);

/* For ranks to see whether all have been asked for the same. */
int fingerprint_create_collective(const struct sort_spec *spec,
				  struct fingerprint *ret_fingerprint);

/* The first entry in which two descriptions differ. The strings are theirs. */
struct fingerprint_difference {
	const char *name, *saved_value, *value;
	const char *input_path;  /* if it is the state of one: its path */
	bool is_output_location; /* of the output */
};

/*
 * Do they differ, but for inputs whose state is accepted now? That is one that begins so:
 * ACCEPT_NONE, ACCEPT_ALL, or what fingerprint_format_file() gives. *ret_difference: the first.
 */
bool fingerprint_differs(const struct fingerprint *saved, const struct fingerprint *current,
			 const char *accepted, struct fingerprint_difference *ret_difference);

#define ACCEPT_NONE NULL
#define ACCEPT_ALL ""

/* How the state of an input begins that is this file. */
void fingerprint_format_file(struct file_id file, char text[static 80]);
