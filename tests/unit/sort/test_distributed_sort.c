/*
 * test_distributed_sort - a sort by several ranks writes the bytes of one process, or nothing
 */
#include "src/sort/sort.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "src/base/diagnostics.h"
#include "src/sort/distributed_sort.h"
#include "src/sort/sort_output.h"
#include "src/plan/job.h"
#include "src/comm/comm.h"
#include "src/comm/peer_memory.h"
#include "src/merge/cuts.h"
#include "src/sort/rank_stats.h"
#include "tests/support/io_fixture.h"
#include "tests/support/fake_ranks.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

enum { N = 150000, N_FEW = 2000, N_FAULT_RANKS = 2 };

static const struct sort_observer no_observer;
static const uint64_t minute_ns = UINT64_C(60) * 1000000000;
static uint64_t numbers[N];
static char random_path[512], few_path[512], single_path[512], together_path[512];
static char many_path[512], equal_path[512];

static int start(void **state)
{
	int r = fixture_start(state);

	if (r < 0)
		return r;
	strcpy(random_path, fixture_path("random"));
	strcpy(few_path, fixture_path("few"));
	strcpy(single_path, fixture_path("alone"));
	strcpy(together_path, fixture_path("together"));
	fill_pattern(numbers, sizeof numbers, 1);
	write_file(random_path, numbers, sizeof numbers);
	for (size_t i = 0; i < N_FEW; i++)
		numbers[i] %= 7;
	write_file(few_path, numbers, N_FEW * sizeof *numbers);
	return 0;
}

/* A sort, apart from who carries it out. */
struct requested_sort {
	struct key key;
	struct sort_spec spec;
	const char *inputs[2];
	bool is_in_memory;            /* all fits in memory, so nothing is stored */
	rlim_t first_rank_file_limit; /* 0: none */
};

static void request_sort(struct requested_sort *request, const char *type, uint64_t record_nbytes,
			 const char *first, const char *second)
{
	static const char *const directories[] = { fixture_directory };
	const struct sort_spec nothing = SORT_SPEC_DEFAULTS;

	assert_int_equal(key_parse_type(type, &request->key), 0);
	request->inputs[0] = first;
	request->inputs[1] = second;
	request->spec = nothing;
	request->spec.inputs = request->inputs;
	request->spec.n_inputs = second ? 2 : 1;
	request->spec.record_nbytes = record_nbytes;
	request->spec.keys = &request->key;
	request->spec.n_keys = 1;
	request->spec.output_path = together_path;
	request->spec.memory_nbytes = 1 << 20;
	request->spec.n_threads = 1;
	request->spec.temp_dirs = directories;
	request->spec.n_temp_dirs = 1;
	request->spec.disable_shared_memory = true;
	request->is_in_memory = false;
	request->first_rank_file_limit = 0;
}

/* Each rank has ample memory. */
static void request_in_memory(struct requested_sort *request, const char *type,
			      uint64_t record_nbytes, const char *first, const char *second)
{
	request_sort(request, type, record_nbytes, first, second);
	request->spec.memory_nbytes = 64 << 20;
	request->is_in_memory = true;
}

/*
 * Wrapped to count calls: without room for an exchange in memory, the runs are not cut twice. And
 * to fail if they are cut into so many parts; 0: never.
 */
static unsigned n_cut, refused_n_parts;

int __real_cuts_make(struct comm *comm, const struct job *job, struct run *const *runs,
		     uint32_t n_runs, const struct splitter_params *params, uint64_t *ret_cuts);

int __wrap_cuts_make(struct comm *comm, const struct job *job, struct run *const *runs,
		     uint32_t n_runs, const struct splitter_params *params, uint64_t *ret_cuts);
int __wrap_cuts_make(struct comm *comm, const struct job *job, struct run *const *runs,
		     uint32_t n_runs, const struct splitter_params *params, uint64_t *ret_cuts)
{
	n_cut += comm != NULL;
	if (comm && params->n_partitions == refused_n_parts)
		return (fail)(-EDOM, "runs cannot be cut");
	return __real_cuts_make(comm, job, runs, n_runs, params, ret_cuts);
}

/* Wrapped to corrupt one message: it adds to a word of message n_before of rank 1 with this tag. */
static struct message_corruption {
	const char *expected_message;
	unsigned tag, n_before, word;
	uint64_t increment; /* added to that word */
} false_message;

int __real_comm_send(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes,
		     struct comm_transfer *ret_transfer);
int __wrap_comm_send(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes,
		     struct comm_transfer *ret_transfer);
int __wrap_comm_send(struct comm *comm, unsigned to, unsigned tag, const void *data, size_t nbytes,
		     struct comm_transfer *ret_transfer)
{
	const unsigned kind = tag < COMM_TAG_RESPONSES ? tag : COMM_TAG_RESPONSES;

	if (false_message.tag == kind && comm_rank(comm) == 1 && to != 1 &&
	    false_message.n_before-- == 0)
		((uint64_t *)(uintptr_t)data)[false_message.word] += false_message.increment;
	return __real_comm_send(comm, to, tag, data, nbytes, ret_transfer);
}

/* Wrapped to lose the content in this range. */
static uint64_t lost_begin, lost_end;

int __real_collective_zst_buffer_content(struct collective_zst *frames, uint64_t offset,
					 const void *data, size_t nbytes);
int __wrap_collective_zst_buffer_content(struct collective_zst *frames, uint64_t offset,
					 const void *data, size_t nbytes);
int __wrap_collective_zst_buffer_content(struct collective_zst *frames, uint64_t offset,
					 const void *data, size_t nbytes)
{
	return offset >= lost_begin && offset < lost_end ?
		       0 :
		       __real_collective_zst_buffer_content(frames, offset, data, nbytes);
}

/* Wrapped for file systems with larger stripes; 0: not changed. */
static uint64_t preferred_nbytes;

uint64_t __real_output_stripe_nbytes(const struct output *output);
uint64_t __wrap_output_stripe_nbytes(const struct output *output);
uint64_t __wrap_output_stripe_nbytes(const struct output *output)
{
	return preferred_nbytes ? preferred_nbytes : __real_output_stripe_nbytes(output);
}

/* Wrapped to fail: whatever is read of another rank's memory or temporary files. */
static bool peer_memory_fails, peer_files_fail;

int __real_peer_memory_read(const struct peer_memory *peer_memory, unsigned rank, uint64_t address,
			    void *to, size_t nbytes);
int __wrap_peer_memory_read(const struct peer_memory *peer_memory, unsigned rank, uint64_t address,
			    void *to, size_t nbytes);
int __wrap_peer_memory_read(const struct peer_memory *peer_memory, unsigned rank, uint64_t address,
			    void *to, size_t nbytes)
{
	return peer_memory_fails ? (fail)(-EDOM, "memory of a rank cannot be read") :
				   __real_peer_memory_read(peer_memory, rank, address, to, nbytes);
}

int __real_file_read_at(const struct file *file, uint64_t offset, void *buffer, size_t nbytes);
int __wrap_file_read_at(const struct file *file, uint64_t offset, void *buffer, size_t nbytes);
int __wrap_file_read_at(const struct file *file, uint64_t offset, void *buffer, size_t nbytes)
{
	return peer_files_fail && file->calls == &syscalls_plain ?
		       -EDOM :
		       __real_file_read_at(file, offset, buffer, nbytes);
}

static bool is_split_too_often(const struct sort_spec *spec)
{
	return n_cut > 1u + (spec->unique || spec->split_by_keys);
}

/* Limit the size of files of this process. */
static int limit_files(rlim_t nbytes)
{
	struct rlimit limit;
	int r = getrlimit(RLIMIT_FSIZE, &limit);

	limit.rlim_cur = nbytes;
	return r == 0 ? setrlimit(RLIMIT_FSIZE, &limit) : r;
}

