/*
 * run_buffers_fill - the slices of a window, from wherever the runs are (see run_buffers.h)
 *
 *	in device memory      the slice is where the run is
 *	with another device   copied to the host, then to the window's buffer
 *	stored, an input      read by the crew; packed blocks are unpacked by the device
 *
 * All that is queued for a window is waited for once.
 */
#include <errno.h>
#include <inttypes.h>

#include "src/base/diagnostics.h"
#include "src/merge/run_buffers_internal.h"

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

	if (share->n_blocks == 0 || !share_is_read(share))
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
