/*
 * api_distributed_trace - one trace of all ranks (see api_distributed.h)
 *
 * Each rank writes a trace of its own, the others than the first into memory, of a size that is
 * bounded for all of them together; in the end the first joins them. Time 0 is the first rank's: it
 * asks every other one some times what time it is there, and the answer that came back soonest
 * counts as given half way. So a clock is known to half of the time of that one message there and
 * back, which the carriers' pauses make some 100 us. What clocks drift apart later is not seen.
 */
#include <errno.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/lib/lib_internal.h"
#include "src/comm/comm.h"
#include "src/comm/tags.h"

enum { N_CLOCK_SAMPLES = 8 };

static int send_all(struct comm *comm, unsigned rank, const void *data, size_t nbytes)
{
	struct comm_transfer transfer;
	int r = comm_send(comm, rank, COMM_TAG_TRACE, data, nbytes, &transfer);

	return r < 0 ? r : comm_wait(comm, &transfer);
}

static int receive_all(struct comm *comm, unsigned rank, void *data, size_t nbytes)
{
	struct comm_transfer transfer;
	int r = comm_receive(comm, rank, COMM_TAG_TRACE, data, nbytes, &transfer);

	return r < 0 ? r : comm_wait(comm, &transfer);
}

/* --- clocks --- */

/* The first: what the other's clock shows when the own one shows begin_ns, and tell it so. */
static int align_clock_of(struct comm *comm, unsigned rank, uint64_t begin_ns)
{
	uint64_t min_round_trip_ns = UINT64_MAX, remote_begin_ns = 0;
	int r = 0;

	for (unsigned i = 0; i < N_CLOCK_SAMPLES && r == 0; i++) {
		const uint64_t request_ns = clock_now_ns();
		uint64_t reply_ns = 0, round_trip_ns;

		r = send_all(comm, rank, &request_ns, sizeof request_ns);
		if (r == 0)
			r = receive_all(comm, rank, &reply_ns, sizeof reply_ns);
		round_trip_ns = clock_now_ns() - request_ns;
		if (r < 0 || round_trip_ns >= min_round_trip_ns)
			continue;
		min_round_trip_ns = round_trip_ns;
		remote_begin_ns = reply_ns - (request_ns + round_trip_ns / 2 - begin_ns);
	}
	return r < 0 ? r : send_all(comm, rank, &remote_begin_ns, sizeof remote_begin_ns);
}

static int answer_clock_requests(struct comm *comm, uint64_t *ret_begin_ns)
{
	uint64_t request_ns;
	int r = 0;

	for (unsigned i = 0; i < N_CLOCK_SAMPLES && r == 0; i++) {
		uint64_t now_ns;

		r = receive_all(comm, 0, &request_ns, sizeof request_ns);
		now_ns = clock_now_ns();
		if (r == 0)
			r = send_all(comm, 0, &now_ns, sizeof now_ns);
	}
	return r < 0 ? r : receive_all(comm, 0, ret_begin_ns, sizeof *ret_begin_ns);
}

/* What the own clock showed when that of the first was at time 0 of the trace. */
static int align_clocks(struct comm *comm, uint64_t *ret_begin_ns)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = 0;

	if (comm_rank(comm) != 0)
		return answer_clock_requests(comm, ret_begin_ns);
	for (unsigned i = 1; i < comm_size(comm) && r == 0; i++)
		r = align_clock_of(comm, i, begin_ns);
	*ret_begin_ns = begin_ns;
	return r;
}

/* --- traces --- */

int api_distributed_open_trace(struct gsort *sort)
{
	struct trace_process process = { 0 };
	uint64_t is_wanted = sort->options.trace_path != NULL;
	int r;

	if (!sort->comm)
		return 0;
	r = comm_broadcast(sort->comm, &is_wanted, sizeof is_wanted, 0);
	if (r < 0 || !is_wanted)
		return r;
	process.number = comm_rank(sort->comm);
	process.n_processes = comm_size(sort->comm);
	r = align_clocks(sort->comm, &process.begin_ns);
	if (r == 0 && process.number > 0)
		r = reports_open_trace_text(&sort->reports);
	if (r < 0)
		return r;
	snprintf(process.name, sizeof process.name, "rank %u, on %s", process.number,
		 comm_host(sort->comm, process.number));
	trace_set_process(sort->reports.trace, &process);
	return 0;
}

static int send_trace(struct gsort *sort)
{
	const char *text = NULL;
	size_t nbytes = 0;
	uint64_t text_nbytes;
	int r = reports_close_trace_text(&sort->reports, &text, &nbytes);

	text_nbytes = nbytes;
	if (r == 0)
		r = send_all(sort->comm, 0, &text_nbytes, sizeof text_nbytes);
	return r < 0 ? r : send_all(sort->comm, 0, text, nbytes);
}

static int receive_trace(struct gsort *sort, unsigned rank)
{
	uint64_t nbytes;
	char *text;
	int r = receive_all(sort->comm, rank, &nbytes, sizeof nbytes);

	if (r < 0)
		return r;
	text = malloc(nbytes + 1);
	if (!text)
		return fail(-ENOMEM, "no memory for the trace of rank %u", rank);
	r = receive_all(sort->comm, rank, text, nbytes);
	if (r == 0)
		trace_append(sort->reports.trace, text, nbytes);
	free(text);
	return r;
}

int api_distributed_gather_trace(struct gsort *sort)
{
	int r = 0;

	if (!sort->reports.trace)
		return 0;
	if (comm_rank(sort->comm) != 0)
		return send_trace(sort);
	for (unsigned i = 1; i < comm_size(sort->comm) && r == 0; i++)
		r = receive_trace(sort, i);
	return r;
}
