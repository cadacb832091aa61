/*
 * job - what every part of one sort shares
 *
 * src/sort/ opens it: the inputs first, then back end, plan, temporary space and chunk buffers.
 *
 * Everything is set before the first thread starts and only read afterwards (what it points to has
 * locks of its own).
 */
#pragma once

#include "io/input/input.h"
#include "io/spill/compression_policy.h"
#include "io/spill/spill.h"
#include "src/base/cancellation.h"
#include "src/base/stats.h"
#include "src/plan/plan.h"
#include "src/plan/temp_space_check.h"

/* A device that sorts and merges, in its own memory. Those of a job are of one back end. */
struct sort_device {
	struct device *device;
	unsigned ordinal;     /* of the back end's devices */
	int numa_node;        /* of the host memory that it is near (src/base/numa.h) */
	uint32_t stats_index; /* among those that were wanted, from 1; 0: the only one */
	struct window_buffer_cache *window_buffers; /* of one merge after the other */
	uint64_t peer_access_mask; /* bit i: it may read the memory of worker i, as its own */
};

enum { JOB_MAX_DEVICES = STATS_MAX_DEVICES };

struct job {
	/* Given */
	const struct syscalls *io;
	struct cancellation *cancellation; /* asked by loops of the host; NULL: nobody cancels */
	struct layout requested_layout;    /* as they are asked for */
	const struct layout *layout;       /* these; setup_open() may make it `references` */
	bool unique;                       /* -u */
	uint64_t limit;      /* of the records of any run and of the result; UINT64_MAX: none */
	struct input *input; /* all inputs as one stream */
	const struct checkpoint_hooks
		*checkpoint_hooks; /* of runs that outlive the process; NULL: nobody */
	uint64_t first_record;     /* of the input: those before are in runs already */
	bool has_end;              /* those from end_record on are another rank's */
	uint64_t end_record;
	unsigned n_jobs_on_host; /* jobs that share this host's memory; 0: only this one */
	struct stats *stats;     /* may be NULL */

	/* Opened by setup_open() */
	struct sort_device *devices; /* n_devices, at least one */
	uint32_t n_devices;
	uint32_t merge_device; /* who merges: a merge in ranges has a job for each of these */
	struct device_info device_info; /* of each: as the first is, with the least memory of all */
	/* If the records stay where they are mapped: what refers to them, and where they are. */
	struct layout indirect_layout;
	struct slice sources[BACKEND_MAX_SOURCES]; /* n_sources */
	uint32_t n_sources;
	struct plan_request plan_request;
	struct plan plan;
	struct spill *spill;             /* not with --explain */
	struct compression *compression; /* of what is spilled; NULL: none */
	struct temp_space temp_space;
	struct chunk_pool *chunk_pool;              /* only to sort: not with -m or --explain */
	struct window_buffer_cache *window_buffers; /* of a range; NULL: the worker's */
};

/*
 * The worker's device cannot do something: says so, and what helps where it is for want of memory.
 * Returns r, a negative errno. what: "cannot sort a chunk"
 */
int job_fail_device(const struct job *job, uint32_t device_index, int r, const char *what);

/* The same of so many bytes of its memory, or of the host's. what: "windows" */
int job_fail_memory(const struct job *job, uint32_t device_index, int r, enum memory_kind kind,
		    const char *what, uint64_t nbytes);

/* May the worker that merges read the memory of that one? */
static inline bool job_can_access(const struct job *job, uint32_t device_index)
{
	return job->devices[job->merge_device].peer_access_mask >> device_index & 1;
}

/* Where what is read of the input ends, in bytes; UINT64_MAX: not known. */
static inline uint64_t job_input_end(const struct job *job)
{
	return job->has_end ? job->end_record * job->layout->record_nbytes : job->plan.input_nbytes;
}

/* Of the worker that merges. */
static inline struct device *job_device(const struct job *job)
{
	return job->devices[job->merge_device].device;
}

static inline struct window_buffer_cache *job_window_buffers(const struct job *job)
{
	return job->window_buffers ? job->window_buffers :
				     job->devices[job->merge_device].window_buffers;
}
