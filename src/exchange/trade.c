/*
 * trade - the runs that all ranks have in memory, of which each gets its range (see trade.h)
 */
#include "src/exchange/trade.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/messages.h"

enum {
	N_SENDING = 8, /* parts under way: the next one is there when one has gone */
	TAG_LENGTHS = 1,
	TAG_PARTS,
};

/* What is this rank's of the runs of another one. */
struct lot {
	uint64_t n_runs, *n_items; /* of each of them */
	char *memory;              /* one behind the other */
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
	const struct job *job;
	const struct run_store *own;
	const uint64_t *cuts;
	struct lot *lots; /* one of each rank; of the own one only the number */
	uint64_t received_nbytes;

	/* Of the step */
	uint64_t *lengths; /* of the parts that another one gets */
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

/* How long the parts are that it gets, and those that come. */
static int tell_lengths(struct trade *trade, unsigned to, unsigned from)
{
	const struct run_store *own = trade->own;
	struct lot *lot = &trade->lots[from];
	int r;

	lot->n_items = calloc(lot->n_runs + 1, sizeof *lot->n_items);
	if (!lot->n_items)
		return fail(-ENOMEM, "no memory for the runs of rank %u", from);
	for (size_t i = 0; i < own->n; i++)
		trade->lengths[i] = part_n_items(own, trade->cuts, to, i);
	r = ranks_receive(trade->ranks, from, TAG_LENGTHS, lot->n_items,
			  lot->n_runs * sizeof *lot->n_items, &trade->hearing);
	if (r == 0)
		r = ranks_send(trade->ranks, to, TAG_LENGTHS, trade->lengths,
			       own->n * sizeof *trade->lengths, &trade->telling);
	if (r == 0)
		r = ranks_wait(trade->ranks, &trade->hearing);
	return r < 0 ? r : ranks_wait(trade->ranks, &trade->telling);
}

static int make_room(struct trade *trade, struct lot *lot)
{
	int r;

	for (uint64_t i = 0; i < lot->n_runs; i++)
		lot->nbytes += lot->n_items[i] * trade->job->layout->resident_nbytes;
	if (lot->nbytes == 0)
		return 0;
	r = device_alloc(job_device(trade->job), MEMORY_DEVICE, lot->nbytes, (void **)&lot->memory);
	if (r < 0) {
		lot->nbytes = 0;
		return fail_hint(r, HINT_LESS_MEMORY, 0, "no memory for runs of other ranks: %m");
	}
	trade->received_nbytes += lot->nbytes;
	return 0;
}

static int begin_receiving(struct trade *trade, unsigned from)
{
	const size_t resident_nbytes = trade->job->layout->resident_nbytes;
	const struct lot *lot = &trade->lots[from];
	char *memory = lot->memory;
	int r = 0;

	for (uint64_t i = 0; i < lot->n_runs && r == 0; i++) {
		const size_t nbytes = lot->n_items[i] * resident_nbytes;

		if (nbytes == 0)
			continue;
		r = ranks_receive(trade->ranks, from, TAG_PARTS, memory, nbytes,
				  &trade->receiving[i]);
		memory += nbytes;
	}
	return r;
}

static int finish_receiving(struct trade *trade, unsigned from)
{
	const struct lot *lot = &trade->lots[from];
	int r = 0;

	for (uint64_t i = 0; i < lot->n_runs && r == 0; i++)
		if (lot->n_items[i] > 0)
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
	const struct run *run = trade->own->runs[i];
	const uint64_t begin = part_begin(trade->own, trade->cuts, to, i);
	const size_t nbytes = part_n_items(trade->own, trade->cuts, to, i) * resident_nbytes;
	int r;

	if (nbytes == 0)
		return 0;
	sending->memory = (char *)(uintptr_t)run_memory(run) + begin * resident_nbytes;
	sending->worker = run_worker(run);
	r = ranks_send(trade->ranks, to, TAG_PARTS, sending->memory, nbytes, &sending->transfer);
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

static int take_step(struct trade *trade, unsigned to, unsigned from)
{
	int r = tell_lengths(trade, to, from);

	if (r == 0)
		r = make_room(trade, &trade->lots[from]);
	if (r == 0)
		r = begin_receiving(trade, from);
	if (r == 0)
		r = send_parts(trade, to);
	return r < 0 ? r : finish_receiving(trade, from);
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
	char *memory = lot->memory;
	int r = 0;

	for (uint64_t i = 0; i < lot->n_runs && r == 0; i++) {
		const uint64_t n = lot->n_items[i];
		struct run *run;

		if (n == 0)
			continue;
		r = run_open_resident(job, (struct residence){ job->worker, memory, n }, NULL, NULL,
				      &run);
		if (r == 0)
			r = run_store_add(store, run);
		memory += n * job->layout->resident_nbytes;
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
		trade->lots[i].n_runs = n_runs[i];
		if (n_runs[i] > trade->most_runs)
			trade->most_runs = n_runs[i];
	}
	free(n_runs);
	return r;
}

static int open_step(struct trade *trade)
{
	trade->lengths = calloc(trade->own->n + 1, sizeof *trade->lengths);
	trade->receiving = calloc(trade->most_runs + 1, sizeof *trade->receiving);
	return trade->lengths && trade->receiving ? 0 : fail(-ENOMEM, "no memory for messages");
}

static int carry_out(struct trade *trade)
{
	const unsigned n = ranks_size(trade->ranks), rank = ranks_rank(trade->ranks);
	int r = open_lots(trade);

	if (r == 0)
		r = open_step(trade);
	for (unsigned step = 1; step < n && r == 0; step++)
		r = take_step(trade, (rank + step) % n, (rank + n - step) % n);
	return r;
}

int trade_open(struct ranks *ranks, const struct job *job, const struct run_store *own,
	       const uint64_t *cuts, struct run_store *store, struct trade **ret_trade)
{
	struct trade *trade = calloc(1, sizeof *trade);
	int r;

	*ret_trade = trade;
	if (!trade)
		return fail(-ENOMEM, "no memory for the runs of %u ranks", ranks_size(ranks));
	*trade = (struct trade){ .ranks = ranks, .job = job, .own = own, .cuts = cuts };
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
		free(trade->lots[i].n_items);
	}
	free(trade->lots);
	free(trade->lengths);
	free(trade->receiving);
	free(trade);
}

uint64_t trade_received_nbytes(const struct trade *trade)
{
	return trade ? trade->received_nbytes : 0;
}
