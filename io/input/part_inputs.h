/*
 * part_inputs - directories of part files as inputs
 *
 * A part manifest (part_manifest.h) among the paths of an input, or its directory, stands for its
 * part files, one after the other. Each must have the listed size when it is opened, and the listed
 * checksum when all of its records have been read. So part files of another run, and changed ones,
 * are refused.
 *
 *	paths	a/			b	c/manifest.json
 *	files	a/part-0000 a/part-0001	b	c/part-0000 c/part-0001	the input's sources
 *	groups	[                     ]	[ ]	[                     ]	each a sorted sequence
 */
#pragma once

#include <pthread.h>

#include "io/file/file.h"
#include "io/input/format_detect.h"
#include "io/input/part_manifest.h"
#include "src/record/digest.h"
#include "src/record/schema.h"

struct source;

/* The files of one path. */
struct input_group {
	const char *path;
	char *manifest_path; /* path of the manifest; NULL: none */
	size_t first, n;     /* files */
	bool is_manifest;
	struct file_id identity; /* identity of the manifest */
	struct part_manifest manifest;
};

/* A file, and what has been read of it. */
struct part_input_file {
	const struct input_group *group;
	const struct manifest_part *part;
	struct digest read_digest; /* protected by the lock */
};

struct part_inputs {
	struct input_group *groups; /* n_groups, in the order of files */
	size_t n_groups;
	char **paths;                  /* n_files */
	struct endpoint *endpoints;    /* n_files */
	struct part_input_file *files; /* n_files; part NULL: not of a manifest */
	size_t n_files;
	struct schema fields; /* of plain records, by the first manifest */
	pthread_mutex_t lock;
};

/*
 * Replace those of n paths that are manifests by their part files. are_lines: of lines, else of
 * records; other manifests are refused. endpoints are those of
 * input_open_endpoints(), or NULL. Returns 0 and an object to part_inputs_close(), or a negative
 * errno (reported).
 */
int part_inputs_open(const struct syscalls *calls, const char *const *paths,
		     const struct endpoint *endpoints, const bool *are_manifests, size_t n,
		     bool are_lines, struct part_inputs **ret_part_inputs);
/* NULL is ignored. */
void part_inputs_close(struct part_inputs *part_inputs);

/* Return the first manifest. There must be one. */
const struct input_group *part_inputs_first_manifest(const struct part_inputs *part_inputs);

/*
 * Check a probed file against the size in its manifest. Returns 0 or a negative errno (reported).
 */
int part_inputs_check_size(const struct part_inputs *part_inputs, size_t file,
			   const struct source *source);

/*
 * Determine how many of the nbytes after the header are records, as listed in the manifest;
 * incomplete records may follow in the last part. *ret_is_counted is false if the file is in no
 * manifest. Returns 0 or a negative errno (reported).
 */
int part_inputs_measure(const struct part_inputs *part_inputs, size_t file, uint64_t nbytes,
			const struct framing *framing, uint64_t *ret_records_nbytes,
			bool *ret_is_counted);

/*
 * Check the keys of the first or last record against the manifest, so that a part file of another
 * run is detected before it is read. Returns 0 or -EIO (reported).
 */
int part_inputs_check_key(const struct part_inputs *part_inputs, size_t file, const void *record,
			  bool is_last);

/*
 * Add the digest of records that were read, each once. Thread-safe. Returns 0, or -EIO (reported)
 * if all records have been read and differ from the manifest.
 */
int part_inputs_add_read_digest(struct part_inputs *part_inputs, size_t file, struct digest digest);

/* Return the sum of all digests of the file. */
struct digest part_inputs_get_read_digest(struct part_inputs *part_inputs, size_t file);

/*
 * Compare the digest of what was read of a file with the manifest: if it is of all records, or of
 * all lines. Returns 0 or -EIO (reported).
 */
int part_inputs_check_digest(const struct part_inputs *part_inputs, size_t file,
			     struct digest digest);
