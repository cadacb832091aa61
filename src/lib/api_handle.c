/*
 * api_handle.c - the handle, its options, inputs and output (see include/gsort.h)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/text.h"
#include "src/base/thread.h"
#include "src/lib/api_cli.h"
#include "src/lib/lib_internal.h"
#include "src/lines/line_options.h"

_Static_assert((int)GSORT_WORD_NBYTES == (int)OPTION_WORD_NBYTES, "one buffer for words");

bool api_begin_call(struct gsort *sort, struct diagnostics **ret_saved)
{
	if (!sort)
		return false;
	if (sort->call_messages.failed) {
		diagnostics_destroy(&sort->call_messages);
		diagnostics_init(&sort->call_messages, api_on_call_message, sort);
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

void copy_struct_prefix(void *destination, size_t destination_nbytes, const void *source,
			size_t source_nbytes)
{
	memset(destination, 0, destination_nbytes);
	memcpy(destination, source,
	       source_nbytes < destination_nbytes ? source_nbytes : destination_nbytes);
}

int gsort_open(struct gsort **ret_sort)
{
	const struct options defaults = OPTIONS_DEFAULTS;
	struct gsort *sort;

	if (!ret_sort)
		return -EINVAL;
	sort = calloc(1, sizeof *sort);
	if (!sort)
		return -ENOMEM;
	sort->engine = &api_record_engine;
	sort->options = defaults;
	diagnostics_init(&sort->sort_messages, api_on_sort_message, sort);
	diagnostics_init(&sort->call_messages, api_on_call_message, sort);
	cancellation_init(&sort->cancellation);
	rendezvous_init(&sort->put_channel);
	rendezvous_init(&sort->get_channel);
	pthread_mutex_init(&sort->lock, NULL);
	pthread_mutex_init(&sort->message_callback_lock, NULL);
	pthread_mutex_init(&sort->progress_lock, NULL);
	thread_init_timed_condition(&sort->ended_cond);
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
	api_lines_free(sort->lines);
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
	}
	free_handle(sort);
}

/* Copy a string that lives as long as the handle. */
static int copy_string(struct gsort *sort, const char *text, const char **ret_copy)
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

/* --- Options --- */

/* Return row i of the options of a single process, or of ranks; NULL after the last. */
static const struct option_spec *option_at(const struct option_table *table, unsigned i,
					   bool single_process)
{
	for (unsigned k = 0; k < table->n_specs; k++)
		if (!(single_process && table->specs[k].mpi_support == OPTION_MPI_ONLY) && i-- == 0)
			return &table->specs[k];
	return NULL;
}

static int describe_option(const struct option_spec *row, struct gsort_option *ret_option,
			   size_t size)
{
	struct gsort_option option;

	if (!ret_option)
		return -EINVAL;
	if (!row)
		return -ENOENT;
	option = (struct gsort_option){
		.name = row->name,
		.argument = row->argument,
		.default_value = row->default_value,
		.help = row->help,
		.section = row->section,
		.letter = row->letter,
		.repeatable = row->repeats,
		.cli_only = row->cli_only,
	};
	copy_struct_prefix(ret_option, size, &option, sizeof option);
	return 0;
}

int gsort_get_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	return describe_option(option_at(&options_table, i, true), ret_option, size);
}

int gsort_get_line_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	return describe_option(option_at(&line_option_table, i, true), ret_option, size);
}

int api_distributed_get_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	return describe_option(option_at(&options_table, i, false), ret_option, size);
}

int api_distributed_get_line_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	return describe_option(option_at(&line_option_table, i, false), ret_option, size);
}

const char *gsort_get_option_word(unsigned i, unsigned n, char *text)
{
	const struct option_spec *row = option_at(&options_table, i, true);

	return row && text ? option_word(row, n, text) : NULL;
}

const char *api_distributed_get_word(unsigned i, unsigned n, char *text)
{
	return option_word(option_at(&options_table, i, false), n, text);
}

const char *api_distributed_get_line_word(unsigned i, unsigned n, char *text)
{
	return option_word(option_at(&line_option_table, i, false), n, text);
}

/* Find an option that this handle knows; NULL: unknown. Options of ranks need ranks. */
static const struct option_spec *find_known_option(const struct gsort *sort, const char *name)
{
	const struct option_spec *row = name ? option_find(sort->engine->option_table, name) : NULL;

	return row && row->mpi_support == OPTION_MPI_ONLY && !sort->comm ? NULL : row;
}

static int check_value(const struct option_spec *row, const char *value)
{
	if (row->argument && !row->default_value && !value)
		return fail(-EINVAL, "%s requires a value, %s", option_format_name(row).text,
			    row->argument);
	if (!row->argument && value && *value)
		return fail(-EINVAL, "%s takes no value: '%s'", option_format_name(row).text,
			    value);
	return 0;
}

/* Return the option that a function of the library is named after; NULL: none. */
static const char *find_synonym(const char *name)
{
	static const char *const synonyms[][2] = { { "memory", "buffer-size" },
						   { "threads", "parallel" },
						   { "descending", "reverse" },
						   { "output-path", "output" } };

	for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
		if (strcmp(synonyms[i][0], name) == 0)
			return synonyms[i][1];
	return NULL;
}

