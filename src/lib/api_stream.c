/*
 * api_stream.c - the sort's threads, gsort_put() and gsort_get() (see include/gsort.h)
 *
 *	threads of the caller			thread of the sort
 *	gsort_put() ---- put_channel --->	one of the inputs
 *	gsort_get() <--- get_channel ----	the output, in order
 *
 * One thread runs the operation and starts the others. When the operation ends, the channels end,
 * which wakes the caller. A caller that gets an error from a channel waits for the end of the
 * operation, which has the message.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "src/base/thread.h"
#include "src/lib/lib_internal.h"

static void finish_thread(struct gsort *sort, int result)
{
	api_end_progress_thread(sort, result);
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

void *api_sort_thread(void *argument)
{
	struct gsort *sort = argument;
	int r;

	diagnostics_push(&sort->sort_messages);
	r = cancellation_check(&sort->cancellation);
	if (r == 0)
		r = sort->engine->run(sort);
	if (r == 0 && sort->comm && sort->operation != API_EXPLAIN) /* only one rank explains */
		r = api_distributed_gather_stats(sort);
	/* A failed sort has a message, unless the program's standard error must not be written. */
	if (r < 0 && !sort->process && cancellation_check(&sort->cancellation) == 0)
		fail(r, "%m");
	stats_finish(sort->stats);
	finish_thread(sort, r);
	return NULL;
}

/* Return the error of the operation if it has failed already, else 0. */
static int get_failure(struct gsort *sort)
{
	SCOPED_LOCK(&sort->lock);
	if (sort->result < 0)
		api_set_failure(sort);
	return sort->result;
}

int api_wait(struct gsort *sort)
{
	SCOPED_LOCK(&sort->lock);
	while (!sort->has_ended)
		pthread_cond_wait(&sort->ended_cond, &sort->lock);
	if (sort->result < 0)
		api_set_failure(sort);
	return sort->result;
}

/* --- Streams --- */

static int put_records(struct gsort *sort, const void *records, size_t nbytes)
{
	int r = nbytes ? api_check_pointer(records, "records") : 0;

	if (r < 0 || (nbytes == 0 && !sort->has_started))
		return r;
	r = api_start(sort, API_SORT, true);
	if (r < 0)
		return r;
	if (!sort->accepts_puts)
		return fail(-EINVAL, "gsort_put(): the sort has begun without it");
	if (sort->has_finished_puts) {
		r = get_failure(sort);
		return r < 0 ? r : fail(-EINVAL, "gsort_put(): gsort_finish() was called");
	}
	r = rendezvous_put(&sort->put_channel, records, nbytes);
	sort->n_put_nbytes += nbytes;
	if (r == 0)
		return 0;
	r = api_wait(sort);
	return r < 0 ? r : fail(-EPIPE, "gsort_put(): the sort has ended");
}

int gsort_put(struct gsort *sort, const void *records, size_t nbytes)
{
	return API_CALL(sort, put_records(sort, records, nbytes));
}

/*
 * Return whether the sort will fail because the last record is incomplete. It reads all records
 * first; a merge may have to wait for gsort_get().
 */
static bool has_incomplete_record(const struct gsort *sort)
{
	const struct sort_spec *spec = &sort->options.spec;
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
	return API_CALL(sort, finish_puts(sort));
}

static int run_to_end(struct gsort *sort)
{
	if (!sort->has_started && !api_has_inputs(sort))
		return fail(-EINVAL, "no input; call gsort_add_input_path()");
	if (!sort->has_started && !sort->options.spec.output_path && !sort->writes_to_stdout &&
	    sort->options.spec.output_endpoint.kind == ENDPOINT_PATH)
		return fail(-EINVAL, "no output; call gsort_set_output_path()");
	return finish_puts(sort);
}

int gsort_run(struct gsort *sort)
{
	return API_CALL(sort, run_to_end(sort));
}

static int get(struct gsort *sort, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	size_t n_copied = 0;
	int r = api_check_pointer(ret_nbytes, "ret_nbytes");

	if (r == 0 && nbytes)
		r = api_check_pointer(buffer, "buffer");
	if (r < 0)
		return r;
	if (!sort->has_started && !api_has_inputs(sort))
		return fail(-EINVAL, "no input; call gsort_put()");
	r = api_start(sort, API_SORT, false);
	if (r < 0)
		return r;
	if (!sort->returns_output)
		return fail(-EINVAL, "gsort_get(): the output is %s",
			    sort->options.spec.output_path);
	if (sort->accepts_puts && !sort->has_finished_puts)
		return fail(-EINVAL, "gsort_get(): call gsort_finish() first");
	r = rendezvous_get(&sort->get_channel, buffer, nbytes, &n_copied);
	if (r < 0 || n_copied < nbytes)
		r = api_wait(sort);
	if (r == 0)
		*ret_nbytes = n_copied;
	return r;
}

int gsort_get(struct gsort *sort, void *buffer, size_t nbytes, size_t *ret_nbytes)
{
	return API_CALL(sort, get(sort, buffer, nbytes, ret_nbytes));
}

void gsort_cancel(struct gsort *sort)
{
	if (!sort)
		return;
	cancellation_request(&sort->cancellation);
	rendezvous_fail(&sort->put_channel, -ECANCELED);
	rendezvous_fail(&sort->get_channel, -ECANCELED);
}
