/*
 * supply - what the runs of a merge offer to a window, before it is cut (see supply.h)
 */
#include "src/merge/supply.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/crew.h"
#include "src/base/messages.h"
#include "src/merge/homes.h"
#include "src/merge/unpacking.h"

/* One run's share in the windows. */
struct share {
	struct run *run;
	const char *memory;  /* the run's, from where it is merged; NULL: it is read, or: */
	const char *away;    /* in memory of a device that is not reached: it is fetched */
	uint64_t next_block; /* the first not taken */
	uint64_t position;   /* in memory: records consumed */
	const char *rest;    /* read: n_rest records that the last window left, in its buffer */
	uint64_t n_rest;

	/* What is read for this window, by whoever of the crew */
	uint64_t n_blocks, n_read; /* blocks, records */
	char *to;                  /* device memory, with room for resident records */
	const char *items;   /* where they come from: its end, or staging */
	size_t items_nbytes; /* what is read */

	struct arranged found; /* by make_unique(): n and dropped */
	struct ledger ledger;  /* of an input run: read, and dropped before it is merged */
};

struct supply {
	const struct job *job;
	struct homes homes;
	struct lane *lane; /* of the device that merges: one of them, as the mark */
	struct mark *mark;
	struct crew *crew; /* that reads; NULL if nothing is read */
	uint64_t capacity_records;
	uint64_t number;         /* of the window */
	struct slice *available; /* n_shares */
	char *staging;           /* host memory that is read into, or NULL */
	size_t staging_nbytes, staging_used;
	struct unpacking unpacking;
	uint32_t n_shares;
	struct share shares[];
};

/* First keys of runs in device memory. */
static int sample(struct supply *supply, uint64_t stride)
{
	int r = 0;

	for (uint32_t i = 0; i < supply->n_shares && r == 0; i++)
		r = homes_sample(&supply->homes, supply->shares[i].run, stride);
	return r < 0 ? r : homes_wait(&supply->homes);
}

/* Is it read, by threads of the host? */
static bool is_read(const struct share *share)
{
	return !share->memory && !share->away;
}

/* If something is to be read: by whom. */
static int open_crew(struct supply *supply)
{
	uint32_t n_read = 0, n_readers = supply->job->plan.n_readers;
	int r;

	for (uint32_t i = 0; i < supply->n_shares; i++)
		n_read += is_read(&supply->shares[i]);
	if (n_read == 0)
		return 0;
	r = crew_open(n_readers < n_read ? n_readers : n_read, &supply->crew);
	return r < 0 ? fail(r, "no memory for %u readers", n_readers) : 0;
}

/* Of a record that is on its way to the device, in host memory; 0: none is. */
static size_t staged_nbytes(const struct supply *supply)
{
	const struct layout *layout = supply->job->layout;
	size_t most = 0;

	for (uint32_t i = 0; supply->job->plan.copies && i < supply->n_shares; i++) {
		const struct share *share = &supply->shares[i];
		size_t nbytes = 0;

		if (is_read(share))
			nbytes = layout->item_nbytes;
		else if (share->away)
			nbytes = layout->resident_nbytes;
		most = nbytes > most ? nbytes : most;
	}
	return most;
}

/* Where to what comes from elsewhere, if that cannot be device memory. */
static int open_staging(struct supply *supply)
{
	const struct job *job = supply->job;
	void *staging;
	int r;

	supply->staging_nbytes = supply->capacity_records * staged_nbytes(supply);
	if (supply->staging_nbytes == 0)
		return 0;
	r = device_alloc(job_device(job), MEMORY_HOST, supply->staging_nbytes, &staging);
	if (r < 0)
		return fail_hint(r, HINT_LESS_MEMORY, 0, "no pinned memory to read runs into: %m");
	supply->staging = staging;
	return 0;
}

static int start(struct supply *supply, struct run *const *runs, uint64_t resident_stride)
{
	const struct job *job = supply->job;
	int r;

	supply->available = calloc(supply->n_shares, sizeof *supply->available);
	if (!supply->available)
		return fail(-ENOMEM, "no memory for a merge of %u runs", supply->n_shares);
	r = homes_open(job, runs, supply->n_shares, &supply->homes);
	if (r < 0)
		return r;
	supply->lane = supply->homes.of[job->worker].lane;
	supply->mark = supply->homes.of[job->worker].mark;
	r = open_crew(supply);
	if (r == 0)
		r = open_staging(supply);
	return r < 0 ? r : sample(supply, resident_stride);
}

/* A run is merged from where it is if this device can read it there. */
static struct share share_of(const struct job *job, struct run *run)
{
	const char *memory = run_memory(run);
	const bool is_here = run_is_reached(job, run);

