/*
 * api_stream - the sort, in threads of its own, and what is put and got (see include/gsort.h)
 *
 *	the caller's threads			the engine's
 *	gsort_put() ---- rendezvous `in' ---->	input, one of its sources
 *	gsort_get() <--- rendezvous `out' ----	output, in order
 *
 * The engine is one thread, which starts the others. It ends the handovers when the sort has ended,
 * so that whoever waits there returns, and then says why it has. A caller who was told of an error
 * by a rendezvous waits for the engine to say which it was.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "src/lib/lib_internal.h"
#include "src/report/explain.h"

static void finish_thread(struct gsort *sort, int result)
{
	pthread_mutex_lock(&sort->lock);
	sort->has_ended = true;
	sort->result = result;
	pthread_cond_broadcast(&sort->ended_cond);
	pthread_mutex_unlock(&sort->lock);
	if (result < 0) {
		rendezvous_fail(&sort->put_channel, result);
		rendezvous_fail(&sort->get_channel, result);
	}
	rendezvous_end(&sort->put_channel);
	rendezvous_end(&sort->get_channel);
}

/* Tell the user of a terminal which type was assumed. */
static void notice_default_type(const struct gsort *sort, const struct command_files *files,
				const struct input *input)
{
	const char *path = sort->options.n_inputs ? sort->options.inputs[0] : "";

	if (!sort->process || sort->operation == API_EXPLAIN || !is_reporting_rank(sort) ||
	    !isatty(STDERR_FILENO) || !command_files_are_untyped(files, input))
		return;
	notice("%s: no type given, %s as u64", strcmp(path, "-") == 0 ? "standard input" : path,
	       sort->operation == API_CHECK ? "checking" :
	       sort->spec.merge_inputs      ? "merging" :
					      "sorting");
}

/* The files that inputs turn out to be have one role, too. */
static int on_inputs_opened(void *context, const struct sort_spec *spec,
			    const struct layout *layout, struct input *input)
{
	const struct gsort *sort = context;
	const struct command_files files = api_command_files(sort);
	const int r = command_files_check_inputs(&files, input);

	if (r == 0)
		notice_default_type(sort, &files, input);
	return r < 0 || !sort->options.debug ? r : debug_report_keys(spec, layout, input);
}

static void on_device_opened(void *context, const char *name)
{
	const struct gsort *sort = context;

	if (sort->options.debug)
		debug_report_device(name);
}

static void on_output_committed(void *context)
{
	const struct gsort *sort = context;

	if (reports_are_requested(&sort->options) && is_reporting_rank(sort))
		process_set_output_committed(sort->process);
}

static int run_check_operation(struct gsort *sort, const struct sort_observer *observer)
{
	const int r = sort_check(&sort->spec, sort->check_label, observer, sort->stats,
				 &sort->summary, &sort->disorder);

	if (r == 0 && sort->disorder && sort->reports_disorder)
		notice("%s: record %" PRIu64 ": disorder", sort->options.inputs[0], sort->disorder);
	return r == 0 && sort->comm ? api_distributed_gather_stats(sort) : r;
}

static int run_api_operation(struct gsort *sort)
{
	const struct sort_observer observer = { .context = sort,
						.on_opened = on_inputs_opened,
						.on_device = on_device_opened,
						.on_committed = on_output_committed };
	const struct assumptions assumptions = { .nbytes = sort->assumed_nbytes,
						 .rank_rates = sort->options.rank_rates };
	int r;

	switch (sort->operation) {
	case API_CHECK:
		return run_check_operation(sort, &observer);
	case API_EXPLAIN:
		r = sort_explain(&sort->spec, &assumptions, &observer, sort->stats,
				 &sort->explanation);
		sort->summary = sort->explanation.summary;
		return r;
	case API_SORT:
		break;
	}
	r = sort_run(&sort->spec, &observer, sort->stats, &sort->summary);
	return r == 0 && sort->comm ? api_distributed_gather_stats(sort) : r;
}

/* Who calls a program with too few names waits for it, while it waits for them. */
static void notice_terminal_input(const struct gsort *sort)
{
	const struct options *options = &sort->options;
	const bool is_refused = sort->operation == API_SORT && !sort->spec.output_path &&
				isatty(STDOUT_FILENO);

	if (!sort->process || sort->operation == API_EXPLAIN || is_refused || !isatty(STDIN_FILENO))
		return;
	for (size_t i = 0; i < options->n_inputs; i++)
		if (!strcmp(options->inputs[i], "-"))
			notice("reading from the terminal; press Ctrl-D to end the input, "
			       "Ctrl-C to cancel");
}

void *api_sort_thread(void *argument)
{
	struct gsort *sort = argument;
	int r;

	diagnostics_push(&sort->sort_messages);
	notice_terminal_input(sort);
	r = cancellation_check(&sort->cancellation);
	if (r == 0)
		r = run_api_operation(sort);
	/* If nothing was said yet; of a program that may be meant: its streams can be files. */
	if (r < 0 && !sort->process && cancellation_check(&sort->cancellation) == 0)
		fail(r, "%m");
	stats_finish(sort->stats);
	finish_thread(sort, r);
	return NULL;
}