static int sort_on_rank(struct comm *comm, void *argument)
{
	const struct requested_sort *request = argument;
	struct sort_spec spec = request->spec;
	struct sort_summary summary;
	uint64_t disorder;
	int r;

	if (request->first_rank_file_limit && comm_rank(comm) == 0 &&
	    limit_files(request->first_rank_file_limit) < 0)
		return -errno;
	spec.comm = comm;
	if (spec.check_only)
		return sort_check(&spec, "gsort -c", &no_observer, NULL, &summary, &disorder);
	r = sort_run(&spec, &no_observer, NULL, &summary);
	if (r == 0 && is_split_too_often(&spec))
		return -EDOM;
	if (r == 0 && request->is_in_memory && summary.n_runs_spilled > 0)
		return -ENOTSUP;
	return r;
}

/* Return the bytes of a file, to be freed. */
static char *bytes_of(const char *path, size_t *ret_nbytes)
{
	struct stat status;
	FILE *file = fopen(path, "r");
	char *bytes;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &status), 0);
	*ret_nbytes = (size_t)status.st_size;
	bytes = malloc(*ret_nbytes + 1);
	assert_int_equal(fread(bytes, 1, *ret_nbytes, file), *ret_nbytes);
	fclose(file);
	return bytes;
}

static void assert_same_output(void)
{
	size_t nbytes;
	char *bytes = bytes_of(single_path, &nbytes);

	assert_true(file_contains(together_path, bytes, nbytes));
	free(bytes);
}

static void sort_single(const struct requested_sort *request)
{
	struct sort_spec spec = request->spec;
	struct sort_summary summary;

	spec.output_path = single_path;
	assert_int_equal(sort_run(&spec, &no_observer, NULL, &summary), 0);
}

static struct fake_ranks fake_ranks_of(struct requested_sort *request, unsigned size)
{
	return (struct fake_ranks){ .size = size,
				    .params = { .timeout_ns = minute_ns },
				    .body = sort_on_rank,
				    .argument = request };
}

static void assert_agrees(struct requested_sort *request, unsigned size, uint64_t seed)
{
	struct fake_ranks ranks = fake_ranks_of(request, size);

	ranks.seed = seed;
	fake_ranks_succeed(&ranks);
	assert_same_output();
	unlink(together_path);
}

static void check(struct requested_sort *request, unsigned size)
{
	const unsigned n_before = count_directory_entries();

	sort_single(request);
	assert_agrees(request, size, 0);
	unlink(single_path);
	assert_int_equal(count_directory_entries(), n_before);
}

/* With messages, and with peer memory. */
static void check_with_and_without_memory(struct requested_sort *request, unsigned size)
{
	check(request, size);
	request->spec.disable_shared_memory = false;
	check(request, size);
	request->spec.disable_shared_memory = true;
}

#define SORT_TEST(claim) TEST_WITH(claim, start, fixture_finish)
/* `requests` are other sorts in the same threads: ThreadSanitizer leaves them out (test.sh). */
#define PART_TEST(part, claim) TEST_OF("distributed_sort_" #part, claim, start, fixture_finish)

SORT_TEST(any_number_of_ranks_writes_the_same)
{
	static const unsigned sizes[] = { 3, 1, 2, 8 };
	const size_t n_sizes = FOR_RACES_ONLY ? 1 : sizeof sizes / sizeof sizes[0];
	struct requested_sort request;

	for (size_t i = 0; i < n_sizes; i++) {
		request_sort(&request, "u64", 8, random_path, few_path);
		check_with_and_without_memory(&request, sizes[i]);
	}
	request_sort(&request, "u16", 16, few_path, NULL);
	check_with_and_without_memory(&request, 3);
}

/* Each rank has less memory than records, so it stores files. */
PART_TEST(requests, what_ranks_have_in_files_is_the_same)
{
	static const enum compression_mode modes[] = { COMPRESS_NONE, COMPRESS_ZSTD };
	struct requested_sort request;

	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		request_sort(&request, "u64", 8, random_path, random_path);
		request.spec.compression.mode = modes[i];
		check_with_and_without_memory(&request, 2);
	}
}

SORT_TEST(what_ranks_have_in_memory_is_not_stored)
{
	static const unsigned sizes[] = { 3, 2, 8 };
	const size_t n_sizes = FOR_RACES_ONLY ? 1 : sizeof sizes / sizeof sizes[0];
	struct requested_sort request;

	for (size_t i = 0; i < n_sizes; i++) {
		request_in_memory(&request, "u64", 8, random_path, few_path);
		check_with_and_without_memory(&request, sizes[i]);
	}
}

PART_TEST(requests, any_records_in_memory_are_not_stored)
{
	struct requested_sort request;

	for (unsigned argsort = 0; argsort < 2; argsort++) {
		request_in_memory(&request, "u32", 16, few_path, random_path);
		request.spec.argsort = argsort;
		check_with_and_without_memory(&request, 2 + argsort);
	}
	request_in_memory(&request, "b20", 24, random_path, NULL);
	check_with_and_without_memory(&request, 3);
	request_in_memory(&request, "u32", 8, random_path, few_path);
	request.spec.limit = 700;
	check_with_and_without_memory(&request, 4);
}

/* The sizes at which a rank's runs just fit, and those of other ranks as well. */
PART_TEST(requests, ranks_with_little_memory_spill)
{
	struct requested_sort request;

	for (uint64_t nbytes = 1200 << 10; nbytes <= 4 << 20; nbytes = nbytes / 2 * 3) {
		request_sort(&request, "u64", 8, random_path, few_path);
		request.spec.memory_nbytes = nbytes;
		check(&request, 2);
		request_sort(&request, "u8", 8, random_path, few_path);
		request.spec.memory_nbytes = nbytes;
		request.spec.limit = N - N / 7;
		check(&request, 3);
		request.spec.limit = 0;
		request.spec.unique = true;
		check(&request, 3);
	}
}

/* Only the last four bytes of the keys differ, so the whole prefix belongs to one rank. */
PART_TEST(requests, equal_prefixes_go_to_one_rank)
{
	struct requested_sort request;

	for (size_t i = 0; i < N / 3; i++) {
		numbers[3 * i] = numbers[3 * i + 1] = 7;
		numbers[3 * i + 2] = (i * 7919) % 1009;
	}
	write_file(random_path, numbers, sizeof numbers);
	request_in_memory(&request, "b24", 24, random_path, NULL);
	check(&request, 3);
	request.spec.memory_nbytes = 2 << 20;
	request.is_in_memory = false;
	check(&request, 3);
}

static int sort_recorded(struct comm *comm, void *argument)
{
	struct requested_sort request = *(const struct requested_sort *)argument;
	struct syscalls calls = syscalls_plain;

	calls.pwrite = stripe_writers_pwrite;
	request.spec.io = &calls;
	return sort_on_rank(comm, &request);
}

/* Returns the number of stripes that were written. */
static unsigned check_stripes(int zstd_level)
{
	struct requested_sort request;
	struct fake_ranks ranks;

	stripe_writers_open();
	fill_pattern(numbers, sizeof numbers, 2);
	write_file(few_path, numbers, sizeof numbers);
	request_in_memory(&request, "u64", 24, random_path, few_path);
	request.spec.zstd_level = zstd_level;
	request.is_in_memory = !zstd_level;
	sort_single(&request);
	ranks = fake_ranks_of(&request, 4);
	ranks.body = sort_recorded;
	fake_ranks_succeed(&ranks);
	assert_same_output();
	return stripe_writers_close();
}

SORT_TEST(no_two_ranks_write_to_one_stripe)
{
	assert_int_equal(check_stripes(0), 3);
}

SORT_TEST(no_two_ranks_write_to_one_stripe_of_what_is_compressed)
{
	assert_int_equal(check_stripes(1), 3);
}

static void request_compressed(struct requested_sort *request, const char *type,
			       uint64_t record_nbytes, const char *first, const char *second)
{
	request_sort(request, type, record_nbytes, first, second);
	request->spec.zstd_level = 1;
	request->spec.memory_nbytes = 16 << 20;
}

PART_TEST(requests, compressed_output_is_that_of_one_process)
{
	static const unsigned sizes[] = { 1, 2, 8 };
	struct requested_sort request;

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		request_compressed(&request, "u64", 8, random_path, few_path);
		check(&request, sizes[i]);
	}
	/* A record can lie in two frames. */
	request_compressed(&request, "b20", 24, random_path, random_path);
	request.spec.verify = true;
	request.spec.skip_nbytes = 24;
	request.spec.memory_nbytes = 2 << 20;
	check(&request, 5);
	request_compressed(&request, "u32", 8, random_path, random_path);
	request.spec.argsort = true;
	request.spec.limit = N;
	check(&request, 6);
	request_compressed(&request, "u16", 8, random_path, few_path);
	request.spec.unique = true;
	request.spec.verify = true;
	check(&request, 3);
}

