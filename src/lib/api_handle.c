/*
 * api_handle - a handle, and what it is told before the sort begins (see include/gsort.h)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "src/lib/lib_internal.h"

bool api_begin_call(struct gsort *sort, struct diagnostics **ret_saved)
{
	if (!sort)
		return false;
	if (sort->call_messages.failed) {
		diagnostics_destroy(&sort->call_messages);
		diagnostics_init(&sort->call_messages, on_call_message, sort);
	}
	sort->last_error[0] = '\0';
	*ret_saved = diagnostics_push(&sort->call_messages);
	return true;
}

int api_end_call(struct diagnostics *saved, int r)
{
	diagnostics_push(saved);
	return r;
}

int gsort_open(struct gsort **ret_sort)
{
	const struct options defaults = OPTIONS_DEFAULTS;
	struct gsort *sort;
	pthread_condattr_t clock_attributes;

	if (!ret_sort)
		return -EINVAL;
	sort = calloc(1, sizeof *sort);
	if (!sort)
		return -ENOMEM;
	sort->options = defaults;
	diagnostics_init(&sort->sort_messages, on_sort_message, sort);
	diagnostics_init(&sort->call_messages, on_call_message, sort);
	cancellation_init(&sort->cancellation);
	rendezvous_init(&sort->put_channel);
	rendezvous_init(&sort->get_channel);
	pthread_mutex_init(&sort->lock, NULL);
	pthread_mutex_init(&sort->message_callback_lock, NULL);
	pthread_mutex_init(&sort->progress_lock, NULL);
	pthread_condattr_init(&clock_attributes);
	pthread_condattr_setclock(&clock_attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&sort->ended_cond, &clock_attributes);
	pthread_condattr_destroy(&clock_attributes);
	*ret_sort = sort;
	return 0;
}

static void free_handle(struct gsort *sort)
{
	pthread_cond_destroy(&sort->ended_cond);
	pthread_mutex_destroy(&sort->progress_lock);
	pthread_mutex_destroy(&sort->message_callback_lock);
	pthread_mutex_destroy(&sort->lock);
	rendezvous_destroy(&sort->get_channel);
	rendezvous_destroy(&sort->put_channel);
	cancellation_destroy(&sort->cancellation);
	diagnostics_destroy(&sort->call_messages);
	diagnostics_destroy(&sort->sort_messages);
	reports_discard(&sort->reports);
	rank_progress_close(sort->rank_progress);
	stats_close(sort->stats);
	rank_stats_close(sort->rank_stats);
	options_free(&sort->options);
	for (size_t i = 0; i < sort->n_strings; i++)
		free(sort->strings[i]);
	free(sort->strings);
	free(sort->input_endpoints);
	free(sort->returned_text);
	free(sort);
}

void gsort_close(struct gsort *sort)
{
	if (!sort)
		return;
	if (sort->has_started) {
		gsort_cancel(sort);
		pthread_join(sort->sort_thread, NULL);
		if (sort->has_progress_thread)
			pthread_join(sort->progress_thread, NULL);
	}
	free_handle(sort);
}

int api_copy_string(struct gsort *sort, const char *text, const char **ret_copy)
{
	char **texts = reallocarray(sort->strings, sort->n_strings + 1, sizeof *texts);
	char *copy;

	if (!texts)
		return fail(-ENOMEM, "no memory for '%s'", text);
	sort->strings = texts;
	copy = strdup(text);
	if (!copy)
		return fail(-ENOMEM, "no memory for '%s'", text);
	texts[sort->n_strings++] = copy;
	*ret_copy = copy;
	return 0;
}

int api_check_pointer(const void *pointer, const char *name)
{
	return pointer ? 0 : fail(-EINVAL, "%s is NULL", name);
}

int api_check_not_started(const struct gsort *sort, const char *name)
{
	return sort->has_started ? fail(-EBUSY, "%s: the sort has begun", name) : 0;
}

/* --- options, typed --- */

static int set_number(struct gsort *sort, const char *name, uint64_t number, const char *unit)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRIu64 "%s", number, unit);
	return gsort_set(sort, name, text);
}

int gsort_set_type(struct gsort *sort, const char *type)
{
	return gsort_set(sort, "type", type);
}

int gsort_set_record_size(struct gsort *sort, uint64_t nbytes)
{
	return set_number(sort, "record-size", nbytes, "");
}

int gsort_add_key(struct gsort *sort, const char *key)
{
	return gsort_set(sort, "key", key);
}

int gsort_set_descending(struct gsort *sort)
{
	return gsort_set(sort, "reverse", NULL);
}

