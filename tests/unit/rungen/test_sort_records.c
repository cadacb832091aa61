/*
 * test_sort_records.c - records in runs and merges, on a device with separate memory
 *
 * tests/cli/random_records.sh sorts records in the memory of the host.
 *
 * The reference is a stable sort of the records by their whole keys. Memory is the minimum, so that
 * runs are spilled and there are many windows.
 */
#include "src/rungen/chunk_pool.h"
#include "src/merge/merge.h"

#include "tests/support/job_fixture.h"
#include "tests/support/open_input.h"
#include "tests/support/unit_test.h"

struct sort_case {
	uint64_t record_nbytes;
	struct key keys[3];
	uint32_t n_keys;
	bool unique, keep_last, count, keys_only, index;
	uint64_t limit;
	uint64_t n_values; /* values of each random byte */
	uint64_t n_equal;  /* bytes at the beginning that are equal in all records */
};

#define BYTES(at, n)                                                                               \
	{                                                                                          \
		.offset = (at), .nbytes = (n), .kind = KEY_BYTES, .big_endian = true               \
	}
#define UNSIGNED(at, n)                                                                            \
	{                                                                                          \
		.offset = (at), .nbytes = (n), .kind = KEY_UNSIGNED                                \
	}

static unsigned char *records;
static size_t n_records;
static struct key_fields *sorted_by;

/* A record and the beginning of its key, which decides most comparisons. */
struct keyed_record {
	uint64_t word;
	const unsigned char *record;
};

static int by_key_then_place(const void *a, const void *b)
{
	const struct keyed_record *x = a, *y = b;
	int order = (x->word > y->word) - (x->word < y->word);

	if (order == 0)
		order = key_compare(sorted_by, x->record, y->record);
	return order ? order : (x->record > y->record) - (x->record < y->record);
}

static void make_records(const struct sort_case *shape, size_t n)
{
	uint64_t word = 0;

	n_records = n;
	records = malloc(n * shape->record_nbytes + 1);
	assert_non_null(records);
	for (size_t i = 0; i < n * shape->record_nbytes; i++) {
		word = i % sizeof word == 0 ? scramble(i, 5) : word >> 8;
		records[i] = i % shape->record_nbytes < shape->n_equal ?
				     7 :
				     (unsigned char)((word & 255) % shape->n_values);
	}
}

static void start_job(const struct sort_case *shape)
{
	const struct layout_params request = {
		.record_nbytes = shape->record_nbytes,
		.keys = shape->keys,
		.n_keys = shape->n_keys,
		.force_records = true,
		.count = shape->count,
		.keep_last = shape->keep_last,
		.keys_only = shape->keys_only,
		.argsort = shape->index,
	};
	const char *path = fixture_path("input");

	job_start("u64", shape->unique, FIXTURE_SEPARATE_MEMORY);
	assert_int_equal(layout_make(&request, &layout), 0);
	job.limit = shape->limit ? shape->limit : UINT64_MAX;
	write_file(path, records, n_records * shape->record_nbytes);
	assert_int_equal(input_open(&faulty_calls, &path, 1, layout.record_nbytes, &job.input), 0);
	job_plan(input_total_nbytes(job.input), 0);
	assert_int_equal(chunk_pool_open(&job, &job.chunk_pool), 0);
}

static void stop_job(void)
{
	struct input *input = job.input;

	run_list_free(&fixture_run_list);
	chunk_pool_close(job.chunk_pool);
	job_stop();
	input_close(input);
	layout_free(&layout);
	free(records);
}

/* Make the expected items. Returns their number. */
static uint64_t make_expected(const struct sort_case *shape, unsigned char **ret_items)
{
	struct keyed_record *order = malloc((n_records + 1) * sizeof *order);
	unsigned char *items = malloc(n_records * layout.item_nbytes + 1);
	uint64_t n = 0;

	assert_non_null(order);
	assert_non_null(items);
	sorted_by = &layout.record_keys;
	for (size_t i = 0; i < n_records; i++) {
		order[i].record = records + i * layout.record_nbytes;
		order[i].word = key_word(sorted_by, order[i].record, 0);
	}
	qsort(order, n_records, sizeof *order, by_key_then_place);
	for (size_t i = 0; i < n_records; i++) {
		const unsigned char *record = order[i].record;
		const uint64_t position = (uint64_t)(record - records) / layout.record_nbytes;
		unsigned char *last = items + (n - 1) * layout.item_nbytes;

		if (shape->unique && i > 0 &&
		    key_compare(sorted_by, order[i - 1].record, record) == 0) {
			const uint64_t count = layout_item_count(&layout, last) + 1;

			if (shape->keep_last)
				layout_project_record(&layout, record, position, last);
			if (shape->count)
				layout_set_item_count(&layout, last, count);
			continue;
		}
		layout_project_record(&layout, record, position, items + n++ * layout.item_nbytes);
	}
	free(order);
	*ret_items = items;
	return n < job.limit ? n : job.limit;
}

