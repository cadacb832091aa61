/*
 * open_devices - the devices that a sort is done on (see open_devices.h)
 *
 * How many pay. What one GPU cannot hold goes to the host and back; so many that hold it together
 * take half of the time or little more (docs/benchmarks.md, "two GPUs"). Of what one holds the
 * output is what takes the time, which others write no faster; and they may be somebody else's.
 */
#include "src/sort/open_devices.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/message_capture.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/merge/window_buffers.h"

/* What of a device's memory another must have at least to be worth it, since chunks are alike. */
enum { LEAST_MEMORY_PART = 2 };

/* All but so much of its memory, which windows and scratch take, holds what is sorted. */
enum { HELD_PART = 8 };

struct wanted {
	const unsigned *numbers;   /* of all who share; NULL: 0, 1, ... */
	unsigned n_all;            /* of them */
	struct device_share share; /* of these are wanted n from `begin` on */
	unsigned begin, n;
	bool may_miss; /* those that cannot be had are done without, as long as there is one */
};

static unsigned number_of(const struct wanted *wanted, unsigned i)
{
	return wanted->numbers ? wanted->numbers[i] : i;
}

static unsigned at_most(unsigned n, unsigned most)
{
	return n < most ? n : most;
}

/* What is this process's. Those of a list must be had. */
static struct wanted find_own(const struct backend *backend, const struct sort_spec *spec,
			      struct device_share share)
{
	const unsigned n_there = spec->n_gpus ? spec->n_gpus : backend_n_devices(backend);
	const unsigned n = n_there ? n_there : 1;
	const struct device_group group = device_share_group(share.place, share.n, n);
	const unsigned n_own = group.end - group.begin;

	return (struct wanted){
		.numbers = spec->n_gpus ? spec->gpus : NULL,
		.n_all = n,
		.share = share,
		.begin = group.begin,
		.n = spec->n_gpus ? n_own : at_most(n_own, JOB_MOST_WORKERS),
		.may_miss = !spec->n_gpus,
	};
}

static unsigned count_in_group(const struct wanted *wanted, unsigned place, unsigned number)
{
	const struct device_group group =
		device_share_group(place, wanted->share.n, wanted->n_all);
	unsigned n = 0;

	for (unsigned i = group.begin; i < group.end; i++)
		n += number_of(wanted, i) == number;
	return n;
}

static unsigned count_elsewhere(const struct wanted *wanted, unsigned number)
{
	unsigned n = 0;

	for (unsigned place = 0; place < wanted->share.n; place++)
		if (place != wanted->share.place)
			n += count_in_group(wanted, place, number);
	return n;
}

static void close_worker(struct worker *worker)
{
	window_memory_close(worker->windows);
	device_close(worker->device);
}

/* Into the next of job.workers. */
static int open_worker(struct job *job, const struct backend *backend,
		       const struct backend_config *config)
{
	struct worker worker = { .number = config->number, .place = config->place };
	struct device_info info;
	int r = device_open(backend, config, &worker.device);

	if (r < 0)
		return r;
	device_describe(worker.device, &info);
	worker.node = info.node;
	r = window_memory_open(&worker.windows);
	if (r < 0)
		close_worker(&worker);
	else
		job->workers[job->n_workers++] = worker;
	return r;
}

/* One of several that may be missing: what is the matter with it is only worth a warning. */
static int try_worker(struct job *job, const struct backend *backend,
		      const struct backend_config *config)
{
	struct attempt *attempt;
	struct reason reason;
	int opened, r = attempt_begin(&attempt);

	if (r < 0)
		return fail(r, "no memory for another GPU");
	opened = open_worker(job, backend, config);
	attempt_end(attempt, &reason);
	if (opened < 0)
		warn_hint(reason.hint, reason.number, "%s; sorting without it",
			  reason.text ? reason.text : "a GPU has not enough free memory");
	free(reason.text);
	return 0;
}

static int open_all(struct job *job, const struct backend *backend, const struct wanted *wanted,
		    struct backend_config *config)
{
	int r = 0;

	for (unsigned i = 0; i < wanted->n && r == 0; i++) {
		const bool is_last_hope = i + 1 == wanted->n && job->n_workers == 0;

		config->number = number_of(wanted, wanted->begin + i);
		config->place = wanted->n > 1 ? i + 1 : 0;
		config->n_sharing = count_in_group(wanted, wanted->share.place, config->number);
		config->n_elsewhere = count_elsewhere(wanted, config->number);
		r = wanted->may_miss && !is_last_hope ? try_worker(job, backend, config) :
							open_worker(job, backend, config);
	}
	return r;
}

static uint64_t memory_of(const struct worker *worker)
{
	struct device_info info;

	device_describe(worker->device, &info);
	return info.memory_nbytes;
}

static void leave_out(struct worker *worker)
{
	struct device_info info;
	char has[32];

	device_describe(worker->device, &info);
	size_format_down(info.memory_nbytes, has);
	warn("%s: it has only %s of memory that is free; sorting without it", info.name, has);
	close_worker(worker);
}

/* Chunks are alike, so all have the memory of the least: but that must not be far too little. */
static void leave_out_small(struct job *job)
{
	uint64_t most_nbytes = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->n_workers; i++)
		if (memory_of(&job->workers[i]) > most_nbytes)
			most_nbytes = memory_of(&job->workers[i]);
	for (uint32_t i = 0; i < job->n_workers; i++) {
		struct worker worker = job->workers[i];

		if (memory_of(&worker) < most_nbytes / LEAST_MEMORY_PART)
			leave_out(&worker);
		else
			job->workers[n++] = worker;
	}
	job->n_workers = n;
}

