/*
 * plan_text - a plan as a list of names and what is planned (see plan_text.h)
 */
#include "src/report/plan_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "src/base/size.h"

/* Who is told. */
struct plan_row_sink {
	plan_text_callback *callback;
	void *context;
};

__attribute__((format(printf, 3, 4))) static void
emit_row(const struct plan_row_sink *sink, const char *name, const char *format, ...)
{
	char value[256];
	va_list args;

	va_start(args, format);
	vsnprintf(value, sizeof value, format, args);
	va_end(args);
	sink->callback(sink->context, name, value);
}

static void emit_size(const struct plan_row_sink *sink, const char *name, uint64_t nbytes,
		      const char *suffix)
{
	char size[32];

	size_format(nbytes, size);
	emit_row(sink, name, "%s%s", size, suffix);
}

/* Of records in which elements stand for them, a buffer is not as long as what it is for. */
static void emit_chunks(const struct plan_row_sink *sink, const struct plan *plan)
{
	const uint64_t nbytes = plan->chunk_records * plan->record_nbytes;
	char size[32], input_size[32], records[64] = "";

	size_format(plan->chunk_nbytes, size);
	size_format(nbytes, input_size);
	if (nbytes != plan->chunk_nbytes)
		snprintf(records, sizeof records, " for %s of the%s input", input_size,
			 plan->mapped_nbytes ? " mapped" : "");
	emit_row(sink, "chunks", "%" PRIu64 " buffers of %s%s, %u sorted concurrently",
		 plan->n_chunks, size, records, plan->n_devices * plan->n_queues);
}

/* Is it not known, and nobody has said, how much will come? */
static bool is_size_unknown(const struct plan *plan)
{
	return plan->input_nbytes == PLAN_SIZE_UNKNOWN && !plan->expected_nbytes;
}

static void emit_runs(const struct plan_row_sink *sink, const struct plan *plan)
{
	char size[32];

	if (plan->fits_in_memory) {
		emit_row(sink, "runs", "all chunks stay in memory; nothing is spilled");
		return;
	}
	size_format(plan->chunks_per_run * plan->chunk_records * plan->record_nbytes, size);
	if (plan->is_unbounded || is_size_unknown(plan))
		emit_row(sink, "runs", "of %s each, spilled when memory is full", size);
	else
		emit_row(sink, "runs", "%" PRIu64 " of %s each are spilled, the rest %s",
			 plan->n_spilled_runs, size,
			 plan->n_ranks > 1 && !plan->keep_last_run_in_memory ? "is spilled last" :
									       "stays in memory");
}

static void emit_input(const struct plan_row_sink *sink, const struct plan *plan)
{
	char suffix[64] = "";

	if (plan->n_ranks > 1)
		snprintf(suffix, sizeof suffix, " for each of %" PRIu32 " ranks", plan->n_ranks);
	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN)
		emit_size(sink, "input", plan->input_nbytes, suffix);
	else if (plan->is_unbounded)
		emit_row(sink, "input", "unknown size; use --assume-size to plan for one");
	else if (is_size_unknown(plan))
		emit_row(sink, "input", "unknown size");
	else
		emit_size(sink, "input", plan->expected_nbytes, " (--assume-size)");
}

/* Of an endless input, what holds as long as its runs can be merged at once. */
static void emit_passes(const struct plan_row_sink *sink, const struct plan *plan)
{
	const uint64_t run_nbytes =
		plan->chunks_per_run * plan->chunk_records * plan->record_nbytes;
	char size[32];

	if (plan->is_unbounded && plan->n_chunks) {
		size_format(run_nbytes * plan->fan_in, size);
		emit_row(sink, "merge passes", "1 up to %s of input", size);
	} else {
		emit_row(sink, "merge passes", "%u", plan->n_passes);
	}
	size_format_up(plan->max_temp_nbytes, size);
	emit_row(sink, "temporary space", "%s%s", size,
		 plan->is_unbounded ? " for each GiB of input" : "");
}

/* The parts of the memory that no record lies in, and what is mapped. */
static void emit_memory(const struct plan_row_sink *sink, const struct plan *plan)
{
	emit_size(sink, "memory", plan->memory_nbytes + plan->exchange_nbytes, " limit (-S)");
	if (plan->exchange_nbytes)
		emit_size(sink, "exchange", plan->exchange_nbytes,
			  " of it, for the exchange between ranks");
	if (plan->codec_nbytes)
		emit_size(sink, "codecs", plan->codec_nbytes, " of it");
	if (plan->index_nbytes)
		emit_size(sink, "index of runs", plan->index_nbytes, " of it");
	if (plan->mapped_nbytes)
		emit_size(sink, "mapped input", plan->mapped_nbytes,
			  " of it; records are sorted in place");
}

/* Of a device with memory of its own. */
static void emit_device(const struct plan_row_sink *sink, const struct plan *plan)
{
	char size[32], all_devices[32];

	size_format(plan->device_nbytes, size);
	size_format(plan->n_devices * plan->device_nbytes, all_devices);
	if (plan->n_devices > 1)
		emit_row(sink, "device memory", "limit %s per device, %s in total", size,
			 all_devices);
	else
		emit_row(sink, "device memory", "limit %s", size);
	emit_size(sink, "host spill", plan->host_spill_nbytes,
		  " of spilled runs stay in host memory");
	if (plan->packs_on_device)
		emit_row(sink, "compression", "runs are compressed on the device");
	size_format(plan->slot_nbytes, size);
	emit_row(sink, "slots", "%u of %s", plan->n_slots, size);
}

static void emit_merge(const struct plan_row_sink *sink, const struct plan *plan)
{
	char size[32];

	size_format(plan->window_nbytes, size);
	emit_row(sink, "windows", "%u in flight, of %s or more", plan->n_windows, size);
	size_format(plan->block_nbytes, size);
	emit_row(sink, "merge", "fan-in %u, blocks of %s", plan->fan_in, size);
	if (!is_size_unknown(plan))
		emit_passes(sink, plan);
	if (plan->n_expected_partitions > plan->n_partitions)
		emit_row(sink, "partitions", "%u in total, %u merged in parallel",
			 plan->n_expected_partitions, plan->n_partitions);
	else if (plan->n_expected_partitions > 1)
		emit_row(sink, "partitions", "%u at most, merged in parallel",
			 plan->n_expected_partitions);
}

void plan_text_for_each(const struct plan *plan, plan_text_callback *callback, void *context)
{
	const struct plan_row_sink sink = { callback, context };

	emit_row(&sink, "device", "%s", plan->device);
	emit_input(&sink, plan);
	emit_row(&sink, "record", "%u bytes, sorted as elements of %u bytes", plan->record_nbytes,
		 plan->element_nbytes);
	emit_memory(&sink, plan);
	if (plan->copies_to_device)
		emit_device(&sink, plan);
	if (plan->n_chunks) {
		emit_chunks(&sink, plan);
		emit_runs(&sink, plan);
	}
	emit_merge(&sink, plan);
	emit_row(&sink, "threads", "%u readers, %u writers", plan->n_readers, plan->n_writers);
}
