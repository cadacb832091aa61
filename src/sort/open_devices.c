/*
 * open_devices - the devices that a sort is done on (see open_devices.h)
 *
 * How many pay. What one GPU cannot hold goes to the host and back; so many that hold it together
 * take half of the time or little more (docs/benchmarks.md). Of what one holds the
 * output is what takes the time, which others write no faster; and they may be somebody else's.
 */
#include "src/sort/open_devices.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/merge/window_buffer_cache.h"

/* What of a device's memory another must have at least to be worth it, since chunks are alike. */
enum { MIN_MEMORY_DIVISOR = 2 };

/* All but so much of its memory, which windows and scratch take, holds what is sorted. */
enum { SCRATCH_DIVISOR = 8 };

struct device_selection {
	const unsigned *numbers;             /* of all who share; NULL: 0, 1, ... */
	unsigned n_total;                    /* of them */
	struct device_assignment assignment; /* of these are wanted n from `begin` on */
	unsigned begin, n;
	bool is_optional; /* those that cannot be had are done without, as long as there is one */
};

static unsigned selected_device_number(const struct device_selection *selection, unsigned i)
{
	return selection->numbers ? selection->numbers[i] : i;
}

static unsigned min_unsigned(unsigned n, unsigned limit)
{
	return n < limit ? n : limit;
}

/* What is this process's. Those of a list must be had. */
static struct device_selection select_devices(const struct backend *backend,
					      const struct sort_spec *spec,
					      struct device_assignment assignment)
{
	const unsigned n_available = spec->n_gpus ? spec->n_gpus : backend_n_devices(backend);
	const unsigned n = n_available ? n_available : 1;
	const struct device_group group =
		device_assignment_group(assignment.index, assignment.n_sharing, n);
	const unsigned n_assigned = group.end - group.begin;

	return (struct device_selection){
		.numbers = spec->n_gpus ? spec->gpus : NULL,
		.n_total = n,
		.assignment = assignment,
		.begin = group.begin,
		.n = spec->n_gpus ? n_assigned : min_unsigned(n_assigned, JOB_MAX_DEVICES),
		.is_optional = !spec->n_gpus,
	};
}

static unsigned count_in_group(const struct device_selection *selection, unsigned index,
			       unsigned number)
{
	const struct device_group group =
		device_assignment_group(index, selection->assignment.n_sharing, selection->n_total);
	unsigned n = 0;

	for (unsigned i = group.begin; i < group.end; i++)
		n += selected_device_number(selection, i) == number;
	return n;
}

static unsigned count_in_other_groups(const struct device_selection *selection, unsigned number)
{
	unsigned n = 0;

	for (unsigned index = 0; index < selection->assignment.n_sharing; index++)
		if (index != selection->assignment.index)
			n += count_in_group(selection, index, number);
	return n;
}

static void close_job_device(struct sort_device *device)
{
	window_buffer_cache_close(device->window_buffers);
	device_close(device->device);
}

/* Into the next of job.workers. */
static int open_job_device(struct job *job, const struct backend *backend,
			   const struct backend_config *config)
{
	struct sort_device device = { .ordinal = config->number,
				      .stats_index = config->stats_device };
	struct device_info info;
	int r = device_open(backend, config, &device.device);

	if (r < 0)
		return r;
	device_get_info(device.device, &info);
	device.numa_node = info.numa_node;
	r = window_buffer_cache_open(&device.window_buffers);
	if (r < 0)
		close_job_device(&device);
	else
		job->devices[job->n_devices++] = device;
	return r;
}

/* One of several that may be missing: what is the matter with it is only worth a warning. */
static int try_open_job_device(struct job *job, const struct backend *backend,
			       const struct backend_config *config)
{
	struct message_capture *capture;
	struct captured_error error;
	int open_status, r = message_capture_begin(&capture);

	if (r < 0)
		return fail(r, "no memory for another GPU");
	open_status = open_job_device(job, backend, config);
	message_capture_end(capture, &error);
	if (open_status < 0)
		warn("%s; sorting without it",
		     error.text ? error.text : "a GPU has not enough free memory");
	free(error.text);
	return 0;
}