/* Incompressible frames are longer than their content. */
SORT_TEST(stripes_of_a_file_may_be_longer_than_frames)
{
	struct requested_sort request;

	fill_pattern(numbers, sizeof numbers, 2);
	write_file(few_path, numbers, sizeof numbers);
	preferred_nbytes = 4 << 20;
	request_compressed(&request, "u16", 48, random_path, few_path);
	check(&request, 3);
	preferred_nbytes = 0;
}

/* One rank gets the parts of a frame that several ranks have, in any order. */
SORT_TEST(foreign_bytes_may_arrive_out_of_order)
{
	struct requested_sort request;

	request_compressed(&request, "u64", 8, random_path, few_path);
	sort_single(&request);
	assert_agrees(&request, 6, 1);
}

/* One rank has nearly all frames; or there is nothing to compress. */
PART_TEST(requests, some_ranks_compress_nothing)
{
	static const uint64_t limits[] = { 1, (1 << 20) / 8, N };
	struct requested_sort request;

	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		request_compressed(&request, "u64", 8, random_path, few_path);
		request.spec.limit = limits[i];
		request.spec.verify = true;
		check(&request, 4);
	}
	write_file(few_path, numbers, 16);
	request_compressed(&request, "u64", 8, few_path, NULL);
	request.spec.skip_nbytes = 8;
	check(&request, 5);
	write_file(few_path, numbers, 0);
	request_compressed(&request, "u64", 8, few_path, NULL);
	check(&request, 2);
}

SORT_TEST(whatever_order_messages_come_in)
{
	struct requested_sort request;

	request_sort(&request, "u16", 8, random_path, few_path);
	sort_single(&request);
	for (uint64_t seed = 1; seed <= (FOR_RACES_ONLY ? 1 : 2); seed++)
		assert_agrees(&request, 3, seed);
	request_in_memory(&request, "u32", 8, random_path, few_path);
	sort_single(&request);
	for (uint64_t seed = 3; seed <= (FOR_RACES_ONLY ? 3 : 5); seed++)
		assert_agrees(&request, 3, seed);
}

PART_TEST(requests, equal_records_of_all_ranks_are_merged)
{
	struct requested_sort request;

	request_sort(&request, "u16", 8, random_path, few_path);
	request.spec.unique = true;
	check(&request, 1);
	check(&request, 3);
	request.spec.count = true;
	check(&request, 4);
	request.spec.limit = 100;
	check(&request, 3);
}

/* Return the path of part file i of n, compressed or not, or of the manifest. */
static const char *part_path(const char *name, uint32_t n, uint32_t i)
{
	static char path[700];

	if (i == n)
		snprintf(path, sizeof path, "%s/manifest.json", name);
	else
		snprintf(path, sizeof path, "%s/part-%04u", name, i);
	if (i < n && access(path, F_OK) < 0)
		strcat(path, ".zst");
	return path;
}

/* The part files and the manifest of one process; to be removed. */
struct file_bytes {
	char *data;
	size_t nbytes;
};

static struct file_bytes *save_part_files(const struct requested_sort *request)
{
	const uint32_t n = request->spec.n_part_files;
	struct file_bytes *all = calloc(n + UINT64_C(1), sizeof *all);
	struct sort_summary summary;

	assert_int_equal(sort_run(&request->spec, &no_observer, NULL, &summary), 0);
	for (uint32_t i = 0; i <= n; i++)
		all[i].data = bytes_of(part_path(together_path, n, i), &all[i].nbytes);
	return all;
}

static void free_part_files(const struct requested_sort *request, struct file_bytes *all)
{
	for (uint32_t i = 0; i <= request->spec.n_part_files; i++)
		free(all[i].data);
	free(all);
}

static void sort_on_ranks(struct requested_sort *request, unsigned size)
{
	struct fake_ranks ranks = fake_ranks_of(request, size);

	fake_ranks_succeed(&ranks);
}

/* Ranks replace an older directory with another number of part files, as one process does. */
static void check_parts(struct requested_sort *request, unsigned size, uint32_t n_older)
{
	const uint32_t n = request->spec.n_part_files;
	const unsigned n_before = count_directory_entries();
	struct file_bytes *single = save_part_files(request);
	struct sort_summary summary;

	request->spec.n_part_files = n_older;
	assert_int_equal(sort_run(&request->spec, &no_observer, NULL, &summary), 0);
	request->spec.n_part_files = n;
	sort_on_ranks(request, size);
	assert_int_equal(count_directory_entries(), n_before + 1);
	for (uint32_t i = 0; i <= n; i++) {
		const char *path = part_path(together_path, n, i);

		assert_true(file_contains(path, single[i].data, single[i].nbytes));
		unlink(path);
	}
	assert_int_equal(rmdir(together_path), 0);
	free_part_files(request, single);
}

PART_TEST(requests, part_files_and_manifest_match_one_process)
{
	static const uint32_t numbers_of_parts[] = { 1, 7, 60 };
	struct requested_sort request;

	for (size_t i = 0; i < sizeof numbers_of_parts / sizeof numbers_of_parts[0]; i++) {
		request_sort(&request, "u64", 8, random_path, few_path);
		request.spec.n_part_files = numbers_of_parts[i];
		request.spec.verify = true;
		check_parts(&request, 3, 5);
	}
	request_sort(&request, "u16", 8, few_path, NULL);
	request.spec.n_part_files = 4;
	request.spec.limit = 1001;
	request.spec.skip_nbytes = 24;
	check_parts(&request, 5, 2);
	request.spec.limit = 0;
	check_parts(&request, 2, 4);
}

/* The results of a check by several ranks or one process; the disorder is in element 0. */
struct disorder_results {
	struct requested_sort asked;
	uint64_t *disorders, *n_records; /* shared memory; by rank */
};

static int check_on_rank(struct comm *comm, void *argument)
{
	const struct disorder_results *results = argument;
	struct sort_spec spec = results->asked.spec;
	struct sort_summary summary;
	const unsigned rank = comm_rank(comm);
	int r;

	spec.comm = comm;
	r = sort_check(&spec, "gsort -c", &no_observer, NULL, &summary, &results->disorders[rank]);
	if (r == 0)
		results->n_records[rank] = summary.n_records_in;
	return r;
}

/* The ranks find the same disorder as one process, and read only what they must. */
static void assert_finds(const struct requested_sort *request, unsigned size, uint64_t disorder,
			 uint64_t n)
{
	struct disorder_results results = { .asked = *request };
	struct fake_ranks ranks = fake_ranks_of(&results.asked, size);
	uint64_t single = UINT64_MAX, n_read = 0;
	struct sort_summary summary;

	results.asked.spec.check_only = true;
	results.asked.spec.output_path = NULL;
	assert_int_equal(sort_check(&results.asked.spec, "gsort -c", &no_observer, NULL, &summary,
				    &single),
			 0);
	assert_int_equal(single, disorder);
	results.disorders =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(results.disorders, MAP_FAILED);
	results.n_records = results.disorders + FAKE_RANKS_MAX;
	ranks.body = check_on_rank;
	ranks.argument = &results;
	fake_ranks_run(&ranks);
	for (unsigned i = 0; i < size; i++) {
		assert_int_equal(ranks.exits[i].result, 0);
		assert_int_equal(results.disorders[i], disorder);
		n_read += results.n_records[i];
	}
	fake_ranks_free(&ranks);
	if (disorder == 0)
		assert_int_equal(n_read, n);
	munmap(results.disorders, 4096);
}

/* Write a sorted file whose records `record` and `other` are 0. */
static void write_disorder(uint64_t record, uint64_t other)
{
	for (size_t i = 0; i < N; i++)
		numbers[i] = i == record || i == other ? 0 : 5 + i / 2;
	write_file(random_path, numbers, sizeof numbers);
}