int gsort_set_unique(struct gsort *sort)
{
	return gsort_set(sort, "unique", NULL);
}

int gsort_set_limit(struct gsort *sort, uint64_t n_records)
{
	return set_number(sort, "limit", n_records, "");
}

int gsort_set_memory(struct gsort *sort, uint64_t nbytes)
{
	struct diagnostics *saved;

	if (nbytes == 0) {
		if (!api_begin_call(sort, &saved))
			return -EINVAL;
		return api_end_call(saved, fail(-EINVAL, "gsort_set_memory(): nbytes is 0; give a "
							 "size above 0"));
	}
	return set_number(sort, "buffer-size", nbytes, "b");
}

int gsort_set_threads(struct gsort *sort, unsigned n)
{
	return set_number(sort, "parallel", n, "");
}

int gsort_add_temporary_directory(struct gsort *sort, const char *path)
{
	return gsort_set(sort, "temporary-directory", path);
}

/* --- inputs and outputs --- */

int api_append_input(struct gsort *sort, const char *name, struct endpoint endpoint)
{
	struct options *options = &sort->options;
	const size_t n = options->n_inputs;
	const char **inputs = reallocarray(options->inputs, n + 1, sizeof *inputs);
	struct endpoint *endpoints;

	if (inputs)
		options->inputs = inputs;
	endpoints = reallocarray(sort->input_endpoints, n + 1, sizeof *endpoints);
	if (endpoints)
		sort->input_endpoints = endpoints;
	if (!inputs || !endpoints)
		return fail(-ENOMEM, "%s: no memory for another input", name);
	inputs[n] = name;
	endpoints[n] = endpoint;
	options->n_inputs = n + 1;
	return 0;
}

static int add_input(struct gsort *sort, const char *name, struct endpoint endpoint)
{
	const char *copy;
	int r = api_check_not_started(sort, name);

	if (r == 0)
		r = api_copy_string(sort, name, &copy);
	return r < 0 ? r : api_append_input(sort, copy, endpoint);
}

static int add_path(struct gsort *sort, const char *path)
{
	const int r = api_check_pointer(path, "the path of an input");

	if (r < 0)
		return r;
	if (!*path)
		return fail(-EINVAL, "the path of an input cannot be empty");
	return add_input(sort, path, (struct endpoint){ .kind = ENDPOINT_PATH });
}

int gsort_add_input_path(struct gsort *sort, const char *path)
{
	struct diagnostics *saved;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	return api_end_call(saved, add_path(sort, path));
}

static void format_descriptor_name(int fd, char name[static 32])
{
	snprintf(name, 32, "descriptor %d", fd);
}

static int check_descriptor(int fd)
{
	return fd < 0 ? fail(-EINVAL, "descriptor %d: there is none of that number", fd) : 0;
}

static int add_descriptor(struct gsort *sort, int fd)
{
	const int r = check_descriptor(fd);
	char name[32];

	if (r < 0)
		return r;
	format_descriptor_name(fd, name);
	return add_input(sort, name, (struct endpoint){ .kind = ENDPOINT_DESCRIPTOR, .fd = fd });
}

int gsort_add_input_fd(struct gsort *sort, int fd)
{
	struct diagnostics *saved;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	return api_end_call(saved, add_descriptor(sort, fd));
}

int gsort_set_output_path(struct gsort *sort, const char *path)
{
	return gsort_set(sort, "output", path);
}

static int set_output_descriptor(struct gsort *sort, int fd)
{
	char name[32];
	int r;

	format_descriptor_name(fd, name);
	r = api_check_not_started(sort, name);
	if (r == 0)
		r = check_descriptor(fd);
	if (r < 0)
		return r;
	if (sort->output_endpoint.kind != ENDPOINT_PATH)
		return fail(-EINVAL, "%s: the output is %s already", name, sort->output_label);
	r = api_copy_string(sort, name, &sort->output_label);
	if (r == 0)
		sort->output_endpoint = (struct endpoint){ .kind = ENDPOINT_DESCRIPTOR, .fd = fd };
	return r;
}

int gsort_set_output_fd(struct gsort *sort, int fd)
{
	struct diagnostics *saved;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	return api_end_call(saved, set_output_descriptor(sort, fd));
}

int gsort_set_process(struct gsort *sort, struct gsort_process *process)
{
	struct diagnostics *before;
	int r;

	if (!api_begin_call(sort, &before))
		return -EINVAL;
	r = api_check_pointer(process, "the process");
	if (r == 0)
		r = api_check_not_started(sort, "a process");
	if (r == 0)
		sort->process = process;
	return api_end_call(before, r);
}