static int write_items(void *context, const struct merged_window *merged)
{
	memcpy((char *)context + merged->position * layout.output_nbytes, merged->items,
	       merged->n_items * layout.output_nbytes);
	return 0;
}

static void assert_output(const unsigned char *output, const unsigned char *items, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		if (memcmp(output + i * layout.output_nbytes,
			   items + i * layout.item_nbytes + layout.output_offset,
			   layout.output_nbytes) != 0)
			fail_msg("record %llu of %llu is wrong", (unsigned long long)i,
				 (unsigned long long)n);
}

static void check(const struct sort_case *shape, size_t n)
{
	struct record_totals totals = { 0 };
	struct merge_result result;
	unsigned char *expected, *output;
	uint64_t n_expected;
	uint32_t n_passes;
	struct sink sink = { .takes_records = true, .stage = STAGE_WRITE, .write = write_items };

	make_records(shape, n);
	start_job(shape);
	n_expected = make_expected(shape, &expected);
	output = malloc(n * layout.output_nbytes + 1);
	assert_non_null(output);
	sink.context = output;
	sink.item_nbytes = layout.output_nbytes;

	assert_int_equal(generate_runs(&job, job.chunk_pool, &fixture_run_list, &totals), 0);
	assert_int_equal(totals.read.n_records, n);
	assert_int_equal(merge_passes(&job, &fixture_run_list, 0, &totals, &n_passes), 0);
	chunk_pool_trim(job.chunk_pool);
	assert_int_equal(merge_runs(&job, fixture_run_list.runs, (uint32_t)fixture_run_list.n, 0,
				    &sink, &result),
			 0);
	assert_int_equal(result.n_items, n_expected);
	assert_int_equal(result.n_disorders, 0);
	if (shape->count && !shape->limit)
		assert_int_equal(result.n_counted, n);
	assert_output(output, expected, n_expected);
	record_totals_add(&totals, result.totals);
	assert_true(record_totals_are_balanced(totals));

	free(expected);
	free(output);
	stop_job();
}

/* Sort like the CPU back end, but report that each chunk is out of order. */
static int sort_with_wrong_result(struct device_queue *queue, const struct sort_op *op)
{
	const int r = backend_cpu.ops_by_layout[op->layout->kind]->sort(queue, op);
	struct device_event *event;

	if (r < 0 || backend_cpu.event_open(job_device(&job), &event) < 0)
		return -EIO;
	backend_cpu.queue_record(queue, event);
	backend_cpu.event_wait(event);
	backend_cpu.event_close(event);
	op->ret->n_disorders = 1;
	return 0;
}

DIRECTORY_TEST(chunk_that_is_out_of_order_ends_the_sort)
{
	const struct sort_case shape = { 24, { BYTES(4, 2) }, 1, .n_values = 16 };
	struct backend_layout_ops lying = *backend_cpu.ops_by_layout[LAYOUT_RECORDS];
	const struct backend_layout_ops *const kinds[N_LAYOUT_KINDS] = { [LAYOUT_RECORDS] =
										 &lying };
	struct record_totals totals = { 0 };

	make_records(&shape, 1000);
	start_job(&shape);
	lying.sort = sort_with_wrong_result;
	fixture_separate_backend.ops_by_layout = kinds;
	assert_int_equal(generate_runs(&job, job.chunk_pool, &fixture_run_list, &totals), -EIO);
	assert_non_null(strstr(captured_messages_error(), "1 records of a chunk are out of order"));
	stop_job();
}

