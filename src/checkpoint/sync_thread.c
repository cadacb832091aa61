/*
 * sync_thread - makes records of a checkpoint durable while the sort goes on (see sync_thread.h)
 */
#include "src/checkpoint/sync_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/base/thread.h"

struct sync_thread {
	/* Set at creation. */
	struct manifest *manifest;
	struct spill *spill;
	struct output *output;
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock. */
	struct sync_request *head, **tail; /* *last is NULL, and where the next goes */
	bool is_closing;
	int error; /* the first */
};

static void complete_request(struct sync_request *request, bool durable)
{
	if (request->on_complete)
		request->on_complete(request->context, durable);
	free(request->payload);
	free(request);
}

static void complete_requests(struct sync_request *request, bool durable)
{
	while (request) {
		struct sync_request *next = request->next;

		complete_request(request, durable);
		request = next;
	}
}

/* What the records speak of. */
static int sync_data(const struct sync_thread *sync_thread, const struct sync_request *requests)
{
	bool needs_runs = false, needs_output = false;
	int r = 0;

	for (const struct sync_request *request = requests; request; request = request->next) {
		needs_runs = needs_runs || request->needs_runs;
		needs_output = needs_output || request->needs_output;
	}
	if (needs_runs)
		r = spill_sync(sync_thread->spill);
	if (r == 0 && needs_output)
		r = output_sync(sync_thread->output);
	return r;
}

static int write_requests(const struct sync_thread *sync_thread,
			  const struct sync_request *requests)
{
	int r = sync_data(sync_thread, requests);

	for (const struct sync_request *request = requests; request && r == 0;
	     request = request->next)
		r = manifest_append(sync_thread->manifest,
				    &(struct manifest_record){ request->type, request->payload,
							       request->nbytes });
	return r < 0 ? r : manifest_sync(sync_thread->manifest);
}

/* All that has been added, once there is something; NULL at the end. */
static struct sync_request *dequeue_requests(struct sync_thread *sync_thread)
{
	struct sync_request *requests;

	pthread_mutex_lock(&sync_thread->lock);
	while (!sync_thread->head && !sync_thread->is_closing)
		pthread_cond_wait(&sync_thread->wake, &sync_thread->lock);
	requests = sync_thread->head;
	sync_thread->head = NULL;
	sync_thread->tail = &sync_thread->head;
	pthread_mutex_unlock(&sync_thread->lock);
	return requests;
}

static void *sync_thread_main(void *argument)
{
	struct sync_thread *sync_thread = argument;
	struct sync_request *requests;

	while ((requests = dequeue_requests(sync_thread))) {
		const int r = sync_thread->error ? sync_thread->error :
						   write_requests(sync_thread, requests);

		complete_requests(requests, r == 0);
		pthread_mutex_lock(&sync_thread->lock);
		sync_thread->error = r;
		pthread_mutex_unlock(&sync_thread->lock);
	}
	return NULL;
}

int sync_thread_open(struct manifest *manifest, struct spill *spill, struct output *output,
		     struct sync_thread **ret_sync_thread)
{
	char limits[THREAD_LIMITS_NBYTES];
	struct sync_thread *sync_thread = calloc(1, sizeof *sync_thread);
	int r;

	if (!sync_thread)
		return fail_hint(-ENOMEM, HINT_ABOUT_CHECKPOINT, 0,
				 "no memory for what saves it: %m");
	sync_thread->manifest = manifest;
	sync_thread->spill = spill;
	sync_thread->output = output;
	sync_thread->tail = &sync_thread->head;
	pthread_mutex_init(&sync_thread->lock, NULL);
	pthread_cond_init(&sync_thread->wake, NULL);
	r = thread_start(sync_thread_main, sync_thread, 0, &sync_thread->thread);
	if (r < 0) {
		pthread_mutex_destroy(&sync_thread->lock);
		pthread_cond_destroy(&sync_thread->wake);
		free(sync_thread);
		return fail_hint(r, HINT_ABOUT_CHECKPOINT, 0, "cannot start a thread: %m%s",
				 thread_format_limits(r, limits));
	}
	*ret_sync_thread = sync_thread;
	return 0;
}

int sync_thread_add(struct sync_thread *sync_thread, struct sync_request *request)
{
	int r;

	request->next = NULL;
	pthread_mutex_lock(&sync_thread->lock);
	r = sync_thread->error;
	if (r == 0) {
		*sync_thread->tail = request;
		sync_thread->tail = &request->next;
		pthread_cond_signal(&sync_thread->wake);
	}
	pthread_mutex_unlock(&sync_thread->lock);
	if (r < 0)
		complete_request(request, false);
	return r;
}

int sync_thread_close(struct sync_thread *sync_thread, bool drain)
{
	struct sync_request *dropped = NULL;
	int r;

	if (!sync_thread)
		return 0;
	pthread_mutex_lock(&sync_thread->lock);
	if (!drain) {
		dropped = sync_thread->head;
		sync_thread->head = NULL;
		sync_thread->tail = &sync_thread->head;
	}
	sync_thread->is_closing = true;
	pthread_cond_signal(&sync_thread->wake);
	pthread_mutex_unlock(&sync_thread->lock);
	complete_requests(dropped, false);
	pthread_join(sync_thread->thread, NULL);
	r = sync_thread->error;
	pthread_mutex_destroy(&sync_thread->lock);
	pthread_cond_destroy(&sync_thread->wake);
	free(sync_thread);
	return r;
}
