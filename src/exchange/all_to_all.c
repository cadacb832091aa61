/*
 * all_to_all - the runs that all ranks have in memory, of which each gets its range (see all_to_all.h)
 */
#include "src/exchange/all_to_all.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"
#include "src/comm/tags.h"

enum { N_SENDING = 8 }; /* parts under way: the next one is there when one has gone */

/* The part of a run that another rank gets. */
struct offer {
	uint64_t n_items;
	uint64_t address; /* where it is, for who is near */
};

struct part {
	struct offer offer;
	char *memory; /* where it goes */
};

/* What is this rank's of the runs of another one. */
struct lot {
	unsigned rank;
	uint64_t n_runs;
	struct part *parts; /* of each of them */
	char *memory;       /* one behind the other */
	size_t nbytes;
};

/* A part on its way out; nbytes 0: none. */
struct sending {
	struct ranks_transfer transfer;
	char *memory;
	size_t nbytes;
	uint32_t worker;
};

/* After a failure messages may still be under way until the ranks give up: all is here. */
struct trade {
	struct ranks *ranks;
	const struct near *near;
	const struct job *job;
	const struct run_store *own;
	const uint64_t *cuts;
	struct lot *lots; /* one of each rank; of the own one only the number */
	uint64_t received_nbytes;

	/* Of the step */
	struct offer *offers; /* of the parts that another one gets */
	struct offer *heard;  /* of those that come; most_runs */
	struct ranks_transfer telling, hearing;
	struct sending sendings[N_SENDING];
	struct ranks_transfer *receiving; /* of each of its runs; most_runs */
	uint64_t most_runs;
};

/* --- what there is --- */

/* Of the own run, what is the rank's. */
static uint64_t part_begin(const struct run_store *own, const uint64_t *cuts, unsigned rank,
			   size_t run)
{
	return cuts[rank * own->n + run];
}

static uint64_t part_n_items(const struct run_store *own, const uint64_t *cuts, unsigned rank,
			     size_t run)
{
	const uint64_t begin = part_begin(own, cuts, rank, run);
	const uint64_t end = part_begin(own, cuts, rank + 1, run);

	return begin < end ? end - begin : 0;
}

/* How many items of all ranks each rank gets that it does not have. */
static int count_items(struct ranks *ranks, const struct run_store *own, const uint64_t *cuts,
		       uint64_t *ret_n_items)
{
	for (unsigned rank = 0; rank < ranks_size(ranks); rank++) {
		ret_n_items[rank] = 0;
		for (size_t i = 0; i < own->n && rank != ranks_rank(ranks); i++)
			ret_n_items[rank] += part_n_items(own, cuts, rank, i);
	}
	return ranks_sum(ranks, ret_n_items, ranks_size(ranks));
}

int trade_has_room(struct ranks *ranks, const struct job *job, const struct run_store *own,
		   const uint64_t *cuts, uint64_t room_nbytes, bool *ret_has_room)
{
	uint64_t *n_items = calloc(ranks_size(ranks), sizeof *n_items), n_without = 0;
	int r = n_items ? count_items(ranks, own, cuts, n_items) :
			  fail(-ENOMEM, "no memory for the ranges of %u ranks", ranks_size(ranks));

	if (r == 0) {
		n_without = n_items[ranks_rank(ranks)] > room_nbytes / job->layout->resident_nbytes;
		r = ranks_sum(ranks, &n_without, 1);
	}
	free(n_items);
	if (r == 0)
		*ret_has_room = n_without == 0;
	return r;
}

/* --- with one other rank --- */

static char *part_memory(const struct trade *trade, unsigned to, size_t run)
{
	return (char *)(uintptr_t)run_memory(trade->own->runs[run]) +
	       part_begin(trade->own, trade->cuts, to, run) * trade->job->layout->resident_nbytes;
}

static size_t offer_nbytes(const struct trade *trade, const struct offer *offer)
{
	return offer->n_items * trade->job->layout->resident_nbytes;
}

