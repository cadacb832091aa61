/*
 * all_to_all.c - exchange runs in memory (see exchange.h)
 */
#include "src/exchange/exchange.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"
#include "src/comm/comm.h"

enum { MAX_SEGMENT_SENDS = 8 }; /* sends in progress */

/* A segment is the part of a run that another rank gets. */
struct segment_desc {
	uint64_t n_items;
	uint64_t address; /* of the memory to read, for peers */
};

struct incoming_segment {
	struct segment_desc desc;
	char *memory; /* its copy on this rank */
	struct comm_transfer receive;
};

/* The segments that this rank gets from another one. */
struct incoming_segments {
	unsigned rank;
	uint64_t n_runs;
	struct incoming_segment *segments; /* one per run */
	char *memory;                      /* all segments, consecutive */
	size_t nbytes;
};

/* A segment being sent. */
struct segment_send {
	struct comm_transfer transfer;
	bool is_pending;
	size_t run;
};

/*
 * After a failure messages may be in progress until the ranks stop, so their buffers are kept here.
 */
struct all_to_all {
	struct comm *comm;
	const struct peer_memory *peer_memory;
	const struct job *job;
	const struct run_list *own_runs;
	const uint64_t *cuts;
	struct incoming_segments *incoming; /* by rank; of the own rank only n_runs */
	uint64_t received_nbytes;

	/* Of the current step. */
	struct segment_desc *sent_descs;     /* segments for the next rank */
	struct segment_desc *received_descs; /* max_runs segments for this rank, behind them */
	struct comm_transfer desc_send, desc_receive;
	struct segment_send segment_sends[MAX_SEGMENT_SENDS];
	uint64_t max_runs;
};

/* --- segments and runs of all ranks --- */

/* Return the first item of a run that a rank gets. */
static uint64_t segment_begin(const struct run_list *own_runs, const uint64_t *cuts, unsigned rank,
			      size_t run)
{
	return cuts[rank * own_runs->n + run];
}

static uint64_t segment_n_items(const struct run_list *own_runs, const uint64_t *cuts,
				unsigned rank, size_t run)
{
	const uint64_t begin = segment_begin(own_runs, cuts, rank, run);
	const uint64_t end = segment_begin(own_runs, cuts, rank + 1, run);

	return begin < end ? end - begin : 0;
}

int all_to_all_fits(struct comm *comm, const struct job *job, const struct run_list *own_runs,
		    const uint64_t *cuts, uint64_t available_nbytes, bool *ret_fits)
{
	const unsigned n = comm_size(comm);
	uint64_t *n_items = calloc(n, sizeof *n_items), n_without_space = 0;
	int r;

	if (!n_items)
		return fail(-ENOMEM, "no memory for the partitions of %u ranks", n);
	/* Count the items that each rank gets from others. */
	for (unsigned rank = 0; rank < n; rank++)
		for (size_t i = 0; i < own_runs->n && rank != comm_rank(comm); i++)
			n_items[rank] += segment_n_items(own_runs, cuts, rank, i);
	r = comm_allreduce_sum(comm, n_items, n);
	if (r == 0) {
		n_without_space = n_items[comm_rank(comm)] >
				  available_nbytes / job->layout->resident_nbytes;
		r = comm_allreduce_sum(comm, &n_without_space, 1);
	}
	free(n_items);
	if (r == 0)
		*ret_fits = n_without_space == 0;
	return r;
}

/* --- with one other rank --- */

static char *segment_memory(const struct all_to_all *exchange, unsigned to, size_t run)
{
	return exchange->own_runs->runs[run]->memory +
	       segment_begin(exchange->own_runs, exchange->cuts, to, run) *
		       exchange->job->layout->resident_nbytes;
}

static size_t segment_nbytes(const struct all_to_all *exchange, const struct segment_desc *desc)
{
	return desc->n_items * exchange->job->layout->resident_nbytes;
}

/* Accept the offered segments if their sizes do not overflow. */
static int accept_segment_descs(struct all_to_all *exchange, struct incoming_segments *incoming)
{
	uint64_t remaining = SIZE_MAX / exchange->job->layout->resident_nbytes;

	for (uint64_t i = 0; i < incoming->n_runs; i++) {
		if (exchange->received_descs[i].n_items > remaining)
			return fail(-EPROTO, "internal error: rank %u on %s offers too many items",
				    incoming->rank, comm_host(exchange->comm, incoming->rank));
		remaining -= exchange->received_descs[i].n_items;
		incoming->segments[i].desc = exchange->received_descs[i];
	}
	return 0;
}

