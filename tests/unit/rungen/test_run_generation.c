/*
 * test_run_generation - whatever the input, its runs hold all of it, in memory or spilled
 */
#include "src/rungen/run_generation.h"

#include "tests/support/job_fixture.h"

static struct ledger ledger;

/* The input of the job: a file, or a thread that writes into a pipe. */
static unsigned char *input_records;
static size_t input_nbytes;

static int finish(void **state)
{
	free(input_records);
	input_records = NULL;
	fixture_n_workers = 1;
	return fixture_finish(state);
}

typedef code_t number_fn(uint64_t i);

static code_t random_number(uint64_t i)
{
	return scramble(i, 1) >> 24;
}

static code_t few_numbers(uint64_t i)
{
	return scramble(i, 2) % 1000;
}

/* n records, that are to be sorted with a job for `type`. */
static void make_input(const char *type, bool unique, enum kind_of_memory memory, number_fn *number,
		       size_t n)
{
	code_t *codes = malloc((n + 1) * sizeof *codes);

	assert_non_null(codes);
	job_start(type, unique, memory);
	for (size_t i = 0; i < n; i++)
		codes[i] = number(i);
	remember_input(codes, n);
	input_records = items_of(codes, n, false);
	input_nbytes = n * layout.record_nbytes;
	free(codes);
}

static void open_input(const char *path)
{
	assert_int_equal(input_open(&faulty_calls, &path, 1, layout.record_nbytes, &job.input), 0);
	job_plan(input_total_nbytes(job.input), 0);
	job.plan.block_nbytes = SMALL_BLOCK_NBYTES;
	assert_int_equal(chunk_pool_open(&job, &job.pool), 0);
}

static void open_file(void)
{
	write_file(path_of("input"), input_records, input_nbytes);
	open_input(path_of("input"));
}

static int form(void)
{
	ledger = (struct ledger){ 0 };
	return form_runs(&job, job.pool, &store, &ledger);
}

static void close_input(void)
{
	struct input *input = job.input;

	run_store_free(&store);
	chunk_pool_close(job.pool);
	job_stop();
	input_close(input);
}

/* The runs hold the input: all of it was digested, and their merge is the input, sorted. */
static void check_runs(void)
{
	assert_int_equal(form(), 0);
	assert_true(digest_equal(ledger.read, digest_codes(all, n_all)));
	chunk_pool_trim(job.pool);
	check_output(ledger.dropped, NULL);
}

static void check_file(const char *type, bool unique, enum kind_of_memory memory, number_fn *number,
		       size_t n, size_t n_spilled_at_least, size_t n_spilled_at_most)
{
	size_t n_spilled;

	make_input(type, unique, memory, number, n);
	open_file();
	assert_int_equal(form(), 0);
	n_spilled = run_store_n_stored(&store);
	assert_in_range(n_spilled, n_spilled_at_least, n_spilled_at_most);
	assert_true(digest_equal(ledger.read, digest_codes(all, n_all)));
	chunk_pool_trim(job.pool);
	check_output(ledger.dropped, NULL);
	close_input();
	free(input_records);
	input_records = NULL;
}

static void input_that_fits_is_not_spilled(void **state)
{
	(void)state;
	check_file("u64", false, MEMORY_UNIFIED, random_number, 1, 0, 0);
	check_file("u64", false, MEMORY_UNIFIED, random_number, 30000, 0, 0);
	check_file("b5", false, MEMORY_UNIFIED, random_number, 30000, 0, 0);
}

/* The first `first` records are in runs already. */
static void check_rest(enum kind_of_memory memory, size_t n, size_t first)
{
	make_input("u64", false, memory, random_number, n);
	open_file();
	job.first_record = first;
	input_start_at(job.input, first * layout.record_nbytes);
	n_all -= first;
	memmove(all, all + first, n_all * sizeof *all);
	check_runs();
	close_input();
	free(input_records);
	input_records = NULL;
}

static void input_is_read_from_the_first_record_on(void **state)
{
	static const size_t firsts[] = { 1, 4095, 8192, 60001, 119999, 120000 };

	(void)state;
	for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
		check_rest(MEMORY_UNIFIED, 120000, firsts[i]);
		check_rest(MEMORY_APART, 120000, firsts[i]);
	}
}

static void empty_input_makes_no_runs(void **state)
{
	(void)state;
	make_input("u64", false, MEMORY_UNIFIED, random_number, 0);
	open_file();
	assert_int_equal(form(), 0);
	assert_int_equal(store.n, 0);
	close_input();
}

