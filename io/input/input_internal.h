/*
 * input_internal - what an input consists of; of input*.c only
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "io/file/mapping.h"
#include "io/input/input.h"
#include "io/input/part_inputs.h"
#include "io/input/source.h"

/* A source, its place in the stream, and what of it is kept apart. */
struct input_source {
	struct source source;
	uint64_t position;           /* known once it is started */
	uint64_t header_nbytes;      /* as well */
	uint64_t declared_n_records; /* records, by the header: any number at all */
	bool declares_n_records;     /* else declared_n_records is nothing */
	void *trailer;
	size_t trailer_nbytes;
	struct mapping mapping; /* of what it contributes, if the input is mapped */
};

struct input {
	/* Set at creation. */
	struct framing framing;
	uint64_t total_nbytes;
	size_t n_sources;
	uint64_t state_nbytes; /* taken by names, sources and kept tails */
	int cancel_fd;         /* readable once input_cancel() was called; -1 without streams */

	unsigned char *header; /* of the first source, without a format */
	struct npy *npy;       /* what all of them are; NULL: plain records, or not known yet */
	bool owns_npy;
	bool is_resolved;                /* it is known, from the first that was looked at */
	struct part_inputs *part_inputs; /* NULL: there are none */

	atomic_int r;                  /* the first failure, or 0 */
	atomic_bool has_filled_buffer; /* a serial input has filled somebody's whole buffer */

	pthread_mutex_t claim_lock;
	/* Under the claim lock. */
	uint64_t next;                /* position that is given out next */
	uint64_t excluded_end_nbytes; /* bytes at the end that are not given out */
	size_t current;               /* the source being read, in a serial input */

	/*
	 * Sources whose position is known: all, or in a serial input the current one and those
	 * before it. Changed under the claim lock, after the position.
	 */
	atomic_size_t n_started;

	struct source_table table;
	struct input_source sources[];
};

/* Are its sources read one after the other, since one of them at least is a stream? */
static inline bool input_is_serial(const struct input *input)
{
	return input->total_nbytes == INPUT_SIZE_UNKNOWN;
}

/* Return 0, or -E2BIG after a message if state_nbytes exceeds the memory of the framing. */
int input_check_state_memory(const struct input *input);

/* Remember the first failure; every later reader gets it. */
void input_stop(struct input *input, int r);

/* Its sources are those of the lists, which are its own from now on; before they are examined. */
void input_set_part_inputs(struct input *input, struct part_inputs *part_inputs);

/* Do lists say what was said of the records already? 0, or -EINVAL after a message. */
int input_check_manifests(struct input *input);

/* It has so many bytes behind its header: as many as that says? 0, or -EINVAL after a message. */
int input_check_count(const struct input *input, const struct input_source *entry, uint64_t nbytes);

/* Of nbytes, header and all, so many are records. 0, or a negative errno after a message. */
int input_measure(const struct input *input, const struct input_source *entry, uint64_t nbytes,
		  uint64_t *ret_records_nbytes);

/* Reads the first bytes of a source, or fails with a message. */
typedef int input_read_header_fn(struct input *input, struct input_source *entry, void *buffer,
				 size_t nbytes);

/*
 * A source has been started, or looked at: read over its header, and find out, or check, what its
 * records are. 0 or a negative errno after a message.
 */
int input_parse_header(struct input *input, struct input_source *entry,
		       input_read_header_fn *read_bytes);

/*
 * Of regular files: whose is the next part of nbytes, or what is left of the stream? The caller's;
 * returns how long it is.
 */
size_t input_claim(struct input *input, size_t nbytes, uint64_t *ret_position);
