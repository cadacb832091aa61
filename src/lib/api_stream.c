/*
 * api_stream - the sort, in threads of its own, and what is put and got (see include/gsort.h)
 *
 *	the caller's threads			the engine's
 *	gsort_put() ---- handover `in' ---->	input, one of its sources
 *	gsort_get() <--- handover `out' ----	output, in order
 *
 * The engine is one thread, which starts the others. It ends the handovers when the sort has ended,
 * so that whoever waits there returns, and then says why it has. A caller who was told of an error
 * by a handover waits for the engine to say which it was.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "src/lib/lib_internal.h"
#include "src/report/debug_keys.h"

static void end(struct gsort *sort, int r)
{
	pthread_mutex_lock(&sort->lock);
	sort->has_ended = true;
	sort->r = r;
	pthread_cond_broadcast(&sort->ended);
	pthread_mutex_unlock(&sort->lock);
	if (r < 0) {
		handover_fail(&sort->in, r);
		handover_fail(&sort->out, r);
	}
	handover_end(&sort->in);
	handover_end(&sort->out);
}

/* The files that inputs turn out to be have one role, too. */
static int look_at_inputs(void *context, const struct sort_spec *spec, const struct layout *layout,
			  struct input *input)
{
	const struct gsort *sort = context;
	const struct run_files files = begin_files(sort);
	const int r = run_files_check_opened(&files, input);

	return r < 0 || !sort->options.debug ? r : debug_tell(spec, layout, input);
}

static void hear_of_device(void *context, const char *name)
{
	const struct gsort *sort = context;

	if (sort->options.debug)
		debug_tell_device(name);
}

static void note_commitment(void *context)
{
	const struct gsort *sort = context;

	if (reports_are_wanted(&sort->options) && company_tells(sort))
		process_leave_reports(sort->process);
}

static int check(struct gsort *sort, const struct sort_observer *observer)
{
	const int r = sort_check(&sort->spec, sort->checker, observer, sort->stats, &sort->facts,
				 &sort->disorder);

	if (r == 0 && sort->disorder && sort->names_disorder)
		tell("%s: record %" PRIu64 ": disorder", sort->options.inputs[0], sort->disorder);
	return r == 0 && sort->ranks ? company_report(sort) : r;
}

static int serve_purpose(struct gsort *sort)
{
	const struct sort_observer observer = { .context = sort,
						.opened = look_at_inputs,
						.device = hear_of_device,
						.committed = note_commitment };
	const struct assumptions assumed = { .nbytes = sort->assumed_nbytes,
					     .rank_rates = sort->options.rank_rates };
	int r;

	switch (sort->purpose) {
	case PURPOSE_CHECK:
		return check(sort, &observer);
	case PURPOSE_EXPLAIN:
		r = sort_explain(&sort->spec, &assumed, &observer, sort->stats, &sort->explanation);
		sort->facts = sort->explanation.facts;
		return r;
	case PURPOSE_SORT:
		break;
	}
	r = sort_run(&sort->spec, &observer, sort->stats, &sort->facts);
	return r == 0 && sort->ranks ? company_report(sort) : r;
}

/* Who calls a program with too few names waits for it, while it waits for them. */
static void tell_of_terminal(const struct gsort *sort)
{
	const struct options *options = &sort->options;
	const bool is_refused = sort->purpose == PURPOSE_SORT && !sort->spec.output_path &&
				isatty(STDOUT_FILENO);

	if (!sort->process || sort->purpose == PURPOSE_EXPLAIN || is_refused ||
	    !isatty(STDIN_FILENO))
		return;
	for (size_t i = 0; i < options->n_inputs; i++)
		if (!strcmp(options->inputs[i], "-"))
			tell("reading standard input, which is a terminal: Ctrl-D ends it, Ctrl-C "
			     "gives up");
}

void *engine_run(void *argument)
{
	struct gsort *sort = argument;
	int r;

	messages_enter(&sort->messages);
	tell_of_terminal(sort);
	r = cancellation_check(&sort->cancellation);
	if (r == 0)
		r = serve_purpose(sort);
	/* If nothing was said yet; of a program that may be meant: its streams can be files. */
	if (r < 0 && !sort->process && cancellation_check(&sort->cancellation) == 0)
		fail(r, "%m");
	stats_finish(sort->stats);
	end(sort, r);
	return NULL;
}

