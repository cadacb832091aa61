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

const char *gsort_version(void)
{
	return GSORT_VERSION;
}

bool told_enter(struct gsort *sort, struct messages **ret_before)
{
	if (!sort)
		return false;
	if (sort->refusals.failed) {
		messages_destroy(&sort->refusals);
		messages_init(&sort->refusals, told_hear_call, sort);
	}
	*ret_before = messages_enter(&sort->refusals);
	return true;
}

int told_leave(struct messages *before, int r)
{
	messages_enter(before);
	return r;
}

int gsort_open(struct gsort **ret_sort)
{
	const struct options nothing = OPTIONS_DEFAULTS;
	struct gsort *sort;
	pthread_condattr_t clock;

	if (!ret_sort)
		return -EINVAL;
	sort = calloc(1, sizeof *sort);
	if (!sort)
		return -ENOMEM;
	sort->options = nothing;
	messages_init(&sort->messages, told_hear_sort, sort);
	messages_init(&sort->refusals, told_hear_call, sort);
	cancellation_init(&sort->cancellation);
	handover_init(&sort->in);
	handover_init(&sort->out);
	pthread_mutex_init(&sort->lock, NULL);
	pthread_mutex_init(&sort->listening, NULL);
	pthread_mutex_init(&sort->looking, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&sort->ended, &clock);
	pthread_condattr_destroy(&clock);
	*ret_sort = sort;
	return 0;
}

static void free_all(struct gsort *sort)
{
	pthread_cond_destroy(&sort->ended);
	pthread_mutex_destroy(&sort->looking);
	pthread_mutex_destroy(&sort->listening);
	pthread_mutex_destroy(&sort->lock);
	handover_destroy(&sort->out);
	handover_destroy(&sort->in);
	cancellation_destroy(&sort->cancellation);
	messages_destroy(&sort->refusals);
	messages_destroy(&sort->messages);
	reports_drop(&sort->reports);
	news_close(sort->news);
	stats_close(sort->stats);
	census_close(sort->census);
	options_free(&sort->options);
	for (size_t i = 0; i < sort->n_texts; i++)
		free(sort->texts[i]);
	free(sort->texts);
	free(sort->given_inputs);
	free(sort->told);
	free(sort);
}

void gsort_close(struct gsort *sort)
{
	if (!sort)
		return;
	if (sort->has_begun) {
		gsort_cancel(sort);
		pthread_join(sort->engine, NULL);
		if (sort->is_watched)
			pthread_join(sort->watching, NULL);
	}
	free_all(sort);
}

int keep_text(struct gsort *sort, const char *text, const char **ret_kept)
{
	char **texts = reallocarray(sort->texts, sort->n_texts + 1, sizeof *texts);
	char *copy;

	if (!texts)
		return fail(-ENOMEM, "no memory for '%s'", text);
	sort->texts = texts;
	copy = strdup(text);
	if (!copy)
		return fail(-ENOMEM, "no memory for '%s'", text);
	texts[sort->n_texts++] = copy;
	*ret_kept = copy;
	return 0;
}

int check_pointer(const void *pointer, const char *name)
{
	return pointer ? 0 : fail(-EINVAL, "%s is NULL", name);
}

int check_early(const struct gsort *sort, const char *name)
{
	return sort->has_begun ? fail(-EBUSY, "%s: the sort has begun", name) : 0;
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

int append_input(struct gsort *sort, const char *name, struct given given)
{
	struct options *options = &sort->options;
	const size_t n = options->n_inputs;
	const char **inputs = reallocarray(options->inputs, n + 1, sizeof *inputs);
	struct given *given_inputs;

	if (inputs)
		options->inputs = inputs;
	given_inputs = reallocarray(sort->given_inputs, n + 1, sizeof *given_inputs);
	if (given_inputs)
		sort->given_inputs = given_inputs;
	if (!inputs || !given_inputs)
		return fail(-ENOMEM, "%s: no memory for another input", name);
	inputs[n] = name;
	given_inputs[n] = given;
	options->n_inputs = n + 1;
	return 0;
}

static int add_input(struct gsort *sort, const char *name, struct given given)
{
	const char *kept;
	int r = check_early(sort, name);

	if (r == 0)
		r = keep_text(sort, name, &kept);
	return r < 0 ? r : append_input(sort, kept, given);
}

static int add_path(struct gsort *sort, const char *path)
{
	const int r = check_pointer(path, "the path of an input");

	if (r < 0)
		return r;
	if (!*path)
		return fail(-EINVAL, "the path of an input cannot be empty");
	return add_input(sort, path, (struct given){ .kind = GIVEN_PATH });
}

int gsort_add_input_path(struct gsort *sort, const char *path)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, add_path(sort, path));
}

static void name_descriptor(int fd, char name[static 32])
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
	name_descriptor(fd, name);
	return add_input(sort, name, (struct given){ .kind = GIVEN_DESCRIPTOR, .fd = fd });
}

int gsort_add_input_fd(struct gsort *sort, int fd)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, add_descriptor(sort, fd));
}

int gsort_set_output_path(struct gsort *sort, const char *path)
{
	return gsort_set(sort, "output", path);
}

static int give_output(struct gsort *sort, int fd)
{
	char name[32];
	int r;

	name_descriptor(fd, name);
	r = check_early(sort, name);
	if (r == 0)
		r = check_descriptor(fd);
	if (r < 0)
		return r;
	if (sort->given_output.kind != GIVEN_PATH)
		return fail(-EINVAL, "%s: the output is %s already", name, sort->output_name);
	r = keep_text(sort, name, &sort->output_name);
	if (r == 0)
		sort->given_output = (struct given){ .kind = GIVEN_DESCRIPTOR, .fd = fd };
	return r;
}

int gsort_set_output_fd(struct gsort *sort, int fd)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, give_output(sort, fd));
}

int gsort_set_process(struct gsort *sort, struct gsort_process *process)
{
	struct messages *before;
	int r;

	if (!told_enter(sort, &before))
		return -EINVAL;
	r = check_pointer(process, "the process");
	if (r == 0)
		r = check_early(sort, "a process");
	if (r == 0)
		sort->process = process;
	return told_leave(before, r);
}