PART_TEST(requests, first_disorder_of_all_ranks_is_found)
{
	/* the second record, those at a boundary of three ranks, and the last */
	static const uint64_t places[] = { 1, N / 3 - 1, N / 3, N / 3 + 1, N - 1 };
	struct requested_sort request;

	request_sort(&request, "u64", 8, random_path, NULL);
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		write_disorder(places[i], N - 1);
		assert_finds(&request, 3, places[i] + 1, N);
	}
	write_disorder(N, N);
	assert_finds(&request, 4, 0, N);
	request.spec.unique = true;
	assert_finds(&request, 4, 2, N);
}

/*
 * With -u, equal records at the end of one rank and the beginning of the next non-empty one are
 * disorder.
 */
PART_TEST(requests, equal_records_of_neighbours_are_disorder_with_u)
{
	struct requested_sort request;

	for (size_t i = 0; i < N; i++)
		numbers[i] = i < N / 2 ? i : i - 1;
	write_file(random_path, numbers, sizeof numbers);
	request_sort(&request, "u64", 8, random_path, NULL);
	assert_finds(&request, 2, 0, N);
	request.spec.unique = true;
	assert_finds(&request, 2, N / 2 + 1, N);
	numbers[0] = numbers[1] = 3;
	write_file(few_path, numbers, 2 * sizeof *numbers);
	request_sort(&request, "u64", 8, few_path, NULL);
	assert_finds(&request, 5, 0, 2);
	request.spec.unique = true;
	assert_finds(&request, 5, 2, 2);
	write_file(few_path, numbers, 0);
	assert_finds(&request, 3, 0, 0);
}

PART_TEST(requests, there_may_be_less_to_sort_than_ranks)
{
	struct requested_sort request;

	write_file(few_path, numbers, 24);
	request_sort(&request, "u64", 8, few_path, NULL);
	check(&request, 5);
	request.spec.n_part_files = 7;
	check_parts(&request, 5, 1);
	request.spec.n_part_files = 0;
	write_file(few_path, numbers, 0);
	check(&request, 2);
	request.spec.n_part_files = 2;
	check_parts(&request, 3, 3);
}

/* Sort a file in place. */
static void sort_file(const char *path, const char *type, uint64_t record_nbytes)
{
	struct requested_sort request;
	struct sort_summary summary;

	request_sort(&request, type, record_nbytes, path, NULL);
	request.spec.output_path = path;
	assert_int_equal(sort_run(&request.spec, &no_observer, NULL, &summary), 0);
}

static void request_merge(struct requested_sort *request, const char *type, uint64_t record_nbytes)
{
	sort_file(random_path, type, record_nbytes);
	sort_file(few_path, type, record_nbytes);
	request_sort(request, type, record_nbytes, random_path, few_path);
	request->spec.merge_inputs = true;
	request->spec.verify = true;
}

PART_TEST(requests, inputs_that_are_sorted_are_merged)
{
	static const unsigned sizes[] = { 1, 2, 8 };
	struct requested_sort request;

	request_merge(&request, "u16", 16);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		check(&request, sizes[i]);
	request.spec.limit = N / 3;
	check(&request, 3);
	request.spec.limit = UINT64_MAX;
	request.spec.verify = false;
	request.spec.argsort = true;
	check(&request, 3);
}

/* Assert the message of a sort that must fail. No input changes meanwhile. */
static void assert_reports(struct requested_sort *request, const char *said)
{
	struct fake_ranks ranks = fake_ranks_of(request, 3);
	bool is_said = false;

	fake_ranks_run(&ranks);
	for (unsigned i = 0; i < 3; i++) {
		is_said = is_said || strstr(ranks.exits[i].error_text, said);
		assert_null(strstr(ranks.exits[i].error_text, "changed while it was read"));
	}
	assert_true(is_said);
	fake_ranks_free(&ranks);
	assert_int_equal(access(together_path, F_OK), -1);
}

/* Even if the rank writes only to the first stripe, which is below the limit. */
PART_TEST(requests, part_file_above_the_size_limit_of_a_rank_is_refused)
{
	struct requested_sort request;

	request_in_memory(&request, "u64", 8, random_path, NULL);
	request.spec.n_part_files = 1;
	request.first_rank_file_limit = sizeof numbers - 1;
	assert_reports(&request, "1200000 bytes are needed");
}

PART_TEST(requests, input_that_is_not_in_order_is_found_wherever_it_is)
{
	static const size_t places[] = { 1, N / 3, N - 1 };
	struct requested_sort request;

	for (size_t i = 0; i < N; i++)
		numbers[i] = 10 * i;
	write_file(random_path, numbers, sizeof numbers);
	request_sort(&request, "u64", 8, random_path, NULL);
	request.spec.merge_inputs = true;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		const uint64_t before = numbers[places[i]];

		numbers[places[i]] = numbers[places[i] - 1] - 1;
		write_file(random_path, numbers, sizeof numbers);
		assert_reports(&request, "disorder");
		numbers[places[i]] = before;
	}
	/* With -u, the part of rank 2 begins at the lowest record, before that of rank 1. */
	request.spec.unique = true;
	numbers[N / 3 * 2] = 0;
	write_file(random_path, numbers, sizeof numbers);
	assert_reports(&request, "disorder");
}

/* Every rank has read a part of the file, and none has read all of it. */
PART_TEST(requests, part_of_a_list_that_was_changed_is_found_by_all_together)
{
	const unsigned char wrong = 77;
	struct requested_sort request;
	char list[600];
	int fd;

	request_sort(&request, "u16", 16, random_path, few_path);
	request.spec.n_part_files = 2;
	free_part_files(&request, save_part_files(&request));
	snprintf(list, sizeof list, "%s-parts", together_path);
	assert_int_equal(rename(together_path, list), 0);
	request_sort(&request, "u16", 16, list, NULL);
	request.spec.merge_inputs = true;
	check(&request, 3);
	assert_finds(&request, 3, 0, (N + N_FEW) / 2);
	fd = open(part_path(list, 2, 0), O_WRONLY);
	assert_int_equal(pwrite(fd, &wrong, 1, 16 * 100 + 9), 1);
	close(fd);
	assert_reports(&request, "its records have the checksum");
	request.spec.merge_inputs = false;
	request.spec.check_only = true;
	assert_reports(&request, "its records have the checksum");
}

/* After the fault there is either no output or the correct one. */
static void nothing_wrong_appears(struct requested_sort *request, enum fake_rank_fault fault,
				  unsigned message)
{
	struct fake_ranks ranks = fake_ranks_of(request, 3);
	bool all_fine = true;

	ranks.fault = fault;
	ranks.fault_rank = 1;
	ranks.fault_message = message;
	fake_ranks_run(&ranks);
	for (unsigned i = 0; i < ranks.size; i++)
		all_fine = all_fine && ranks.exits[i].result == 0 && ranks.exits[i].status == 0;
	fake_ranks_free(&ranks);
	if (all_fine || access(together_path, F_OK) == 0)
		assert_same_output();
	unlink(together_path);
}

static unsigned count_messages(struct requested_sort *request)
{
	struct fake_ranks ranks = fake_ranks_of(request, 3);
	unsigned n;

	sort_single(request);
	fake_ranks_run(&ranks);
	n = ranks.exits[1].n_sent;
	fake_ranks_free(&ranks);
	unlink(together_path);
	return n;
}

static void check_faults(struct requested_sort *request)
{
	static const enum fake_rank_fault kinds[] = { FAKE_FAULT_EXIT, FAKE_FAULT_EXIT_MIDWAY,
						      FAKE_FAULT_ERROR };
	enum { N_KINDS = sizeof kinds / sizeof kinds[0], N_PLACES = FOR_RACES_ONLY ? 3 : 7 };
	const unsigned n = count_messages(request);

	assert_true(n > 10);
	for (unsigned at = 0; at < N_PLACES; at++)
		nothing_wrong_appears(request, kinds[at % N_KINDS], (n - 1) * at / (N_PLACES - 1));
}

