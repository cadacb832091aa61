/*
 * part_manifest.h - the JSON file that lists the part files of a sorted output
 *
 *	{ "gsort_part_manifest": 1, "content": "records", "record_bytes": 8, "keys": [...], ...
 *	  "part_files": [ { "number": 0, "name": "part-0000", "records": 1000, ... }, ... ] }
 *
 * docs/formats.md describes the format, so that other programs can read and write manifests. The
 * first member distinguishes a manifest from records. Part files are named relative to the
 * directory of the manifest.
 *
 * A manifest has at most 4 MiB and 1,000 part files, and JSON of at most 40,000 values, so that
 * reading it takes little memory, whatever members it has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"
#include "src/record/key_type.h"

/* The content of part files, decompressed. */
enum part_file_content { PART_CONTENT_RECORDS, PART_CONTENT_NPY, PART_CONTENT_LINES };

/* The name of the manifest in a directory of part files. */
#define PART_MANIFEST_NAME "manifest.json"

/* The maximum number of part files, and of bytes of a key that are listed. */
enum { PART_MANIFEST_MAX_PARTS = 1000, PART_MANIFEST_MAX_KEY_NBYTES = 64 };

struct manifest_part {
	char *name; /* without directory */
	uint64_t n_records, nbytes;
	uint64_t checksum;          /* the sum of their digest (digest.h) */
	char *first_key, *last_key; /* hexadecimal digits; NULL: no record, or no key */
};

struct part_manifest {
	enum part_file_content content;
	bool is_zstd;                          /* part files are compressed */
	uint64_t record_nbytes, header_nbytes; /* header_nbytes: of each part file; of lines 0 */
	char *order;                           /* of lines: options of gsort --lines */
	struct key *keys;                      /* n_keys, within the record; 0: not sorted */
	uint32_t n_keys;
	bool unique, split_by_keys;  /* no key occurs twice; no key is in two part files */
	uint64_t n_records;          /* of all part files */
	struct manifest_part *parts; /* n_parts */
	size_t n_parts;
};

/*
 * Return whether the manifest says that no key is in two part files, but lists a key at the end of
 * one and the beginning of the next.
 */
bool part_manifest_splits_key(const struct part_manifest *manifest);

/* Format the keys of a record, or as much of them as is listed, as hexadecimal digits. */
enum { PART_MANIFEST_KEYS_TEXT_NBYTES = 2 * PART_MANIFEST_MAX_KEY_NBYTES + 1 };
void part_manifest_format_keys(const struct key *keys, uint32_t n_keys, const void *record,
			       char text[static PART_MANIFEST_KEYS_TEXT_NBYTES]);

/* Return whether a file that begins with these n bytes may be a manifest. */
bool part_manifest_detect(const void *head, size_t n);

/*
 * Read the manifest of an open file; `path` is for messages. Returns 0, or -EFBIG, -EINVAL or
 * another negative errno (reported). Free the manifest in any case.
 */
int part_manifest_read(const struct file *file, const char *path,
		       struct part_manifest *ret_manifest);

/*
 * Parse the text of a manifest; `path` is for messages. Returns 0; -EINVAL (reported) if it is
 * invalid, contradictory, or of another version; or -ENOMEM (reported). Free the manifest in any
 * case.
 */
int part_manifest_parse(const char *text, size_t nbytes, const char *path,
			struct part_manifest *ret_manifest);

/* Report that memory is short. Returns -ENOMEM. */
int part_manifest_fail_memory(const char *path);

/* Format a manifest as text, which the caller frees. Returns 0 or -ENOMEM (reported). */
int part_manifest_format(const struct part_manifest *manifest, char **ret_text);

/* Free the members of a manifest, which may be all zeros. */
void part_manifest_free(struct part_manifest *manifest);
