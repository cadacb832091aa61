/*
 * distributed_trace - one trace of all ranks (see distributed.h)
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

enum { N_QUESTIONS = 8 };

static int send_all(struct ranks *ranks, unsigned to, const void *data, size_t nbytes)
{
	struct ranks_transfer transfer;
	int r = ranks_send(ranks, to, RANKS_TAG_TRACE, data, nbytes, &transfer);

	return r < 0 ? r : ranks_wait(ranks, &transfer);
}

static int receive_all(struct ranks *ranks, unsigned from, void *data, size_t nbytes)
{
	struct ranks_transfer transfer;
	int r = ranks_receive(ranks, from, RANKS_TAG_TRACE, data, nbytes, &transfer);

	return r < 0 ? r : ranks_wait(ranks, &transfer);
}

/* --- clocks --- */

/* The first: what the other's clock shows when the own one shows begin_ns, and tell it so. */
static int align_one(struct ranks *ranks, unsigned rank, uint64_t begin_ns)
{
	uint64_t least_ns = UINT64_MAX, theirs_ns = 0;
	int r = 0;

	for (unsigned i = 0; i < N_QUESTIONS && r == 0; i++) {
		const uint64_t asked_ns = clock_now_ns();
		uint64_t answer_ns = 0, took_ns;

		r = send_all(ranks, rank, &asked_ns, sizeof asked_ns);
		if (r == 0)
			r = receive_all(ranks, rank, &answer_ns, sizeof answer_ns);
		took_ns = clock_now_ns() - asked_ns;
		if (r < 0 || took_ns >= least_ns)
			continue;
		least_ns = took_ns;
		theirs_ns = answer_ns - (asked_ns + took_ns / 2 - begin_ns);
	}
	return r < 0 ? r : send_all(ranks, rank, &theirs_ns, sizeof theirs_ns);
}

static int align_to_first(struct ranks *ranks, uint64_t *ret_begin_ns)
{
	uint64_t asked_ns;
	int r = 0;

	for (unsigned i = 0; i < N_QUESTIONS && r == 0; i++) {
		uint64_t now_ns;

		r = receive_all(ranks, 0, &asked_ns, sizeof asked_ns);
		now_ns = clock_now_ns();
		if (r == 0)
			r = send_all(ranks, 0, &now_ns, sizeof now_ns);
	}
	return r < 0 ? r : receive_all(ranks, 0, ret_begin_ns, sizeof *ret_begin_ns);
}

/* What the own clock showed when that of the first was at time 0 of the trace. */
static int align(struct ranks *ranks, uint64_t *ret_begin_ns)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = 0;

	if (ranks_rank(ranks) != 0)
		return align_to_first(ranks, ret_begin_ns);
	for (unsigned i = 1; i < ranks_size(ranks) && r == 0; i++)
		r = align_one(ranks, i, begin_ns);
	*ret_begin_ns = begin_ns;
	return r;
}

/* --- traces --- */

int company_open_trace(struct gsort *sort)
{
	struct trace_process process = { 0 };
	uint64_t is_wanted = sort->options.trace_path != NULL;
	int r;

	if (!sort->ranks)
		return 0;
	r = ranks_broadcast(sort->ranks, &is_wanted, sizeof is_wanted, 0);
	if (r < 0 || !is_wanted)
		return r;
	process.number = ranks_rank(sort->ranks);
	process.n = ranks_size(sort->ranks);
	r = align(sort->ranks, &process.begin_ns);
	if (r == 0 && process.number > 0)
		r = reports_open_trace_text(&sort->reports);
	if (r < 0)
		return r;
	snprintf(process.name, sizeof process.name, "rank %u, on %s", process.number,
		 ranks_host(sort->ranks, process.number));
	trace_be(sort->reports.trace, &process);
	return 0;
}

static int send_trace(struct gsort *sort)
{
	const char *text = NULL;
	size_t nbytes = 0;
	uint64_t told;
	int r = reports_close_trace_text(&sort->reports, &text, &nbytes);

	told = nbytes;
	if (r == 0)
		r = send_all(sort->ranks, 0, &told, sizeof told);
	return r < 0 ? r : send_all(sort->ranks, 0, text, nbytes);
}

static int receive_trace(struct gsort *sort, unsigned rank)
{
	uint64_t nbytes;
	char *text;
	int r = receive_all(sort->ranks, rank, &nbytes, sizeof nbytes);

	if (r < 0)
		return r;
	text = malloc(nbytes + 1);
	if (!text)
		return fail(-ENOMEM, "no memory for the trace of rank %u", rank);
	r = receive_all(sort->ranks, rank, text, nbytes);
	if (r == 0)
		trace_join(sort->reports.trace, text, nbytes);
	free(text);
	return r;
}

int company_gather_trace(struct gsort *sort)
{
	int r = 0;

	if (!sort->reports.trace)
		return 0;
	if (ranks_rank(sort->ranks) != 0)
		return send_trace(sort);
	for (unsigned i = 1; i < ranks_size(sort->ranks) && r == 0; i++)
		r = receive_trace(sort, i);
	return r;
}
