/*
 * comm - several processes that do one job: begun, introduced to each other, and ended (see
 * comm.h)
 */
#include "src/comm/comm.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "src/base/diagnostics.h"
#include "src/comm/comm_internal.h"

enum { PIECE_NBYTES = 16 << 20, VERSION_NBYTES = 48 };

/* What ending all ranks may take, unless somebody knows better. */
static const uint64_t usual_end_ns = 5000000000;

void ranks_set_stall(struct ranks *ranks, uint64_t stall_ns)
{
	guard_set_stall(ranks->guard, stall_ns);
	pthread_mutex_lock(&ranks->lock);
	ranks->settings.stall_ns = stall_ns;
	ranks->has_new_stall = true;
	pthread_cond_signal(&ranks->asked);
	pthread_mutex_unlock(&ranks->lock);
}

void ranks_allow_reading(const struct ranks *ranks, bool is_allowed)
{
	if (ranks->settings.allow_reading)
		ranks->settings.allow_reading(is_allowed);
}

unsigned ranks_rank(const struct ranks *ranks)
{
	return ranks->rank;
}

unsigned ranks_size(const struct ranks *ranks)
{
	return ranks->size;
}

const char *ranks_host(const struct ranks *ranks, unsigned rank)
{
	return ranks->hosts ? ranks->hosts[rank] : "?";
}

unsigned ranks_count_neighbours(const struct ranks *ranks, unsigned *ret_first)
{
	const char *host = ranks_host(ranks, ranks->rank);
	unsigned n = 0;

	for (unsigned i = ranks->size; i-- > 0;)
		if (strcmp(ranks_host(ranks, i), host) == 0) {
			*ret_first = i;
			n++;
		}
	return n;
}

void ranks_get_traffic(const struct ranks *ranks, struct ranks_traffic *ret_traffic)
{
	delivery_get_traffic(ranks->delivery, ret_traffic);
}

void ranks_abort(struct ranks *ranks, int status)
{
	guard_begin_end(ranks->guard, status);
	pthread_mutex_lock(&ranks->lock);
	if (!ranks->is_aborting) {
		ranks->is_aborting = true;
		ranks->status = status;
	}
	pthread_cond_signal(&ranks->asked);
	for (;;) /* the carrier ends the process, or the guard */
		pthread_cond_wait(&ranks->told, &ranks->lock);
}

/* What ranks know of each other. */
struct introduction {
	char version[VERSION_NBYTES];
	char host[RANKS_HOST_NBYTES];
};

static int compare_versions(const struct ranks *ranks, const struct introduction *all)
{
	const struct introduction *mine = &all[ranks->rank];

	for (unsigned rank = 0; rank < ranks->size; rank++)
		if (memcmp(all[rank].version, mine->version, sizeof mine->version) != 0)
			return fail(-EPROTO,
				    "ranks of different versions cannot work together: "
				    "%s on %s (rank %u), %.*s on %.*s (rank %u)",
				    mine->version, mine->host, ranks->rank, VERSION_NBYTES,
				    all[rank].version, RANKS_HOST_NBYTES, all[rank].host, rank);
	return 0;
}

static int introduce(struct ranks *ranks)
{
	const char *version = ranks->settings.version;
	struct introduction mine = { 0 };
	struct introduction *all = calloc(ranks->size, sizeof *all);
	char(*hosts)[RANKS_HOST_NBYTES] = calloc(ranks->size, sizeof *hosts);
	int r;

	strncpy(mine.version, version ? version : GSORT_VERSION, sizeof mine.version - 1);
	gethostname(mine.host, sizeof mine.host - 1);
	if (all && hosts)
		r = ranks_gather_all(ranks, &mine, sizeof mine, all);
	else
		r = fail(-ENOMEM, "no memory for the names of %u ranks", ranks->size);
	if (r == 0)
		r = compare_versions(ranks, all);
	for (unsigned rank = 0; rank < ranks->size && r == 0; rank++)
		memcpy(hosts[rank], all[rank].host, sizeof hosts[rank] - 1);
	free(all);
	if (r < 0) {
		free(hosts);
		return r;
	}
	ranks->hosts = hosts;
	delivery_name(ranks->delivery, (const char(*)[RANKS_HOST_NBYTES])hosts);
	return 0;
}

/* NULL: there is no memory. */
static struct ranks *make(const struct ranks_settings *settings, transport_opener *open,
			  void *argument)
{
	struct ranks *ranks = calloc(1, sizeof *ranks);

	if (!ranks)
		return NULL;
	ranks->settings = *settings;
	if (ranks->settings.piece_nbytes == 0)
		ranks->settings.piece_nbytes = PIECE_NBYTES;
	if (ranks->settings.end_ns == 0)
		ranks->settings.end_ns = usual_end_ns;
	ranks->open = open;
	ranks->argument = argument;
	ranks->begun_end = &ranks->begun;
	pthread_mutex_init(&ranks->lock, NULL);
	ranks_init_timed(&ranks->asked);
	pthread_cond_init(&ranks->told, NULL);
	return ranks;
}

/* Its threads are gone. */
static void free_ranks(struct ranks *ranks)
{
	guard_close(ranks->guard);
	delivery_close(ranks->delivery);
	pthread_cond_destroy(&ranks->told);
	pthread_cond_destroy(&ranks->asked);
	pthread_mutex_destroy(&ranks->lock);
	free(ranks->hosts);
	free(ranks);
}

int ranks_open(const struct ranks_settings *settings, transport_opener *open, void *argument,
	       struct ranks **ret_ranks)
{
	struct ranks *ranks = make(settings, open, argument);
	int r;

	if (!ranks)
		return fail(-ENOMEM, "no memory for ranks");
	r = guard_open(&ranks->settings, &ranks->guard);
	if (r == 0)
		r = carrier_start(ranks);
	if (r < 0) {
		free_ranks(ranks);
		return r;
	}
	r = introduce(ranks);
	if (r < 0)
		ranks_abort(ranks, RANKS_STATUS_TROUBLE);
	*ret_ranks = ranks;
	return 0;
}

int ranks_close(struct ranks *ranks)
{
	int r;

	if (!ranks)
		return 0;
	r = carrier_forget(ranks);
	if (r == 0)
		r = ranks_barrier(ranks);
	if (r < 0)
		return r;
	r = carrier_finish(ranks);
	if (r < 0) /* which ranks_abort() is told of */
		return r;
	free_ranks(ranks);
	return 0;
}