	return (struct share){
		.run = run,
		.memory = is_here ? memory : NULL,
		.away = is_here ? NULL : memory,
	};
}

int supply_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		const struct window_plan *windows, struct supply **ret_supply)
{
	struct supply *supply = calloc(1, sizeof *supply + n_runs * sizeof supply->shares[0]);
	int r;

	if (!supply)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	supply->job = job;
	supply->capacity_records = windows->capacity_records;
	supply->n_shares = n_runs;
	for (uint32_t i = 0; i < n_runs; i++)
		supply->shares[i] = share_of(job, runs[i]);
	r = start(supply, runs, windows->resident_stride);
	if (r < 0) {
		supply_close(supply);
		return r;
	}
	*ret_supply = supply;
	return 0;
}

void supply_close(struct supply *supply)
{
	if (!supply)
		return;
	homes_close(&supply->homes);
	crew_close(supply->crew);
	device_release(job_device(supply->job), MEMORY_HOST, supply->staging,
		       supply->staging_nbytes);
	free(supply->available);
	unpacking_free(&supply->unpacking);
	free(supply);
}

void supply_seek(struct supply *supply, code_t key, uint64_t *ret_first_blocks)
{
	for (uint32_t i = 0; i < supply->n_shares; i++) {
		struct share *share = &supply->shares[i];

		share->next_block = run_seek(share->run, key);
		if (share->memory)
			share->position = run_block_start(share->run, share->next_block);
		ret_first_blocks[i] = share->next_block;
	}
}

int supply_load_item(void *context, struct run *run, uint64_t block, void *item)
{
	struct supply *supply = context;
	const struct job *job = supply->job;
	const size_t item_nbytes = job->layout->item_nbytes;
	const char *memory = run_memory(run);
	int r;

	if (!memory)
		return run_read_first_item(run, block, item);
	r = lane_copy(homes_lane(&supply->homes, run), item,
		      memory + run_block_start(run, block) * item_nbytes, item_nbytes);
	return r < 0 ? r : homes_wait(&supply->homes);
}

/* Is what is read of it unpacked by the device? */
static bool comes_packed(const struct supply *supply, const struct share *share)
{
	return supply->job->plan.packs && run_is_packed(share->run);
}

/* Of the crew: read what a run has to read, if anything. */
static int read_share(void *context, uint32_t i)
{
	struct supply *supply = context;
	struct share *share = &supply->shares[i];
	struct span span;
	int r;

	if (share->n_blocks == 0 || !is_read(share))
		return 0;
	span = stats_begin(STAGE_FETCH, supply->number);
	if (comes_packed(supply, share))
		r = run_read_packed(share->run, share->next_block, share->n_blocks,
				    (char *)share->items);
	else
		r = run_read(share->run, share->next_block, share->n_blocks, (char *)share->items,
			     &share->ledger.read);
	stats_end(supply->job->stats, span, share->n_read * supply->job->layout->item_nbytes);
	return r;
}

/* Is something of it to come by way of the host? */
static bool comes_by_host(const struct share *share)
{
	return share->away && share->n_blocks;
}

/* Queue the first part of that way. */
static int download(struct supply *supply, const struct share *share)
{
	const uint64_t start = run_block_start(share->run, share->next_block);

	return lane_copy(homes_lane(&supply->homes, share->run), (char *)share->items,
			 share->away + start * supply->job->layout->resident_nbytes,
			 share->items_nbytes);
}

/* Have in host memory what does not come from here. */
static int fetch(struct supply *supply)
{
	uint32_t n_coming = 0;
	int r = 0, waited;

	for (uint32_t i = 0; i < supply->n_shares && r == 0; i++) {
		if (!comes_by_host(&supply->shares[i]))
			continue;
		n_coming++;
		r = download(supply, &supply->shares[i]);
	}
	if (r == 0 && supply->crew)
		r = crew_run(supply->crew, read_share, supply, supply->n_shares);
	if (n_coming == 0)
		return r;
	waited = homes_wait(&supply->homes);
	return r < 0 ? r : waited;
}

/*
 * Where items are that become records behind the rest. Narrower ones expand in place; what comes
 * from another device is as wide as it will be.
 */
static char *items_in_place(const struct supply *supply, const struct share *share)
{
	const struct layout *layout = supply->job->layout;

	if (share->away)
		return share->to;
	return share->to + share->n_read * (layout->resident_nbytes - layout->item_nbytes);
}

