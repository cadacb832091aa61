/*
 * job_fixture.c - a job for merges (see job_fixture.h)
 */
#include "tests/support/job_fixture.h"
#include "src/base/thread.h"
#include "tests/support/decode_key.h"
#include "tests/support/reference_sort.h"

struct job job;
struct layout layout;
struct run_list fixture_run_list;
encoded_key_t *fixture_keys;
size_t fixture_n_keys, fixture_keys_capacity;
struct backend fixture_separate_backend;
uint32_t fixture_n_devices = 1;
static struct sort_device fixture_devices[FIXTURE_MAX_DEVICES];
static uint64_t separate_memory_nbytes;

static void get_separate_device_info(const struct device *device, struct device_info *ret_info)
{
	separate_memory_backend.get_info(device, ret_info);
	ret_info->unified = false;
	ret_info->memory_nbytes = separate_memory_nbytes;
}

static bool fixture_packs_on_device;

void job_plan(uint64_t input_nbytes, uint32_t n_input_runs)
{
	job.plan_request = (struct plan_request){
		.layout = &layout,
		.device = job_device(&job),
		.input_nbytes = input_nbytes,
		.n_threads = 2,
		.memory_nbytes = FIXTURE_MEMORY_NBYTES,
		.device_nbytes = job.device_info.memory_nbytes,
		.n_devices = job.n_devices,
		.n_input_runs = n_input_runs,
		.stores_encoded_keys = fixture_packs_on_device && layout.stores_elements,
	};
	plan_make(&job.plan_request, &job.plan);
}

static void open_fixture_devices(const struct backend *backend)
{
	const struct backend_config config = { .n_threads = 2, .n_sharers = 1 };

	job.devices = fixture_devices;
	for (; job.n_devices < fixture_n_devices; job.n_devices++) {
		struct sort_device *device = &fixture_devices[job.n_devices];

		*device = (struct sort_device){ .ordinal = job.n_devices,
						.stats_index = fixture_n_devices > 1 ?
								       job.n_devices + 1 :
								       0 };
		assert_int_equal(device_open(backend, &config, &device->device), 0);
		assert_int_equal(window_buffer_cache_open(&device->window_buffers), 0);
	}
	for (uint32_t i = 0; i < job.n_devices; i++)
		for (uint32_t j = 0; j < job.n_devices; j++)
			if (device_can_access(fixture_devices[i].device, fixture_devices[j].device))
				fixture_devices[i].peer_access_mask |= UINT64_C(1) << j;
	device_get_info(job_device(&job), &job.device_info);
}

void job_start(const char *type, bool unique, enum fixture_memory memory)
{
	static const char *const directories[] = { fixture_directory };
	struct key key;

	assert_int_equal(key_parse_type(type, &key), 0);
	assert_int_equal(layout_make_key_only(&key, &layout), 0);
	fixture_separate_backend = separate_memory_backend;
	fixture_separate_backend.get_info = get_separate_device_info;
	separate_memory_nbytes = FIXTURE_MEMORY_NBYTES;
	fixture_packs_on_device = memory == FIXTURE_PACKING_MEMORY;
	job = (struct job){
		.io = &faulty_calls,
		.layout = &layout,
		.unique = unique,
		.limit = UINT64_MAX,
	};
	open_fixture_devices(memory == FIXTURE_UNIFIED_MEMORY ? &backend_cpu :
								&fixture_separate_backend);
	assert_int_equal(spill_open(&faulty_calls, directories, 1, SPILL_UNLIMITED, 0, &job.spill),
			 0);
	if (fixture_packs_on_device)
		assert_int_equal(compression_open(&(struct compression_params){ COMPRESS_DELTA, 0 },
						  layout.stores_elements, &job.compression),
				 0);
	job_plan(PLAN_SIZE_UNKNOWN, 0);
	job.plan.block_nbytes = FIXTURE_BLOCK_NBYTES;
}

void job_stop(void)
{
	run_list_free(&fixture_run_list);
	spill_close(job.spill);
	compression_close(job.compression);
	for (uint32_t i = 0; i < job.n_devices; i++) {
		window_buffer_cache_close(fixture_devices[i].window_buffers);
		device_close(fixture_devices[i].device);
	}
	job = (struct job){ 0 };
	free(fixture_keys);
	fixture_keys = NULL;
	fixture_n_keys = fixture_keys_capacity = 0;
}

/* Keep the first of equal neighbours and return the number of keys left. */
static size_t remove_duplicates(encoded_key_t *keys, size_t n)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < n; i++)
		if (n_kept == 0 || keys[i] != keys[n_kept - 1])
			keys[n_kept++] = keys[i];
	return n_kept;
}

struct digest digest_encoded_keys(const encoded_key_t *keys, size_t n)
{
	struct digest digest = { 0 };
	unsigned char record[16];

	for (size_t i = 0; i < n; i++) {
		layout_decode(&layout, keys[i], record);
		digest_add(&digest,
			   (struct digest){ 1, digest_record(record, layout.record_nbytes) });
	}
	return digest;
}

void fixture_add_keys(const encoded_key_t *keys, size_t n)
{
	if (fixture_n_keys + n >= fixture_keys_capacity) {
		fixture_keys_capacity = 2 * (fixture_n_keys + n + 1);
		fixture_keys = realloc(fixture_keys, fixture_keys_capacity * sizeof *fixture_keys);
		assert_non_null(fixture_keys);
	}
	memcpy(fixture_keys + fixture_n_keys, keys, n * sizeof *keys);
	fixture_n_keys += n;
}

