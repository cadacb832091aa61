/*
 * part_stats - what is known of each part of an output that is divided, and the list made of it
 *
 * Pieces of a part come in any order, from several threads. What is added up is the digest of the
 * records as they stand in the part, which is the one that a reader finds (gsort-check); of the
 * first and the last of them the keys are kept.
 */
#pragma once

#include <pthread.h>

#include "io/input/part_manifest.h"
#include "src/plan/sort_spec.h"

/* Of a part. Zeroed: nothing is there yet. */
struct part_stats {
	struct digest digest;
	uint64_t first_end, last_end; /* behind the records whose keys are kept; 0: none is */
	unsigned char first[PART_MANIFEST_MAX_KEY_NBYTES], last[PART_MANIFEST_MAX_KEY_NBYTES];
};

struct comm;

struct part_stats_table {
	/* Set at creation. */
	const struct sort_spec *spec;
	uint64_t record_nbytes; /* of the output */
	bool needs_digest;      /* these are not what the merge has digested */
	struct key *keys;       /* n_keys, where they stand there; none: the output is not sorted */
	uint32_t n_keys;
	uint32_t n_key_nbytes; /* that are kept */

	pthread_mutex_t lock;
	struct part_stats *stats; /* n_part_files of the spec; under the lock */
};

/* spec: complete. Returns 0, or -ENOMEM after a message; to be closed in both cases. */
int part_stats_open(const struct sort_spec *spec, const struct layout *layout,
		    struct part_stats_table *ret_table);
/* Zeroed is fine. */
void part_stats_close(struct part_stats_table *table);

/*
 * n records from number `position` of the part on. digest: of their bodies (layout.h); NULL: not
 * known. Any thread.
 */
void part_stats_add(struct part_stats_table *table, uint32_t part_index, uint64_t position,
		    const void *records, uint64_t n, const struct digest *digest);

/* What all ranks know of the parts, everywhere: every rank calls it. 0, or a negative errno. */
int part_stats_gather(struct part_stats_table *table, struct comm *comm);

/* Of what is known of it. */
uint64_t part_stats_n_records(const struct part_stats_table *table, uint32_t part_index);

/* What a part is called, and how many bytes it has. */
struct part_file_info {
	const char *name;
	uint64_t nbytes;
};

/* All is written: the text of the list, to be freed. places: of all parts. As -ENOMEM above. */
int part_stats_format_manifest(const struct part_stats_table *table, enum part_file_content content,
			       const struct part_file_info *files, char **ret_text);
