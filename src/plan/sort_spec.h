/*
 * sort_spec.h - the request for a sort
 *
 * Each front end fills in a spec; the library does (src/lib/). All code below knows the spec and no
 * options. A spec is complete, consistent and read-only. Its pointers belong to the caller and must
 * outlive the sort. Members that depend on the machine (memory, threads) may be 0.
 *
 * SORT_SPEC_DEFAULTS is a command line without options. Inputs, keys and directories have to be
 * added.
 */
#pragma once

#include "io/file/file.h"
#include "io/input/input.h"
#include "io/spill/compression_policy.h"
#include "src/base/cancellation.h"
#include "src/device/backend.h"
#include "src/record/schema.h"

/* The requested devices. Zero-initialised: the first one that is found. */
struct gpu_list {
	unsigned numbers[64], n; /* a number may appear more than once */
	bool all;                /* use all devices; there are no numbers */
};

struct sort_spec {
	/* Input */
	const char *const *inputs; /* n_inputs paths, in the order of ties; "-": standard input */
	size_t n_inputs;           /* at least 1 */
	/* Endpoints of the n_inputs inputs, which may replace paths; NULL: none does. */
	const struct endpoint *input_endpoints;
	bool merge_inputs; /* the inputs are sorted already */
	bool check_only;   /* only check whether they are; write nothing */
	/* Size of the header of each input; that of the first one is copied to the output. */
	uint64_t skip_nbytes;
	enum partial partial;    /* what to do with an incomplete last record */
	enum format_mode format; /* which other formats an input may have */

	/* Records; or lines in an order that this text describes. NULL: records */
	const char *lines;
	uint64_t record_nbytes;            /* 1 to LAYOUT_MAX_RECORD_NBYTES */
	const struct key *keys;            /* n_keys, most significant first; within the record */
	uint32_t n_keys;                   /* at least 1 */
	enum record_spec_kind record_spec; /* RECORD_SPEC_NONE: the above are defaults */
	/*
	 * With RECORD_SPEC_REQUESTS, instead of keys: what to sort by, resolved by spec_resolve()
	 * when an input has described its records. record_nbytes may be 0 until then.
	 */
	const struct key_request *key_requests; /* n_key_requests */
	uint32_t n_key_requests;
	bool reverse;                       /* spec_resolve() makes the requested keys descending */
	enum key_nan_position nan_position; /* of all keys in numpy order */
	/*
	 * Keep equal records in input order even if their keys are all that there is (-0.0 and
	 * +0.0), because records are more than one number. Set when the spec is resolved.
	 */
	bool preserve_ties;
	/* Size of the output's header. Set when the spec is resolved, by the caller. */
	uint64_t header_nbytes;

	/* Output */
	const char *output_path; /* NULL: output_endpoint, or standard output */
	struct endpoint output_endpoint;
	bool omit_header; /* write no header, whatever the inputs begin with */
	bool unique;      /* keep one of the records with equal keys: the first */
	bool keep_last;   /* keep the last one instead; only with unique */
	uint64_t limit;   /* write at most this many records; SORT_SPEC_UNLIMITED: all */
	bool count;       /* write the number of equal records before each; only with unique */
	bool keys_only;   /* write keys; not with argsort or count */
	bool argsort;     /* write positions; not with count */
	int zstd_level;   /* from 1; 0: do not compress */
	/* Of a merge: write only part `shard`, from 1, of n_shards equal ones; 0: all. */
	uint32_t shard, n_shards;
	/*
	 * Number of part files in the directory output_path (part_files.h); 0: output_path is a
	 * file.
	 */
	uint32_t n_part_files;
	bool split_by_keys; /* no key is in two part files; always so with unique */
	bool verify;        /* read the output back; only with output_path */
	bool fsync;         /* return when it is on stable storage; only with output_path */