static int open_selected(struct job *job, const struct backend *backend,
			 const struct device_selection *selection, struct backend_config *config)
{
	int r = 0;

	for (unsigned i = 0; i < selection->n && r == 0; i++) {
		const bool is_last_chance = i + 1 == selection->n && job->n_devices == 0;

		config->number = selected_device_number(selection, selection->begin + i);
		config->stats_device = selection->n > 1 ? i + 1 : 0;
		config->n_sharers =
			count_in_group(selection, selection->assignment.index, config->number);
		config->n_other_sharers = count_in_other_groups(selection, config->number);
		r = selection->is_optional && !is_last_chance ?
			    try_open_job_device(job, backend, config) :
			    open_job_device(job, backend, config);
	}
	return r;
}

static uint64_t usable_memory(const struct sort_device *device)
{
	struct device_info info;

	device_get_info(device->device, &info);
	return info.memory_nbytes;
}

static void exclude_device(struct sort_device *device)
{
	struct device_info info;
	char available[32];

	device_get_info(device->device, &info);
	size_format_down(info.memory_nbytes, available);
	warn("%s: it has only %s of memory that is free; sorting without it", info.name, available);
	close_job_device(device);
}

/* Chunks are alike, so all have the memory of the least: but that must not be far too little. */
static void exclude_small_devices(struct job *job)
{
	uint64_t max_nbytes = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->n_devices; i++)
		if (usable_memory(&job->devices[i]) > max_nbytes)
			max_nbytes = usable_memory(&job->devices[i]);
	for (uint32_t i = 0; i < job->n_devices; i++) {
		struct sort_device device = job->devices[i];

		if (usable_memory(&device) < max_nbytes / MIN_MEMORY_DIVISOR)
			exclude_device(&device);
		else
			job->devices[n++] = device;
	}
	job->n_devices = n;
}

/* Append to what is called `name`, as far as there is room. */
static __attribute__((format(printf, 3, 4))) void append_device_name(char *name, size_t capacity,
								     const char *format, ...)
{
	const size_t nbytes = strlen(name);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(name + nbytes, capacity - nbytes, format, arguments);
	va_end(arguments);
}

/* "2 x NVIDIA H200 (0, 1)", or "NVIDIA H200 (1)", or of different ones the name of each. */
static void format_device_names(struct job *job)
{
	struct device_info first, info;
	bool are_same_model = true;

	device_get_info(job_device(job), &first);
	for (uint32_t i = 1; i < job->n_devices; i++) {
		device_get_info(job->devices[i].device, &info);
		are_same_model = are_same_model && strcmp(info.name, first.name) == 0;
	}
	job->device_info.name[0] = '\0';
	if (are_same_model && job->n_devices > 1)
		append_device_name(job->device_info.name, sizeof job->device_info.name, "%u x ",
				   job->n_devices);
	if (are_same_model)
		append_device_name(job->device_info.name, sizeof job->device_info.name, "%.80s",
				   first.name);
	for (uint32_t i = 0; i < job->n_devices; i++) {
		device_get_info(job->devices[i].device, &info);
		if (!are_same_model)
			append_device_name(job->device_info.name, sizeof job->device_info.name,
					   "%s%.80s (%u)", i ? ", " : "", info.name,
					   job->devices[i].ordinal);
		else
			append_device_name(job->device_info.name, sizeof job->device_info.name,
					   "%s%u", i ? ", " : " (", job->devices[i].ordinal);
	}
	if (are_same_model)
		append_device_name(job->device_info.name, sizeof job->device_info.name, ")");
}

