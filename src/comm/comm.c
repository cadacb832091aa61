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

enum { DEFAULT_FRAGMENT_NBYTES = 16 << 20, VERSION_NBYTES = 48 };

/* What ending all ranks may take, unless somebody knows better. */
static const uint64_t default_abort_timeout_ns = 5000000000;

void comm_set_timeout(struct comm *comm, uint64_t timeout_ns)
{
	watchdog_set_timeout(comm->watchdog, timeout_ns);
	pthread_mutex_lock(&comm->lock);
	comm->params.timeout_ns = timeout_ns;
	comm->has_new_timeout = true;
	pthread_cond_signal(&comm->work_available);
	pthread_mutex_unlock(&comm->lock);
}

void comm_allow_peer_access(const struct comm *comm, bool is_allowed)
{
	if (comm->params.allow_peer_access)
		comm->params.allow_peer_access(is_allowed);
}

unsigned comm_rank(const struct comm *comm)
{
	return comm->rank;
}

unsigned comm_size(const struct comm *comm)
{
	return comm->size;
}

const char *comm_host(const struct comm *comm, unsigned rank)
{
	return comm->hosts ? comm->hosts[rank] : "?";
}

unsigned comm_host_size(const struct comm *comm, unsigned *ret_first)
{
	const char *host = comm_host(comm, comm->rank);
	unsigned n = 0;

	for (unsigned i = comm->size; i-- > 0;)
		if (strcmp(comm_host(comm, i), host) == 0) {
			*ret_first = i;
			n++;
		}
	return n;
}

void comm_get_traffic(const struct comm *comm, struct comm_traffic *ret_traffic)
{
	p2p_get_traffic(comm->p2p, ret_traffic);
}

void comm_abort(struct comm *comm, int status)
{
	watchdog_begin_abort(comm->watchdog, status);
	pthread_mutex_lock(&comm->lock);
	if (!comm->is_aborting) {
		comm->is_aborting = true;
		comm->abort_status = status;
	}
	pthread_cond_signal(&comm->work_available);
	for (;;) /* the carrier ends the process, or the guard */
		pthread_cond_wait(&comm->state_changed, &comm->lock);
}

/* What ranks know of each other. */
struct rank_identity {
	char version[VERSION_NBYTES];
	char host[COMM_HOST_NBYTES];
};

static int compare_versions(const struct comm *comm, const struct rank_identity *identities)
{
	const struct rank_identity *own = &identities[comm->rank];

	for (unsigned rank = 0; rank < comm->size; rank++)
		if (memcmp(identities[rank].version, own->version, sizeof own->version) != 0)
			return fail(-EPROTO,
				    "ranks of different versions cannot work together: "
				    "%s on %s (rank %u), %.*s on %.*s (rank %u)",
				    own->version, own->host, comm->rank, VERSION_NBYTES,
				    identities[rank].version, COMM_HOST_NBYTES,
				    identities[rank].host, rank);
	return 0;
}

static int exchange_identities(struct comm *comm)
{
	const char *version = comm->params.version;
	struct rank_identity own = { 0 };
	struct rank_identity *identities = calloc(comm->size, sizeof *identities);
	char(*hosts)[COMM_HOST_NBYTES] = calloc(comm->size, sizeof *hosts);
	int r;

	strncpy(own.version, version ? version : GSORT_VERSION, sizeof own.version - 1);
	gethostname(own.host, sizeof own.host - 1);
	if (identities && hosts)
		r = comm_allgather(comm, &own, sizeof own, identities);
	else
		r = fail(-ENOMEM, "no memory for the names of %u ranks", comm->size);
	if (r == 0)
		r = compare_versions(comm, identities);
	for (unsigned rank = 0; rank < comm->size && r == 0; rank++)
		memcpy(hosts[rank], identities[rank].host, sizeof hosts[rank] - 1);
	free(identities);
	if (r < 0) {
		free(hosts);
		return r;
	}
	comm->hosts = hosts;
	p2p_set_hosts(comm->p2p, (const char(*)[COMM_HOST_NBYTES])hosts);
	return 0;
}

/* NULL: there is no memory. */
static struct comm *create_comm(const struct comm_params *params, transport_open_fn *transport_open,
				void *transport_argument)
{
	struct comm *comm = calloc(1, sizeof *comm);

	if (!comm)
		return NULL;
	comm->params = *params;
	if (comm->params.fragment_nbytes == 0)
		comm->params.fragment_nbytes = DEFAULT_FRAGMENT_NBYTES;
	if (comm->params.abort_timeout_ns == 0)
		comm->params.abort_timeout_ns = default_abort_timeout_ns;
	comm->transport_open = transport_open;
	comm->transport_argument = transport_argument;
	comm->submitted_end = &comm->submitted;
	pthread_mutex_init(&comm->lock, NULL);
	comm_cond_init(&comm->work_available);
	pthread_cond_init(&comm->state_changed, NULL);
	return comm;
}

/* Its threads are gone. */
static void free_comm(struct comm *comm)
{
	watchdog_close(comm->watchdog);
	p2p_close(comm->p2p);
	pthread_cond_destroy(&comm->state_changed);
	pthread_cond_destroy(&comm->work_available);
	pthread_mutex_destroy(&comm->lock);
	free(comm->hosts);
	free(comm);
}

int comm_open(const struct comm_params *params, transport_open_fn *transport_open,
	      void *transport_argument, struct comm **ret_comm)
{
	struct comm *comm = create_comm(params, transport_open, transport_argument);
	int r;

	if (!comm)
		return fail(-ENOMEM, "no memory for ranks");
	r = watchdog_open(&comm->params, &comm->watchdog);
	if (r == 0)
		r = progress_thread_start(comm);
	if (r < 0) {
		free_comm(comm);
		return r;
	}
	r = exchange_identities(comm);
	if (r < 0)
		comm_abort(comm, COMM_EXIT_FAILURE);
	*ret_comm = comm;
	return 0;
}

int comm_close(struct comm *comm)
{
	int r;

	if (!comm)
		return 0;
	r = progress_thread_cancel_receives(comm);
	if (r == 0)
		r = comm_barrier(comm);
	if (r < 0)
		return r;
	r = progress_thread_stop(comm);
	if (r < 0) /* which comm_abort() is told of */
		return r;
	free_comm(comm);
	return 0;
}