	/*
	 * The other ranks. Each reads a part of the inputs and writes a part of the output. The
	 * spec is the same on all, except for memory, threads and directories. NULL: not
	 * distributed.
	 */
	struct comm *comm;
	bool disable_shared_memory; /* exchange everything by messages, even on one host */
	/* Only with --explain: the number of ranks to plan for; 0: the ranks that exist. */
	uint32_t n_assumed_ranks;

	/* Resources */
	struct cancellation *cancellation; /* NULL: cannot be cancelled */
	const struct syscalls
		*io; /* system calls and process state that may be used; NULL: syscalls_plain */
	enum backend_choice backend;
	struct gpu_list gpus;
	unsigned n_threads;            /* of the CPU */
	uint64_t memory_nbytes;        /* of the host */
	uint64_t device_memory_nbytes; /* of each GPU; 0: what is free less a tenth */
	uint32_t batch_size;           /* maximum fan-in; 0: as planned */
	uint32_t n_partitions;         /* of the output, merged side by side; 0: as planned */

	/* Temporary files */
	const char *const *temp_dirs; /* n_temp_dirs, at least 1; used side by side */
	size_t n_temp_dirs;
	uint64_t temp_limit_nbytes;            /* SORT_SPEC_UNLIMITED: none */
	struct compression_params compression; /* of temporary files */
	const char *checkpoint_path; /* a directory, and the only one of temp_dirs; NULL: none */

	/* After the sort, measure what its stages could have done, in a tenth of its time. */
	bool measure_peak_rates;
};

#define SORT_SPEC_UNLIMITED UINT64_MAX

#define SORT_SPEC_DEFAULTS                                                                         \
	{                                                                                          \
		.limit = SORT_SPEC_UNLIMITED, .temp_limit_nbytes = SORT_SPEC_UNLIMITED             \
	}

/*
 * Make the layout of the records. Returns 0 and a layout for layout_free(), or -ENOMEM (reported).
 */
int spec_layout(const struct sort_spec *spec, struct layout *ret_layout);

/* Return which bytes of the inputs are records. */
struct framing spec_framing(const struct sort_spec *spec);

/*
 * Copy the spec and complete it by what the inputs say about their records, which must be known
 * (input_is_resolved()). `name` of the first input is for messages. *ret_keys is for free() after
 * the copy; NULL if it shares the keys of the spec. Returns 0 or a negative errno (reported) if the
 * spec contradicts the inputs.
 */
int spec_resolve(const struct sort_spec *spec, const struct input *input, const char *name,
		 struct sort_spec *ret_spec, struct key **ret_keys);

/* Inputs that have been opened to find out about their records. */
struct input_probe {
	struct input *input;
	struct sort_spec spec; /* resolved */
	struct key *keys;      /* array that spec.keys points to; owned */
	struct layout layout;
};

/*
 * Open the inputs of a spec; then wait for the first bytes of a pipe, and resolve the spec.
 * checker: see struct framing. Return 0 or a negative errno (reported). Close the probe in any
 * case.
 */
int spec_open_inputs(const struct sort_spec *spec, const char *checker,
		     struct input_probe *ret_probe);
int spec_finish_probe(const struct sort_spec *spec, struct input_probe *probe);
void spec_close_probe(struct input_probe *probe);

/* Return whether the spec is for one of several ranks, real or assumed. */
static inline bool spec_is_distributed(const struct sort_spec *spec)
{
	return spec->comm || spec->n_assumed_ranks;
}

/*
 * Return whether each rank stores runs, and reads its partition of the runs of all. (In a merge,
 * each rank reads its partition of the inputs itself.)
 */
static inline bool spec_exchanges_runs(const struct sort_spec *spec)
{
	return spec_is_distributed(spec) && !spec->merge_inputs;
}

/* Return the memory that the sort may use: that of the specification, but not more than exists. */
uint64_t spec_memory_nbytes(const struct sort_spec *spec);

/* Return the number of CPU threads: that of the specification, unless the memory is too small. */
unsigned spec_n_threads(const struct sort_spec *spec);

/* Return how many threads compress the output, with buffers of at most a quarter of the memory. */
unsigned spec_n_compressors(const struct sort_spec *spec);
