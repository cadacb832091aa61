/*
 * sort_spec - what a sort is asked for
 *
 * Who wants something sorted fills in one of these: the library does (src/lib/), and so can any
 * other front end. Everything below knows this, and no option. A spec is complete, consistent
 * and read-only; what it points to is the caller's, and must outlive the sort. What depends on the
 * machine (memory, threads) may be left at 0.
 *
 * SORT_SPEC_DEFAULTS is what a command line without options asks for; inputs, keys and directories
 * are to be added in any case.
 */
#pragma once

#include "io/file/file.h"
#include "io/file/endpoint.h"
#include "io/input/input.h"
#include "io/spill/compression_policy.h"
#include "src/base/cancellation.h"
#include "src/device/backend.h"
#include "src/record/schema.h"

struct sort_spec {
	/* What is read. */
	const char *const *inputs; /* n_inputs paths, in the order of ties; "-": standard input */
	size_t n_inputs;           /* at least 1 */
	/* n_inputs, which stand in the place of paths or do not; NULL: none does. */
	const struct endpoint *input_endpoints;
	bool merge_inputs;       /* the inputs are sorted already */
	bool check_only;         /* whether they are is all that is asked; nothing is written */
	uint64_t skip_nbytes;    /* of each input, before its records; in front of the output */
	enum partial partial;    /* what becomes of an incomplete last record */
	enum format_mode format; /* what else than records an input may be */

	/* What a record is. */
	uint64_t record_nbytes; /* 1 to LAYOUT_MAX_RECORD_NBYTES */
	const struct key *keys; /* n_keys, the most significant first; within the record */
	uint32_t n_keys;        /* at least 1 */
	enum record_spec_kind
		record_spec; /* RECORD_SPEC_NONE: what is above was left at the default */
	/*
	 * RECORD_SPEC_REQUESTS: instead of keys, which are none then, by what an input that says
	 * itself what its records are is to be sorted; record_nbytes may be 0. (spec_resolve)
	 */
	const struct key_request *key_requests; /* n_key_requests */
	uint32_t n_key_requests;
	bool reverse; /* all keys that such an input makes are descending */
	/*
	 * They are more than one number each, so what is equal stays in its order, also where its
	 * bits are all that there is (-0.0 and +0.0). Once the spec is complete.
	 */
	bool preserve_ties;
	/* In front of the records of the output: once the spec is complete, by who made it so. */
	uint64_t header_nbytes;

	/* What is written. */
	const char *output_path; /* NULL: standard output, unless something else is given: */
	struct endpoint output_endpoint;
	bool omit_header;         /* no header, whatever the inputs begin with */
	bool unique;              /* of records with equal keys, the first */
	uint64_t limit;           /* at most so many records; SORT_SPEC_UNLIMITED: all */
	bool count;               /* before each record, of how many it is; only with unique */
	bool keys_only;           /* keys, or ... */
	bool argsort;             /* ... positions; not both, and not with count */
	int zstd_level;           /* 1 and more; 0: as it is */
	uint32_t shard, n_shards; /* of a merge, of so many equal parts the one, from 1; 0: all */
	/*
	 * output_path is a directory of so many files and their manifest (part_files.h); 0: it is
	 * one file.
	 */
	uint32_t n_part_files;
	bool split_by_keys; /* no key is in two of them; always so with unique */
	bool verify;        /* read it back; only with output_path */
	bool fsync;         /* done when it is on stable storage; only with output_path */

	/*
	 * Who else sorts: each rank reads a part of the inputs, and writes one of the output, for
	 * which all have the same spec, but for memory, threads and directories. NULL: nobody.
	 */
	struct comm *comm;
	bool disable_shared_memory; /* all that they exchange, those on one machine, too */
	/* Of a sort that is only to be explained: so many that there are not; 0: as there are. */
	uint32_t n_assumed_ranks;