/* Send the descriptions of the segments for `to`, and receive those from `from`. */
static int exchange_segment_descs(struct all_to_all *exchange, unsigned to, unsigned from)
{
	const struct run_list *own_runs = exchange->own_runs;
	struct incoming_segments *incoming = &exchange->incoming[from];
	int r;

	for (size_t i = 0; i < own_runs->n; i++)
		exchange->sent_descs[i] = (struct segment_desc){
			.n_items = segment_n_items(own_runs, exchange->cuts, to, i),
			.address = (uintptr_t)segment_memory(exchange, to, i)
		};
	r = comm_receive(exchange->comm, from, COMM_TAG_SEGMENT_DESCS, exchange->received_descs,
			 incoming->n_runs * sizeof *exchange->received_descs, 0,
			 &exchange->desc_receive);
	if (r == 0)
		r = comm_send(exchange->comm, to, COMM_TAG_SEGMENT_DESCS, exchange->sent_descs,
			      own_runs->n * sizeof *exchange->sent_descs, &exchange->desc_send);
	if (r == 0)
		r = comm_wait(exchange->comm, &exchange->desc_receive);
	if (r == 0)
		r = comm_wait(exchange->comm, &exchange->desc_send);
	return r < 0 ? r : accept_segment_descs(exchange, incoming);
}

static int allocate_incoming(struct all_to_all *exchange, struct incoming_segments *incoming)
{
	char *memory;
	int r;

	for (uint64_t i = 0; i < incoming->n_runs; i++)
		incoming->nbytes += segment_nbytes(exchange, &incoming->segments[i].desc);
	if (incoming->nbytes == 0)
		return 0;
	r = device_alloc(job_device(exchange->job), MEMORY_DEVICE, incoming->nbytes,
			 (void **)&incoming->memory);
	if (r < 0) {
		incoming->nbytes = 0;
		return fail(r, "no memory for runs of other ranks: %m; try a smaller -S");
	}
	exchange->received_nbytes += incoming->nbytes;
	memory = incoming->memory;
	for (uint64_t i = 0; i < incoming->n_runs; i++) {
		incoming->segments[i].memory = memory;
		memory += segment_nbytes(exchange, &incoming->segments[i].desc);
	}
	return 0;
}

/* --- by messages --- */

static int begin_segment_receives(struct all_to_all *exchange, unsigned from)
{
	const struct incoming_segments *incoming = &exchange->incoming[from];
	int r = 0;

	for (uint64_t i = 0; i < incoming->n_runs && r == 0; i++) {
		struct incoming_segment *segment = &incoming->segments[i];

		if (segment->desc.n_items > 0)
			r = comm_receive(exchange->comm, from, COMM_TAG_SEGMENTS, segment->memory,
					 segment_nbytes(exchange, &segment->desc), 0,
					 &segment->receive);
	}
	return r;
}

static size_t sent_segment_nbytes(const struct all_to_all *exchange, unsigned to, size_t run)
{
	return segment_n_items(exchange->own_runs, exchange->cuts, to, run) *
	       exchange->job->layout->resident_nbytes;
}

/* Free the memory of a segment that another rank has copied. */
static void discard_segment(const struct all_to_all *exchange, unsigned to, size_t run)
{
	const uint32_t device = exchange->own_runs->runs[run]->device_index;
	const size_t nbytes = sent_segment_nbytes(exchange, to, run);

	if (nbytes > 0)
		device_discard(exchange->job->devices[device].device,
			       segment_memory(exchange, to, run), nbytes);
}

static int finish_segment_send(const struct all_to_all *exchange, unsigned to,
			       struct segment_send *send)
{
	const int r = send->is_pending ? comm_wait(exchange->comm, &send->transfer) : 0;

	if (r < 0 || !send->is_pending)
		return r;
	discard_segment(exchange, to, send->run);
	send->is_pending = false;
	return 0;
}

static int begin_segment_send(const struct all_to_all *exchange, unsigned to, size_t run,
			      struct segment_send *send)
{
	const size_t nbytes = sent_segment_nbytes(exchange, to, run);
	int r;