/* With resident runs, with compressed stored runs, and with peer memory. */
SORT_TEST(fault_anywhere_is_no_output_or_the_right_one)
{
	static const enum compression_mode modes[] = { COMPRESS_NONE, COMPRESS_ZSTD,
						       COMPRESS_NONE };
	enum { READS_MEMORY = 2 };
	struct requested_sort request;

	request_sort(&request, "u16", 8, few_path, NULL);
	for (size_t mode = 0; mode < sizeof modes / sizeof modes[0]; mode++) {
		request.spec.compression.mode = modes[mode];
		request.spec.disable_shared_memory = mode < READS_MEMORY;
		check_faults(&request);
	}
	request_compressed(&request, "u64", 8, random_path, few_path);
	check_faults(&request);
}

/* All ranks end without an output, and one of them reports why. */
static void assert_ends(struct requested_sort *request, unsigned size, const char *said)
{
	struct fake_ranks ranks = fake_ranks_of(request, size);
	bool is_said = false;

	fake_ranks_run(&ranks);
	for (unsigned i = 0; i < size; i++) {
		assert_true(ranks.exits[i].result != 0 || ranks.exits[i].status != 0);
		is_said = is_said || strstr(ranks.exits[i].error_text, said);
		assert_null(strstr(ranks.exits[i].error_text, "checkpoint"));
	}
	assert_true(is_said);
	fake_ranks_free(&ranks);
	assert_int_not_equal(access(together_path, F_OK), 0);
}

static int fail_first_rank(struct comm *comm, void *argument)
{
	(void)argument;
	return distributed_broadcast_status(comm,
					    comm_rank(comm) == 0 ? (fail)(-EIO, "cannot read") : 0);
}

SORT_TEST(failure_of_the_first_rank_ends_all)
{
	struct fake_ranks ranks = { .size = 3, .body = fail_first_rank };

	fake_ranks_run(&ranks);
	assert_int_equal(ranks.exits[0].result, -EIO);
	assert_string_equal(ranks.exits[0].error_text, "cannot read");
	for (unsigned i = 1; i < ranks.size; i++)
		assert_int_not_equal(ranks.exits[i].result, 0);
	fake_ranks_free(&ranks);
}

SORT_TEST(part_files_without_cuts_end_all)
{
	struct requested_sort request;

	request_sort(&request, "u16", 8, few_path, NULL);
	request.spec.n_part_files = refused_n_parts = 7;
	request.spec.split_by_keys = true;
	assert_ends(&request, 2, "runs cannot be cut");
	refused_n_parts = 0;
}

/* Numbers received from another rank are validated before they are used. */
SORT_TEST(corrupt_message_ends_all)
{
	static const char not_here[] = "invalid request of rank",
			  cannot_be[] = "sent an invalid index",
			  no_stripe[] = "sent bytes of a stripe of another rank",
			  too_much[] = "offers too many items",
			  damaged[] = "in the temporary space of rank 1: block ",
			  lost[] = "records (checksum";
	/* Words of requests and stripes, and of segments and blocks, which are responses. */
	static const struct message_corruption all[] = {
		{ not_here, COMM_TAG_REQUESTS, 0, 0, 100 }, /* no such kind of request */
		{ not_here, COMM_TAG_REQUESTS, 0, 3, UINT64_C(1) << 60 },
		{ not_here, COMM_TAG_REQUESTS, 1, 1, 1000 },
		{ not_here, COMM_TAG_REQUESTS, 1, 2, UINT64_C(1) << 60 },
		{ not_here, COMM_TAG_REQUESTS, 1, 3, 100 },
		{ cannot_be, COMM_TAG_RESPONSES, 0, 1, N },
		{ cannot_be, COMM_TAG_RESPONSES, 1, 6, 1 },
		{ no_stripe, COMM_TAG_STRIPES, 0, 1, 2 << 20 },
		{ no_stripe, COMM_TAG_STRIPES, 0, 2, 8 },
		{ too_much, COMM_TAG_SEGMENT_DESCS, 0, 0, UINT64_C(1) << 61 },
		/* records: of a block of a stored run, and of a segment in memory */
		{ damaged, COMM_TAG_RESPONSES, 2, 0, 1 },
		{ lost, COMM_TAG_SEGMENTS, 0, 0, 1 },
	};
	struct requested_sort request;

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (all[i].tag == COMM_TAG_SEGMENT_DESCS || all[i].tag == COMM_TAG_SEGMENTS)
			request_in_memory(&request, "u64", 8, random_path, NULL);
		else
			request_sort(&request, "u64", 8, random_path, NULL);
		request.spec.compression.mode = COMPRESS_NONE;
		false_message = all[i];
		assert_ends(&request, 2, false_message.expected_message);
	}
	false_message = (struct message_corruption){ 0 };
}

/*
 * Parts of the first frame. Without detection the compressor would wait for the missing part for
 * ever.
 */
SORT_TEST(lost_foreign_bytes_are_detected)
{
	struct requested_sort request;

	request_compressed(&request, "u64", 8, few_path, few_path);
	lost_end = N_FEW * sizeof *numbers;
	assert_ends(&request, 3, "received content at offset");
	lost_begin = lost_end;
	lost_end = UINT64_MAX;
	assert_ends(&request, 3, "expected frames of 32000 bytes, got ");
	lost_end = 0;
}

static ssize_t failing_pwrite(int fd, const void *data, size_t nbytes, off_t offset)
{
	if (!fake_rank_writes_output(fd))
		return pwrite(fd, data, nbytes, offset);
	errno = EIO;
	return -1;
}

/* One rank cannot write. When the sort returns, none of its server threads is left. */
static int fail_to_write(struct comm *comm, void *argument)
{
	struct requested_sort request = *(const struct requested_sort *)argument;
	struct syscalls calls = syscalls_plain;
	const unsigned n_threads = fake_rank_n_threads();
	int r;

	calls.pwrite = failing_pwrite;
	if (comm_rank(comm) == 1)
		request.spec.io = &calls;
	r = sort_on_rank(comm, &request);
	return fake_rank_has_threads(n_threads) ? r : -ENOTRECOVERABLE;
}

SORT_TEST(failed_rank_serves_no_requests)
{
	struct requested_sort request;

	for (unsigned fits = 0; fits < 2; fits++) {
		struct fake_ranks ranks = fake_ranks_of(&request, 2);

		if (fits)
			request_in_memory(&request, "u64", 8, random_path, NULL);
		else
			request_sort(&request, "u64", 8, random_path, NULL);
		ranks.body = fail_to_write;
		ranks.params.abort_timeout_ns = minute_ns;
		fake_ranks_run(&ranks);
		assert_int_equal(ranks.exits[1].result, -EIO);
		assert_int_not_equal(ranks.exits[0].result, -ENOTRECOVERABLE);
		fake_ranks_free(&ranks);
		assert_int_equal(access(together_path, F_OK), -1);
	}
}

/* Own files have other calls. */
static int fail_to_read_peers(struct comm *comm, void *argument)
{
	struct requested_sort request = *(const struct requested_sort *)argument;
	const struct syscalls calls = syscalls_plain;

	peer_memory_fails = comm_rank(comm) == 1 && request.is_in_memory;
	peer_files_fail = comm_rank(comm) == 1 && !request.is_in_memory;
	request.spec.io = &calls;
	request.spec.disable_shared_memory = false;
	return sort_on_rank(comm, &request);
}

SORT_TEST(unreadable_data_of_a_peer_is_reported)
{
	static const char *const expected[] = { "temporary file of rank 0: cannot read",
						"memory of a rank cannot be read" };
	struct requested_sort request;

	for (unsigned fits = 0; fits < 2; fits++) {
		struct fake_ranks ranks = fake_ranks_of(&request, 2);

		if (fits)
			request_in_memory(&request, "u64", 8, random_path, NULL);
		else
			request_sort(&request, "u64", 8, random_path, random_path);
		ranks.body = fail_to_read_peers;
		fake_ranks_run(&ranks);
		if (ranks.exits[1].result == 0)
			skip(); /* ranks cannot read memory of others */
		assert_non_null(strstr(ranks.exits[1].error_text, expected[fits]));
		assert_int_equal(ranks.exits[1].result, fits ? -EDOM : -ECANCELED);
		fake_ranks_free(&ranks);
	}
}

/* --- one page cache --- */

/*
 * The cache policies that ranks choose by themselves; and, as bits, which ranks bypass the cache.
 */
