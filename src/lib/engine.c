/*
 * engine - the sort, in threads of its own, and what is put and got (see include/gsort.h)
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
#include <stdlib.h>
#include <string.h>

#include "src/base/thread.h"
#include "src/lib/inside.h"
#include "src/options/options_settle.h"
#include "src/report/explain.h"
#include "src/sort/sort.h"

/* Without the environment there is no other that all systems have. */
static const char usual_directory[] = "/tmp";

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

static int serve_purpose(struct gsort *sort)
{
	const struct sort_observer nobody = { 0 };
	int r;

	switch (sort->purpose) {
	case PURPOSE_CHECK:
		return sort_check(&sort->spec, "gsort_check()", &nobody, sort->stats, &sort->facts,
				  &sort->disorder);
	case PURPOSE_EXPLAIN:
		r = sort_explain(&sort->spec, sort->assumed_nbytes, &nobody, sort->stats,
				 &sort->explanation);
		sort->facts = sort->explanation.facts;
		return r;
	case PURPOSE_SORT:
		break;
	}
	return sort_run(&sort->spec, &nobody, sort->stats, &sort->facts);
}

static void *run_engine(void *argument)
{
	struct gsort *sort = argument;
	int r;

	messages_enter(&sort->messages);
	r = cancellation_check(&sort->cancellation);
	if (r == 0)
		r = serve_purpose(sort);
	if (r < 0 && cancellation_check(&sort->cancellation) == 0)
		fail(r, "%m"); /* if nothing was said yet */
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

static int wait_for_end(struct gsort *sort)
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

/* --- beginning --- */

/* What a stream of records has no place for. */
static int check_puts(const struct gsort *sort)
{
	const struct options *options = &sort->options;

	if (options->checkpoint_path)
		return fail(-EINVAL, "--checkpoint needs inputs that are paths: what is put cannot "
				     "be read again");
	if (options->format == FORMAT_NPY)
		return fail(-EINVAL, "--format=npy: what is put is records, and no file");
	if (options->skip_nbytes)
		return fail(-EINVAL, "--skip-bytes: what is put is records, and no file");
	return 0;
}

static int check_given(const struct gsort *sort)
{
	const struct options *options = &sort->options;

	if (sort->given_output.kind != GIVEN_PATH && options->output_path)
		return fail(-EINVAL, "the output is '%s' and %s: one of them is too many",
			    options->output_path, sort->output_name);
	if (sort->gives && options->partial == PARTIAL_KEEP)
		return fail(-EINVAL, "--partial=keep: what is got is records, and no part of one");
	for (size_t i = 0; i < options->n_inputs && options->checkpoint_path; i++)
		if (sort->given_inputs[i].kind == GIVEN_DESCRIPTOR)
			return fail(-EINVAL, "--checkpoint needs inputs that are paths, and not %s",
				    options->inputs[i]);
	return sort->takes_puts ? check_puts(sort) : 0;
}

/* The inputs and the output that were not named. */
static int complete_ends(struct gsort *sort, bool takes_puts)
{
	const struct given in = { .kind = GIVEN_HANDOVER, .handover = &sort->in };
	int r = 0;

	sort->takes_puts = takes_puts || sort->options.n_inputs == 0;
	if (sort->takes_puts)
		r = append_input(sort, "what was put", in);
	sort->gives = !sort->options.output_path && sort->given_output.kind == GIVEN_PATH;
	if (sort->gives) {
		sort->given_output =
			(struct given){ .kind = GIVEN_HANDOVER, .handover = &sort->out };
		sort->output_name = "what is got";
	}
	sort->options.unnamed_output = sort->output_name;
	return r;
}

/* What was asked for, and what is not begun by it; the rest of the handle is not settled. */
struct asked {
	struct option_arguments arguments;
	struct options options;
	struct given output;
	const char *output_name;
};

static void note_asked(const struct gsort *sort, struct asked *ret_asked)
{
	*ret_asked = (struct asked){ .arguments = sort->arguments,
				     .options = sort->options,
				     .output = sort->given_output,
				     .output_name = sort->output_name };
}

/* As if nobody had tried to begin. What grew meanwhile stays where it is now. */
static void ask_again(struct gsort *sort, const struct asked *asked)
{
	struct options *options = &sort->options;
	const char **inputs = options->inputs, **temp_dirs = options->temp_dirs;

	free(options->record.keys); /* which only settling makes */
	*options = asked->options;
	options->inputs = inputs;
	options->temp_dirs = temp_dirs;
	sort->arguments = asked->arguments;
	sort->given_output = asked->output;
	sort->output_name = asked->output_name;
}

/* The ends, or what a check is on the command line. */
static int complete(struct gsort *sort, enum purpose purpose, bool takes_puts)
{
	if (purpose != PURPOSE_CHECK)
		return complete_ends(sort, takes_puts);
	return option_take(&options_table, option_find(&options_table, "check"), NULL,
			   &sort->arguments, &sort->options);
}

static int settle(struct gsort *sort, enum purpose purpose, bool takes_puts)
{
	int r = complete(sort, purpose, takes_puts);

	if (r == 0)
		r = check_given(sort);
	if (r == 0)
		r = option_check_conflicts(&options_table, &sort->arguments);
	if (r == 0)
		r = options_settle(&sort->options, usual_directory);
	if (r < 0)
		return r;
	sort->spec = options_spec(&sort->options);
	sort->spec.given_inputs = sort->given_inputs;
	sort->spec.given_output = sort->given_output;
	if (sort->given_output.kind != GIVEN_PATH)
		sort->spec.output_path = sort->output_name;
	sort->spec.records_only = sort->gives;
	sort->spec.cancellation = &sort->cancellation;
	return 0;
}

/* Others may ask how far it is. */
static void set_stats(struct gsort *sort, struct stats *stats)
{
	struct stats *before;

	pthread_mutex_lock(&sort->lock);
	before = sort->stats;
	sort->stats = stats;
	pthread_mutex_unlock(&sort->lock);
	stats_close(before);
}

static int open_stats(struct gsort *sort)
{
	struct stats *stats;
	const int r = stats_open(NULL, &stats);

	if (r < 0)
		return r;
	set_stats(sort, stats);
	return 0;
}

/* Signals are the caller's: none comes to these threads, and a broken pipe is only an error. */
static int start_threads(struct gsort *sort)
{
	char limits[THREAD_LIMITS_NBYTES];
	sigset_t before;
	int r;

	thread_hold_signals(&before);
	r = thread_start(run_engine, sort, 0, &sort->engine);
	if (r == 0 && sort->watcher)
		sort->is_watched = thread_start(told_watch, sort, 0, &sort->watching) == 0;
	thread_let_signals(&before);
	return r < 0 ? fail(r, "cannot start a thread for the sort: %m%s",
			    thread_limits(r, limits)) :
		       0;
}

/* One that could not be begun has not: what was asked for can be mended, and begun again. */
static int begin(struct gsort *sort, enum purpose purpose, bool takes_puts)
{
	struct asked asked;
	int r;

	if (sort->has_begun && sort->purpose != purpose)
		return fail(-EINVAL, "this handle was used for something else: open another one");
	if (sort->has_begun)
		return 0;
	note_asked(sort, &asked);
	sort->purpose = purpose;
	r = settle(sort, purpose, takes_puts);
	if (r == 0)
		r = open_stats(sort);
	if (r == 0)
		r = start_threads(sort);
	sort->has_begun = r == 0;
	if (r < 0) {
		set_stats(sort, NULL);
		ask_again(sort, &asked);
	}
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
	r = wait_for_end(sort);
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
	return sort->gives ? look_for_failure(sort) : wait_for_end(sort);
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
	if (!sort->has_begun && sort->options.n_inputs == 0)
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
	if (!sort->has_begun && sort->options.n_inputs == 0)
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
		r = wait_for_end(sort);
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

/* --- instead of sorting --- */

/* The first thing that a handle is used for is the only one. */
static int check_unused(const struct gsort *sort, const char *name)
{
	return sort->has_begun ?
		       fail(-EBUSY, "%s: this handle was used already: open another one", name) :
		       0;
}

static int check(struct gsort *sort, uint64_t *ret_record)
{
	int r = check_pointer(ret_record, "ret_record");

	if (r == 0)
		r = check_unused(sort, "gsort_check()");
	if (r == 0 && sort->options.n_inputs == 0)
		r = fail(-EINVAL, "there is no input: gsort_add_input_path() adds one");
	if (r == 0 && sort->given_output.kind != GIVEN_PATH)
		r = fail(-EINVAL, "the output is %s, but a check writes nothing",
			 sort->output_name);
	if (r == 0)
		r = begin(sort, PURPOSE_CHECK, false);
	if (r == 0)
		r = wait_for_end(sort);
	if (r == 0)
		*ret_record = sort->disorder;
	return r;
}

int gsort_check(struct gsort *sort, uint64_t *ret_record)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, check(sort, ret_record));
}

static void write_explanation(const struct gsort *sort, FILE *stream)
{
	explain_write_json(&sort->explanation, stream);
}

static int explain(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_json)
{
	const char *json;
	int r = check_pointer(ret_json, "ret_json");

	if (r == 0)
		r = check_unused(sort, "gsort_explain()");
	if (r < 0)
		return r;
	sort->assumed_nbytes = assumed_nbytes;
	r = begin(sort, PURPOSE_EXPLAIN, false);
	if (r == 0)
		r = wait_for_end(sort);
	if (r < 0)
		return r;
	json = told_json(sort, write_explanation);
	if (!json)
		return fail(-ENOMEM, "no memory for what is to be explained");
	*ret_json = json;
	return 0;
}

int gsort_explain(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_json)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, explain(sort, assumed_nbytes, ret_json));
}

void gsort_cancel(struct gsort *sort)
{
	if (!sort)
		return;
	cancellation_cancel(&sort->cancellation);
	handover_fail(&sort->in, -ECANCELED);
	handover_fail(&sort->out, -ECANCELED);
}
