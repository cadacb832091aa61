/*
 * plan_print - a plan as --explain says it (see plan.h)
 */
#include "src/plan/plan.h"

#include <inttypes.h>

#include "src/base/size.h"

static void print_size(FILE *stream, const char *name, uint64_t nbytes, const char *more)
{
	char size[32];

	size_format(nbytes, size);
	fprintf(stream, "%-18s%s%s\n", name, size, more);
}

static void print_runs(const struct plan *plan, FILE *stream)
{
	char size[32];

	if (plan->fits) {
		fprintf(stream, "%-18sall chunks stay in memory; nothing is spilled\n", "runs");
		return;
	}
	size_format(plan->spill_chunks * plan->chunk_records * plan->record_nbytes, size);
	if (plan->is_endless)
		fprintf(stream, "%-18sof %s each, spilled when memory is full\n", "runs", size);
	else
		fprintf(stream,
			"%-18s%" PRIu64 " of %s each are spilled, the rest stays in memory\n",
			"runs", plan->n_spilled_runs, size);
}

static void print_input(const struct plan *plan, FILE *stream)
{
	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN)
		print_size(stream, "input", plan->input_nbytes, "");
	else if (plan->is_endless)
		fprintf(stream, "%-18sof unknown size; --assume-size plans for one\n", "input");
	else
		print_size(stream, "input", plan->expected_nbytes,
			   " (--assume-size); it can be any");
}

/* Of an endless input, what holds as long as its runs can be merged at once. */
static void print_merges(const struct plan *plan, FILE *stream)
{
	const uint64_t run_nbytes = plan->spill_chunks * plan->chunk_records * plan->record_nbytes;
	char size[32];

	if (plan->is_endless) {
		size_format(run_nbytes * plan->fan_in, size);
		fprintf(stream, "%-18s1 up to %s of input\n", "merge passes", size);
	} else {
		fprintf(stream, "%-18s%u\n", "merge passes", plan->n_passes);
	}
	size_format_up(plan->most_temporary_nbytes, size);
	fprintf(stream, "%-18s%s%s\n", "temporary space", size,
		plan->is_endless ? " for each GiB of input" : "");
}

void plan_print(const struct plan *plan, FILE *stream)
{
	char size[32];

	fprintf(stream, "%-18s%s\n", "device", plan->device);
	print_input(plan, stream);
	fprintf(stream, "%-18s%u bytes, sorted as elements of %u bytes\n", "record",
		plan->record_nbytes, plan->element_nbytes);
	print_size(stream, "memory", plan->memory_nbytes, " at most (-S)");
	if (plan->side_nbytes)
		print_size(stream, "codecs", plan->side_nbytes, " of it");
	if (plan->index_nbytes)
		print_size(stream, "index of runs", plan->index_nbytes, " of it");
	if (plan->mapped_nbytes)
		print_size(stream, "mapped input", plan->mapped_nbytes,
			   " of it; records stay there until they are written");
	if (!plan->unified) {
		print_size(stream, "device memory", plan->device_nbytes, " at most");
		print_size(stream, "host tier", plan->host_tier_nbytes,
			   " of spilled runs stay in memory");
		if (plan->packs)
			fprintf(stream, "%-18son the device, before they are downloaded\n",
				"runs are packed");
		size_format(plan->slot_nbytes, size);
		fprintf(stream, "%-18s%u of %s\n", "slots", plan->n_slots, size);
	}
	if (plan->n_chunks) {
		size_format(plan->chunk_nbytes, size);
		fprintf(stream, "%-18s%" PRIu64 " buffers of %s, %u sorted at a time\n", "chunks",
			plan->n_chunks, size, plan->n_lanes);
		print_runs(plan, stream);
	}
	size_format(plan->window_nbytes, size);
	fprintf(stream, "%-18s%u in flight, of %s or more\n", "windows", plan->n_windows, size);
	size_format(plan->block_nbytes, size);
	fprintf(stream, "%-18sat most %u stored runs at once, blocks of %s\n", "merge",
		plan->fan_in, size);
	print_merges(plan, stream);
	fprintf(stream, "%-18s%u readers, %u writers\n", "threads", plan->n_readers,
		plan->n_writers);
}
