/*
 * open_devices.c - open the devices of a sort (see open_devices.h)
 *
 * Several GPUs pay if one cannot hold the data, which then moves to the host and back: if they hold
 * it together, the sort takes half the time or little more (docs/benchmarks.md). If one GPU holds
 * it, writing the output takes most of the time, and more GPUs do not write faster; other users may
 * need them.
 */
#include "src/sort/open_devices.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/comm/comm.h"
#include "src/device/device.h"
#include "src/merge/window.h"

/* --- assignment to ranks --- */

/* A range of devices. */
struct device_group {
	unsigned begin, end;
};

static struct device_group device_group_of(unsigned index, unsigned n, unsigned n_devices)
{
	const unsigned begin = (unsigned)((uint64_t)index * n_devices / n);
	const unsigned end = (unsigned)((uint64_t)(index + 1) * n_devices / n);

	return (struct device_group){ begin, end > begin ? end : begin + 1 };
}

/*
 * Hash the back end and its devices in order; ranks with the same hash see the same devices. Device
 * numbers do not tell: two processes may each call their own GPU 0.
 */
static int hash_visible_devices(const struct backend *backend, uint64_t *ret_identity)
{
	const unsigned n = backend->get_uuid ? backend_n_devices(backend) : 0;
	const size_t name_nbytes = strlen(backend->name);
	const size_t nbytes = name_nbytes + (size_t)n * BACKEND_UUID_NBYTES;
	unsigned char *visible = calloc(1, nbytes + 1);

	if (!visible)
		return fail(-ENOMEM, "no memory for the names of %u devices", n);
	memcpy(visible, backend->name, name_nbytes);
	for (unsigned i = 0; i < n; i++)
		backend->get_uuid(i, visible + name_nbytes + (size_t)i * BACKEND_UUID_NBYTES);
	*ret_identity = checksum64(visible, nbytes);
	free(visible);
	return 0;
}

struct device_assignment device_assignment_among(const struct comm *comm,
						 const uint64_t *identities)
{
	const unsigned own = comm_rank(comm);
	struct device_assignment assignment = { 0 };

	for (unsigned i = 0; i < comm_size(comm); i++) {
		if ((identities && identities[i] != identities[own]) ||
		    strcmp(comm_host(comm, i), comm_host(comm, own)) != 0)
			continue;
		assignment.index += i < own;
		assignment.n_sharing++;
	}
	return assignment;
}

int device_assignment_find(struct comm *comm, const struct backend *backend,
			   struct device_assignment *ret_assignment)
{
	const unsigned n = comm_size(comm);
	uint64_t *identities = calloc(n, sizeof *identities);
	uint64_t own_identity = 0;
	int r = identities ? hash_visible_devices(backend, &own_identity) :
			     fail(-ENOMEM, "no memory for the devices of %u ranks", n);

	if (r == 0)
		r = comm_allgather(comm, &own_identity, sizeof own_identity, identities);
	if (r == 0)
		*ret_assignment = device_assignment_among(comm, identities);
	free(identities);
	return r;
}

int device_assignment_report(struct comm *comm, const char *name,
			     void (*report)(void *context, const char *text), void *context)
{
	enum { NAME_NBYTES = sizeof((struct device_info *)0)->name };
	const unsigned n = comm_size(comm);
	char own_name[NAME_NBYTES] = "", text[NAME_NBYTES + COMM_HOST_NBYTES + 32];
	char(*names)[NAME_NBYTES] = calloc(n, sizeof *names);
	int r;

	snprintf(own_name, sizeof own_name, "%s", name);
	r = names ? comm_allgather(comm, own_name, sizeof own_name, names) :
		    fail(-ENOMEM, "no memory for the devices of %u ranks", n);
	for (unsigned i = 0; i < n && r == 0 && report && comm_rank(comm) == 0; i++) {
		snprintf(text, sizeof text, "rank %u, on %s: %s", i, comm_host(comm, i), names[i]);
		report(context, text);
	}
	free(names);
	return r;
}

/* --- opening --- */

/*
 * Chunks have the same size on all devices, so a device with less memory than this fraction of the
 * largest does not pay.
 */
enum { MIN_MEMORY_DIVISOR = 2 };

/* This fraction of the memory is for windows and scratch, not for data. */
enum { SCRATCH_DIVISOR = 8 };