/* Of what is offered no sum wraps around. */
static int take_offers(struct trade *trade, struct lot *lot)
{
	uint64_t left = SIZE_MAX / trade->job->layout->resident_nbytes;

	for (uint64_t i = 0; i < lot->n_runs; i++) {
		if (trade->heard[i].n_items > left)
			return fail(-EPROTO,
				    "internal error: rank %u on %s offers more than there can be",
				    lot->rank, ranks_host(trade->ranks, lot->rank));
		left -= trade->heard[i].n_items;
		lot->parts[i].offer = trade->heard[i];
	}
	return 0;
}

/* What the parts are that it gets, and those that come. */
static int tell_offers(struct trade *trade, unsigned to, unsigned from)
{
	const struct run_store *own = trade->own;
	struct lot *lot = &trade->lots[from];
	int r;

	for (size_t i = 0; i < own->n; i++)
		trade->offers[i] =
			(struct offer){ .n_items = part_n_items(own, trade->cuts, to, i),
					.address = (uintptr_t)part_memory(trade, to, i) };
	r = ranks_receive(trade->ranks, from, RANKS_TAG_OFFERS, trade->heard,
			  lot->n_runs * sizeof *trade->heard, &trade->hearing);
	if (r == 0)
		r = ranks_send(trade->ranks, to, RANKS_TAG_OFFERS, trade->offers,
			       own->n * sizeof *trade->offers, &trade->telling);
	if (r == 0)
		r = ranks_wait(trade->ranks, &trade->hearing);
	if (r == 0)
		r = ranks_wait(trade->ranks, &trade->telling);
	return r < 0 ? r : take_offers(trade, lot);
}

static int make_room(struct trade *trade, struct lot *lot)
{
	char *memory;
	int r;

	for (uint64_t i = 0; i < lot->n_runs; i++)
		lot->nbytes += offer_nbytes(trade, &lot->parts[i].offer);
	if (lot->nbytes == 0)
		return 0;
	r = device_alloc(job_device(trade->job), MEMORY_DEVICE, lot->nbytes, (void **)&lot->memory);
	if (r < 0) {
		lot->nbytes = 0;
		return fail_hint(r, HINT_LESS_MEMORY, 0, "no memory for runs of other ranks: %m");
	}
	trade->received_nbytes += lot->nbytes;
	memory = lot->memory;
	for (uint64_t i = 0; i < lot->n_runs; i++) {
		lot->parts[i].memory = memory;
		memory += offer_nbytes(trade, &lot->parts[i].offer);
	}
	return 0;
}

/* --- by messages --- */

static int begin_receiving(struct trade *trade, unsigned from)
{
	const struct lot *lot = &trade->lots[from];
	int r = 0;

	for (uint64_t i = 0; i < lot->n_runs && r == 0; i++) {
		const struct part *part = &lot->parts[i];

		if (part->offer.n_items > 0)
			r = ranks_receive(trade->ranks, from, RANKS_TAG_PARTS, part->memory,
					  offer_nbytes(trade, &part->offer), &trade->receiving[i]);
	}
	return r;
}

static int finish_receiving(struct trade *trade, unsigned from)
{
	const struct lot *lot = &trade->lots[from];
	int r = 0;

	for (uint64_t i = 0; i < lot->n_runs && r == 0; i++)
		if (lot->parts[i].offer.n_items > 0)
			r = ranks_wait(trade->ranks, &trade->receiving[i]);
	return r;
}

static int finish_sending(const struct trade *trade, struct sending *sending)
{
	const int r = sending->nbytes ? ranks_wait(trade->ranks, &sending->transfer) : 0;

	if (r == 0 && sending->nbytes)
		device_discard(trade->job->workers[sending->worker].device, sending->memory,
			       sending->nbytes);
	if (r == 0)
		sending->nbytes = 0;
	return r;
}