static void input_larger_than_memory_is_spilled(void **state)
{
	(void)state;
	check_file("u64", false, MEMORY_UNIFIED, random_number, 400003, 2, 40);
	check_file("u32", false, MEMORY_UNIFIED, few_numbers, 600011, 2, 40);
	check_file("b5", false, MEMORY_UNIFIED, random_number, 300007, 2, 40);
	check_file("u128", false, MEMORY_UNIFIED, random_number, 150001, 2, 40);
}

static void what_fits_at_the_end_stays_in_memory(void **state)
{
	(void)state;
	make_input("u64", false, MEMORY_UNIFIED, random_number, 500000);
	open_file();
	assert_int_equal(form(), 0);
	assert_int_equal(run_store_n_stored(&store), job.plan.n_spilled_runs);
	assert_in_range(run_store_n_resident(&store), job.plan.n_chunks / 4, job.plan.n_chunks);
	chunk_pool_trim(job.pool);
	check_output(ledger.dropped, NULL);
	close_input();
}

static void unique_drops_in_chunks_and_in_spilled_runs(void **state)
{
	(void)state;
	check_file("u64", true, MEMORY_UNIFIED, few_numbers, 400003, 1, 40);
	check_file("b3", true, MEMORY_UNIFIED, few_numbers, 30001, 0, 0);
}

static void memory_of_the_device_may_be_apart(void **state)
{
	(void)state;
	check_file("u64", false, MEMORY_APART, random_number, 1, 0, 0);
	check_file("u64", false, MEMORY_APART, random_number, 30000, 0, 0);
	check_file("u64", false, MEMORY_APART, random_number, 300007, 1, 40);
	check_file("b5", false, MEMORY_APART, random_number, 300007, 1, 40);
	check_file("b10", true, MEMORY_APART, few_numbers, 300001, 1, 40);
}

/* The CPU back end, which remembers what it was to give back. */
static struct backend backend_noting;
static struct discarded {
	char *memory;
	size_t nbytes;
} discarded[64];
static size_t n_discarded;

static void note_discarded(struct device *device, void *memory, size_t nbytes)
{
	assert_true(n_discarded < sizeof discarded / sizeof discarded[0]);
	discarded[n_discarded++] = (struct discarded){ memory, nbytes };
	backend_cpu.discard(device, memory, nbytes);
}

static size_t find_discarded(const char *memory)
{
	for (size_t i = 0; i < n_discarded; i++)
		if (discarded[i].memory == memory)
			return discarded[i].nbytes;
	return 0;
}

/* Form runs that -u makes shorter than their chunks. */
static void form_short_runs(size_t n)
{
	make_input("u64", true, MEMORY_UNIFIED, few_numbers, n);
	backend_noting = backend_cpu;
	backend_noting.discard = note_discarded;
	n_discarded = 0;
	job_device(&job)->backend = &backend_noting;
	open_file();
	assert_int_equal(form(), 0);
}

static void what_unique_leaves_of_a_chunk_is_given_back(void **state)
{
	(void)state;
	form_short_runs(30000);
	assert_true(job.plan.fits);
	assert_true(store.n > 1);
	for (size_t i = 0; i < store.n; i++) {
		const uint64_t nbytes = run_n_items(store.runs[i]) * layout.resident_nbytes;
		const char *rest = (const char *)run_memory(store.runs[i]) + nbytes;

		assert_in_range(nbytes, 8, 1000 * layout.resident_nbytes);
		assert_int_equal(find_discarded(rest), job.plan.chunk_nbytes - nbytes);
	}
	close_input();
}

static void chunks_that_are_used_again_are_kept(void **state)
{
	(void)state;
	form_short_runs(400003);
	assert_false(job.plan.fits);
	assert_int_equal(n_discarded, 0);
	close_input();
}

static code_t some_twice(uint64_t i)
{
	return scramble(i, 3) % 1000000;
}

/* Each has a part in it, and of what is with the others all comes by the host. */
static void check_device_totals(const struct stats *stats, bool reach)
{
	struct stats_totals totals;
	uint64_t n_nbytes = 0, n_chunks = 0;

	stats_get_totals((struct stats *)stats, &totals);
	for (uint32_t i = 0; i < job.n_workers; i++) {
		const struct device_totals *device = &totals.devices[i];

		assert_true(device->n_chunks > 0 && device->n_ranges > 0);
		assert_int_equal(device->peer_nbytes > 0, reach);
		assert_int_equal(device->away_nbytes > 0, !reach);
		n_nbytes += device->sorted_nbytes;
		n_chunks += device->n_chunks;
	}
	assert_int_equal(n_nbytes, input_nbytes);
	assert_in_range(n_chunks, input_nbytes / job.plan.chunk_nbytes,
			2 * input_nbytes / job.plan.chunk_nbytes);
	assert_int_equal(totals.devices[job.n_workers].n_chunks, 0);
}