/* Queue the way of what was read to the device; what comes packed has a list for itself. */
static int upload(struct supply *supply, struct share *share, const struct supply_memory *memory)
{
	char *items = items_in_place(supply, share), *packed;
	int r;

	if (items == share->items)
		return 0;
	if (!comes_packed(supply, share))
		return lane_copy(supply->lane, items, share->items, share->items_nbytes);
	packed = (char *)memory->other + (share->items - supply->staging);
	r = lane_copy(supply->lane, packed, share->items, share->items_nbytes);
	return r < 0 ? r :
		       unpacking_add(&supply->unpacking, share->run, share->next_block,
				     share->n_blocks, packed, items,
				     supply->job->layout->element_nbytes);
}

/* Queue that a stored run's part of the buffer gets its rest and what was read. */
static int bring_in(struct supply *supply, struct share *share, const struct slice *slice,
		    const struct supply_memory *memory)
{
	const struct job *job = supply->job;
	const uint64_t rest_nbytes = share->n_rest * job->layout->resident_nbytes;
	int r = 0;

	if (share->n_blocks && !job->keeper)
		run_discard_before(share->run, share->next_block + share->n_blocks);
	if (rest_nbytes)
		r = lane_copy(supply->lane, (void *)slice->elements, share->rest, rest_nbytes);
	return r == 0 && share->n_blocks ? upload(supply, share, memory) : r;
}

/* Queue that records become elements. */
static int encode(struct supply *supply, struct share *share)
{
	const struct job *job = supply->job;
	const struct layout *layout = job->layout;

	if (!layout_has_elements(layout) || !run_holds_records(share->run, layout) ||
	    code_map_is_identity(&layout->map))
		return 0;
	return lane_encode(supply->lane, &(struct encode_op){
						 .layout = layout,
						 .records = items_in_place(supply, share),
						 .elements = share->to,
						 .n = share->n_read,
					 });
}

/* What comes of a run that is not here. */
static size_t coming_nbytes(const struct supply *supply, const struct share *share)
{
	const struct layout *layout = supply->job->layout;

	if (share->away)
		return share->n_read * layout->resident_nbytes;
	return comes_packed(supply, share) ?
		       run_packed_nbytes(share->run, share->next_block, share->n_blocks) :
		       share->n_read * layout->item_nbytes;
}

/* The part of a run that is not here in the buffer, at `elements`: its rest, then the blocks. */
static void place_coming(struct supply *supply, struct share *share, uint64_t n_blocks,
			 char *elements, struct slice *ret_slice)
{
	const struct layout *layout = supply->job->layout;
	const uint64_t first = run_block_start(share->run, share->next_block);

	share->n_blocks = n_blocks;
	share->n_read = run_block_start(share->run, share->next_block + n_blocks) - first;
	share->to = elements + share->n_rest * layout->resident_nbytes;
	share->items_nbytes = coming_nbytes(supply, share);
	if (supply->staging) {
		share->items = supply->staging + supply->staging_used;
		supply->staging_used += share->items_nbytes;
	} else {
		share->items = items_in_place(supply, share);
	}
	*ret_slice = (struct slice){ .elements = elements, .n = share->n_rest + share->n_read };
}

/* Where every run's available records will be, for the blocks taken. */
static int place_slices(struct supply *supply, const struct supply_memory *memory,
			const uint64_t *n_blocks)
{
	const uint64_t resident_nbytes = supply->job->layout->resident_nbytes;
	uint64_t n_used = 0;

	supply->staging_used = 0;
	for (uint32_t i = 0; i < supply->n_shares; i++) {
		struct share *share = &supply->shares[i];
		struct slice *slice = &supply->available[i];

		if (share->memory) {
			slice->elements = share->memory + share->position * resident_nbytes;
			slice->n = run_block_start(share->run, share->next_block + n_blocks[i]) -
				   share->position;
			continue;
		}
		place_coming(supply, share, n_blocks[i],
			     (char *)memory->in + n_used * resident_nbytes, slice);
		n_used += slice->n;
		if (n_used > supply->capacity_records)
			return fail(-EOVERFLOW,
				    "internal error: a window of %" PRIu64 " records "
				    "has room for %" PRIu64,
				    n_used, supply->capacity_records);
	}
	return 0;
}

/* Queue that a slice of what was read as it came loses its duplicates. */
static int make_unique(struct supply *supply, struct share *share, const struct slice *slice,
		       const struct supply_memory *memory)
{
	share->found = (struct arranged){ 0 };
	if (slice->n == 0)
		return 0;
	return lane_unique(supply->lane, &(struct unique_op){
						 .layout = supply->job->layout,
						 .items = (void *)slice->elements,
						 .n = slice->n,
						 .other = memory->other,
						 .scratch = memory->scratch,
						 .ret = &share->found,
					 });
}