struct device_selection {
	const unsigned *numbers; /* of all ranks that share; NULL: 0, 1, ... */
	unsigned n_total;        /* devices */
	struct device_assignment assignment;
	unsigned begin, n; /* this rank's devices */
	bool is_optional;  /* a device that cannot be opened is skipped, except the last chance */
};

static unsigned selected_device_number(const struct device_selection *selection, unsigned i)
{
	return selection->numbers ? selection->numbers[i] : i;
}

static unsigned min_unsigned(unsigned n, unsigned limit)
{
	return n < limit ? n : limit;
}

/* Select this process's devices. */
static struct device_selection select_devices(const struct backend *backend,
					      const struct sort_spec *spec,
					      struct device_assignment assignment)
{
	const unsigned n_available = spec->gpus.n ? spec->gpus.n : backend_n_devices(backend);
	const unsigned n = n_available ? n_available : 1;
	const struct device_group group =
		device_group_of(assignment.index, assignment.n_sharing, n);
	const unsigned n_assigned = group.end - group.begin;

	return (struct device_selection){
		.numbers = spec->gpus.n ? spec->gpus.numbers : NULL,
		.n_total = n,
		.assignment = assignment,
		.begin = group.begin,
		.n = spec->gpus.n ? n_assigned : min_unsigned(n_assigned, JOB_MAX_DEVICES),
		.is_optional = !spec->gpus.n,
	};
}

static unsigned count_in_group(const struct device_selection *selection, unsigned index,
			       unsigned number)
{
	const struct device_group group =
		device_group_of(index, selection->assignment.n_sharing, selection->n_total);
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

/* Open a device and append it to job.devices. */
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

/* Open a device that may be missing: report a failure as a warning. */
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
		warn("%s; not using it",
		     error.text ? error.text : "a GPU has too little free memory");
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

/*
 * All devices use as much memory as the smallest one, so devices that are much smaller are closed.
 */
static void exclude_small_devices(struct job *job)
{
	uint64_t max_nbytes = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < job->n_devices; i++)
		if (usable_memory(&job->devices[i]) > max_nbytes)
			max_nbytes = usable_memory(&job->devices[i]);
	for (uint32_t i = 0; i < job->n_devices; i++) {
		struct sort_device device = job->devices[i];
		struct device_info info;

		device_get_info(device.device, &info);
		if (info.memory_nbytes >= max_nbytes / MIN_MEMORY_DIVISOR) {
			job->devices[n++] = device;
			continue;
		}
		warn("%s: only %s of memory is free; not using it", info.name,
		     size_format_down(info.memory_nbytes).text);
		close_job_device(&device);
	}
	job->n_devices = n;
}

/* Append to `name`, truncating. */
static __attribute__((format(printf, 3, 4))) void append_device_name(char *name, size_t capacity,
								     const char *format, ...)
{
	const size_t nbytes = strlen(name);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(name + nbytes, capacity - nbytes, format, arguments);
	va_end(arguments);
}

/* Format "2 x NVIDIA H200 (0, 1)" or "NVIDIA H200 (1)"; of different models the name of each. */
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

/* Describe all devices. If they are shared with other ranks, their numbers are included. */
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

static int open_selection(struct job *job, const struct backend *backend,
			  const struct device_selection *selection, struct backend_config *config)
{
	int r;

	if (selection->n > JOB_MAX_DEVICES)
		return fail(-EINVAL, "--gpus: %u devices are too many", selection->n);
	job->devices = calloc(selection->n, sizeof *job->devices);
	if (!job->devices)
		return fail(-ENOMEM, "no memory for %u devices", selection->n);
	r = open_selected(job, backend, selection, config);
	if (r == 0 && selection->is_optional)
		exclude_small_devices(job);
	return r;
}

/* Return how many devices like the open one hold nbytes; 1 if that does not matter. */
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

/* Open the first device. If it is too small, close it and open as many as pay. */
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
		.cancellation = job->cancellation,
	};
	int r = spec->gpus.n || spec->gpus.all ?
			open_selection(job, backend, &selection, &config) :
			open_default_devices(job, backend, spec, params, selection, &config);

	if (r < 0)
		return r;
	describe_devices(job, backend, params->assignment);
	for (uint32_t i = 0; i < job->n_devices; i++)
		for (uint32_t j = 0; j < job->n_devices; j++)
			if (device_can_access(job->devices[i].device, job->devices[j].device))
				job->devices[i].peer_access_mask |= UINT64_C(1) << j;
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
