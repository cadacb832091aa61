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
struct part_note {
	struct digest digest;
	uint64_t first_end, last_end; /* behind the records whose keys are kept; 0: none is */
	unsigned char first[PARTS_MOST_KEY_NBYTES], last[PARTS_MOST_KEY_NBYTES];
};

struct ranks;

struct part_notes {
	/* Set at creation. */
	const struct sort_spec *spec;
	uint64_t record_nbytes; /* of the output */
	bool hashes;            /* these are not what the merge has digested */
	struct key *keys;       /* n_keys, where they stand there; none: the output is not sorted */
	uint32_t n_keys;
	uint32_t n_key_nbytes; /* that are kept */

	pthread_mutex_t lock;
	struct part_note *notes; /* n_part_files of the spec; under the lock */
};

/* spec: complete. Returns 0, or -ENOMEM after a message; to be closed in both cases. */
int part_notes_open(const struct sort_spec *spec, const struct layout *layout,
		    struct part_notes *ret_notes);
/* Zeroed is fine. */
void part_notes_close(struct part_notes *notes);

/*
 * n records from number `position` of the part on. digest: of their bodies (layout.h); NULL: not
 * known. Any thread.
 */
void part_notes_add(struct part_notes *notes, uint32_t part, uint64_t position, const void *records,
		    uint64_t n, const struct digest *digest);

/* What all ranks know of the parts, everywhere: every rank calls it. 0, or a negative errno. */
int part_notes_meet(struct part_notes *notes, struct ranks *ranks);

/* Of what is known of it. */
uint64_t part_notes_n_records(const struct part_notes *notes, uint32_t part);

/* What a part is called, and how many bytes it has. */
struct part_place {
	const char *name;
	uint64_t nbytes;
};

/* All is written: the text of the list, to be freed. places: of all parts. As -ENOMEM above. */
int part_notes_list(const struct part_notes *notes, enum parts_content content,
		    const struct part_place *places, char **ret_text);
