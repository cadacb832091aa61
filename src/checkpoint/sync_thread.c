/*
 * sync_thread - makes records of a checkpoint durable while the sort goes on (see sync_thread.h)
 */
#include "src/checkpoint/sync_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/base/thread.h"

struct saver {
	/* Set at creation. */
	struct manifest *manifest;
	struct spill *spill;
	struct output *output;
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock. */
	struct save *first, **last; /* *last is NULL, and where the next goes */
	bool ends;
	int error; /* the first */
};

static void finish(struct save *save, bool durable)
{
	if (save->finish)
		save->finish(save->context, durable);
	free(save->payload);
	free(save);
}

static void finish_all(struct save *save, bool durable)
{
	while (save) {
		struct save *next = save->next;

		finish(save, durable);
		save = next;
	}
}

/* What the records speak of. */
static int sync_data(const struct saver *saver, const struct save *saves)
{
	bool needs_runs = false, needs_output = false;
	int r = 0;

	for (const struct save *save = saves; save; save = save->next) {
		needs_runs = needs_runs || save->needs_runs;
		needs_output = needs_output || save->needs_output;
	}
	if (needs_runs)
		r = spill_sync(saver->spill);
	if (r == 0 && needs_output)
		r = output_sync(saver->output);
	return r;
}

static int save_all(const struct saver *saver, const struct save *saves)
{
	int r = sync_data(saver, saves);

	for (const struct save *save = saves; save && r == 0; save = save->next)
		r = manifest_append(saver->manifest,
				    &(struct manifest_record){ save->type, save->payload,
							       save->nbytes });
	return r < 0 ? r : manifest_sync(saver->manifest);
}

/* All that has been added, once there is something; NULL at the end. */
static struct save *take_all(struct saver *saver)
{
	struct save *saves;

	pthread_mutex_lock(&saver->lock);
	while (!saver->first && !saver->ends)
		pthread_cond_wait(&saver->wake, &saver->lock);
	saves = saver->first;
	saver->first = NULL;
	saver->last = &saver->first;
	pthread_mutex_unlock(&saver->lock);
	return saves;
}

static void *saver_main(void *argument)
{
	struct saver *saver = argument;
	struct save *saves;

	while ((saves = take_all(saver))) {
		const int r = saver->error ? saver->error : save_all(saver, saves);

		finish_all(saves, r == 0);
		pthread_mutex_lock(&saver->lock);
		saver->error = r;
		pthread_mutex_unlock(&saver->lock);
	}
	return NULL;
}

int saver_open(struct manifest *manifest, struct spill *spill, struct output *output,
	       struct saver **ret_saver)
{
	char limits[THREAD_LIMITS_NBYTES];
	struct saver *saver = calloc(1, sizeof *saver);
	int r;

	if (!saver)
		return fail_hint(-ENOMEM, HINT_ABOUT_CHECKPOINT, 0,
				 "no memory for what saves it: %m");
	saver->manifest = manifest;
	saver->spill = spill;
	saver->output = output;
	saver->last = &saver->first;
	pthread_mutex_init(&saver->lock, NULL);
	pthread_cond_init(&saver->wake, NULL);
	r = thread_start(saver_main, saver, 0, &saver->thread);
	if (r < 0) {
		pthread_mutex_destroy(&saver->lock);
		pthread_cond_destroy(&saver->wake);
		free(saver);
		return fail_hint(r, HINT_ABOUT_CHECKPOINT, 0, "cannot start a thread: %m%s",
				 thread_limits(r, limits));
	}
	*ret_saver = saver;
	return 0;
}

int saver_add(struct saver *saver, struct save *save)
{
	int r;

	save->next = NULL;
	pthread_mutex_lock(&saver->lock);
	r = saver->error;
	if (r == 0) {
		*saver->last = save;
		saver->last = &save->next;
		pthread_cond_signal(&saver->wake);
	}
	pthread_mutex_unlock(&saver->lock);
	if (r < 0)
		finish(save, false);
	return r;
}

int saver_close(struct saver *saver, bool drain)
{
	struct save *dropped = NULL;
	int r;

	if (!saver)
		return 0;
	pthread_mutex_lock(&saver->lock);
	if (!drain) {
		dropped = saver->first;
		saver->first = NULL;
		saver->last = &saver->first;
	}
	saver->ends = true;
	pthread_cond_signal(&saver->wake);
	pthread_mutex_unlock(&saver->lock);
	finish_all(dropped, false);
	pthread_join(saver->thread, NULL);
	r = saver->error;
	pthread_mutex_destroy(&saver->lock);
	pthread_cond_destroy(&saver->wake);
	free(saver);
	return r;
}
