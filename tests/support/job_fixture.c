/*
 * job_fixture - a job to merge with (see job_fixture.h)
 */
#include "tests/support/job_fixture.h"

struct job job;
struct layout layout;
struct run_store store;
code_t *all;
size_t n_all, n_all_allocated;
struct backend backend_apart;
uint32_t fixture_n_workers = 1;
static struct worker workers[MOST_WORKERS];
static uint64_t apart_memory_nbytes;

static void describe_apart(const struct device *device, struct device_info *ret_info)
{
	backend_owning.describe(device, ret_info);
	ret_info->unified = false;
	ret_info->memory_nbytes = apart_memory_nbytes;
}

static bool fixture_packs;

void job_plan(uint64_t input_nbytes, uint32_t n_input_runs)
{
	job.request = (struct plan_request){
		.layout = &layout,
		.device = job_device(&job),
		.input_nbytes = input_nbytes,
		.n_threads = 2,
		.memory_nbytes = LEAST_MEMORY_NBYTES,
		.device_nbytes = job.info.memory_nbytes,
		.n_devices = job.n_workers,
		.n_input_runs = n_input_runs,
		.stores_codes = fixture_packs && layout.stores_elements,
	};
	plan_make(&job.request, &job.plan);
}

static void open_workers(const struct backend *backend)
{
	const struct backend_config config = { .n_threads = 2, .n_sharing = 1 };

	job.workers = workers;
	for (; job.n_workers < fixture_n_workers; job.n_workers++) {
		struct worker *worker = &workers[job.n_workers];

		*worker = (struct worker){ .number = job.n_workers,
					   .place = fixture_n_workers > 1 ? job.n_workers + 1 : 0 };
		assert_int_equal(device_open(backend, &config, &worker->device), 0);
		assert_int_equal(window_memory_open(&worker->windows), 0);
	}
	for (uint32_t i = 0; i < job.n_workers; i++)
		for (uint32_t j = 0; j < job.n_workers; j++)
			if (device_reaches(workers[i].device, workers[j].device))
				workers[i].reaches |= UINT64_C(1) << j;
	device_describe(job_device(&job), &job.info);
}

void job_start(const char *type, bool unique, enum kind_of_memory memory)
{
	static const char *const directories[] = { fixture_directory };
	struct key key;

	assert_int_equal(key_parse_type(type, &key), 0);
	assert_int_equal(layout_make_plain(&key, &layout), 0);
	backend_apart = backend_owning;
	backend_apart.describe = describe_apart;
	apart_memory_nbytes = LEAST_MEMORY_NBYTES;
	fixture_packs = memory == MEMORY_PACKING;
	job = (struct job){
		.io = &faulty_calls,
		.layout = &layout,
		.unique = unique,
		.limit = UINT64_MAX,
	};
	open_workers(memory == MEMORY_UNIFIED ? &backend_cpu : &backend_apart);
	assert_int_equal(spill_open(&faulty_calls, directories, 1, SPILL_UNLIMITED, 0, &job.spill),
			 0);
	if (fixture_packs)
		assert_int_equal(compression_open(&(struct compression_choice){ COMPRESS_DELTA, 0 },
						  layout.stores_elements, &job.compression),
				 0);
	job_plan(PLAN_SIZE_UNKNOWN, 0);
	job.plan.block_nbytes = SMALL_BLOCK_NBYTES;
}

void job_stop(void)
{
	run_store_free(&store);
	spill_close(job.spill);
	compression_close(job.compression);
	for (uint32_t i = 0; i < job.n_workers; i++) {
		window_memory_close(workers[i].windows);
		device_close(workers[i].device);
	}
	job = (struct job){ 0 };
	free(all);
	all = NULL;
	n_all = n_all_allocated = 0;
}

int compare_codes(const void *a, const void *b)
{
	const code_t x = *(const code_t *)a, y = *(const code_t *)b;

	return (x > y) - (x < y);
}

/* Keep the first of equal neighbours; returns how many are left. */
static size_t drop_equals(code_t *codes, size_t n)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < n; i++)
		if (n_kept == 0 || codes[i] != codes[n_kept - 1])
			codes[n_kept++] = codes[i];
	return n_kept;
}

struct digest digest_codes(const code_t *codes, size_t n)
{
	struct digest digest = { 0 };
	unsigned char record[16];

	for (size_t i = 0; i < n; i++) {
		layout_decode(&layout, codes[i], record);
		digest_add(&digest,
			   (struct digest){ 1, digest_record(record, layout.record_nbytes) });
	}
	return digest;
}

void remember_input(const code_t *codes, size_t n)
{
	if (n_all + n >= n_all_allocated) {
		n_all_allocated = 2 * (n_all + n + 1);
		all = realloc(all, n_all_allocated * sizeof *all);
		assert_non_null(all);
	}
	memcpy(all + n_all, codes, n * sizeof *codes);
	n_all += n;
}

void *items_of(const code_t *codes, size_t n, bool elements)
{
	const size_t item_nbytes = elements ? layout.element_nbytes : layout.record_nbytes;
	char *items = malloc(n * item_nbytes + 1);

	assert_non_null(items);
	for (size_t i = 0; i < n; i++)
		if (elements)
			memcpy(items + i * item_nbytes, &codes[i], item_nbytes);
		else
			layout_decode(&layout, codes[i], items + i * item_nbytes);
	return items;
}