/* What is spilled is merged by all, whatever becomes of it. */
static void check_spills(const char *type, bool unique, enum kind_of_memory memory, bool reach)
{
	const size_t n = 100001 + 150000 * fixture_n_workers;
	struct stats *stats;

	owned_memory_set(1, reach);
	make_input(type, unique, memory, some_twice, n);
	assert_int_equal(stats_open(NULL, &stats), 0);
	job.stats = stats;
	open_file();
	assert_int_equal(form(), 0);
	assert_true(run_store_n_stored(&store) > 0);
	for (uint32_t i = 0; i < job.n_workers; i++)
		assert_true(owned_memory_n_merges(job.workers[i].device) > 0);
	check_device_totals(stats, reach);
	chunk_pool_trim(job.pool);
	check_output(ledger.dropped, NULL);
	close_input();
	stats_close(stats);
	free(input_records);
	input_records = NULL;
}

static void several_devices_merge_what_is_spilled(void **state)
{
	(void)state;
	fixture_n_workers = 2;
	check_spills("u64", false, MEMORY_PACKING, true);
	check_spills("b8", true, MEMORY_APART, false);
	fixture_n_workers = 3;
	check_spills("u128", true, MEMORY_PACKING, false);
}

/*
 * A race of two devices is one of three, too, and ThreadSanitizer takes as long for each. Both are
 * compared in the other builds.
 */
#ifdef __SANITIZE_THREAD__
enum { LEAST_DEVICES = 3 };
#else
enum { LEAST_DEVICES = 2 };
#endif

static void several_devices_form_the_runs_that_one_does(void **state)
{
	(void)state;
	for (fixture_n_workers = LEAST_DEVICES; fixture_n_workers <= 3; fixture_n_workers++) {
		check_file("u64", false, MEMORY_APART, random_number, 1, 0, 0);
		check_file("u64", false, MEMORY_APART, random_number, 400001, 1, 40);
		check_file("b5", true, MEMORY_APART, few_numbers, 400001, 1, 40);
		check_file("u64", false, MEMORY_PACKING, random_number, 400001, 1, 40);
		check_rest(MEMORY_APART, 120000, 60001);
	}
	fixture_n_workers = 1;
}

/* Runs are with all of them, as many as there are chunks at most. */
static void check_balance(void)
{
	size_t n[MOST_WORKERS] = { 0 };

	for (size_t i = 0; i < store.n; i++)
		n[run_worker(store.runs[i])]++;
	for (uint32_t i = 0; i < job.n_workers; i++)
		assert_in_range(n[i], 1, job.plan.n_chunks / job.n_workers);
}

static void several_devices_hold_what_one_has_no_room_for(void **state)
{
	enum { N = 500000, EACH_NBYTES = 4 << 20 };

	(void)state;
	for (fixture_n_workers = 1; fixture_n_workers <= 3; fixture_n_workers += 2) {
		make_input("u64", false, MEMORY_APART, random_number, N);
		job.info.memory_nbytes = EACH_NBYTES;
		open_file();
		check_runs();
		assert_int_equal(job.plan.fits, fixture_n_workers > 1);
		if (job.plan.fits) {
			assert_int_equal(run_store_n_stored(&store), 0);
			check_balance();
		}
		close_input();
		free(input_records);
		input_records = NULL;
	}
}

static void a_chunk_is_taken_of_who_has_the_fewest_to_sort(void **state)
{
	static const uint32_t in_turn[] = { 0, 1, 0, 1 };
	struct chunk *chunks[4], *next;

	(void)state;
	fixture_n_workers = 2;
	make_input("u64", false, MEMORY_APART, random_number, 100000);
	open_file();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(chunk_pool_take(job.pool, &chunks[i]), 0);
		assert_int_equal(chunks[i]->worker, in_turn[i]);
	}
	/* What is sorted is not pending, though it is not free. */
	assert_int_equal(chunk_pool_collect(chunks[1]), 0);
	assert_int_equal(chunk_pool_collect(chunks[3]), 0);
	assert_int_equal(chunk_pool_take(job.pool, &next), 0);
	assert_int_equal(next->worker, 1);
	chunk_pool_put(next);
	for (int i = 0; i < 4; i++)
		chunk_pool_put(chunks[i]);
	close_input();
}

static void *write_into_pipe(void *argument)
{
	FILE *file = fopen(argument, "w");

	if (!file || fwrite(input_records, 1, input_nbytes, file) != input_nbytes)
		abort();
	fclose(file);
	return NULL;
}

