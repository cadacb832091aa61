/*
 * part_inputs - directories of part files as inputs: one sorted sequence in several files
 *
 * A part manifest (part_manifest.h) among the paths of an input, or the directory that it is in,
 * stands for its part files, one after the other. They are compared with the manifest: each has the
 * listed size when it is opened, and the listed checksum when all of its records have been read. So
 * part files of another run, and those that have been changed, are refused.
 *
 *	paths	a/			b	c/manifest.json
 *	files	a/part-0000 a/part-0001	b	c/part-0000 c/part-0001	the input's sources
 *	groups	[                     ]	[ ]	[                     ]	each a sorted sequence
 */
#pragma once

#include <pthread.h>

#include "io/file/endpoint.h"
#include "io/input/framing.h"
#include "io/input/part_manifest.h"
#include "io/input/source.h"
#include "src/record/digest.h"
#include "src/record/schema.h"

/* The files that one path stands for. */
struct input_group {
	const char *path;
	char *manifest_path; /* that, or of the file in that directory; NULL if it is no manifest */
	size_t first, n;     /* files */
	bool is_manifest;
	struct file_id identity; /* of the list */
	struct part_manifest manifest;
};

/* A file of a list, and what has been read of it. */
struct part_input_file {
	const struct input_group *group;
	const struct manifest_part *part;
	struct digest read_digest; /* under the lock */
};

struct part_inputs {
	struct input_group *groups; /* n_groups, in the order of the files */
	size_t n_groups;
	char **paths;                  /* n_files; allocated where they are not among those given */
	struct endpoint *endpoints;    /* n_files */
	struct part_input_file *files; /* n_files; part NULL: it is in no list */
	size_t n_files;
	struct schema fields; /* of plain records: what the first list says of them */
	pthread_mutex_t lock;
};

/*
 * Of the n paths (given: as for input_open_endpoints(); or NULL), those that are_manifests are
 * read, and replaced by their parts. Returns 0 and lists to part_inputs_close(), or a negative
 * errno after a message.
 */
int part_inputs_open(const struct syscalls *calls, const char *const *paths,
		     const struct endpoint *endpoints, const bool *are_manifests, size_t n,
		     struct part_inputs **ret_part_inputs);
/* NULL is fine. */
void part_inputs_close(struct part_inputs *part_inputs);

/* The first list; there is one. */
const struct input_group *part_inputs_first_manifest(const struct part_inputs *part_inputs);

/* Is the file, which was examined, as long as its list says? 0, or a negative errno: a message. */
int part_inputs_check_size(const struct part_inputs *part_inputs, size_t file,
			   const struct source *source);

/*
 * How many of the nbytes behind its header are records? As many as the list says; behind those of
 * the last part may be what was no record of the inputs that were sorted. is_counted: false if the
 * file is in no list. Returns 0, or a negative errno after a message: it has others.
 */
int part_inputs_measure(const struct part_inputs *part_inputs, size_t file, uint64_t nbytes,
			const struct framing *framing, uint64_t *ret_records_nbytes,
			bool *ret_is_counted);

/*
 * Its first or last record, is it the one that the list says, as far as its keys tell? So a part of
 * another run is found before anything is done. 0, or -EIO after a message.
 */
int part_inputs_check_key(const struct part_inputs *part_inputs, size_t file, const void *record,
			  bool is_last);

/*
 * Records of the file were read, each once in all. 0, or -EIO after a message: that was all of
 * them, and they are others than the list says. Any thread.
 */
int part_inputs_add_read_digest(struct part_inputs *part_inputs, size_t file, struct digest digest);

/* All that was noted of the file. */
struct digest part_inputs_get_read_digest(struct part_inputs *part_inputs, size_t file);