	if (nbytes == 0)
		return 0;
	send->run = run;
	r = comm_send(exchange->comm, to, COMM_TAG_SEGMENTS, segment_memory(exchange, to, run),
		      nbytes, &send->transfer);
	send->is_pending = r == 0;
	return r;
}

static int send_segments(struct all_to_all *exchange, unsigned to)
{
	struct segment_send *sends = exchange->segment_sends;
	int r = 0;

	for (size_t i = 0; i < exchange->own_runs->n && r == 0; i++) {
		r = finish_segment_send(exchange, to, &sends[i % MAX_SEGMENT_SENDS]);
		if (r == 0)
			r = begin_segment_send(exchange, to, i, &sends[i % MAX_SEGMENT_SENDS]);
	}
	for (size_t i = 0; i < MAX_SEGMENT_SENDS && r == 0; i++)
		r = finish_segment_send(exchange, to, &sends[i]);
	return r;
}

static int exchange_with_peer(struct all_to_all *exchange, unsigned to, unsigned from)
{
	const bool receives = !peer_memory_can_read(exchange->peer_memory, from);
	struct incoming_segments *incoming = &exchange->incoming[from];
	int r = exchange_segment_descs(exchange, to, from);

	if (r == 0)
		r = allocate_incoming(exchange, incoming);
	if (r == 0 && receives)
		r = begin_segment_receives(exchange, from);
	if (r == 0 && !peer_memory_can_read(exchange->peer_memory, to))
		r = send_segments(exchange, to);
	for (uint64_t i = 0; i < incoming->n_runs && r == 0 && receives; i++)
		if (incoming->segments[i].desc.n_items > 0)
			r = comm_wait(exchange->comm, &incoming->segments[i].receive);
	return r;
}

/* --- from where it is --- */

struct segment_fetch {
	const struct all_to_all *exchange;
	const struct incoming_segments *incoming;
};

/* Task: read a segment from the memory of a peer. */
static int read_peer_segment(void *context, uint32_t i)
{
	const struct segment_fetch *fetch = context;
	const struct incoming_segment *segment = &fetch->incoming->segments[i];

	return peer_memory_read(fetch->exchange->peer_memory, fetch->incoming->rank,
				segment->desc.address, segment->memory,
				segment_nbytes(fetch->exchange, &segment->desc));
}

static int read_from_peer_memory(struct all_to_all *exchange)
{
	const unsigned n = comm_size(exchange->comm), rank = comm_rank(exchange->comm);
	struct thread_pool *pool = NULL;
	int r = thread_pool_open(exchange->job->plan.n_readers, &pool);

	if (r < 0)
		return fail(r, "no memory for readers");
	/* Begin with the next rank, so that not all ranks read the same one. */
	for (unsigned step = 1; step < n && r == 0; step++) {
		const struct incoming_segments *incoming = &exchange->incoming[(rank + step) % n];
		struct segment_fetch fetch = { exchange, incoming };

		if (peer_memory_can_read(exchange->peer_memory, incoming->rank))
			r = thread_pool_run(pool, read_peer_segment, &fetch,
					    (uint32_t)incoming->n_runs);
	}
	thread_pool_close(pool);
	if (r == 0)
		r = comm_barrier(exchange->comm);
	for (unsigned i = 0; i < n && r == 0; i++)
		for (size_t run = 0; run < exchange->own_runs->n; run++)
			if (peer_memory_can_read(exchange->peer_memory, i))
				discard_segment(exchange, i, run);
	return r;
}

/* --- the parts --- */

int own_segments_append(const struct layout *layout, const struct run_list *own_runs,
			const uint64_t *cuts, unsigned rank, struct run_list *runs)
{
	int r = 0;

	for (size_t i = 0; i < own_runs->n && r == 0; i++) {
		const uint64_t begin = segment_begin(own_runs, cuts, rank, i);
		const uint64_t n = segment_n_items(own_runs, cuts, rank, i);
		struct run *segment;

		if (n == 0)
			continue;
		r = run_open_subrun(layout, own_runs->runs[i], begin, begin + n, &segment);
		if (r == 0)
			r = run_list_add(runs, segment);
	}
	return r;
}

