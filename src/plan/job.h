/*
 * job.h - what all parts of one sort share
 *
 * src/sort/ opens it: the inputs first, then back end, plan, temporary space and chunk buffers.
 * Its members are set before the first thread starts, and only read afterwards. One exception: the
 * thread that collects chunks may lengthen the blocks of the plan (merge_shrink_index()). Objects
 * that it points to have locks of their own.
 */
#pragma once

#include "io/spill/spill.h"
#include "src/base/cancellation.h"
#include "src/base/stats.h"
#include "src/plan/plan.h"
#include "src/plan/sort_spec.h"

/* A device that sorts and merges in its own memory. All devices of a job have the same back end. */
struct sort_device {
	struct device *device;
	unsigned ordinal;     /* number among the back end's devices */
	int numa_node;        /* of the host memory near it (src/base/thread.h) */
	uint32_t stats_index; /* among the requested devices, from 1; 0: there is only one */
	struct window_buffer_cache *window_buffers; /* kept from one merge to the next */
	uint64_t peer_access_mask;                  /* bit i: it can read the memory of device i */
};

struct comm;

enum { JOB_MAX_DEVICES = STATS_MAX_DEVICES };

/* What spilled runs need. */
struct temp_space_demand {
	struct spill *spill;
	struct compression *compression;
	const char *const *directories; /* n_directories */
	size_t n_directories;
	uint64_t limit_nbytes, needed_nbytes;
	bool has_checkpoint;
};

struct job {
	/* Set by the caller */
	const struct syscalls *io;
	struct cancellation
		*cancellation;          /* polled by loops of the host; NULL: cannot be cancelled */
	struct comm *comm;              /* NULL: a single process */
	struct layout requested_layout; /* the layout before setup_open() */
	const struct layout *layout;    /* requested_layout or indirect_layout */
	bool unique;                    /* -u */
	uint64_t limit;      /* maximum records of any run and of the output; UINT64_MAX: none */
	struct input *input; /* all inputs as one stream */
	const struct checkpoint_hooks
		*checkpoint_hooks; /* keep runs for another process; NULL: none */
	uint64_t first_record;     /* of the input; earlier ones are in runs already */
	bool has_end;              /* records from end_record on belong to another rank */
	uint64_t end_record;
	unsigned n_jobs_on_host; /* that share this host's memory; 0: only this one */
	struct stats *stats;     /* may be NULL */

	/* Opened by setup_open() */
	struct sort_device *devices; /* n_devices, at least one */
	uint32_t n_devices;
	uint32_t merge_device; /* index of the one that merges; partitions have copies of the job */
	struct device_info device_info; /* of the first device, with the minimum memory of all */
	/* With an indirect layout: the layout, and where the mapped records are. */
	struct layout indirect_layout;
	struct slice sources[BACKEND_MAX_SOURCES]; /* n_sources */
	uint32_t n_sources;
	struct plan_request plan_request;
	struct plan plan;
	struct spill *spill;                        /* not with --explain */
	struct compression *compression;            /* of spilled runs; NULL: none */
	struct temp_space_demand temp_space;        /* set by job_check_temp_space() */
	bool needs_compression;                     /* the runs fit there only if they shrink */
	struct chunk_pool *chunk_pool;              /* only to sort: not with -m or --explain */
	struct window_buffer_cache *window_buffers; /* of a partition; NULL: those of the device */
};

/*
 * Report that a device cannot do something, with a hint if it lacks memory. Returns r, a negative
 * errno. what: such as "cannot sort a chunk"
 */
int job_fail_device(const struct job *job, uint32_t device_index, int r, const char *what);

/* Report that the merging device has no memory for windows, its own or the host's. Returns r. */
int job_fail_window_memory(const struct job *job, int r, enum memory_kind kind, uint64_t nbytes);

/* Report the volumes of messages and temporary files in the statistics. */
void job_set_volume_source(struct job *job);

/* Return whether the merging device can read the memory of the given one. */
static inline bool job_can_access(const struct job *job, uint32_t device_index)
{
	return job->devices[job->merge_device].peer_access_mask >> device_index & 1;
}

/* Return the end of the input that is read, in bytes; UINT64_MAX: unknown. */
static inline uint64_t job_input_end(const struct job *job)
{
	return job->has_end ? job->end_record * job->layout->record_nbytes : job->plan.input_nbytes;
}

/* Return the device that merges. */
static inline struct device *job_device(const struct job *job)
{
	return job->devices[job->merge_device].device;
}

static inline struct window_buffer_cache *job_window_buffers(const struct job *job)
{
	return job->window_buffers ? job->window_buffers :
				     job->devices[job->merge_device].window_buffers;
}

/* --- Temporary space (job.c) --- */

/*
 * Check, before anything is spilled, that the runs fit into temporary space. If they may shrink,
 * they are compressed, and job_recheck_temp_space() checks again after a run has been spilled.
 * Return 0, or -ENOSPC (reported, with what is missing and where). The directories of the spec must
 * outlive the job.
 */
int job_check_temp_space(struct job *job, const struct sort_spec *spec);
int job_recheck_temp_space(const struct job *job);

/* How a sort treats the page cache for files that it writes. */
enum cache_policy {
	CACHE_USE,      /* write to it */
	CACHE_ADAPTIVE, /* the files fit, but bypassing it may be faster (src/base/adaptive.h) */
	CACHE_BYPASS    /* the files do not fit beside the plan's memory: bypass it */
};

/*
 * Choose for nbytes of files of a planned job. Other jobs on the host are assumed to write as much.
 */
enum cache_policy cache_policy_choose(const struct job *job, uint64_t nbytes);

/* Apply the policy before anything is spilled. n_writers: threads that write at the same time. */
void cache_policy_apply_to_spill(enum cache_policy policy, uint32_t n_writers, struct spill *spill);