static void check_pipe(enum kind_of_memory memory, size_t n, bool spills)
{
	const char *path = path_of("pipe");
	pthread_t writer;

	make_input("u64", false, memory, random_number, n);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_into_pipe, (void *)path), 0);
	open_input(path);
	assert_int_equal(job.plan.input_nbytes, PLAN_SIZE_UNKNOWN);
	check_runs();
	assert_true((run_store_n_stored(&store) > 0) == spills);
	pthread_join(writer, NULL);
	close_input();
	unlink(path);
	free(input_records);
	input_records = NULL;
}

static void pipe_of_unknown_length_is_read(void **state)
{
	(void)state;
	check_pipe(MEMORY_UNIFIED, 1, false);
	check_pipe(MEMORY_UNIFIED, 30000, false);
	check_pipe(MEMORY_UNIFIED, 300007, true);
	check_pipe(MEMORY_APART, 1, false);
	check_pipe(MEMORY_APART, 300007, true);
}

/* The input ends where chunks do, so the end shows only when one more has been asked for. */
static void pipe_may_end_with_a_chunk(void **state)
{
	(void)state;
	for (int memory = MEMORY_UNIFIED; memory <= MEMORY_PACKING; memory++) {
		uint64_t chunk_records;

		job_start("u64", false, (enum kind_of_memory)memory);
		chunk_records = job.plan.chunk_records;
		job_stop();
		check_pipe((enum kind_of_memory)memory, 3 * chunk_records, false);
		check_pipe((enum kind_of_memory)memory, 40 * chunk_records, true);
	}
}

/* Everybody must come to an end, whoever waits for whom. */
static void check_failure(enum kind_of_memory memory, int expected)
{
	const int r = form();

	if (r != expected)
		fail_msg("%s, not %s (memory %d): %s", strerror(-r), strerror(-expected), memory,
			 messages_last());
	close_input();
	free(input_records);
	input_records = NULL;
	messages_reset(true);
}

static void input_that_fails_ends_it(void **state)
{
	(void)state;
	for (int memory = MEMORY_UNIFIED; memory <= MEMORY_PACKING; memory++) {
		make_input("u64", false, (enum kind_of_memory)memory, random_number, 300007);
		open_file();
		faults.transfer_errno = EIO;
		check_failure((enum kind_of_memory)memory, -EIO);
		faults.transfer_errno = 0;
	}
}

static void input_that_was_cut_ends_it(void **state)
{
	(void)state;
	for (int memory = MEMORY_UNIFIED; memory <= MEMORY_PACKING; memory++) {
		make_input("u64", false, (enum kind_of_memory)memory, random_number, 300007);
		open_file();
		assert_int_equal(truncate(path_of("input"), (off_t)input_nbytes / 2), 0);
		assert_true(form() < 0);
		assert_non_null(strstr(messages_last(), "input"));
		close_input();
		free(input_records);
		input_records = NULL;
		messages_reset(true);
	}
}

static void full_disk_ends_it(void **state)
{
	(void)state;
	for (int memory = MEMORY_UNIFIED; memory <= MEMORY_PACKING; memory++) {
		make_input("u64", false, (enum kind_of_memory)memory, random_number, 300007);
		open_file();
		faults.marked_directory = fixture_directory;
		faults.marked_errno = ENOSPC;
		check_failure((enum kind_of_memory)memory, -ENOSPC);
	}
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(input_that_fits_is_not_spilled),
		FIXTURE(input_is_read_from_the_first_record_on),
		FIXTURE(empty_input_makes_no_runs),
		FIXTURE(input_larger_than_memory_is_spilled),
		FIXTURE(what_fits_at_the_end_stays_in_memory),
		FIXTURE(unique_drops_in_chunks_and_in_spilled_runs),
		FIXTURE(memory_of_the_device_may_be_apart),
		FIXTURE(several_devices_form_the_runs_that_one_does),
		FIXTURE(several_devices_merge_what_is_spilled),
		FIXTURE(several_devices_hold_what_one_has_no_room_for),
		FIXTURE(a_chunk_is_taken_of_who_has_the_fewest_to_sort),
		FIXTURE(what_unique_leaves_of_a_chunk_is_given_back),
		FIXTURE(chunks_that_are_used_again_are_kept),
		FIXTURE(pipe_of_unknown_length_is_read),
		FIXTURE(pipe_may_end_with_a_chunk),
		FIXTURE(input_that_fails_ends_it),
		FIXTURE(input_that_was_cut_ends_it),
		FIXTURE(full_disk_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