void *fixture_make_items(const encoded_key_t *keys, size_t n, bool as_elements)
{
	const size_t item_nbytes = as_elements ? layout.element_nbytes : layout.record_nbytes;
	char *items = malloc(n * item_nbytes + 1);

	assert_non_null(items);
	for (size_t i = 0; i < n; i++)
		if (as_elements)
			memcpy(items + i * item_nbytes, &keys[i], item_nbytes);
		else
			layout_decode(&layout, keys[i], items + i * item_nbytes);
	return items;
}

static void free_resident(void *owner)
{
	struct fixture_resident *resident = owner;

	device_free(fixture_devices[resident->device_index].device, MEMORY_DEVICE,
		    resident->elements, resident->nbytes);
	free(resident);
}

/* Resident runs so far; each goes to the next device. */
static size_t n_residents;

struct run *make_resident_run(const encoded_key_t *keys, size_t n)
{
	struct fixture_resident *resident = malloc(sizeof *resident);
	void *elements = fixture_make_items(keys, n, true);
	struct run *run;

	assert_non_null(resident);
	resident->nbytes = n * layout.element_nbytes + 1;
	resident->device_index = (uint32_t)(n_residents++ % job.n_devices);
	assert_int_equal(device_alloc(fixture_devices[resident->device_index].device, MEMORY_DEVICE,
				      resident->nbytes, &resident->elements),
			 0);
	memcpy(resident->elements, elements, n * layout.element_nbytes);
	free(elements);
	assert_int_equal(run_open_resident(&job,
					   (struct resident_buffer){
						   .device_index = resident->device_index,
						   .memory = resident->elements,
						   .n = n,
					   },
					   free_resident, resident, &run),
			 0);
	return run;
}

struct run *make_spilled_run_in_blocks(const encoded_key_t *keys, size_t n, uint32_t block_n_items)
{
	void *items = fixture_make_items(keys, n, layout.stores_elements);
	encoded_key_t *first_keys = malloc((n / block_n_items + 1) * sizeof *first_keys);
	struct run_file *file;
	struct run *run;

	assert_non_null(first_keys);
	for (size_t i = 0; i < n; i += block_n_items)
		first_keys[i / block_n_items] = keys[i];
	assert_int_equal(run_file_open(job.spill, job.compression, (uint32_t)layout.record_nbytes,
				       block_n_items, &file),
			 0);
	assert_int_equal(run_file_write(file, 0, items, NULL, n, first_keys), 0);
	run_file_finish(file);
	assert_int_equal(run_open_spilled(file, SPILLED_ITEMS, &run), 0);
	free(items);
	free(first_keys);
	return run;
}

static struct run *make_spilled_run(const encoded_key_t *keys, size_t n)
{
	return make_spilled_run_in_blocks(
		keys, n, run_file_block_n_items(job.plan.block_nbytes, layout.element_nbytes));
}

void add_run(enum tier tier, encoded_key_t *keys, size_t n)
{
	reference_sort_16(keys, n);
	if (job.unique)
		n = remove_duplicates(keys, n);
	fixture_add_keys(keys, n);
	assert_int_equal(run_list_add(&fixture_run_list, tier == TIER_RESIDENT ?
								 make_resident_run(keys, n) :
								 make_spilled_run(keys, n)),
			 0);
}

int recorded_output_write(void *context, const struct merged_window *merged)
{
	struct recorded_output *output = context;
	const size_t offset = merged->position * layout.record_nbytes;
	const size_t nbytes = merged->n_items * layout.record_nbytes;

	if (merged->number == output->failing_window)
		return -EDOM;
	SCOPED_LOCK(&output->lock);
	if (offset + nbytes > output->allocated_nbytes) {
		output->allocated_nbytes = 2 * (offset + nbytes);
		output->records = realloc(output->records, output->allocated_nbytes);
		assert_non_null(output->records);
	}
	memcpy(output->records + offset, merged->items, nbytes);
	output->n_items += merged->n_items;
	output->n_windows++;
	return 0;
}

void recorded_output_cancel(void *context)
{
	struct recorded_output *output = context;

	output->cancelled = true;
}

uint64_t fixture_windows_nbytes;
uint32_t fixture_n_partitions;

static void record_n_partitions(void *context, uint32_t n_partitions, uint32_t n_writers)
{
	(void)context;
	(void)n_writers;
	fixture_n_partitions = n_partitions;
}

int merge_fixture_runs(struct recorded_output *output, struct merge_result *ret_result)
{
	const struct sink sink = {
		.context = output,
		.takes_records = true,
		.stage = STAGE_WRITE,
		.item_nbytes = layout.record_nbytes,
		.write = recorded_output_write,
		.set_n_partitions = record_n_partitions,
		.cancel = recorded_output_cancel,
	};

	return merge_in_partitions(&job, fixture_run_list.runs, (uint32_t)fixture_run_list.n,
				   fixture_windows_nbytes, &sink, ret_result);
}

void check_merged_output(struct digest dropped, uint64_t *ret_n_windows)
{
	struct recorded_output output = { .lock = PTHREAD_MUTEX_INITIALIZER,
					  .failing_window = UINT64_MAX };
	struct merge_result result;
	struct digest total;
	size_t n = fixture_n_keys;
	void *expected;

	assert_int_equal(merge_fixture_runs(&output, &result), 0);
	total = result.totals.written;
	digest_add(&total, result.totals.dropped);
	digest_add(&total, dropped);
	assert_true(digest_equal(total, digest_encoded_keys(fixture_keys, fixture_n_keys)));

	reference_sort_16(fixture_keys, n);
	if (job.unique)
		n = remove_duplicates(fixture_keys, n);
	expected = fixture_make_items(fixture_keys, n, false);
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