/* Queue what makes the slices of runs that are read of their rests and of what was read. */
static int fill_slices(struct supply *supply, const struct supply_memory *memory)
{
	const struct job *job = supply->job;
	int r = 0;

	unpacking_restart(&supply->unpacking);
	for (uint32_t i = 0; i < supply->n_shares && r == 0; i++)
		if (!supply->shares[i].memory)
			r = bring_in(supply, &supply->shares[i], &supply->available[i], memory);
	if (r == 0)
		r = unpacking_queue(&supply->unpacking, job, supply->lane);
	for (uint32_t i = 0; i < supply->n_shares && r == 0; i++) {
		struct share *share = &supply->shares[i];

		if (share->memory)
			continue;
		if (share->n_blocks)
			r = encode(supply, share);
		if (r == 0 && job->unique && run_holds_duplicates(share->run))
			r = make_unique(supply, share, &supply->available[i], memory);
	}
	return r;
}

/* With -u, once that is done: what is left of the input runs' parts. */
static void apply_unique(struct supply *supply)
{
	for (uint32_t i = 0; i < supply->n_shares; i++) {
		struct share *share = &supply->shares[i];

		if (!run_holds_duplicates(share->run))
			continue;
		supply->available[i].n = share->found.n;
		digest_add(&share->ledger.dropped, share->found.dropped);
	}
}

int supply_gather(struct supply *supply, const struct supply_memory *memory,
		  const uint64_t *n_blocks, uint64_t number)
{
	int r = place_slices(supply, memory, n_blocks);

	supply->number = number;
	if (r == 0)
		r = fetch(supply);
	if (r == 0)
		r = fill_slices(supply, memory);
	if (r == 0)
		r = lane_wait(supply->lane, supply->mark);
	if (r == 0)
		r = unpacking_check(&supply->unpacking);
	for (uint32_t i = 0; i < supply->n_shares; i++)
		supply->shares[i].next_block += n_blocks[i];
	if (r == 0 && supply->job->unique)
		apply_unique(supply);
	return r;
}

int supply_cut(struct supply *supply, const struct splitter *splitter, uint32_t slice,
	       uint64_t *ret_cuts)
{
	int r = lane_cut(supply->lane, &(struct cut_op){
					       .layout = supply->job->layout,
					       .slices = supply->available,
					       .k = supply->n_shares,
					       .key = splitter->key,
					       .slice = slice,
					       .ret_cuts = ret_cuts,
				       });

	return r < 0 ? r : lane_wait(supply->lane, supply->mark);
}

uint64_t supply_n_available(const struct supply *supply, uint32_t i)
{
	return supply->available[i].n;
}

void supply_drop(struct supply *supply, const uint64_t *n_dropped)
{
	const uint64_t resident_nbytes = supply->job->layout->resident_nbytes;

	for (uint32_t i = 0; i < supply->n_shares; i++) {
		struct slice *slice = &supply->available[i];

		slice->elements = (const char *)slice->elements + n_dropped[i] * resident_nbytes;
		slice->n -= n_dropped[i];
		supply->shares[i].position += n_dropped[i];
	}
}

/* What of the slices is, or was, with other devices: read there, or by way of the host. */
static void count_foreign(const struct supply *supply, const struct slice *slices)
{
	const struct job *job = supply->job;
	struct device_totals foreign = { 0 };

	for (uint32_t i = 0; i < supply->n_shares; i++) {
		const struct share *share = &supply->shares[i];
		const uint64_t nbytes = slices[i].n * job->layout->resident_nbytes;

		if (share->away)
			foreign.away_nbytes += nbytes;
		else if (share->memory && run_worker(share->run) != job->worker)
			foreign.peer_nbytes += nbytes;
	}
	stats_add_device(job->stats, job->workers[job->worker].place, &foreign);
}

uint64_t supply_take(struct supply *supply, const uint64_t *cuts, struct slice *slices)
{
	const uint64_t resident_nbytes = supply->job->layout->resident_nbytes;
	uint64_t n = 0;

	for (uint32_t i = 0; i < supply->n_shares; i++) {
		struct share *share = &supply->shares[i];
		const struct slice *available = &supply->available[i];
		const uint64_t taken = cuts ? cuts[i] : available->n;

		slices[i] = (struct slice){ .elements = available->elements, .n = taken };
		share->rest = (const char *)available->elements + taken * resident_nbytes;
		share->n_rest = available->n - taken;
		share->position += taken;
		n += taken;
	}
	count_foreign(supply, slices);
	return n;
}

struct ledger supply_ledger(const struct supply *supply)
{
	struct ledger sum = { 0 };

	for (uint32_t i = 0; i < supply->n_shares; i++)
		ledger_add(&sum, supply->shares[i].ledger);
	return sum;
}