/* Append to what is called `name`, as far as there is room. */
static __attribute__((format(printf, 3, 4))) void append(char *name, size_t room,
							 const char *format, ...)
{
	const size_t nbytes = strlen(name);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(name + nbytes, room - nbytes, format, arguments);
	va_end(arguments);
}

/* "2 x NVIDIA H200 (0, 1)", or "NVIDIA H200 (1)", or of different ones the name of each. */
static void name_all(struct job *job)
{
	struct device_info first, info;
	bool are_alike = true;

	device_describe(job_device(job), &first);
	for (uint32_t i = 1; i < job->n_workers; i++) {
		device_describe(job->workers[i].device, &info);
		are_alike = are_alike && strcmp(info.name, first.name) == 0;
	}
	job->info.name[0] = '\0';
	if (are_alike && job->n_workers > 1)
		append(job->info.name, sizeof job->info.name, "%u x ", job->n_workers);
	if (are_alike)
		append(job->info.name, sizeof job->info.name, "%.80s", first.name);
	for (uint32_t i = 0; i < job->n_workers; i++) {
		device_describe(job->workers[i].device, &info);
		if (!are_alike)
			append(job->info.name, sizeof job->info.name, "%s%.80s (%u)", i ? ", " : "",
			       info.name, job->workers[i].number);
		else
			append(job->info.name, sizeof job->info.name, "%s%u", i ? ", " : " (",
			       job->workers[i].number);
	}
	if (are_alike)
		append(job->info.name, sizeof job->info.name, ")");
}

/* Where others share devices that have numbers, it is said which ones these are. */
static void describe(struct job *job, const struct backend *backend, struct device_share share)
{
	device_describe(job_device(job), &job->info);
	if (job->n_workers > 1 || (share.n > 1 && backend->n_devices))
		name_all(job);
	for (uint32_t i = 1; i < job->n_workers; i++)
		if (memory_of(&job->workers[i]) < job->info.memory_nbytes)
			job->info.memory_nbytes = memory_of(&job->workers[i]);
}

static void find_reach(struct job *job)
{
	for (uint32_t i = 0; i < job->n_workers; i++)
		for (uint32_t j = 0; j < job->n_workers; j++)
			if (device_reaches(job->workers[i].device, job->workers[j].device))
				job->workers[i].reaches |= UINT64_C(1) << j;
}

static int open_wanted(struct job *job, const struct backend *backend, const struct wanted *wanted,
		       struct backend_config *config)
{
	int r;

	if (wanted->n > JOB_MOST_WORKERS)
		return fail_hint(-EINVAL, HINT_ABOUT_GPUS, 0,
				 "%u are more than can be used at once", wanted->n);
	job->workers = calloc(wanted->n, sizeof *job->workers);
	if (!job->workers)
		return fail(-ENOMEM, "no memory for %u devices", wanted->n);
	r = open_all(job, backend, wanted, config);
	if (r == 0 && wanted->may_miss)
		leave_out_small(job);
	return r;
}

/* How many devices, as the one that is open, would hold so much; 1 if that does not count. */
static unsigned count_holding(const struct job *job, const struct sort_spec *spec, uint64_t nbytes)
{
	const struct layout *layout = job->layout;
	struct device_info info;
	uint64_t held_records, n;

	device_describe(job_device(job), &info);
	if (nbytes == INPUT_SIZE_UNKNOWN || spec->merges || job->limit != UINT64_MAX)
		return 1;
	held_records = info.memory_nbytes / HELD_PART * (HELD_PART - 1) / layout->resident_nbytes;
	n = nbytes / layout->record_nbytes / (held_records + 1) + 1;
	return n < JOB_MOST_WORKERS ? (unsigned)n : JOB_MOST_WORKERS;
}

/* The first, and, if it is too small, as many as pay: then it is opened again, as one of these. */
static int open_usual(struct job *job, const struct backend *backend, const struct sort_spec *spec,
		      const struct workers_wish *wish, struct wanted own,
		      struct backend_config *config)
{
	const unsigned n_own = own.n;
	int r;

	own.n = 1;
	own.may_miss = false;
	r = open_wanted(job, backend, &own, config);
	if (r < 0 || n_own <= 1)
		return r;
	own.n = at_most(count_holding(job, spec, wish->input_nbytes), n_own);
	own.may_miss = true;
	if (own.n <= 1)
		return 0;
	workers_close(job);
	return open_wanted(job, backend, &own, config);
}

int workers_open(struct job *job, const struct backend *backend, const struct sort_spec *spec,
		 const struct workers_wish *wish)
{
	const struct wanted own = find_own(backend, spec, wish->share);
	struct backend_config config = {
		.n_threads = wish->n_threads,
		.device_memory_nbytes = spec->device_memory_nbytes,
		.stats = job->stats,
	};
	int r = spec->n_gpus || spec->all_gpus ?
			open_wanted(job, backend, &own, &config) :
			open_usual(job, backend, spec, wish, own, &config);

	if (r < 0)
		return r;
	describe(job, backend, wish->share);
	find_reach(job);
	return 0;
}

void workers_close(struct job *job)
{
	for (uint32_t i = 0; i < job->n_workers; i++)
		close_worker(&job->workers[i]);
	free(job->workers);
	job->workers = NULL;
	job->n_workers = 0;
}
