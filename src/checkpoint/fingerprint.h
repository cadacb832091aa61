/*
 * fingerprint.h - a description of a sort that can be compared
 *
 * A list of names and values, each terminated by a NUL, with everything that determines the bytes
 * of the output. Memory, threads, back end and compression of temporary files may change when a
 * checkpoint is resumed.
 */
#pragma once

#include "io/file/file.h"
#include "src/plan/sort_spec.h"

struct fingerprint {
	char *text; /* free() */
	size_t nbytes;
};

/*
 * Describe the sort, including the state of its input files. With several ranks: this rank's part
 * of the sort, or, with is_collective, what must be equal on all ranks. Returns 0 or a negative
 * errno (reported).
 */
int fingerprint_create(const struct sort_spec *spec, bool is_collective,
		       struct fingerprint *ret_fingerprint);

/* The first entry that differs. The strings belong to the fingerprints. */
struct fingerprint_difference {
	const char *name, *saved_value, *value;
	const char *input_path;  /* if the entry is the state of an input */
	bool is_output_location; /* if it is the location of the output */
};

/*
 * Compare two fingerprints, but ignore the state of inputs whose current state begins with
 * `accepted`: ACCEPT_NONE, ACCEPT_ALL, or the text of fingerprint_format_file(). If they differ,
 * returns true and the first difference in *ret_difference.
 */
bool fingerprint_differs(const struct fingerprint *saved, const struct fingerprint *current,
			 const char *accepted, struct fingerprint_difference *ret_difference);

#define ACCEPT_NONE NULL
#define ACCEPT_ALL ""

/* Format the part of an input's state that identifies the file; the state begins with it. */
void fingerprint_format_file(struct file_id file, char text[static 80]);