/* Where others share devices that have numbers, it is said which ones these are. */
static void describe_devices(struct job *job, const struct backend *backend,
			     struct device_assignment assignment)
{
	device_get_info(job_device(job), &job->device_info);
	if (job->n_devices > 1 || (assignment.n_sharing > 1 && backend->n_devices))
		format_device_names(job);
	for (uint32_t i = 1; i < job->n_devices; i++)
		if (usable_memory(&job->devices[i]) < job->device_info.memory_nbytes)
			job->device_info.memory_nbytes = usable_memory(&job->devices[i]);
}

static void find_peer_access(struct job *job)
{
	for (uint32_t i = 0; i < job->n_devices; i++)
		for (uint32_t j = 0; j < job->n_devices; j++)
			if (device_can_access(job->devices[i].device, job->devices[j].device))
				job->devices[i].peer_access_mask |= UINT64_C(1) << j;
}

static int open_selection(struct job *job, const struct backend *backend,
			  const struct device_selection *selection, struct backend_config *config)
{
	int r;

	if (selection->n > JOB_MAX_DEVICES)
		return fail(-EINVAL, "--gpus: %u are more than can be used at once", selection->n);
	job->devices = calloc(selection->n, sizeof *job->devices);
	if (!job->devices)
		return fail(-ENOMEM, "no memory for %u devices", selection->n);
	r = open_selected(job, backend, selection, config);
	if (r == 0 && selection->is_optional)
		exclude_small_devices(job);
	return r;
}

/* How many devices, as the one that is open, would hold so much; 1 if that does not count. */
static unsigned count_needed_devices(const struct job *job, const struct sort_spec *spec,
				     uint64_t nbytes)
{
	const struct layout *layout = job->layout;
	struct device_info info;
	uint64_t held_records, n;

	device_get_info(job_device(job), &info);
	if (nbytes == INPUT_SIZE_UNKNOWN || spec->merge_inputs || job->limit != UINT64_MAX)
		return 1;
	held_records = info.memory_nbytes / SCRATCH_DIVISOR * (SCRATCH_DIVISOR - 1) /
		       layout->resident_nbytes;
	n = nbytes / layout->record_nbytes / (held_records + 1) + 1;
	return n < JOB_MAX_DEVICES ? (unsigned)n : JOB_MAX_DEVICES;
}

/* The first, and, if it is too small, as many as pay: then it is opened again, as one of these. */
static int open_default_devices(struct job *job, const struct backend *backend,
				const struct sort_spec *spec,
				const struct open_devices_params *params,
				struct device_selection selection, struct backend_config *config)
{
	const unsigned n_selected = selection.n;
	int r;

	selection.n = 1;
	selection.is_optional = false;
	r = open_selection(job, backend, &selection, config);
	if (r < 0 || n_selected <= 1)
		return r;
	selection.n =
		min_unsigned(count_needed_devices(job, spec, params->input_nbytes), n_selected);
	selection.is_optional = true;
	if (selection.n <= 1)
		return 0;
	close_devices(job);
	return open_selection(job, backend, &selection, config);
}

int open_devices(struct job *job, const struct backend *backend, const struct sort_spec *spec,
		 const struct open_devices_params *params)
{
	const struct device_selection selection = select_devices(backend, spec, params->assignment);
	struct backend_config config = {
		.n_threads = params->n_threads,
		.device_memory_nbytes = spec->device_memory_nbytes,
		.stats = job->stats,
	};
	int r = spec->n_gpus || spec->all_gpus ?
			open_selection(job, backend, &selection, &config) :
			open_default_devices(job, backend, spec, params, selection, &config);

	if (r < 0)
		return r;
	describe_devices(job, backend, params->assignment);
	find_peer_access(job);
	return 0;
}

void close_devices(struct job *job)
{
	for (uint32_t i = 0; i < job->n_devices; i++)
		close_job_device(&job->devices[i]);
	free(job->devices);
	job->devices = NULL;
	job->n_devices = 0;
}