/* Has it failed already? */
static int look_for_failure(struct gsort *sort)
{
	int r;

	pthread_mutex_lock(&sort->lock);
	r = sort->has_ended ? sort->r : 0;
	if (r < 0)
		told_failure(sort);
	pthread_mutex_unlock(&sort->lock);
	return r;
}

int engine_wait(struct gsort *sort)
{
	int r;

	pthread_mutex_lock(&sort->lock);
	while (!sort->has_ended)
		pthread_cond_wait(&sort->ended, &sort->lock);
	r = sort->r;
	if (r < 0)
		told_failure(sort);
	pthread_mutex_unlock(&sort->lock);
	return r;
}

/* --- what is put and got --- */

static int put(struct gsort *sort, const void *records, size_t nbytes)
{
	int r = nbytes ? check_pointer(records, "what is to be put") : 0;

	if (r < 0 || (nbytes == 0 && !sort->has_begun))
		return r;
	r = begin(sort, PURPOSE_SORT, true);
	if (r < 0)
		return r;
	if (!sort->takes_puts)
		return fail(-EINVAL, "nothing can be put: the sort has begun without");
	if (sort->has_finished_puts) {
		r = look_for_failure(sort);
		return r < 0 ? r : fail(-EPIPE, "nothing can be put after gsort_finish()");
	}
	r = handover_put(&sort->in, records, nbytes);
	if (r == 0)
		return 0;
	r = engine_wait(sort);
	return r < 0 ? r : fail(-EPIPE, "nothing can be put: the sort has ended");
}

int gsort_put(struct gsort *sort, const void *records, size_t nbytes)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, put(sort, records, nbytes));
}

static int finish(struct gsort *sort)
{
	const int r = begin(sort, PURPOSE_SORT, false);

	if (r < 0)
		return r;
	sort->has_finished_puts = true;
	handover_end(&sort->in);
	return sort->gives ? look_for_failure(sort) : engine_wait(sort);
}

int gsort_finish(struct gsort *sort)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, finish(sort));
}

static int run(struct gsort *sort)
{
	if (!sort->has_begun && !begin_has_inputs(sort))
		return fail(-EINVAL, "there is no input: gsort_add_input_path() adds one");
	if (!sort->has_begun && !sort->options.output_path && sort->given_output.kind == GIVEN_PATH)
		return fail(-EINVAL, "there is no output: gsort_set_output_path() sets one");
	return finish(sort);
}

int gsort_run(struct gsort *sort)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, run(sort));
}

static int get(struct gsort *sort, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	size_t got = 0;
	int r = check_pointer(ret_nbytes, "ret_nbytes");

	if (r == 0 && nbytes)
		r = check_pointer(buffer, "the buffer for what is got");
	if (r < 0)
		return r;
	if (!sort->has_begun && !begin_has_inputs(sort))
		return fail(-EINVAL, "there is nothing to get: nothing was put");
	r = begin(sort, PURPOSE_SORT, false);
	if (r < 0)
		return r;
	if (!sort->gives)
		return fail(-EINVAL, "nothing can be got: the output is %s",
			    sort->spec.output_path);
	if (sort->takes_puts && !sort->has_finished_puts)
		return fail(-EINVAL, "gsort_finish() first: more may be put");
	r = handover_get(&sort->out, buffer, nbytes, &got);
	if (r < 0 || got < nbytes)
		r = engine_wait(sort);
	if (r == 0)
		*ret_nbytes = got;
	return r;
}

int gsort_get(struct gsort *sort, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, get(sort, buffer, nbytes, ret_nbytes));
}

void gsort_cancel(struct gsort *sort)
{
	if (!sort)
		return;
	cancellation_cancel(&sort->cancellation);
	handover_fail(&sort->in, -ECANCELED);
	handover_fail(&sort->out, -ECANCELED);
}
