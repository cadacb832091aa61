/*
 * fingerprint - what a checkpoint is of, in words that can be compared
 *
 * A list of names and values, each ended by a NUL: everything that decides what the output's bytes
 * are. How they are made (memory, threads, back end, compression) may be different the next time.
 */
#pragma once

#include "io/file/file.h"
#include "src/plan/sort_spec.h"

struct description {
	char *text; /* free() */
	size_t nbytes;
};

/*
 * Describe the sort, of several ranks this one's part; looks at the input files. 0, or a negative
 * errno after a message.
 */
int description_make(const struct sort_spec *spec, struct description *ret_description);

/* For ranks to see whether all have been asked for the same. */
int description_make_meeting(const struct sort_spec *spec, struct description *ret_description);

/* The first entry in which two descriptions differ. The strings are theirs. */
struct difference {
	const char *name, *was, *is;
	const char *input; /* if it is the state of one: its path */
	bool is_place;     /* of the output */
};

/*
 * Do they differ, but for inputs whose state is accepted now? That is one that begins so:
 * ACCEPT_NONE, ACCEPT_ALL, or what description_format_file() gives. *ret_difference: the first.
 */
bool description_differs(const struct description *saved, const struct description *now,
			 const char *accepted, struct difference *ret_difference);

#define ACCEPT_NONE NULL
#define ACCEPT_ALL ""

/* How the state of an input begins that is this file. */
void description_format_file(struct file_identity file, char text[static 80]);
