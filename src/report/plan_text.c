/*
 * plan_text - a plan as a list of names and what is planned (see plan_text.h)
 */
#include "src/report/plan_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/base/size.h"

/* Who is told. */
struct listener {
	plan_row *row;
	void *context;
};

__attribute__((format(printf, 3, 4))) static void
tell_row(const struct listener *listener, const char *name, const char *format, ...)
{
	char value[256];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof value, format, args);
	va_end(args);
	listener->row(listener->context, name, value);
}

static void tell_size(const struct listener *listener, const char *name, uint64_t nbytes,
		      const char *more)
{
	char size[32];

	size_format(nbytes, size);
	tell_row(listener, name, "%s%s", size, more);
}

/* Of records in which elements stand for them, a buffer is not as long as what it is for. */
static void tell_chunks(const struct listener *to, const struct plan *plan)
{
	const uint64_t nbytes = plan->chunk_records * plan->record_nbytes;
	char size[32], of_input[32], records[64] = "";

	size_format(plan->chunk_nbytes, size);
	size_format(nbytes, of_input);
	if (nbytes != plan->chunk_nbytes)
		snprintf(records, sizeof records, " for %s of the%s input", of_input,
			 plan->mapped_nbytes ? " mapped" : "");
	tell_row(to, "chunks", "%" PRIu64 " buffers of %s%s, %u sorted concurrently",
		 plan->n_chunks, size, records, plan->n_devices * plan->n_lanes);
}

/* Is it not known, and nobody has said, how much will come? */
static bool is_open(const struct plan *plan)
{
	return plan->input_nbytes == PLAN_SIZE_UNKNOWN && !plan->expected_nbytes;
}

static void tell_runs(const struct listener *to, const struct plan *plan)
{
	char size[32];

	if (plan->fits) {
		tell_row(to, "runs", "all chunks stay in memory; nothing is spilled");
		return;
	}
	size_format(plan->spill_chunks * plan->chunk_records * plan->record_nbytes, size);
	if (plan->is_endless || is_open(plan))
		tell_row(to, "runs", "of %s each, spilled when memory is full", size);
	else
		tell_row(to, "runs", "%" PRIu64 " of %s each are spilled, the rest %s",
			 plan->n_spilled_runs, size,
			 plan->n_ranks > 1 && !plan->keeps_rest ? "is spilled last" :
								  "stays in memory");
}

static void tell_input(const struct listener *to, const struct plan *plan)
{
	char more[64] = "";

	if (plan->n_ranks > 1)
		snprintf(more, sizeof more, " for each of %" PRIu32 " ranks", plan->n_ranks);
	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN)
		tell_size(to, "input", plan->input_nbytes, more);
	else if (plan->is_endless)
		tell_row(to, "input", "unknown size; use --assume-size to plan for one");
	else if (is_open(plan))
		tell_row(to, "input", "unknown size");
	else
		tell_size(to, "input", plan->expected_nbytes, " (--assume-size)");
}

/* Of an endless input, what holds as long as its runs can be merged at once. */
static void tell_merges(const struct listener *to, const struct plan *plan)
{
	const uint64_t run_nbytes = plan->spill_chunks * plan->chunk_records * plan->record_nbytes;
	char size[32];

	if (plan->is_endless && plan->n_chunks) {
		size_format(run_nbytes * plan->fan_in, size);
		tell_row(to, "merge passes", "1 up to %s of input", size);
	} else {
		tell_row(to, "merge passes", "%u", plan->n_passes);
	}
	size_format_up(plan->most_temporary_nbytes, size);
	tell_row(to, "temporary space", "%s%s", size,
		 plan->is_endless ? " for each GiB of input" : "");
}

/* The parts of the memory that no record lies in, and what is mapped. */
static void tell_memory(const struct listener *to, const struct plan *plan)
{
	tell_size(to, "memory", plan->memory_nbytes + plan->exchange_nbytes, " limit (-S)");
	if (plan->exchange_nbytes)
		tell_size(to, "exchange", plan->exchange_nbytes,
			  " of it, for the exchange between ranks");
	if (plan->side_nbytes)
		tell_size(to, "codecs", plan->side_nbytes, " of it");
	if (plan->index_nbytes)
		tell_size(to, "index of runs", plan->index_nbytes, " of it");
	if (plan->mapped_nbytes)
		tell_size(to, "mapped input", plan->mapped_nbytes,
			  " of it; records are sorted in place");
}

/* Of a device with memory of its own. */
static void tell_device(const struct listener *to, const struct plan *plan)
{
	char size[32], all[32];

	size_format(plan->device_nbytes, size);
	size_format(plan->n_devices * plan->device_nbytes, all);
	if (plan->n_devices > 1)
		tell_row(to, "device memory", "limit %s per device, %s in total", size, all);
	else
		tell_row(to, "device memory", "limit %s", size);
	tell_size(to, "host spill", plan->host_tier_nbytes, " of spilled runs stay in host memory");
	if (plan->packs)
		tell_row(to, "compression", "runs are compressed on the device");
	size_format(plan->slot_nbytes, size);
	tell_row(to, "slots", "%u of %s", plan->n_slots, size);
}

static void tell_merge(const struct listener *to, const struct plan *plan)
{
	char size[32];

	size_format(plan->window_nbytes, size);
	tell_row(to, "windows", "%u in flight, of %s or more", plan->n_windows, size);
	size_format(plan->block_nbytes, size);
	tell_row(to, "merge", "fan-in %u, blocks of %s", plan->fan_in, size);
	if (!is_open(plan))
		tell_merges(to, plan);
	if (plan->n_expected_ranges > plan->n_ranges)
		tell_row(to, "partitions", "%u in total, %u merged in parallel",
			 plan->n_expected_ranges, plan->n_ranges);
	else if (plan->n_expected_ranges > 1)
		tell_row(to, "partitions", "%u at most, merged in parallel",
			 plan->n_expected_ranges);
}

void plan_tell(const struct plan *plan, plan_row *row, void *context)
{
	const struct listener to = { row, context };

	tell_row(&to, "device", "%s", plan->device);
	tell_input(&to, plan);
	tell_row(&to, "record", "%u bytes, sorted as elements of %u bytes", plan->record_nbytes,
		 plan->element_nbytes);
	tell_memory(&to, plan);
	if (plan->copies)
		tell_device(&to, plan);
	if (plan->n_chunks) {
		tell_chunks(&to, plan);
		tell_runs(&to, plan);
	}
	tell_merge(&to, plan);
	tell_row(&to, "threads", "%u readers, %u writers", plan->n_readers, plan->n_writers);
}