static struct chosen_policies {
	const enum cache_policy *policies; /* by rank; NULL: the real function decides */
	atomic_uint *outputs, *spills;     /* shared memory */
} chosen_policies;

enum cache_policy __real_cache_policy_choose(const struct job *job, uint64_t nbytes);
enum cache_policy __wrap_cache_policy_choose(const struct job *job, uint64_t nbytes);
enum cache_policy __wrap_cache_policy_choose(const struct job *job, uint64_t nbytes)
{
	return chosen_policies.policies ? chosen_policies.policies[fake_rank_number] :
					  __real_cache_policy_choose(job, nbytes);
}

void __real_output_bypass_cache(struct output *output);
void __wrap_output_bypass_cache(struct output *output);
void __wrap_output_bypass_cache(struct output *output)
{
	if (chosen_policies.policies)
		atomic_fetch_or(chosen_policies.outputs, 1u << fake_rank_number);
	__real_output_bypass_cache(output);
}

void __real_spill_bypass_cache(struct spill *spill);
void __wrap_spill_bypass_cache(struct spill *spill);
void __wrap_spill_bypass_cache(struct spill *spill)
{
	if (chosen_policies.policies)
		atomic_fetch_or(chosen_policies.spills, 1u << fake_rank_number);
	__real_spill_bypass_cache(spill);
}

/* Each rank is on a host of its own. */
static bool has_several_hosts;

const char *__real_comm_host(const struct comm *comm, unsigned rank);
const char *__wrap_comm_host(const struct comm *comm, unsigned rank);
const char *__wrap_comm_host(const struct comm *comm, unsigned rank)
{
	static const char *const hosts[N_FAULT_RANKS] = { "node0", "node1" };

	return has_several_hosts ? hosts[rank] : __real_comm_host(comm, rank);
}

/* Two ranks per host. */
unsigned __real_comm_host_size(const struct comm *comm, unsigned *ret_first);
unsigned __wrap_comm_host_size(const struct comm *comm, unsigned *ret_first);
unsigned __wrap_comm_host_size(const struct comm *comm, unsigned *ret_first)
{
	if (!chosen_policies.policies)
		return __real_comm_host_size(comm, ret_first);
	*ret_first = comm_rank(comm) / 2 * 2;
	return 2;
}

static int sort_with_policies(struct comm *comm, void *argument)
{
	return sort_on_rank(comm, argument);
}

/* Otherwise some ranks would write to a file directly while others write through the cache. */
SORT_TEST(ranks_of_a_host_use_its_first_policy)
{
	static const enum cache_policy uses[] = { CACHE_USE, CACHE_BYPASS, CACHE_BYPASS,
						  CACHE_USE };
	struct requested_sort request;
	struct fake_ranks ranks = fake_ranks_of(&request, 4);

	request_sort(&request, "u64", 8, random_path, few_path);
	sort_single(&request);
	chosen_policies.policies = uses;
	chosen_policies.outputs = mmap(NULL, 2 * sizeof *chosen_policies.outputs,
				       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(chosen_policies.outputs, MAP_FAILED);
	chosen_policies.spills = chosen_policies.outputs + 1;
	ranks.body = sort_with_policies;
	fake_ranks_succeed(&ranks);
	assert_same_output();
	assert_int_equal(*chosen_policies.outputs, 0xc);
	assert_int_equal(*chosen_policies.spills, 0xc);
	munmap(chosen_policies.outputs, 2 * sizeof *chosen_policies.outputs);
	chosen_policies = (struct chosen_policies){ 0 };
}

/* --- what goes over disks and wires --- */

enum { N_MANY = 1 << 22 };

/* The statistics gathered on rank 0, for the test. */
struct gathered_stats {
	struct rank_summary total, ranks[FAKE_RANKS_MAX];
};

/* A sort with the statistics that it gathers. */
struct counted_sort {
	struct requested_sort asked;
	struct gathered_stats *stats;
};

static int gather_all_stats(struct comm *comm, struct rank_summary *own,
			    struct gathered_stats *ret_found)
{
	struct rank_stats *stats;
	int r = rank_stats_gather(comm, own, &stats);

	if (r < 0 || !stats)
		return r;
	ret_found->total = stats->total;
	memcpy(ret_found->ranks, stats->ranks, stats->n_ranks * sizeof *stats->ranks);
	rank_stats_close(stats);
	return 0;
}

static int sort_with_stats(struct comm *comm, void *argument)
{
	const struct counted_sort *counted = argument;
	struct sort_spec spec = counted->asked.spec;
	struct rank_summary own;
	struct stats *stats;
	int r = stats_open(NULL, NULL, &stats);

	spec.comm = comm;
	if (r == 0)
		r = sort_run(&spec, &no_observer, stats, &own.summary);
	if (r == 0) {
		stats_get_totals(stats, &own.totals);
		r = gather_all_stats(comm, &own, counted->stats);
	}
	stats_close(stats);
	return r;
}

/* Sum the volumes of all phases. */
static struct stats_volumes expected_volumes(const struct rank_summary *entry)
{
	struct stats_volumes sum = { 0 };

	for (enum phase i = 0; i < N_PHASES; i++) {
		const struct stats_volumes *of = &entry->totals.phases[i].volumes;

		sum.temporary_written_nbytes += of->temporary_written_nbytes;
		sum.temporary_read_nbytes += of->temporary_read_nbytes;
		sum.sent_nbytes += of->sent_nbytes;
		sum.received_nbytes += of->received_nbytes;
	}
	return sum;
}

/*
 * The index entries that are sent for cuts: at each cut two ranks need the block, and one of them
 * fetches it twice to find its first item. Runs in memory have no blocks.
 */
static uint64_t splitter_message_nbytes(const struct rank_summary *all, unsigned n_ranks, bool fits)
{
	return fits ? 0 : 2 * all->summary.n_runs * (n_ranks - 1) * all->summary.plan.block_nbytes;
}

static void assert_disk(const struct rank_summary *all, unsigned n_ranks, bool fits)
{
	const uint64_t n = all->summary.n_records_in * 8;
	const struct stats_volumes volumes = expected_volumes(all);
	const uint64_t read = all->totals.phases[PHASE_RUN_GENERATION].stages[STAGE_READ].nbytes;
	const uint64_t written = all->totals.phases[PHASE_FINAL_MERGE].stages[STAGE_WRITE].nbytes;
	const uint64_t temporary = volumes.temporary_written_nbytes + volumes.temporary_read_nbytes;

	assert_int_equal(read, n);
	assert_int_equal(written, n);
	if (fits)
		assert_int_equal(temporary, 0);
	else
		assert_in_range(temporary, n / 4,
				2.05 * (double)n + splitter_message_nbytes(all, n_ranks, fits));
}

/* Nothing was compressed and there was no merge pass, so the messages contain the records. */
static void assert_wire(const struct rank_summary *all, unsigned n_ranks, bool fits, bool is_random)
{
	const uint64_t others = all->summary.n_records_in * 8 * (n_ranks - 1) / n_ranks;
	const struct stats_volumes volumes = expected_volumes(all);
	/* blocks of some KiB: requests and indexes weigh twice as much */
	const double beside = fits ? 1.02 : 1.04;

	assert_int_equal(all->summary.n_passes, 1);
	assert_in_range(volumes.sent_nbytes, is_random ? others - others / 20 : 1,
			beside * (double)others + splitter_message_nbytes(all, n_ranks, fits));
	/* a message in progress may count for no phase of its receiver */
	assert_in_range(volumes.received_nbytes + 10000, volumes.sent_nbytes,
			volumes.sent_nbytes + 20000);
}

static void assert_balance(const struct gathered_stats *stats, unsigned n_ranks, bool fits)
{
	const struct sort_summary *all = &stats->total.summary;
	const uint64_t share = all->n_records_out / n_ranks;
	const uint64_t n_blocks = fits ? 1 : all->n_runs;
	uint64_t n = 0;

	for (unsigned i = 0; i < n_ranks; i++) {
		assert_in_range(stats->ranks[i].summary.n_records_out, 0,
				share + share / 100 + n_blocks * all->plan.block_nbytes / 8);
		n += stats->ranks[i].summary.n_records_out;
	}
	assert_int_equal(n, all->n_records_in);
	assert_int_equal(n, all->n_records_out);
}

static void check_volumes(unsigned n_ranks, bool fits, bool is_random)
{
	struct counted_sort counted = { .stats = mmap(NULL, sizeof *counted.stats,
						      PROT_READ | PROT_WRITE,
						      MAP_SHARED | MAP_ANONYMOUS, -1, 0) };
	struct fake_ranks ranks = fake_ranks_of(&counted.asked, n_ranks);

	assert_ptr_not_equal(counted.stats, MAP_FAILED);
	request_sort(&counted.asked, "u64", 8, is_random ? many_path : equal_path, NULL);
	counted.asked.spec.memory_nbytes = fits ? 32 << 20 : 15 << 19;
	counted.asked.spec.compression.mode = COMPRESS_NONE;
	ranks.body = sort_with_stats;
	ranks.argument = &counted;
	fake_ranks_succeed(&ranks);
	assert_disk(&counted.stats->total, n_ranks, fits);
	assert_wire(&counted.stats->total, n_ranks, fits, is_random);
	assert_balance(counted.stats, n_ranks, fits);
	munmap(counted.stats, sizeof *counted.stats);
	unlink(together_path);
}

PART_TEST(volumes, volumes_and_balance_match_the_estimate)
{
	/* Not static: LeakSanitizer searches static memory at the end of each rank. */
	const size_t many_nbytes = N_MANY * sizeof(uint64_t);
	uint64_t *many = malloc(many_nbytes), *zeros = calloc(N_MANY, sizeof *zeros);

	strcpy(many_path, fixture_path("many"));
	strcpy(equal_path, fixture_path("equal"));
	fill_pattern(many, many_nbytes, 2);
	for (unsigned n_ranks = 2; n_ranks <= 4; n_ranks += 2) {
		write_file(many_path, many, n_ranks * (many_nbytes / 4));
		write_file(equal_path, zeros, n_ranks * (many_nbytes / 4));
		for (unsigned i = 0; i < 4; i++)
			check_volumes(n_ranks, i & 1, i & 2);
	}
	free(many);
	free(zeros);
}

/* --- Checkpoints --- */

static char kept_path[512];

static void request_checkpoint(struct requested_sort *request)
{
	strcpy(kept_path, fixture_path("kept"));
	write_file(few_path, numbers, sizeof numbers / 2); /* so that each rank has two runs */
	request_sort(request, "u16", 8, random_path, few_path);
	sort_single(request);
	request->spec.checkpoint_path = kept_path;
}

/* Return the path of a file of a rank's checkpoint; valid until the next call. */
static const char *checkpoint_file(unsigned rank, const char *name)
{
	static char path[700];

	snprintf(path, sizeof path, "%s/rank-%04u%s%s", kept_path, rank, *name ? "/" : "", name);
	return path;
}

/* One of three ranks is killed at that message, or cannot send it; all end with it. */
static void end_with(struct requested_sort *request, enum fake_rank_fault fault, unsigned rank,
		     unsigned message)
{
	struct fake_ranks ranks = fake_ranks_of(request, 3);

	ranks.params.abort_timeout_ns = minute_ns; /* all ranks have the time to save their runs */
	ranks.fault = fault;
	ranks.fault_rank = rank;
	ranks.fault_message = message;
	fake_ranks_run(&ranks);
	fake_ranks_free(&ranks);
}

/*
 * Three ranks end during the merge, with all runs stored. Returns how many messages one rank sends
 * otherwise, which is counted once: all requests with a checkpoint are the same.
 */
static unsigned interrupt_with_checkpoint(struct requested_sort *request)
{
	static unsigned n;

	if (n == 0)
		n = count_messages(request);
	end_with(request, FAKE_FAULT_ERROR, 1, n * 3 / 4);
	assert_int_equal(access(together_path, F_OK), -1);
	assert_int_equal(access(checkpoint_file(1, "gsort-runs"), F_OK), 0);
	return n;
}

static void assert_no_checkpoint(void)
{
	assert_int_equal(access(kept_path, F_OK), -1);
}

PART_TEST(checkpoints, killed_rank_is_resumed)
{
	enum { N_PLACES = 4 };
	struct requested_sort request;
	unsigned n;

	request_checkpoint(&request);
	n = count_messages(&request);
	assert_no_checkpoint();
	for (unsigned at = 0; at < N_PLACES; at++) {
		end_with(&request, FAKE_FAULT_EXIT, at % 3, (n - 1) * at / (N_PLACES - 1));
		end_with(&request, FAKE_FAULT_EXIT, 1, n / 2);
		assert_agrees(&request, 3, 0);
		assert_no_checkpoint();
	}
}

static off_t nbytes_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_size;
}