static int add_incoming_segments(const struct all_to_all *exchange,
				 const struct incoming_segments *incoming, struct run_list *runs)
{
	const struct job *job = exchange->job;
	int r = 0;

	for (uint64_t i = 0; i < incoming->n_runs && r == 0; i++) {
		const struct incoming_segment *segment = &incoming->segments[i];
		struct run *run;

		if (segment->desc.n_items == 0)
			continue;
		r = run_open_resident(job,
				      (struct resident_buffer){
					      .device_index = job->merge_device,
					      .memory = segment->memory,
					      .n = segment->desc.n_items,
				      },
				      NULL, NULL, &run);
		if (r == 0)
			r = run_list_add(runs, run);
	}
	return r;
}

/* --- all of it --- */

/* Learn the number of runs of each rank. */
static int open_incoming(struct all_to_all *exchange)
{
	const unsigned n = comm_size(exchange->comm);
	const uint64_t n_local_runs = exchange->own_runs->n;
	uint64_t *n_runs = calloc(n, sizeof *n_runs);
	int r;

	exchange->incoming = calloc(n, sizeof *exchange->incoming);
	if (!n_runs || !exchange->incoming) {
		free(n_runs);
		return fail(-ENOMEM, "no memory for the runs of %u ranks", n);
	}
	r = comm_allgather(exchange->comm, &n_local_runs, sizeof n_local_runs, n_runs);
	for (unsigned i = 0; i < n && r == 0; i++) {
		exchange->incoming[i].rank = i;
		exchange->incoming[i].n_runs = n_runs[i];
		exchange->incoming[i].segments =
			calloc(n_runs[i] + 1, sizeof *exchange->incoming[i].segments);
		if (!exchange->incoming[i].segments)
			r = fail(-ENOMEM, "no memory for the runs of rank %u", i);
		if (n_runs[i] > exchange->max_runs)
			exchange->max_runs = n_runs[i];
	}
	free(n_runs);
	return r;
}

static int exchange_all_segments(struct all_to_all *exchange)
{
	const unsigned n = comm_size(exchange->comm), rank = comm_rank(exchange->comm);
	const uint64_t n_sent = exchange->own_runs->n;
	int r = open_incoming(exchange);

	if (r < 0)
		return r;
	exchange->sent_descs =
		calloc(n_sent + exchange->max_runs + 1, sizeof *exchange->sent_descs);
	if (!exchange->sent_descs)
		return fail(-ENOMEM, "no memory for messages");
	exchange->received_descs = exchange->sent_descs + n_sent;
	for (unsigned step = 1; step < n && r == 0; step++)
		r = exchange_with_peer(exchange, (rank + step) % n, (rank + n - step) % n);
	return r < 0 ? r : read_from_peer_memory(exchange);
}

int all_to_all_open(struct comm *comm, const struct peer_memory *peer_memory, const struct job *job,
		    const struct run_list *own_runs, const uint64_t *cuts, struct run_list *runs,
		    struct all_to_all **ret_exchange)
{
	struct all_to_all *exchange = calloc(1, sizeof *exchange);
	int r;

	*ret_exchange = exchange;
	if (!exchange)
		return fail(-ENOMEM, "no memory for the runs of %u ranks", comm_size(comm));
	*exchange = (struct all_to_all){ .comm = comm,
					 .peer_memory = peer_memory,
					 .job = job,
					 .own_runs = own_runs,
					 .cuts = cuts };
	r = exchange_all_segments(exchange);
	for (unsigned i = 0; i < comm_size(comm) && r == 0; i++)
		r = i == comm_rank(comm) ?
			    own_segments_append(job->layout, own_runs, cuts, i, runs) :
			    add_incoming_segments(exchange, &exchange->incoming[i], runs);
	return r;
}

void all_to_all_close(struct all_to_all *exchange)
{
	if (!exchange)
		return;
	for (unsigned i = 0; exchange->incoming && i < comm_size(exchange->comm); i++) {
		device_free(job_device(exchange->job), MEMORY_DEVICE, exchange->incoming[i].memory,
			    exchange->incoming[i].nbytes);
		free(exchange->incoming[i].segments);
	}
	free(exchange->incoming);
	free(exchange->sent_descs);
	free(exchange);
}

uint64_t all_to_all_received_nbytes(const struct all_to_all *exchange)
{
	return exchange ? exchange->received_nbytes : 0;
}