/* Report an unknown option with a suggestion. cli_only: suggest options of programs as well. */
static int refuse_unknown(const struct gsort *sort, const char *name, bool cli_only)
{
	const char *names[OPTION_MAX_ROWS], *nearest;
	const char *kind = sort->engine->option_kind;
	const struct option_spec *line_option = option_find(&line_option_table, name);
	unsigned n = 0;

	for (unsigned i = 0; i < sort->engine->option_table->n_specs; i++) {
		const struct option_spec *row = &sort->engine->option_table->specs[i];

		if (find_known_option(sort, row->name) && (cli_only || !row->cli_only))
			names[n++] = row->name;
	}
	if (line_option && line_option->mpi_support != OPTION_MPI_ONLY)
		return fail(-EINVAL, "unknown option '%s'; for lines, set " LINES_OPTION " first",
			    name);
	nearest = find_synonym(name);
	if (!nearest)
		nearest = suggest_word(name, strlen(name), names, n);
	return nearest ? fail(-EINVAL, "unknown option '%s'%s; did you mean %s?", name, kind,
			      nearest) :
			 fail(-EINVAL, "unknown option '%s'%s", name, kind);
}

static int set_option(struct gsort *sort, const char *name, const char *value, bool from_cli)
{
	const struct option_spec *row;
	const char *copy = NULL;
	int r = api_check_pointer(name, "the name of an option");

	if (r == 0 && strcmp(name, LINES_OPTION) == 0)
		return api_lines_enable(sort, value);
	row = find_known_option(sort, name);
	if (r == 0 && row && row->cli_only && !from_cli)
		r = fail(-ENOTSUP, "%s: only for programs, see gsort_set_from_cli()",
			 option_format_name(row).text);
	if (r == 0)
		r = api_check_not_started(sort, row ? option_format_name(row).text : name);
	if (r == 0)
		r = row ? check_value(row, value) : refuse_unknown(sort, name, from_cli);
	if (r == 0 && value)
		r = copy_string(sort, value, &copy);
	/* Options that end a command line (--help) are only recorded. */
	if (r == 0)
		r = option_set(sort->engine->option_table, row, copy, &sort->arguments,
			       &sort->options);
	return r < 0 ? r : 0;
}

int gsort_set(struct gsort *sort, const char *name, const char *value)
{
	return API_CALL(sort, set_option(sort, name, value, false));
}

int gsort_set_from_cli(struct gsort *sort, const char *name, const char *value)
{
	return API_CALL(sort, set_option(sort, name, value, true));
}

const char *gsort_get_set(const struct gsort *sort, const char *name)
{
	const struct option_spec *row;
	unsigned i;

	row = sort ? find_known_option(sort, name) : NULL;
	if (!row)
		return NULL;
	i = (unsigned)(row - sort->engine->option_table->specs);
	if (!option_is_present(&sort->arguments, i))
		return NULL;
	return sort->arguments.values[i] ? sort->arguments.values[i] : "";
}

/* --- Typed setters --- */

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
	if (nbytes == 0)
		return API_CALL(sort, fail(-EINVAL, "gsort_set_memory(): size must be above 0"));
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

/* --- Inputs and output --- */

int api_append_input(struct gsort *sort, const char *name, struct endpoint endpoint)
{
	struct sort_spec *spec = &sort->options.spec;
	struct endpoint *endpoints =
		reallocarray(sort->input_endpoints, spec->n_inputs + 1, sizeof *endpoints);

	if (!endpoints)
		return fail(-ENOMEM, "%s: no memory for another input", name);
	sort->input_endpoints = endpoints;
	spec->input_endpoints = endpoints;
	endpoints[spec->n_inputs] = endpoint;
	return options_add_input(&sort->options, name);
}

static int add_input(struct gsort *sort, const char *name, struct endpoint endpoint)
{
	const char *copy = NULL;
	int r = api_check_not_started(sort, name);

	if (r == 0)
		r = copy_string(sort, name, &copy);
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
	return API_CALL(sort, add_path(sort, path));
}

static void format_descriptor_name(int fd, char name[static 32])
{
	snprintf(name, 32, "descriptor %d", fd);
}

static int check_descriptor(int fd)
{
	return fd < 0 ? fail(-EINVAL, "descriptor %d: invalid", fd) : 0;
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
	return API_CALL(sort, add_descriptor(sort, fd));
}

int gsort_set_output_path(struct gsort *sort, const char *path)
{
	return gsort_set(sort, "output", path);
}

static int set_output_descriptor(struct gsort *sort, int fd)
{
	struct sort_spec *spec = &sort->options.spec;
	char name[32];
	int r;

	format_descriptor_name(fd, name);
	r = api_check_not_started(sort, name);
	if (r == 0)
		r = check_descriptor(fd);
	if (r < 0)
		return r;
	if (spec->output_endpoint.kind != ENDPOINT_PATH)
		return fail(-EINVAL, "%s: the output is already %s", name,
			    sort->options.output_label);
	r = copy_string(sort, name, &sort->options.output_label);
	if (r == 0)
		spec->output_endpoint = (struct endpoint){ .kind = ENDPOINT_DESCRIPTOR, .fd = fd };
	return r;
}

int gsort_set_output_fd(struct gsort *sort, int fd)
{
	return API_CALL(sort, set_output_descriptor(sort, fd));
}

static int set_process(struct gsort *sort, struct gsort_process *process)
{
	int r = api_check_pointer(process, "process");

	if (r == 0)
		r = api_check_not_started(sort, "gsort_set_process()");
	if (r == 0)
		sort->process = process;
	return r;
}

int gsort_set_process(struct gsort *sort, struct gsort_process *process)
{
	return API_CALL(sort, set_process(sort, process));
}