/* A rank that resumes all of its part stores no more runs. */
PART_TEST(checkpoints, resumed_runs_are_not_stored_again)
{
	struct requested_sort request;
	off_t nbytes;
	unsigned n;

	request_checkpoint(&request);
	n = interrupt_with_checkpoint(&request);
	nbytes = nbytes_of(checkpoint_file(2, "gsort-manifest"));
	assert_true(nbytes_of(checkpoint_file(2, "gsort-runs")) > (off_t)sizeof numbers / 2);
	end_with(&request, FAKE_FAULT_ERROR, 0, n / 2);
	assert_int_equal(nbytes_of(checkpoint_file(2, "gsort-manifest")), nbytes);
	assert_agrees(&request, 3, 0);
	assert_no_checkpoint();
}

/* All ranks refuse to sort, and one reports why. */
static void check_refused(struct requested_sort *request, unsigned size, unsigned speaker,
			  const char *text)
{
	struct fake_ranks ranks = fake_ranks_of(request, size);

	fake_ranks_run(&ranks);
	for (unsigned i = 0; i < size; i++) {
		assert_int_not_equal(ranks.exits[i].result, 0);
		if (i == speaker && !strstr(ranks.exits[i].error_text, text))
			print_message("%s\n", ranks.exits[i].error_text);
		assert_true((strstr(ranks.exits[i].error_text, text) != NULL) == (i == speaker));
	}
	fake_ranks_free(&ranks);
	assert_int_equal(access(together_path, F_OK), -1);
}

PART_TEST(checkpoints, another_number_of_ranks_is_refused_once)
{
	struct requested_sort request;

	request_checkpoint(&request);
	interrupt_with_checkpoint(&request);
	check_refused(&request, 2, 0, "number of ranks was '3' and is '2' now");
	check_refused(&request, 5, 0, "number of ranks was '3' and is '5' now");
	assert_int_equal(access(checkpoint_file(4, ""), F_OK), -1);
	assert_agrees(&request, 3, 0);
	assert_no_checkpoint();
}

PART_TEST(checkpoints, damaged_checkpoint_is_reported_and_removable)
{
	struct requested_sort request;
	FILE *file;

	request_checkpoint(&request);
	interrupt_with_checkpoint(&request);
	file = fopen(checkpoint_file(1, "gsort-manifest"), "r+");
	assert_non_null(file);
	fseek(file, 100, SEEK_SET);
	fputc('!', file);
	fclose(file);
	check_refused(&request, 3, 1, "rank-0001/gsort-manifest: the checkpoint is damaged");
	assert_int_equal(unlink(checkpoint_file(1, "gsort-manifest")), 0);
	assert_int_equal(unlink(checkpoint_file(1, "gsort-runs")), 0);
	assert_int_equal(rmdir(checkpoint_file(1, "")), 0);
	assert_agrees(&request, 3, 0);
	assert_no_checkpoint();
}

/* Otherwise these checkpoints would stay for ever and prevent another sort. */
PART_TEST(checkpoints, fewer_ranks_remove_all_checkpoints)
{
	struct requested_sort request;

	request_checkpoint(&request);
	interrupt_with_checkpoint(&request);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(unlink(checkpoint_file(i, "gsort-manifest")), 0);
		assert_int_equal(unlink(checkpoint_file(i, "gsort-runs")), 0);
		assert_int_equal(rmdir(checkpoint_file(i, "")), 0);
	}
	check_refused(&request, 2, 0, "rank-0002: belongs to a sort by more ranks");
	assert_agrees(&request, 3, 0);
	assert_no_checkpoint();
}