static int begin_sending(const struct trade *trade, unsigned to, size_t i, struct sending *sending)
{
	const size_t resident_nbytes = trade->job->layout->resident_nbytes;
	const size_t nbytes = part_n_items(trade->own, trade->cuts, to, i) * resident_nbytes;
	int r;

	if (nbytes == 0)
		return 0;
	sending->memory = part_memory(trade, to, i);
	sending->worker = run_worker(trade->own->runs[i]);
	r = ranks_send(trade->ranks, to, RANKS_TAG_PARTS, sending->memory, nbytes,
		       &sending->transfer);
	if (r == 0)
		sending->nbytes = nbytes;
	return r;
}

static int send_parts(struct trade *trade, unsigned to)
{
	struct sending *sendings = trade->sendings;
	int r = 0;

	for (size_t i = 0; i < trade->own->n && r == 0; i++) {
		r = finish_sending(trade, &sendings[i % N_SENDING]);
		if (r == 0)
			r = begin_sending(trade, to, i, &sendings[i % N_SENDING]);
	}
	for (size_t i = 0; i < N_SENDING && r == 0; i++)
		r = finish_sending(trade, &sendings[i]);
	return r;
}

static int carry_step(struct trade *trade, unsigned to, unsigned from)
{
	int r = near_has(trade->near, from) ? 0 : begin_receiving(trade, from);

	if (r == 0 && !near_has(trade->near, to))
		r = send_parts(trade, to);
	return r < 0 || near_has(trade->near, from) ? r : finish_receiving(trade, from);
}

static int take_step(struct trade *trade, unsigned to, unsigned from)
{
	int r = tell_offers(trade, to, from);

	if (r == 0)
		r = make_room(trade, &trade->lots[from]);
	return r < 0 ? r : carry_step(trade, to, from);
}

/* --- from where it is --- */

struct fetching {
	const struct trade *trade;
	const struct lot *lot;
};

/* Of a crew. */
static int fetch_part(void *context, uint32_t i)
{
	const struct fetching *fetching = context;
	const struct part *part = &fetching->lot->parts[i];

	return near_read(fetching->trade->near, fetching->lot->rank, part->offer.address,
			 part->memory, offer_nbytes(fetching->trade, &part->offer));
}

/* The next one's first, so that not all read of the same one. */
static int fetch_all(struct trade *trade, struct crew *crew)
{
	const unsigned n = ranks_size(trade->ranks), rank = ranks_rank(trade->ranks);
	int r = 0;

	for (unsigned step = 1; step < n && r == 0; step++) {
		const struct lot *lot = &trade->lots[(rank + step) % n];
		struct fetching fetching = { trade, lot };

		if (near_has(trade->near, lot->rank))
			r = crew_run(crew, fetch_part, &fetching, (uint32_t)lot->n_runs);
	}
	return r;
}

/* All have been read by who is near: their memory goes back. */
static void discard_parts(const struct trade *trade, unsigned to)
{
	for (size_t i = 0; i < trade->own->n; i++) {
		const size_t nbytes = part_n_items(trade->own, trade->cuts, to, i) *
				      trade->job->layout->resident_nbytes;

		if (nbytes > 0)
			device_discard(trade->job->workers[run_worker(trade->own->runs[i])].device,
				       part_memory(trade, to, i), nbytes);
	}
}

static int take_near(struct trade *trade)
{
	struct crew *crew = NULL;
	int r = crew_open(trade->job->plan.n_readers, &crew);

	if (r < 0)
		return fail(r, "no memory for readers");
	r = fetch_all(trade, crew);
	crew_close(crew);
	if (r == 0)
		r = ranks_barrier(trade->ranks);
	for (unsigned i = 0; i < ranks_size(trade->ranks) && r == 0; i++)
		if (near_has(trade->near, i))
			discard_parts(trade, i);
	return r;
}

/* --- the parts --- */

static int take_own(const struct trade *trade, struct run_store *store)
{
	const struct run_store *own = trade->own;
	const unsigned rank = ranks_rank(trade->ranks);
	int r = 0;

	for (size_t i = 0; i < own->n && r == 0; i++) {
		const uint64_t begin = part_begin(own, trade->cuts, rank, i);
		const uint64_t n = part_n_items(own, trade->cuts, rank, i);
		struct run *part;

		if (n == 0)
			continue;
		r = run_open_part(trade->job->layout, own->runs[i], begin, begin + n, &part);
		if (r == 0)
			r = run_store_add(store, part);
	}
	return r;
}

