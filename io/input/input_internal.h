/*
 * input_internal - the members of an input; for input.c, input_header.c and input_info.c
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "io/file/mapping.h"
#include "io/input/format_detect.h"
#include "io/input/part_inputs.h"
#include "io/input/source.h"

/* A source and its part of the stream. */
struct input_source {
	struct source source;
	uint64_t position;           /* known when it is started */
	uint64_t header_nbytes;      /* likewise */
	uint64_t declared_n_records; /* by its header, if it declares_n_records */
	bool declares_n_records;
	void *trailer;
	size_t trailer_nbytes;
	struct mapping mapping; /* of its records, if the input is mapped */
};

struct input {
	/* Constant. */
	struct framing framing;
	bool is_serial; /* sources are read one after the other, because one of them is a stream */
	uint64_t total_nbytes;
	size_t n_sources;
	uint64_t state_nbytes; /* memory of names, sources and trailers */
	int cancel_fd;         /* readable after input_cancel(); -1 without streams */

	unsigned char *header; /* of the first source, unless a format defines it */
	struct npy *npy;       /* the format of all sources; NULL: plain records, or unknown */
	bool owns_npy;
	bool is_resolved;                /* the format is known */
	struct part_inputs *part_inputs; /* NULL: there are no manifests */

	atomic_int r;                  /* the first error, or 0 */
	atomic_bool has_filled_buffer; /* a serial read has filled a whole buffer */

	pthread_mutex_t claim_lock;
	/* Protected by the claim lock. */
	uint64_t next;                /* position of the next read */
	uint64_t excluded_end_nbytes; /* bytes at the end that are not read */
	size_t current;               /* the source being read, in a serial input */

	/*
	 * The number of sources whose position is known: all, or in a serial input the current one
	 * and those before it. Changed under the claim lock, after the position.
	 */
	atomic_size_t n_started;

	struct source_table table;
	struct input_source sources[];
};

/* Return 0, or -E2BIG if state_nbytes exceeds the memory of the framing. */
int input_check_state_memory(const struct input *input);

/* Replace manifests by their part files. The input owns part_inputs. Before sources are probed. */
void input_set_part_inputs(struct input *input, struct part_inputs *part_inputs);

/* Check that manifests agree with the framing. Returns 0 or -EINVAL. */
int input_check_manifests(struct input *input);

/* Read the first bytes of a source. */
typedef int input_read_header_fn(struct input *input, struct input_source *entry, void *buffer,
				 size_t nbytes);

/* Parse the header of a source, and resolve or check the format of the input. */
int input_parse_header(struct input *input, struct input_source *entry,
		       input_read_header_fn *read_bytes);

/* Check that the nbytes after the header are as many records as it declares. */
int input_check_count(const struct input *input, const struct input_source *entry, uint64_t nbytes);

/* Determine how many bytes are records in a source of nbytes, including its header. */
int input_measure(const struct input *input, const struct input_source *entry, uint64_t nbytes,
		  uint64_t *ret_records_nbytes);

/* Report that a source of nbytes is shorter than its header. Returns -EINVAL. */
int input_fail_short(const struct input *input, const struct input_source *entry,
		     uint64_t header_nbytes, uint64_t nbytes);