	/* With what. */
	struct cancellation *cancellation; /* by who may end it; NULL: nobody */
	const struct syscalls *io; /* and what of the process may be used; NULL: syscalls_plain */
	enum backend_choice backend;
	/*
	 * Numbers of the devices that are wanted, n_gpus of them; one may be there more than once.
	 * None: the first that there is.
	 */
	const unsigned *gpus;
	unsigned n_gpus;
	bool all_gpus;                 /* all that can be had, and no numbers */
	unsigned n_threads;            /* of the CPU; 0: all that this process may use */
	uint64_t memory_nbytes;        /* of the host; 0: half of what is available */
	uint64_t device_memory_nbytes; /* of each GPU; 0: what is free less a tenth */
	uint32_t batch_size;           /* merge at most so many runs at once; 0: as planned */
	uint32_t n_partitions;         /* of the output, merged side by side; 0: as planned */

	/* What is kept meanwhile. */
	const char *const *temp_dirs; /* n_temp_dirs, at least 1: used side by side */
	size_t n_temp_dirs;
	uint64_t temp_limit_nbytes;            /* SORT_SPEC_UNLIMITED: none */
	struct compression_params compression; /* of what is there */
	const char *checkpoint_path; /* a directory, and the only one of temp_dirs; NULL: none */

	/* Afterwards find out what the stages could have done, in a tenth of the time. */
	bool measure_peak_rates;
};

#define SORT_SPEC_UNLIMITED UINT64_MAX

#define SORT_SPEC_DEFAULTS                                                                         \
	{                                                                                          \
		.limit = SORT_SPEC_UNLIMITED, .temp_limit_nbytes = SORT_SPEC_UNLIMITED             \
	}

/*
 * The layout of the records and of what is written in their place. Returns 0 and a layout to
 * layout_free(), or -ENOMEM after a message.
 */
int spec_layout(const struct sort_spec *spec, struct layout *ret_layout);

/* Which bytes of the inputs are records. */
struct framing spec_framing(const struct sort_spec *spec);

/*
 * What the inputs say of their records is known (input_is_resolved()): a copy of the spec that says
 * it, too, with the keys that follow. `name` is that of the first input, for messages. *ret_keys is
 * to be freed behind the copy, NULL if it has those of the spec. Returns 0, or a negative errno
 * after a message: of a spec that contradicts them.
 */
int spec_resolve(const struct sort_spec *spec, const struct input *input, const char *name,
		 struct sort_spec *ret_spec, struct key **ret_keys);

/* Inputs that are only looked at, and all that is to be known of their records. */
struct input_probe {
	struct input *input;
	struct sort_spec spec; /* complete */
	struct key *keys;      /* of it */
	struct layout layout;
};

/*
 * Open the inputs of a spec, wait for the first bytes of a pipe, and complete the spec. checker: as
 * of a framing. Returns 0, or a negative errno after a message. To be closed in any case.
 */
int spec_probe_inputs(const struct sort_spec *spec, const char *checker,
		      struct input_probe *ret_probe);
/* The same in two steps: open the inputs, to be closed in any case; and what is behind that. */
int spec_open_inputs(const struct sort_spec *spec, const char *checker,
		     struct input_probe *ret_probe);
int spec_finish_probe(const struct sort_spec *spec, struct input_probe *probe);
void spec_close_probe(struct input_probe *probe);

/* Is it one rank's, of those that there are, or of so many that are assumed? */
static inline bool spec_is_distributed(const struct sort_spec *spec)
{
	return spec->comm || spec->n_assumed_ranks;
}

/*
 * Do several ranks each store runs, and read their ranges of those of all? Of a merge each reads
 * its range of the inputs itself.
 */
static inline bool spec_exchanges_runs(const struct sort_spec *spec)
{
	return spec_is_distributed(spec) && !spec->merge_inputs;
}

/* Return the memory that the sort may use: that of -S, or its default. */
uint64_t spec_memory_nbytes(const struct sort_spec *spec);

/* Return the number of CPU threads: that of --parallel, or all CPUs that the process may use. */
unsigned spec_n_threads(const struct sort_spec *spec);

/* Return how many of them compress the output, with buffers of at most a quarter of the memory. */
unsigned spec_n_compressors(const struct sort_spec *spec);

/* Where the part of n records that is asked for ends, and with part - 1 where it begins. */
static inline uint64_t spec_shard_end(const struct sort_spec *spec, uint32_t shard, uint64_t n)
{
	return (uint64_t)((unsigned __int128)n * shard / spec->n_shards);
}