DIRECTORY_TEST(records_are_sorted_as_by_the_reference)
{
	static const struct {
		size_t n;
		struct sort_case shape;
	} cases[] = {
		/* Equal keys stay in the order of the input. */
		{ 46021, { 24, { BYTES(4, 2) }, 1, .n_values = 16 } },
		{ 24001, { 100, { BYTES(0, 10) }, 1, .n_values = 2 } },
		/* Several keys decide one after the other. */
		{ 46027,
		  { 31, { UNSIGNED(20, 4), BYTES(0, 7), UNSIGNED(2, 2) }, 3, .n_values = 3 } },
		/* Long keys decide where their beginnings tie. */
		{ 24001, { 64, { BYTES(0, 64) }, 1, .n_values = 2, .n_equal = 40 } },
		{ 24001, { 64, { BYTES(0, 64) }, 1, .n_values = 256, .n_equal = 16 } },
		{ 24001, { 64, { BYTES(0, 64) }, 1, .n_values = 1 } },
		{ 24001,
		  { 64, { BYTES(0, 64) }, 1, .unique = true, .n_values = 2, .n_equal = 54 } },
		/* Wide records, in little memory. */
		{ 150, { 65536, { BYTES(1, 1) }, 1, .n_values = 200 } },
		{ 100, { 65536, { BYTES(0, 65536) }, 1, .n_values = 2, .n_equal = 65530 } },
		{ 2003, { 4096, { UNSIGNED(8, 8) }, 1, .n_values = 256 } },
		/* Equal records are counted. */
		{ 75011,
		  { 12, { UNSIGNED(4, 2) }, 1, .unique = true, .count = true, .n_values = 30 } },
		{ 75011,
		  { 12, { UNSIGNED(4, 2) }, 1, .unique = true, .count = true, .n_values = 1 } },
		/* Positions and keys are written instead of records. */
		{ 46021, { 20, { UNSIGNED(8, 4), BYTES(1, 2) }, 2, .index = true, .n_values = 5 } },
		{ 46021,
		  { 20, { UNSIGNED(8, 4), BYTES(1, 2) }, 2, .keys_only = true, .n_values = 5 } },
		{ 75011, { 8, { UNSIGNED(0, 8) }, 1, .index = true, .n_values = 256 } },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check(&cases[i].shape, cases[i].n);
}

DIRECTORY_TEST(several_devices_decide_ties_as_one_does)
{
	fixture_n_devices = 2;
	check(&(struct sort_case){ 24, { BYTES(4, 2) }, 1, .n_values = 16 }, 60007);
	check(&(struct sort_case){ 64, { BYTES(0, 64) }, 1, .n_values = 2, .n_equal = 40 }, 20011);
	check(
		&(struct sort_case){
			12, { UNSIGNED(4, 2) }, 1, .unique = true, .count = true, .n_values = 30 },
		60007);
	fixture_n_devices = 1;
}

DIRECTORY_TEST(the_last_of_equal_records_is_kept)
{
	static const struct sort_case shapes[] = {
		{ 24, { BYTES(4, 2) }, 1, .n_values = 16 },
		{ 12, { UNSIGNED(4, 2) }, 1, .count = true, .n_values = 30 },
		{ 12, { UNSIGNED(4, 2) }, 1, .count = true, .n_values = 1 },
		{ 70, { BYTES(0, 64) }, 1, .n_values = 2, .n_equal = 54 },
		{ 20, { UNSIGNED(8, 2), BYTES(1, 1) }, 2, .index = true, .n_values = 20 },
		{ 16, { UNSIGNED(4, 2) }, 1, .limit = 1000, .n_values = 200 },
	};

	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		struct sort_case shape = shapes[i];

		shape.unique = shape.keep_last = true;
		check(&shape, 46021);
	}
	fixture_n_devices = 2;
	check(
		&(struct sort_case){
			24, { BYTES(4, 2) }, 1, .unique = true, .keep_last = true, .n_values = 50 },
		60007);
	fixture_n_devices = 1;
}

DIRECTORY_TEST(limit_keeps_the_first)
{
	static const uint64_t limits[] = { 1, 1000, 40000, 1000000 };

	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		struct sort_case shape = {
			16, { UNSIGNED(4, 4) }, 1, .limit = limits[i], .n_values = 20
		};

		check(&shape, 60017);
		shape.unique = true;
		check(&shape, 60017);
	}
}
