/*
 * part_manifest - the files that a sorted output was divided into, as a list that names them
 *
 *	{ "gsort_part_manifest": 1, "content": "records", "record_bytes": 8, "keys": [...], ...
 *	  "part_files": [ { "number": 0, "name": "sorted.0000", "records": 1000, ... }, ... ] }
 *
 * It is JSON (docs/formats.md), so that other programs can read and make such lists; and it begins
 * with its mark, so that it is told from records. Names are those of files in the list's own
 * directory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "src/record/key_type.h"

/* What the files are, or what is compressed in them. */
enum part_file_content { PART_CONTENT_RECORDS, PART_CONTENT_NPY };

/* Of a key no more than so many bytes are told. */
enum { PART_MANIFEST_MAX_KEY_NBYTES = 64 };

struct manifest_part {
	char *name; /* without a directory */
	uint64_t n_records, nbytes;
	uint64_t checksum;          /* the sum of their digest (digest.h) */
	char *first_key, *last_key; /* hexadecimal digits; NULL: there is no record, or no key */
};

struct part_manifest {
	enum part_file_content content;
	bool is_zstd;                          /* they are compressed */
	uint64_t record_nbytes, header_nbytes; /* each part begins with so many of a header */
	struct key *keys;                      /* n_keys, within the record; none: not sorted */
	uint32_t n_keys;
	bool unique, split_by_keys;  /* no key is there twice; or in two parts */
	uint64_t n_records;          /* of all parts */
	struct manifest_part *parts; /* n_parts */
	size_t n_parts;
};

/* Does it say that no key is in two parts, and is one at an end and behind it, too? */
bool part_manifest_splits_key(const struct part_manifest *manifest);

/* The first n bytes of a file: can it be a list? */
bool part_manifest_detect(const void *head, size_t n);

/*
 * All of a file that may be a list, to be freed; `path` is for messages. Returns 0, or -EFBIG: no
 * list has so many bytes, or another negative errno, after a message.
 */
int part_manifest_read(const struct file *file, const char *path, char **ret_text,
		       size_t *ret_nbytes);

/*
 * The list of that text; `path` is for messages. Returns 0, or -EINVAL after a message: it is none,
 * of another version, or contradicts itself; or -ENOMEM. To be freed in any case.
 */
int part_manifest_parse(const char *text, size_t nbytes, const char *path,
			struct part_manifest *ret_manifest);

/* Can a name be in a list? It is text of UTF-8, of a file and not of a way to one. */
bool part_manifest_is_valid_name(const char *name);

/* The text of a list, to be freed. -ENOMEM after a message. */
int part_manifest_format(const struct part_manifest *manifest, char **ret_text);

/* A zeroed list is fine. */
void part_manifest_free(struct part_manifest *manifest);