static void release_resident(void *owner)
{
	struct resident *resident = owner;

	device_release(workers[resident->worker].device, MEMORY_DEVICE, resident->elements,
		       resident->nbytes);
	free(resident);
}

/* With each worker in turn. */
static size_t n_residents;

struct run *make_resident(const code_t *codes, size_t n)
{
	struct resident *resident = malloc(sizeof *resident);
	void *elements = items_of(codes, n, true);
	struct run *run;

	assert_non_null(resident);
	resident->nbytes = n * layout.element_nbytes + 1;
	resident->worker = (uint32_t)(n_residents++ % job.n_workers);
	assert_int_equal(device_alloc(workers[resident->worker].device, MEMORY_DEVICE,
				      resident->nbytes, &resident->elements),
			 0);
	memcpy(resident->elements, elements, n * layout.element_nbytes);
	free(elements);
	assert_int_equal(
		run_open_resident(&job,
				  (struct residence){ resident->worker, resident->elements, n },
				  release_resident, resident, &run),
		0);
	return run;
}

struct run *make_spilled_in_blocks(const code_t *codes, size_t n, uint32_t block_n_items)
{
	void *items = items_of(codes, n, layout.stores_elements);
	code_t *first_keys = malloc((n / block_n_items + 1) * sizeof *first_keys);
	struct run_file *file;
	struct run *run;

	assert_non_null(first_keys);
	for (size_t i = 0; i < n; i += block_n_items)
		first_keys[i / block_n_items] = codes[i];
	assert_int_equal(run_file_open(job.spill, job.compression, (uint32_t)layout.record_nbytes,
				       block_n_items, &file),
			 0);
	assert_int_equal(run_file_write(file, 0, items, n, first_keys), 0);
	assert_int_equal(run_file_finish(file), 0);
	assert_int_equal(run_open_stored(file, STORED_ITEMS, &run), 0);
	free(items);
	free(first_keys);
	return run;
}

static struct run *make_spilled(const code_t *codes, size_t n)
{
	return make_spilled_in_blocks(
		codes, n, run_file_block_n_items(job.plan.block_nbytes, layout.element_nbytes));
}

void add_run(enum tier tier, code_t *codes, size_t n)
{
	qsort(codes, n, sizeof *codes, compare_codes);
	if (job.unique)
		n = drop_equals(codes, n);
	remember_input(codes, n);
	assert_int_equal(run_store_add(&store, tier == RESIDENT ? make_resident(codes, n) :
								  make_spilled(codes, n)),
			 0);
}

int write_output(void *context, const struct merged *merged)
{
	struct output *output = context;
	const size_t offset = merged->position * layout.record_nbytes;
	const size_t nbytes = merged->n_items * layout.record_nbytes;

	if (merged->number == output->fails_at)
		return -EDOM;
	pthread_mutex_lock(&output->lock);
	if (offset + nbytes > output->allocated_nbytes) {
		output->allocated_nbytes = 2 * (offset + nbytes);
		output->records = realloc(output->records, output->allocated_nbytes);
		assert_non_null(output->records);
	}
	memcpy(output->records + offset, merged->items, nbytes);
	output->n_items += merged->n_items;
	output->n_windows++;
	pthread_mutex_unlock(&output->lock);
	return 0;
}

void cancel_output(void *context)
{
	struct output *output = context;

	output->cancelled = true;
}

uint64_t fixture_windows_nbytes;
uint32_t fixture_n_ranges;

static void note_ranges(void *context, uint32_t n_ranges)
{
	(void)context;
	fixture_n_ranges = n_ranges;
}

int merge_store(struct output *output, struct merge_result *ret_result)
{
	const struct sink sink = {
		.context = output,
		.takes_records = true,
		.stage = STAGE_WRITE,
		.item_nbytes = layout.record_nbytes,
		.write = write_output,
		.divide = note_ranges,
		.cancel = cancel_output,
	};

	return merge_in_ranges(&job, store.runs, (uint32_t)store.n, fixture_windows_nbytes, &sink,
			       ret_result);
}

void check_output(struct digest dropped, uint64_t *ret_n_windows)
{
	struct output output = { .lock = PTHREAD_MUTEX_INITIALIZER, .fails_at = UINT64_MAX };
	struct merge_result result;
	struct digest accounted;
	size_t n = n_all;
	void *expected;

	assert_int_equal(merge_store(&output, &result), 0);
	accounted = result.ledger.written;
	digest_add(&accounted, result.ledger.dropped);
	digest_add(&accounted, dropped);
	assert_true(digest_equal(accounted, digest_codes(all, n_all)));

	qsort(all, n, sizeof *all, compare_codes);
	if (job.unique)
		n = drop_equals(all, n);
	expected = items_of(all, n, false);
	assert_int_equal(result.n_items, n);
	assert_int_equal(result.n_disorders, 0);
	assert_int_equal(result.n_windows, output.n_windows);
	assert_int_equal(output.n_items, n);
	assert_true(n == 0 || memcmp(output.records, expected, n * layout.record_nbytes) == 0);
	if (ret_n_windows)
		*ret_n_windows = output.n_windows;
	free(expected);
	free(output.records);
}

uint64_t scramble(uint64_t i, uint64_t seed)
{
	return digest_mix64(i + digest_mix64(seed));
}
