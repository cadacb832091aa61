/*
 * part_manifest - the JSON file that lists the part files of a sorted output
 *
 *	{ "gsort_part_manifest": 1, "content": "records", "record_bytes": 8, "keys": [...], ...
 *	  "part_files": [ { "number": 0, "name": "part-0000", "records": 1000, ... }, ... ] }
 *
 * The format is described in docs/formats.md, so that other programs can read and write manifests.
 * It begins with its mark, by which it is told from records. Part files are named relative to the
 * directory of the manifest.
 *
 * A manifest has at most 16 MiB and 1,000 part files. Beyond its text, reading it takes little
 * memory, whatever members it has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "src/record/key_type.h"

/* What the files are, or what is compressed in them. */
enum part_file_content { PART_CONTENT_RECORDS, PART_CONTENT_NPY };

/* The name of the manifest in a directory of part files. */
#define PART_MANIFEST_NAME "manifest.json"

/* The most part files that are written or read, and the most bytes of a key that are listed. */
enum { PART_MANIFEST_MAX_PARTS = 1000, PART_MANIFEST_MAX_KEY_NBYTES = 64 };

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
 * Read the manifest of an open file; `path` is for messages. Returns 0, -EFBIG, -EINVAL or another
 * negative errno after a message. To be freed in any case.
 */
int part_manifest_read(const struct file *file, const char *path,
		       struct part_manifest *ret_manifest);

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