static int take_lot(const struct trade *trade, const struct lot *lot, struct run_store *store)
{
	const struct job *job = trade->job;
	int r = 0;

	for (uint64_t i = 0; i < lot->n_runs && r == 0; i++) {
		const struct part *part = &lot->parts[i];
		struct run *run;

		if (part->offer.n_items == 0)
			continue;
		r = run_open_resident(
			job, (struct residence){ job->worker, part->memory, part->offer.n_items },
			NULL, NULL, &run);
		if (r == 0)
			r = run_store_add(store, run);
	}
	return r;
}

/* --- all of it --- */

/* How many runs all have. */
static int open_lots(struct trade *trade)
{
	const unsigned n = ranks_size(trade->ranks);
	const uint64_t n_own = trade->own->n;
	uint64_t *n_runs = calloc(n, sizeof *n_runs);
	int r;

	trade->lots = calloc(n, sizeof *trade->lots);
	if (!n_runs || !trade->lots) {
		free(n_runs);
		return fail(-ENOMEM, "no memory for the runs of %u ranks", n);
	}
	r = ranks_gather_all(trade->ranks, &n_own, sizeof n_own, n_runs);
	for (unsigned i = 0; i < n && r == 0; i++) {
		trade->lots[i].rank = i;
		trade->lots[i].n_runs = n_runs[i];
		trade->lots[i].parts = calloc(n_runs[i] + 1, sizeof *trade->lots[i].parts);
		if (!trade->lots[i].parts)
			r = fail(-ENOMEM, "no memory for the runs of rank %u", i);
		if (n_runs[i] > trade->most_runs)
			trade->most_runs = n_runs[i];
	}
	free(n_runs);
	return r;
}

static int open_step(struct trade *trade)
{
	trade->offers = calloc(trade->own->n + 1, sizeof *trade->offers);
	trade->heard = calloc(trade->most_runs + 1, sizeof *trade->heard);
	trade->receiving = calloc(trade->most_runs + 1, sizeof *trade->receiving);
	return trade->offers && trade->heard && trade->receiving ?
		       0 :
		       fail(-ENOMEM, "no memory for messages");
}

static int carry_out(struct trade *trade)
{
	const unsigned n = ranks_size(trade->ranks), rank = ranks_rank(trade->ranks);
	int r = open_lots(trade);

	if (r == 0)
		r = open_step(trade);
	for (unsigned step = 1; step < n && r == 0; step++)
		r = take_step(trade, (rank + step) % n, (rank + n - step) % n);
	return r < 0 ? r : take_near(trade);
}

int trade_open(struct ranks *ranks, const struct near *near, const struct job *job,
	       const struct run_store *own, const uint64_t *cuts, struct run_store *store,
	       struct trade **ret_trade)
{
	struct trade *trade = calloc(1, sizeof *trade);
	int r;

	*ret_trade = trade;
	if (!trade)
		return fail(-ENOMEM, "no memory for the runs of %u ranks", ranks_size(ranks));
	*trade = (struct trade){
		.ranks = ranks, .near = near, .job = job, .own = own, .cuts = cuts
	};
	r = carry_out(trade);
	for (unsigned i = 0; i < ranks_size(ranks) && r == 0; i++)
		r = i == ranks_rank(ranks) ? take_own(trade, store) :
					     take_lot(trade, &trade->lots[i], store);
	return r;
}

void trade_close(struct trade *trade)
{
	if (!trade)
		return;
	for (unsigned i = 0; trade->lots && i < ranks_size(trade->ranks); i++) {
		device_release(job_device(trade->job), MEMORY_DEVICE, trade->lots[i].memory,
			       trade->lots[i].nbytes);
		free(trade->lots[i].parts);
	}
	free(trade->lots);
	free(trade->offers);
	free(trade->heard);
	free(trade->receiving);
	free(trade);
}

uint64_t trade_received_nbytes(const struct trade *trade)
{
	return trade ? trade->received_nbytes : 0;
}