/* Has it failed already? */
static int get_failure(struct gsort *sort)
{
	int r;

	pthread_mutex_lock(&sort->lock);
	r = sort->has_ended ? sort->result : 0;
	if (r < 0)
		api_set_failure(sort);
	pthread_mutex_unlock(&sort->lock);
	return r;
}

int api_wait(struct gsort *sort)
{
	int r;

	pthread_mutex_lock(&sort->lock);
	while (!sort->has_ended)
		pthread_cond_wait(&sort->ended_cond, &sort->lock);
	r = sort->result;
	if (r < 0)
		api_set_failure(sort);
	pthread_mutex_unlock(&sort->lock);
	return r;
}

/* --- what is put and got --- */

static int put_records(struct gsort *sort, const void *records, size_t nbytes)
{
	int r = nbytes ? api_check_pointer(records, "what is to be put") : 0;

	if (r < 0 || (nbytes == 0 && !sort->has_started))
		return r;
	r = api_start(sort, API_SORT, true);
	if (r < 0)
		return r;
	if (!sort->accepts_puts)
		return fail(-EINVAL, "nothing can be put: the sort has begun without");
	if (sort->has_finished_puts) {
		r = get_failure(sort);
		return r < 0 ? r : fail(-EINVAL, "nothing can be put after gsort_finish()");
	}
	r = rendezvous_put(&sort->put_channel, records, nbytes);
	sort->n_put_nbytes += nbytes;
	if (r == 0)
		return 0;
	r = api_wait(sort);
	return r < 0 ? r : fail(-EPIPE, "nothing can be put: the sort has ended");
}

int gsort_put(struct gsort *sort, const void *records, size_t nbytes)
{
	struct diagnostics *saved;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	return api_end_call(saved, put_records(sort, records, nbytes));
}

/*
 * Return whether the sort will fail because the last record is incomplete. It reads all records
 * first; a merge may have to wait for gsort_get().
 */
static bool has_incomplete_record(const struct gsort *sort)
{
	const struct sort_spec *spec = &sort->spec;
	const bool is_size_known = spec->record_spec != RECORD_SPEC_REQUESTS &&
				   (spec->record_spec != RECORD_SPEC_NONE || spec->n_inputs == 1);

	return sort->accepts_puts && is_size_known && spec->partial == PARTIAL_ERROR &&
	       !spec->merge_inputs && sort->n_put_nbytes % spec->record_nbytes != 0;
}

static int finish_puts(struct gsort *sort)
{
	const int r = api_start(sort, API_SORT, false);

	if (r < 0)
		return r;
	sort->has_finished_puts = true;
	rendezvous_end(&sort->put_channel);
	return sort->returns_output && !has_incomplete_record(sort) ? get_failure(sort) :
								      api_wait(sort);
}

int gsort_finish(struct gsort *sort)
{
	struct diagnostics *saved;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	return api_end_call(saved, finish_puts(sort));
}

static int run_to_end(struct gsort *sort)
{
	if (!sort->has_started && !api_has_inputs(sort))
		return fail(-EINVAL, "there is no input: gsort_add_input_path() adds one");
	if (!sort->has_started && !sort->options.output_path &&
	    sort->output_endpoint.kind == ENDPOINT_PATH)
		return fail(-EINVAL, "there is no output: gsort_set_output_path() sets one");
	return finish_puts(sort);
}

int gsort_run(struct gsort *sort)
{
	struct diagnostics *saved;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	return api_end_call(saved, run_to_end(sort));
}

static int get(struct gsort *sort, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	size_t n_copied = 0;
	int r = api_check_pointer(ret_nbytes, "ret_nbytes");

	if (r == 0 && nbytes)
		r = api_check_pointer(buffer, "the buffer for what is got");
	if (r < 0)
		return r;
	if (!sort->has_started && !api_has_inputs(sort))
		return fail(-EINVAL, "there is nothing to get: nothing was put");
	r = api_start(sort, API_SORT, false);
	if (r < 0)
		return r;
	if (!sort->returns_output)
		return fail(-EINVAL, "nothing can be got: the output is %s",
			    sort->spec.output_path);
	if (sort->accepts_puts && !sort->has_finished_puts)
		return fail(-EINVAL, "gsort_finish() first: more may be put");
	r = rendezvous_get(&sort->get_channel, buffer, nbytes, &n_copied);
	if (r < 0 || n_copied < nbytes)
		r = api_wait(sort);
	if (r == 0)
		*ret_nbytes = n_copied;
	return r;
}

int gsort_get(struct gsort *sort, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	struct diagnostics *saved;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	return api_end_call(saved, get(sort, buffer, nbytes, ret_nbytes));
}

void gsort_cancel(struct gsort *sort)
{
	if (!sort)
		return;
	cancellation_request(&sort->cancellation);
	rendezvous_fail(&sort->put_channel, -ECANCELED);
	rendezvous_fail(&sort->get_channel, -ECANCELED);
}