/* The checkpoint of another rank is of another part. */
PART_TEST(checkpoints, rank_resumes_only_its_own_runs)
{
	struct requested_sort request;
	char other[600];

	request_checkpoint(&request);
	interrupt_with_checkpoint(&request);
	strcpy(other, checkpoint_file(0, ""));
	assert_int_equal(rename(checkpoint_file(2, ""), fixture_path("aside")), 0);
	assert_int_equal(rename(other, checkpoint_file(2, "")), 0);
	check_refused(&request, 3, 2, "rank was '0' and is '2' now");
	assert_int_equal(rename(checkpoint_file(2, ""), other), 0);
	assert_int_equal(rename(fixture_path("aside"), checkpoint_file(2, "")), 0);
	assert_agrees(&request, 3, 0);
	assert_no_checkpoint();
}

/* --- calls that fail with one of them --- */

/* The system calls of a successful sort that are counted. */
enum call {
	CALL_OPENAT,
	CALL_CLOSE,
	CALL_PREAD,
	CALL_PWRITE,
	CALL_FALLOCATE,
	CALL_FSYNC,
	CALL_RENAMEAT,
	N_CALLS
};

enum { SECONDS_A_SORT = 20 };

/* A call of one rank fails, from the nth on, that many times. */
static struct call_fault {
	unsigned rank, nth, n_times;
	enum call call;
} call_fault;

static atomic_uint (*n_calls)[N_CALLS]; /* by rank; shared memory */

static bool call_fails(enum call call)
{
	const unsigned n = atomic_fetch_add(&n_calls[fake_rank_number][call], 1) + 1;

	if (call_fault.n_times == 0 || fake_rank_number != call_fault.rank ||
	    call != call_fault.call || n < call_fault.nth ||
	    n - call_fault.nth >= call_fault.n_times)
		return false;
	errno = call == CALL_PWRITE || call == CALL_FALLOCATE ? ENOSPC : EIO;
	return true;
}

static int counted_openat(int directory, const char *path, int flags, mode_t mode)
{
	return call_fails(CALL_OPENAT) ? -1 : syscalls_plain.openat(directory, path, flags, mode);
}

/* Only the output is counted: other files were only read, or are not needed any more. */
static int counted_close(int fd)
{
	const bool is_output = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY &&
			       fake_rank_writes_output(fd);
	const int r = syscalls_plain.close(fd);

	return is_output && call_fails(CALL_CLOSE) ? -1 : r;
}

static ssize_t counted_pread(int fd, void *buffer, size_t nbytes, off_t offset)
{
	return call_fails(CALL_PREAD) ? -1 : syscalls_plain.pread(fd, buffer, nbytes, offset);
}

static ssize_t counted_pwrite(int fd, const void *data, size_t nbytes, off_t offset)
{
	return call_fails(CALL_PWRITE) ? -1 : syscalls_plain.pwrite(fd, data, nbytes, offset);
}

static int counted_fallocate(int fd, int mode, off_t offset, off_t nbytes)
{
	return call_fails(CALL_FALLOCATE) ? -1 : syscalls_plain.fallocate(fd, mode, offset, nbytes);
}

static int counted_fsync(int fd)
{
	return call_fails(CALL_FSYNC) ? -1 : syscalls_plain.fsync(fd);
}

static int counted_renameat(int from_directory, const char *from, int to_directory, const char *to)
{
	return call_fails(CALL_RENAMEAT) ?
		       -1 :
		       syscalls_plain.renameat(from_directory, from, to_directory, to);
}

/* A rank that hangs is ended by a signal, which the test detects. */
static int sort_with_faults(struct comm *comm, void *argument)
{
	struct requested_sort request = *(const struct requested_sort *)argument;
	struct syscalls calls = syscalls_plain;

	alarm(SECONDS_A_SORT);
	calls.openat = counted_openat;
	calls.close = counted_close;
	calls.pread = counted_pread;
	calls.pwrite = counted_pwrite;
	calls.fallocate = counted_fallocate;
	calls.fsync = counted_fsync;
	calls.renameat = counted_renameat;
	request.spec.io = &calls;
	return sort_on_rank(comm, &request);
}

/*
 * Data that is lost when it is synced or when the file is closed must always be an error, if that
 * call was made. The number of calls varies.
 */
static bool must_fail(void)
{
	return call_fault.n_times > 0 &&
	       n_calls[call_fault.rank][call_fault.call] >= call_fault.nth &&
	       (call_fault.call == CALL_PWRITE || call_fault.call == CALL_FSYNC ||
		call_fault.call == CALL_CLOSE);
}

/* All ranks have time to clean up, and do so. */
static void sort_with_fault(struct requested_sort *request)
{
	const unsigned n_names = count_directory_entries();
	struct fake_ranks ranks = fake_ranks_of(request, N_FAULT_RANKS);
	bool all_fine = true, is_said = false, is_there = false;

	memset(n_calls, 0, N_FAULT_RANKS * sizeof *n_calls);
	ranks.body = sort_with_faults;
	ranks.params.abort_timeout_ns = minute_ns;
	fake_ranks_run(&ranks);
	for (unsigned i = 0; i < ranks.size; i++) {
		const struct fake_rank_exit *end = &ranks.exits[i];

		assert_in_range(end->status, 0, 127);
		if (*end->error_text)
			assert_false(end->result == 0 && end->status == 0);
		all_fine = all_fine && end->result == 0 && end->status == 0;
		is_said = is_said || *end->error_text;
		is_there = is_there || strstr(end->error_text, "is complete, but its name");
	}
	fake_ranks_free(&ranks);
	assert_int_not_equal(all_fine, is_said);
	assert_false(all_fine && must_fail());
	is_there = is_there || all_fine;
	assert_int_equal(access(together_path, F_OK) == 0, is_there);
	if (is_there)
		assert_same_output();
	unlink(together_path);
	assert_int_equal(count_directory_entries(), n_names);
}

/* Fail the first call, one in between, the last of n, and all of them. */
static void check_call(struct requested_sort *request, unsigned n)
{
	const unsigned places[] = { 1, (n + 1) / 2, n, 1 };
	enum { N_PLACES = sizeof places / sizeof places[0], ALL = N_PLACES - 1 };

	for (unsigned i = 0; i < N_PLACES && n > 0; i++) {
		if (i > 0 && i != ALL && places[i] == places[i - 1])
			continue;
		call_fault.nth = places[i];
		call_fault.n_times = i == ALL ? UINT_MAX : 1;
		sort_with_fault(request);
	}
}

static void check_calls(struct requested_sort *request)
{
	unsigned n[N_FAULT_RANKS][N_CALLS];

	call_fault = (struct call_fault){ 0 };
	sort_with_fault(request);
	memcpy(n, n_calls, sizeof n);
	for (unsigned rank = 0; rank < N_FAULT_RANKS; rank++)
		for (enum call call = 0; call < N_CALLS; call++) {
			call_fault = (struct call_fault){ .rank = rank, .call = call };
			check_call(request, n[rank][call]);
		}
}

PART_TEST(calls, call_that_fails_with_one_rank_is_no_output_or_the_right_one)
{
	/* Without verification the error of a write must not be dropped. */
	static const struct {
		int zstd_level;
		bool verify, has_several_hosts;
		uint64_t memory_nbytes;
	} cases[] = {
		{ 0, true, true, 1 << 20 },
		{ 0, false, false, 1 << 20 },
		{ 1, false, false, 16 << 20 },
		{ 1, true, true, 16 << 20 },
	};
	struct requested_sort request;

	n_calls = mmap(NULL, N_FAULT_RANKS * sizeof *n_calls, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(n_calls, MAP_FAILED);
	request_sort(&request, "u64", 8, random_path, random_path);
	request.spec.compression.mode = COMPRESS_NONE;
	request.spec.fsync = true;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		request.spec.zstd_level = cases[i].zstd_level;
		request.spec.verify = cases[i].verify;
		request.spec.memory_nbytes = cases[i].memory_nbytes;
		has_several_hosts = cases[i].has_several_hosts;
		sort_single(&request);
		check_calls(&request);
	}
	has_several_hosts = false;
	munmap(n_calls, N_FAULT_RANKS * sizeof *n_calls);
}
