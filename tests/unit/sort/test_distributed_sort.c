/*
 * test_distributed_sort - a sort by several ranks is the sort of one process, byte for byte, or none
 */
#include "src/sort/sort.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "io/output/output.h"
#include "io/output/part_files.h"
#include "io/spill/spill.h"
#include "src/base/diagnostics.h"
#include "src/exchange/collective_zst.h"
#include "src/exchange/global_splitters.h"
#include "src/plan/cache_policy.h"
#include "src/comm/tags.h"
#include "src/sort/rank_stats.h"
#include "tests/support/io_fixture.h"
#include "tests/support/fake_ranks.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N = 150000, N_FEW = 2000 };

static const struct sort_observer nobody;
static const uint64_t minute_ns = UINT64_C(60) * 1000000000;
static uint64_t numbers[N];
static char random_path[512], few_path[512], alone_path[512], together_path[512];
static char many_path[512], equal_path[512];

static int start(void **state)
{
	int r = fixture_start(state);

	if (r < 0)
		return r;
	strcpy(random_path, path_of("random"));
	strcpy(few_path, path_of("few"));
	strcpy(alone_path, path_of("alone"));
	strcpy(together_path, path_of("together"));
	fill_pattern(numbers, sizeof numbers, 1);
	write_file(random_path, numbers, sizeof numbers);
	for (size_t i = 0; i < N_FEW; i++)
		numbers[i] %= 7;
	write_file(few_path, numbers, N_FEW * sizeof *numbers);
	return 0;
}

/* What is asked for, beside who does it. */
struct asked {
	struct key key;
	struct sort_spec spec;
	const char *inputs[2];
	bool is_traded; /* of what each has in memory nothing is stored */
};

static void ask(struct asked *asked, const char *type, uint64_t record_nbytes, const char *first,
		const char *second)
{
	static const char *const directories[] = { fixture_directory };
	const struct sort_spec nothing = SORT_SPEC_DEFAULTS;

	assert_int_equal(key_parse_type(type, &asked->key), 0);
	asked->inputs[0] = first;
	asked->inputs[1] = second;
	asked->spec = nothing;
	asked->spec.inputs = asked->inputs;
	asked->spec.n_inputs = second ? 2 : 1;
	asked->spec.record_nbytes = record_nbytes;
	asked->spec.keys = &asked->key;
	asked->spec.n_keys = 1;
	asked->spec.output_path = together_path;
	asked->spec.memory_nbytes = 1 << 20;
	asked->spec.n_threads = 1;
	asked->spec.temp_dirs = directories;
	asked->spec.n_temp_dirs = 1;
	asked->spec.by_messages = true;
	asked->is_traded = false;
}

/* Each rank has room for much more. */
static void ask_in_memory(struct asked *asked, const char *type, uint64_t record_nbytes,
			  const char *first, const char *second)
{
	ask(asked, type, record_nbytes, first, second);
	asked->spec.memory_nbytes = 64 << 20;
	asked->is_traded = true;
}

/* Wrapped, to be counted: what is cut once is not cut again when there is no room for it. */
static unsigned n_cut;

int __real_range_cut(struct ranks *ranks, const struct job *job, struct run *const *runs,
		     uint32_t n_runs, const struct range_wish *wish, uint64_t *ret_cuts);

int __wrap_range_cut(struct ranks *ranks, const struct job *job, struct run *const *runs,
		     uint32_t n_runs, const struct range_wish *wish, uint64_t *ret_cuts);
int __wrap_range_cut(struct ranks *ranks, const struct job *job, struct run *const *runs,
		     uint32_t n_runs, const struct range_wish *wish, uint64_t *ret_cuts)
{
	n_cut++;
	return __real_range_cut(ranks, job, runs, n_runs, wish, ret_cuts);
}

/* Wrapped, to be wrong once: a word of the message after n_before of rank 1 with this tag. */
static struct falsehood {
	const char *said;
	unsigned tag, n_before, word;
	uint64_t more; /* is added to it */
} told;

int __real_ranks_send(struct ranks *ranks, unsigned to, unsigned tag, const void *data,
		      size_t nbytes, struct ranks_transfer *ret_transfer);
int __wrap_ranks_send(struct ranks *ranks, unsigned to, unsigned tag, const void *data,
		      size_t nbytes, struct ranks_transfer *ret_transfer);
int __wrap_ranks_send(struct ranks *ranks, unsigned to, unsigned tag, const void *data,
		      size_t nbytes, struct ranks_transfer *ret_transfer)
{
	const unsigned kind = tag < RANKS_TAG_ANSWERS ? tag : RANKS_TAG_ANSWERS;

	if (told.tag == kind && ranks_rank(ranks) == 1 && to != 1 && told.n_before-- == 0)
		((uint64_t *)(uintptr_t)data)[told.word] += told.more;
	return __real_ranks_send(ranks, to, tag, data, nbytes, ret_transfer);
}

/* And to lose what is from there on, and before there. */
static uint64_t lost_begin, lost_end;

int __real_frames_keep_content(struct frames *frames, uint64_t offset, const void *data,
			       size_t nbytes);
int __wrap_frames_keep_content(struct frames *frames, uint64_t offset, const void *data,
			       size_t nbytes);
int __wrap_frames_keep_content(struct frames *frames, uint64_t offset, const void *data,
			       size_t nbytes)
{
	return offset >= lost_begin && offset < lost_end ?
		       0 :
		       __real_frames_keep_content(frames, offset, data, nbytes);
}

/* Wrapped, for file systems that prefer longer ones; 0: as it is. */
static uint64_t preferred_nbytes;

uint64_t __real_output_stripe_nbytes(const struct output *output);
uint64_t __wrap_output_stripe_nbytes(const struct output *output);
uint64_t __wrap_output_stripe_nbytes(const struct output *output)
{
	return preferred_nbytes ? preferred_nbytes : __real_output_stripe_nbytes(output);
}

static bool is_cut_too_often(const struct sort_spec *spec)
{
	return n_cut > 1u + (spec->unique || spec->parts_at_keys);
}

static int sort_share(struct ranks *ranks, void *argument)
{
	const struct asked *asked = argument;
	struct sort_spec spec = asked->spec;
	struct sort_facts facts;
	uint64_t disorder;
	int r;

	spec.ranks = ranks;
	if (spec.checks)
		return sort_check(&spec, "gsort -c", &nobody, NULL, &facts, &disorder);
	r = sort_run(&spec, &nobody, NULL, &facts);
	if (r == 0 && is_cut_too_often(&spec))
		return -EDOM;
	if (r == 0 && asked->is_traded && facts.n_runs_spilled > 0)
		return -ENOTSUP;
	return r;
}

/* The bytes of a file, for free(). */
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

static void assert_same(void)
{
	size_t nbytes;
	char *bytes = bytes_of(alone_path, &nbytes);

	assert_true(file_holds(together_path, bytes, nbytes));
	free(bytes);
}

static void sort_alone(const struct asked *asked)
{
	struct sort_spec spec = asked->spec;
	struct sort_facts facts;

	spec.output_path = alone_path;
	assert_int_equal(sort_run(&spec, &nobody, NULL, &facts), 0);
}

static struct ranks_double ranks_of(struct asked *asked, unsigned size)
{
	return (struct ranks_double){ .size = size,
				      .settings = { .stall_ns = minute_ns,
						    .piece_nbytes = RANKS_DOUBLE_PIECE_NBYTES },
				      .body = sort_share,
				      .argument = asked };
}

static void assert_agrees(struct asked *asked, unsigned size, uint64_t seed)
{
	struct ranks_double ranks = ranks_of(asked, size);

	ranks.seed = seed;
	ranks_double_run(&ranks);
	ranks_double_assert_fine(&ranks);
	ranks_double_forget(&ranks);
	assert_same();
	unlink(together_path);
}

static void check(struct asked *asked, unsigned size)
{
	const unsigned n_before = count_names();

	sort_alone(asked);
	assert_agrees(asked, size, 0);
	unlink(alone_path);
	assert_int_equal(count_names(), n_before);
}

/* Also when ranks read each other's memory. */
static void check_both_ways(struct asked *asked, unsigned size)
{
	check(asked, size);
	asked->spec.by_messages = false;
	check(asked, size);
	asked->spec.by_messages = true;
}

static void any_number_of_ranks_writes_the_same(void **state)
{
	static const unsigned sizes[] = { 1, 2, 3, 8 };
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		ask(&asked, "u64", 8, random_path, few_path);
		check_both_ways(&asked, sizes[i]);
		ask(&asked, "u16", 16, few_path, NULL);
		check_both_ways(&asked, sizes[i]);
	}
}

/* Each has more than its memory, and so has files. */
static void what_ranks_have_in_files_is_the_same(void **state)
{
	static const enum compression_mode modes[] = { COMPRESS_NONE, COMPRESS_ZSTD };
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		ask(&asked, "u64", 8, random_path, random_path);
		asked.spec.compression.mode = modes[i];
		check_both_ways(&asked, 2);
	}
}

static void what_ranks_have_in_memory_is_not_stored(void **state)
{
	static const unsigned sizes[] = { 2, 3, 8 };
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		ask_in_memory(&asked, "u64", 8, random_path, few_path);
		check_both_ways(&asked, sizes[i]);
		ask_in_memory(&asked, "u32", 16, few_path, random_path);
		asked.spec.index = i == 1;
		check_both_ways(&asked, sizes[i]);
	}
	ask_in_memory(&asked, "b20", 24, random_path, NULL);
	check_both_ways(&asked, 3);
	ask_in_memory(&asked, "u32", 8, random_path, few_path);
	asked.spec.limit = 700;
	check_both_ways(&asked, 4);
}

/* So much that it fits, and then that there is room for what comes of others, too. */
static void ranks_with_little_room_store_what_they_have(void **state)
{
	struct asked asked;

	(void)state;
	for (uint64_t nbytes = 1200 << 10; nbytes <= 4 << 20; nbytes = nbytes / 2 * 3) {
		ask(&asked, "u64", 8, random_path, few_path);
		asked.spec.memory_nbytes = nbytes;
		check(&asked, 2);
		ask(&asked, "u8", 8, random_path, few_path);
		asked.spec.memory_nbytes = nbytes;
		asked.spec.limit = N - N / 7;
		check(&asked, 3);
		asked.spec.limit = 0;
		asked.spec.unique = true;
		check(&asked, 3);
	}
}

/* All but the last four bytes of the keys are those of one key: what begins alike is one rank's. */
static void all_that_begins_alike_goes_to_one_rank(void **state)
{
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < N / 3; i++) {
		numbers[3 * i] = numbers[3 * i + 1] = 7;
		numbers[3 * i + 2] = (i * 7919) % 1009;
	}
	write_file(random_path, numbers, sizeof numbers);
	ask_in_memory(&asked, "b24", 24, random_path, NULL);
	check(&asked, 3);
	asked.spec.memory_nbytes = 2 << 20;
	asked.is_traded = false;
	check(&asked, 3);
}

/* Who has written to each MiB of the output, as bits: of all ranks. */
enum { STRIPE_NBYTES = 1 << 20, N_STRIPES = 4 };
static atomic_uint *writers;
static unsigned own_rank;

static bool leads_to_output(int fd)
{
	char link[64], path[512] = "";

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".gsort-temp-");
}

static ssize_t noted_pwrite(int fd, const void *data, size_t nbytes, off_t offset)
{
	if (leads_to_output(fd))
		for (off_t at = offset; at < offset + (off_t)nbytes; at++)
			if (at == offset || at % STRIPE_NBYTES == 0)
				atomic_fetch_or(&writers[at / STRIPE_NBYTES], 1u << own_rank);
	return pwrite(fd, data, nbytes, offset);
}

static int sort_noted(struct ranks *ranks, void *argument)
{
	struct asked asked = *(const struct asked *)argument;
	struct syscalls calls = syscalls_plain;

	calls.pwrite = noted_pwrite;
	asked.spec.io = &calls;
	own_rank = ranks_rank(ranks);
	return sort_share(ranks, &asked);
}

/* Returns how many stripes were written to. */
static unsigned check_stripes(int zstd_level)
{
	struct asked asked;
	struct ranks_double ranks;
	unsigned n = 0;

	writers = mmap(NULL, N_STRIPES * sizeof *writers, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(writers, MAP_FAILED);
	fill_pattern(numbers, sizeof numbers, 2);
	write_file(few_path, numbers, sizeof numbers);
	ask_in_memory(&asked, "u64", 24, random_path, few_path);
	asked.spec.zstd_level = zstd_level;
	asked.is_traded = !zstd_level;
	sort_alone(&asked);
	ranks = ranks_of(&asked, 4);
	ranks.body = sort_noted;
	ranks_double_run(&ranks);
	ranks_double_assert_fine(&ranks);
	ranks_double_forget(&ranks);
	assert_same();
	for (size_t i = 0; i < N_STRIPES; i++) {
		n += writers[i] > 0;
		assert_int_equal(writers[i] & (writers[i] - 1), 0);
	}
	munmap(writers, N_STRIPES * sizeof *writers);
	return n;
}

static void no_two_ranks_write_to_one_stripe(void **state)
{
	(void)state;
	assert_int_equal(check_stripes(0), 3);
}

static void no_two_ranks_write_to_one_stripe_of_what_is_compressed(void **state)
{
	(void)state;
	assert_int_equal(check_stripes(1), 3);
}

static void ask_compressed(struct asked *asked, const char *type, uint64_t record_nbytes,
			   const char *first, const char *second)
{
	ask(asked, type, record_nbytes, first, second);
	asked->spec.zstd_level = 1;
	asked->spec.memory_nbytes = 16 << 20;
}

static void compressed_output_is_that_of_one_process(void **state)
{
	static const unsigned sizes[] = { 1, 2, 3, 8 };
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		ask_compressed(&asked, "u64", 8, random_path, random_path);
		check(&asked, sizes[i]);
	}
	/* A record can be in two frames. */
	ask_compressed(&asked, "b20", 24, random_path, random_path);
	asked.spec.verify = true;
	asked.spec.skip_nbytes = 24;
	asked.spec.memory_nbytes = 2 << 20;
	check(&asked, 5);
	ask_compressed(&asked, "u32", 8, random_path, random_path);
	asked.spec.index = true;
	asked.spec.limit = N;
	check(&asked, 6);
	ask_compressed(&asked, "u16", 8, random_path, few_path);
	asked.spec.unique = true;
	asked.spec.verify = true;
	check(&asked, 3);
}

/* Frames that did not shrink are longer than what they hold. */
static void stripes_of_a_file_may_be_longer_than_frames(void **state)
{
	struct asked asked;

	(void)state;
	fill_pattern(numbers, sizeof numbers, 2);
	write_file(few_path, numbers, sizeof numbers);
	preferred_nbytes = 4 << 20;
	ask_compressed(&asked, "u16", 48, random_path, few_path);
	check(&asked, 3);
	preferred_nbytes = 0;
}

/* What several ranks have of a frame goes to one, in any order. */
static void edges_of_frames_may_overtake_each_other(void **state)
{
	struct asked asked;

	(void)state;
	ask_compressed(&asked, "u64", 8, random_path, random_path);
	sort_alone(&asked);
	assert_agrees(&asked, 6, 1);
}

/* All frames, but one or two, are of one rank; or there is nothing in any. */
static void some_ranks_compress_nothing(void **state)
{
	static const uint64_t limits[] = { 0, 1, 40000, (1 << 20) / 8, N };
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		ask_compressed(&asked, "u64", 8, random_path, few_path);
		asked.spec.limit = limits[i];
		asked.spec.verify = true;
		check(&asked, 4);
	}
	write_file(few_path, numbers, 16);
	ask_compressed(&asked, "u64", 8, few_path, NULL);
	asked.spec.skip_nbytes = 8;
	check(&asked, 5);
	write_file(few_path, numbers, 0);
	ask_compressed(&asked, "u64", 8, few_path, NULL);
	check(&asked, 2);
}

static void whatever_order_messages_come_in(void **state)
{
	struct asked asked;

	(void)state;
	ask(&asked, "u16", 8, random_path, few_path);
	sort_alone(&asked);
	for (uint64_t seed = 1; seed <= 2; seed++)
		assert_agrees(&asked, 3, seed);
	ask_in_memory(&asked, "u32", 8, random_path, few_path);
	sort_alone(&asked);
	assert_agrees(&asked, 3, 3);
}

static void equal_records_of_all_ranks_meet(void **state)
{
	struct asked asked;

	(void)state;
	ask(&asked, "u16", 8, random_path, few_path);
	asked.spec.unique = true;
	check(&asked, 1);
	check(&asked, 3);
	asked.spec.count = true;
	check(&asked, 4);
	asked.spec.limit = 100;
	check(&asked, 3);
}

static void limit_is_that_of_all_ranks(void **state)
{
	static const uint64_t limits[] = { 0, 1, 700, N / 2 };
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		ask(&asked, "u8", 8, random_path, few_path);
		asked.spec.limit = limits[i];
		asked.spec.verify = true;
		check(&asked, 3);
	}
}

static void records_are_numbered_through(void **state)
{
	struct asked asked;

	(void)state;
	ask(&asked, "u16", 16, few_path, few_path);
	asked.spec.index = true;
	check(&asked, 4);
}

/* What a part, or the list of n of them, is called. */
static const char *part_path(const char *name, uint32_t n, uint32_t i)
{
	static char part[600];
	char *path;

	assert_int_equal(part_files_make_path(name, n, i, &path), 0);
	assert_in_range(strlen(path), 1, sizeof part - 1);
	strcpy(part, path);
	free(path);
	return part;
}

/* Of one process: its parts and their list, which are to be forgotten. */
struct bytes {
	char *bytes;
	size_t nbytes;
};

static struct bytes *remember_parts(const struct asked *asked)
{
	const uint32_t n = asked->spec.n_part_files;
	struct bytes *all = calloc(n + UINT64_C(1), sizeof *all);
	struct sort_facts facts;

	assert_int_equal(sort_run(&asked->spec, &nobody, NULL, &facts), 0);
	for (uint32_t i = 0; i <= n; i++)
		all[i].bytes = bytes_of(part_path(together_path, n, i), &all[i].nbytes);
	return all;
}

static void forget_parts(const struct asked *asked, struct bytes *all)
{
	for (uint32_t i = 0; i <= asked->spec.n_part_files; i++)
		free(all[i].bytes);
	free(all);
}

static void sort_together(struct asked *asked, unsigned size)
{
	struct ranks_double ranks = ranks_of(asked, size);

	ranks_double_run(&ranks);
	ranks_double_assert_fine(&ranks);
	ranks_double_forget(&ranks);
}

/* Ranks replace what was there, of whatever number, by the same as one process. */
static void check_parts(struct asked *asked, unsigned size, uint32_t n_older)
{
	const uint32_t n = asked->spec.n_part_files;
	const unsigned n_before = count_names();
	struct bytes *alone = remember_parts(asked);
	struct sort_facts facts;

	asked->spec.n_part_files = n_older;
	assert_int_equal(sort_run(&asked->spec, &nobody, NULL, &facts), 0);
	asked->spec.n_part_files = n;
	sort_together(asked, size);
	assert_int_equal(count_names(), n_before + n + 1);
	for (uint32_t i = 0; i <= n; i++) {
		const char *path = part_path(together_path, n, i);

		assert_true(file_holds(path, alone[i].bytes, alone[i].nbytes));
		unlink(path);
	}
	forget_parts(asked, alone);
}

static void parts_and_their_list_are_those_of_one_process(void **state)
{
	static const uint32_t numbers_of_parts[] = { 1, 3, 7, 60 };
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof numbers_of_parts / sizeof numbers_of_parts[0]; i++) {
		ask(&asked, "u64", 8, random_path, few_path);
		asked.spec.n_part_files = numbers_of_parts[i];
		asked.spec.verify = true;
		check_parts(&asked, 3, 5);
	}
	ask(&asked, "u16", 8, few_path, NULL);
	asked.spec.n_part_files = 4;
	asked.spec.limit = 1001;
	asked.spec.skip_nbytes = 24;
	check_parts(&asked, 5, 2);
	asked.spec.limit = 0;
	check_parts(&asked, 2, 4);
}

/* Of some files a rank has all frames, of some a few, of some none. */
static void compressed_parts_are_those_of_one_process(void **state)
{
	static const uint32_t numbers_of_parts[] = { 1, 3, 20 };
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof numbers_of_parts / sizeof numbers_of_parts[0]; i++) {
		ask_compressed(&asked, "b20", 24, random_path, random_path);
		asked.spec.n_part_files = numbers_of_parts[i];
		asked.spec.skip_nbytes = 24;
		asked.spec.verify = true;
		check_parts(&asked, 5, 2);
	}
	ask_compressed(&asked, "u64", 8, few_path, NULL);
	asked.spec.n_part_files = 5;
	asked.spec.limit = 3;
	check_parts(&asked, 4, 5);
}

/* All parts one behind the other; none ends with a key that the next begins with. */
static struct bytes join_parts(uint32_t n)
{
	struct bytes whole = { malloc(1), 0 };

	for (uint32_t i = 0; i < n; i++) {
		struct bytes part;

		part.bytes = bytes_of(part_path(together_path, n, i), &part.nbytes);
		assert_true(part.nbytes > 0);
		if (i > 0)
			assert_memory_not_equal(whole.bytes + whole.nbytes - sizeof(uint64_t),
						part.bytes, sizeof(uint64_t));
		whole.bytes = realloc(whole.bytes, whole.nbytes + part.nbytes);
		memcpy(whole.bytes + whole.nbytes, part.bytes, part.nbytes);
		whole.nbytes += part.nbytes;
		free(part.bytes);
		unlink(part_path(together_path, n, i));
	}
	unlink(part_path(together_path, n, n));
	return whole;
}

static void check_at_keys(struct asked *asked, unsigned size, uint32_t n_parts)
{
	struct bytes whole;

	sort_alone(asked);
	asked->spec.n_part_files = n_parts;
	asked->spec.parts_at_keys = true;
	asked->spec.verify = true;
	sort_together(asked, size);
	whole = join_parts(n_parts);
	assert_true(file_holds(alone_path, whole.bytes, whole.nbytes));
	free(whole.bytes);
	unlink(alone_path);
}

static void no_key_is_in_two_parts_that_end_at_keys(void **state)
{
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < N; i++)
		numbers[i] %= 100;
	write_file(few_path, numbers, sizeof numbers);
	ask(&asked, "u64", 8, few_path, NULL);
	check_at_keys(&asked, 3, 5);
	asked.spec.n_part_files = 0;
	asked.spec.limit = N / 3;
	check_at_keys(&asked, 4, 2);
	ask(&asked, "u64", 8, few_path, random_path);
	asked.spec.unique = true;
	check_at_keys(&asked, 3, 4);
}

/* What one rank of several, or one process, finds: with its number, the disorder in 0. */
struct findings {
	struct asked asked;
	uint64_t *disorders, *n_records; /* shared; of each rank */
};

static int check_share(struct ranks *ranks, void *argument)
{
	const struct findings *found = argument;
	struct sort_spec spec = found->asked.spec;
	struct sort_facts facts;
	const unsigned rank = ranks_rank(ranks);
	int r;

	spec.ranks = ranks;
	r = sort_check(&spec, "gsort -c", &nobody, NULL, &facts, &found->disorders[rank]);
	if (r == 0)
		found->n_records[rank] = facts.n_records_in;
	return r;
}

/* All ranks find the one that one process does, and read what they must. */
static void assert_finds(const struct asked *asked, unsigned size, uint64_t disorder, uint64_t n)
{
	struct findings found = { .asked = *asked };
	struct ranks_double ranks = ranks_of(&found.asked, size);
	uint64_t alone = UINT64_MAX, n_read = 0;
	struct sort_facts facts;

	found.asked.spec.checks = true;
	found.asked.spec.output_path = NULL;
	assert_int_equal(sort_check(&found.asked.spec, "gsort -c", &nobody, NULL, &facts, &alone),
			 0);
	assert_int_equal(alone, disorder);
	found.disorders =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(found.disorders, MAP_FAILED);
	found.n_records = found.disorders + RANKS_DOUBLE_MOST;
	ranks.body = check_share;
	ranks.argument = &found;
	ranks_double_run(&ranks);
	for (unsigned i = 0; i < size; i++) {
		assert_int_equal(ranks.ends[i].r, 0);
		assert_int_equal(found.disorders[i], disorder);
		n_read += found.n_records[i];
	}
	ranks_double_forget(&ranks);
	if (disorder == 0)
		assert_int_equal(n_read, n);
	munmap(found.disorders, 4096);
}

/* In order but for two records, from 0, which are 0. */
static void write_disorder(uint64_t record, uint64_t other)
{
	for (size_t i = 0; i < N; i++)
		numbers[i] = i == record || i == other ? 0 : 5 + i / 2;
	write_file(random_path, numbers, sizeof numbers);
}

static void first_disorder_of_all_ranks_is_found(void **state)
{
	/* The second, ends of the parts of three, and the last. */
	static const uint64_t places[] = { 1, N / 3 - 1, N / 3, N / 3 + 1, 2 * N / 3, N - 1 };
	struct asked asked;

	(void)state;
	ask(&asked, "u64", 8, random_path, NULL);
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		write_disorder(places[i], N - 1);
		assert_finds(&asked, 3, places[i] + 1, N);
	}
	write_disorder(N, N);
	assert_finds(&asked, 4, 0, N);
	asked.spec.unique = true;
	assert_finds(&asked, 4, 2, N);
}

/* With -u the equal ones are the last of a rank and the first of the next that has any. */
static void equal_records_of_neighbours_are_disorder_with_u(void **state)
{
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < N; i++)
		numbers[i] = i < N / 2 ? i : i - 1;
	write_file(random_path, numbers, sizeof numbers);
	ask(&asked, "u64", 8, random_path, NULL);
	assert_finds(&asked, 2, 0, N);
	asked.spec.unique = true;
	assert_finds(&asked, 2, N / 2 + 1, N);
	numbers[0] = numbers[1] = 3;
	write_file(few_path, numbers, 2 * sizeof *numbers);
	ask(&asked, "u64", 8, few_path, NULL);
	assert_finds(&asked, 5, 0, 2);
	asked.spec.unique = true;
	assert_finds(&asked, 5, 2, 2);
	write_file(few_path, numbers, 0);
	assert_finds(&asked, 3, 0, 0);
}

static void there_may_be_less_to_sort_than_ranks(void **state)
{
	struct asked asked;

	(void)state;
	write_file(few_path, numbers, 24);
	ask(&asked, "u64", 8, few_path, NULL);
	check(&asked, 5);
	asked.spec.n_part_files = 7;
	check_parts(&asked, 5, 1);
	asked.spec.n_part_files = 0;
	write_file(few_path, numbers, 0);
	check(&asked, 2);
	asked.spec.n_part_files = 2;
	check_parts(&asked, 3, 3);
}

/* The same records in order, in the place of what is not. */
static void sort_file(const char *path, const char *type, uint64_t record_nbytes)
{
	struct asked asked;
	struct sort_facts facts;

	ask(&asked, type, record_nbytes, path, NULL);
	asked.spec.output_path = path;
	assert_int_equal(sort_run(&asked.spec, &nobody, NULL, &facts), 0);
}

static void ask_to_merge(struct asked *asked, const char *type, uint64_t record_nbytes)
{
	sort_file(random_path, type, record_nbytes);
	sort_file(few_path, type, record_nbytes);
	ask(asked, type, record_nbytes, random_path, few_path);
	asked->spec.merges = true;
	asked->spec.verify = true;
}

static void inputs_that_are_sorted_are_merged(void **state)
{
	static const unsigned sizes[] = { 1, 2, 3, 8 };
	struct asked asked;

	(void)state;
	ask_to_merge(&asked, "u16", 16);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		check(&asked, sizes[i]);
	asked.spec.limit = N / 3;
	check(&asked, 3);
	asked.spec.limit = UINT64_MAX;
	asked.spec.verify = false;
	asked.spec.index = true;
	check(&asked, 3);
}

static void equal_records_of_merged_inputs_meet(void **state)
{
	struct asked asked;

	(void)state;
	ask_to_merge(&asked, "u8", 8);
	asked.spec.unique = true;
	for (unsigned size = 1; size < 5; size++)
		check(&asked, size);
	asked.spec.count = true;
	asked.spec.limit = 100;
	check(&asked, 3);
}

static void inputs_are_merged_to_parts(void **state)
{
	struct asked asked;

	(void)state;
	ask_to_merge(&asked, "u64", 8);
	asked.spec.n_part_files = 5;
	check_parts(&asked, 3, 2);
	for (size_t i = 0; i < N; i++)
		numbers[i] = i / 100;
	write_file(few_path, numbers, sizeof numbers);
	asked.spec.n_part_files = 0;
	check_at_keys(&asked, 4, 3);
}

/* What rank 0, or whoever has found it, says of a merge that is to fail. */
static void assert_says(struct asked *asked, const char *said)
{
	struct ranks_double ranks = ranks_of(asked, 3);
	bool is_said = false;

	ranks_double_run(&ranks);
	for (unsigned i = 0; i < 3; i++)
		is_said = is_said || strstr(ranks.ends[i].text, said);
	assert_true(is_said);
	ranks_double_forget(&ranks);
	assert_int_equal(access(together_path, F_OK), -1);
}

static void input_that_is_not_in_order_is_found_wherever_it_is(void **state)
{
	static const size_t places[] = { 1, N / 3, N / 2, N - 1 };
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < N; i++)
		numbers[i] = 10 * i;
	write_file(random_path, numbers, sizeof numbers);
	ask(&asked, "u64", 8, random_path, NULL);
	asked.spec.merges = true;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		const uint64_t before = numbers[places[i]];

		numbers[places[i]] = numbers[places[i] - 1] - 1;
		write_file(random_path, numbers, sizeof numbers);
		assert_says(&asked, "disorder");
		numbers[places[i]] = before;
	}
}

/* Every rank has read a piece of it, and none of them all. */
static void part_of_a_list_that_was_changed_is_found_by_all_together(void **state)
{
	const unsigned char wrong = 77;
	struct asked asked;
	char list[600];
	int fd;

	(void)state;
	ask(&asked, "u16", 16, random_path, few_path);
	asked.spec.n_part_files = 2;
	forget_parts(&asked, remember_parts(&asked));
	strcpy(list, part_path(together_path, 2, 2));
	ask(&asked, "u16", 16, list, NULL);
	asked.spec.merges = true;
	check(&asked, 3);
	assert_finds(&asked, 3, 0, (N + N_FEW) / 2);
	fd = open(part_path(together_path, 2, 0), O_WRONLY);
	assert_int_equal(pwrite(fd, &wrong, 1, 16 * 100 + 9), 1);
	close(fd);
	assert_says(&asked, "its records have the checksum");
	asked.spec.merges = false;
	asked.spec.checks = true;
	assert_says(&asked, "its records have the checksum");
}

/* Of a rank that fails, or a message that does not arrive, comes no output, or the right one. */
static void nothing_wrong_appears(struct asked *asked, enum ranks_fault fault, unsigned message)
{
	struct ranks_double ranks = ranks_of(asked, 3);
	bool all_fine = true;

	ranks.fault = fault;
	ranks.fault_rank = 1;
	ranks.fault_message = message;
	ranks_double_run(&ranks);
	for (unsigned i = 0; i < ranks.size; i++)
		all_fine = all_fine && ranks.ends[i].r == 0 && ranks.ends[i].status == 0;
	ranks_double_forget(&ranks);
	if (all_fine || access(together_path, F_OK) == 0)
		assert_same();
	unlink(together_path);
}

static unsigned count_messages(struct asked *asked)
{
	struct ranks_double ranks = ranks_of(asked, 3);
	unsigned n;

	sort_alone(asked);
	ranks_double_run(&ranks);
	n = ranks.ends[1].n_sent;
	ranks_double_forget(&ranks);
	unlink(together_path);
	return n;
}

static void check_faults(struct asked *asked)
{
	static const enum ranks_fault kinds[] = { RANKS_CUT, RANKS_SHORT, RANKS_DAMAGED };
	enum { N_PLACES = 5 };
	const unsigned n = count_messages(asked);

	assert_true(n > 10);
	for (unsigned at = 0; at < sizeof kinds / sizeof kinds[0] * N_PLACES; at++)
		nothing_wrong_appears(asked, kinds[at / N_PLACES],
				      (n - 1) * (at % N_PLACES) / (N_PLACES - 1));
}

/* Runs in memory, or such as are packed and stored; and runs in memory that is read where it is. */
static void fault_anywhere_is_no_output_or_the_right_one(void **state)
{
	static const enum compression_mode modes[] = { COMPRESS_NONE, COMPRESS_ZSTD,
						       COMPRESS_NONE };
	enum { READS_MEMORY = 2 };
	struct asked asked;

	(void)state;
	ask(&asked, "u16", 8, few_path, NULL);
	for (size_t mode = 0; mode < sizeof modes / sizeof modes[0]; mode++) {
		asked.spec.compression.mode = modes[mode];
		asked.spec.by_messages = mode < READS_MEMORY;
		check_faults(&asked);
	}
	ask_compressed(&asked, "u64", 8, random_path, random_path);
	check_faults(&asked);
}

/* All ranks end without an output, and one of them says why. */
static void assert_ends(struct asked *asked, unsigned size, const char *said)
{
	struct ranks_double ranks = ranks_of(asked, size);
	bool is_said = false;

	ranks_double_run(&ranks);
	for (unsigned i = 0; i < size; i++) {
		assert_true(ranks.ends[i].r != 0 || ranks.ends[i].status != 0);
		is_said = is_said || strstr(ranks.ends[i].text, said);
	}
	if (!is_said)
		print_message("nobody says: %s, but: %s\n", said, ranks.ends[0].text);
	assert_true(is_said);
	ranks_double_forget(&ranks);
	assert_int_not_equal(access(together_path, F_OK), 0);
}

/* Numbers of another rank are looked at before anything is done with them. */
static void what_another_rank_says_wrongly_ends_all(void **state)
{
	static const char not_here[] = "asks for what is not here",
			  cannot_be[] = "has told of its runs cannot be",
			  no_stripe[] = "is not of a stripe that this rank writes",
			  too_much[] = "offers more than there can be";
	/* Words of requests and edges; and of rows and blocks, which are answered first. */
	static const struct falsehood all[] = {
		{ not_here, RANKS_TAG_REQUESTS, 0, 0, 100 }, /* no such wish */
		{ not_here, RANKS_TAG_REQUESTS, 0, 3, UINT64_C(1) << 60 },
		{ not_here, RANKS_TAG_REQUESTS, 1, 1, 1000 },
		{ not_here, RANKS_TAG_REQUESTS, 1, 2, UINT64_C(1) << 60 },
		{ not_here, RANKS_TAG_REQUESTS, 1, 3, 100 },
		{ cannot_be, RANKS_TAG_ANSWERS, 0, 1, N },
		{ cannot_be, RANKS_TAG_ANSWERS, 1, 6, 1 },
		{ no_stripe, RANKS_TAG_EDGES, 0, 1, 2 << 20 },
		{ no_stripe, RANKS_TAG_EDGES, 0, 2, 8 },
		{ too_much, RANKS_TAG_OFFERS, 0, 0, UINT64_C(1) << 61 },
	};
	struct asked asked;

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		if (all[i].tag == RANKS_TAG_OFFERS)
			ask_in_memory(&asked, "u64", 8, random_path, NULL);
		else
			ask(&asked, "u64", 8, random_path, NULL);
		asked.spec.compression.mode = COMPRESS_NONE;
		told = all[i];
		assert_ends(&asked, 2, told.said);
	}
	told = (struct falsehood){ 0 };
}

/* Of two edges of the first frame; what is behind one would be waited for without an end. */
static void edge_of_a_frame_that_is_lost_is_missed(void **state)
{
	struct asked asked;

	(void)state;
	ask_compressed(&asked, "u64", 8, few_path, few_path);
	lost_end = N_FEW * sizeof *numbers;
	assert_ends(&asked, 3, "of other ranks content at");
	lost_begin = lost_end;
	lost_end = UINT64_MAX;
	assert_ends(&asked, 3, "bytes hold");
	lost_end = 0;
}

static ssize_t failing_pwrite(int fd, const void *data, size_t nbytes, off_t offset)
{
	if (!leads_to_output(fd))
		return pwrite(fd, data, nbytes, offset);
	errno = EIO;
	return -1;
}

static unsigned count_threads(void)
{
	DIR *threads = opendir("/proc/self/task");
	unsigned n = 0;

	while (threads && readdir(threads))
		n++;
	if (threads)
		closedir(threads);
	return n;
}

/* One of them cannot write. When it returns nobody is served any more by threads that it had. */
static int fail_to_write(struct ranks *ranks, void *argument)
{
	struct asked asked = *(const struct asked *)argument;
	struct syscalls calls = syscalls_plain;
	const unsigned n_threads = count_threads();
	int r;

	calls.pwrite = failing_pwrite;
	if (ranks_rank(ranks) == 1)
		asked.spec.io = &calls;
	r = sort_share(ranks, &asked);
	/* A thread that has been waited for may be seen for a moment. */
	for (unsigned i = 0; i < 10000 && count_threads() > n_threads; i++)
		usleep(1000);
	return count_threads() > n_threads ? -ENOTRECOVERABLE : r;
}

static void who_has_failed_serves_nobody(void **state)
{
	struct asked asked;

	(void)state;
	for (unsigned fits = 0; fits < 2; fits++) {
		struct ranks_double ranks = ranks_of(&asked, 2);

		if (fits)
			ask_in_memory(&asked, "u64", 8, random_path, NULL);
		else
			ask(&asked, "u64", 8, random_path, NULL);
		ranks.body = fail_to_write;
		ranks.settings.end_ns = minute_ns;
		ranks_double_run(&ranks);
		assert_int_equal(ranks.ends[1].r, -EIO);
		assert_int_not_equal(ranks.ends[0].r, -ENOTRECOVERABLE);
		ranks_double_forget(&ranks);
		assert_int_equal(access(together_path, F_OK), -1);
	}
}

/* --- one page cache --- */

/* What ranks choose by themselves, and which have their files pass the cache by, as bits. */
static struct choice {
	const enum page_cache_use *uses; /* of each rank; NULL: it is asked */
	atomic_uint *outputs, *spills;   /* shared */
} choice;

enum page_cache_use __real_page_cache_use(const struct job *job, uint64_t nbytes);
enum page_cache_use __wrap_page_cache_use(const struct job *job, uint64_t nbytes);
enum page_cache_use __wrap_page_cache_use(const struct job *job, uint64_t nbytes)
{
	return choice.uses ? choice.uses[own_rank] : __real_page_cache_use(job, nbytes);
}

void __real_output_pass_by_cache(struct output *output);
void __wrap_output_pass_by_cache(struct output *output);
void __wrap_output_pass_by_cache(struct output *output)
{
	if (choice.uses)
		atomic_fetch_or(choice.outputs, 1u << own_rank);
	__real_output_pass_by_cache(output);
}

void __real_spill_pass_by_cache(struct spill *spill);
void __wrap_spill_pass_by_cache(struct spill *spill);
void __wrap_spill_pass_by_cache(struct spill *spill)
{
	if (choice.uses)
		atomic_fetch_or(choice.spills, 1u << own_rank);
	__real_spill_pass_by_cache(spill);
}

/* Two ranks are on each machine. */
unsigned __real_ranks_count_neighbours(const struct ranks *ranks, unsigned *ret_first);
unsigned __wrap_ranks_count_neighbours(const struct ranks *ranks, unsigned *ret_first);
unsigned __wrap_ranks_count_neighbours(const struct ranks *ranks, unsigned *ret_first)
{
	if (!choice.uses)
		return __real_ranks_count_neighbours(ranks, ret_first);
	*ret_first = ranks_rank(ranks) / 2 * 2;
	return 2;
}

static int sort_as_chosen(struct ranks *ranks, void *argument)
{
	own_rank = ranks_rank(ranks);
	return sort_share(ranks, argument);
}

/* Else some would write to a file past the cache while others write to it through the cache. */
static void ranks_of_a_machine_do_what_its_first_has_chosen(void **state)
{
	static const enum page_cache_use uses[] = { PAGE_CACHE_HOLDS, PAGE_CACHE_IS_TOO_SMALL,
						    PAGE_CACHE_IS_TOO_SMALL, PAGE_CACHE_HOLDS };
	struct asked asked;
	struct ranks_double ranks = ranks_of(&asked, 4);

	(void)state;
	ask(&asked, "u64", 8, random_path, few_path);
	sort_alone(&asked);
	choice.uses = uses;
	choice.outputs = mmap(NULL, 2 * sizeof *choice.outputs, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(choice.outputs, MAP_FAILED);
	choice.spills = choice.outputs + 1;
	ranks.body = sort_as_chosen;
	ranks_double_run(&ranks);
	ranks_double_assert_fine(&ranks);
	ranks_double_forget(&ranks);
	assert_same();
	assert_int_equal(*choice.outputs, 0xc);
	assert_int_equal(*choice.spills, 0xc);
	munmap(choice.outputs, 2 * sizeof *choice.outputs);
	choice = (struct choice){ 0 };
}

/* A rank that was asked for something else. */
static int sort_otherwise(struct ranks *ranks, void *argument)
{
	struct asked asked = *(const struct asked *)argument;

	asked.spec.unique = ranks_rank(ranks) == 2;
	return sort_share(ranks, &asked);
}

static void ranks_that_are_asked_for_something_else_are_named(void **state)
{
	struct asked asked;
	struct ranks_double ranks;

	(void)state;
	ask(&asked, "u16", 8, few_path, NULL);
	ranks = ranks_of(&asked, 3);
	ranks.body = sort_otherwise;
	ranks_double_run(&ranks);
	assert_non_null(strstr(ranks.ends[2].text, "sorts something else than the first rank"));
	assert_non_null(strstr(ranks.ends[2].text, "unique records: here 'yes', there 'no'"));
	ranks_double_forget(&ranks);
	assert_int_equal(access(together_path, F_OK), -1);
}

/* --- what goes over disks and wires --- */

enum { N_MANY = 1 << 22 };

/* What the first rank has found, for the test. */
struct found {
	struct census_entry all, ranks[RANKS_DOUBLE_MOST];
};

/* The same, and what it has come to. */
struct counted {
	struct asked asked;
	struct found *found;
};

static int count_all(struct ranks *ranks, const struct census_entry *own, struct found *ret_found)
{
	struct census *census;
	int r = census_take(ranks, own, &census);

	if (r < 0 || !census)
		return r;
	ret_found->all = census->all;
	memcpy(ret_found->ranks, census->ranks, census->n * sizeof *census->ranks);
	census_close(census);
	return 0;
}

static int sort_counted(struct ranks *ranks, void *argument)
{
	const struct counted *counted = argument;
	struct sort_spec spec = counted->asked.spec;
	struct census_entry own;
	struct stats *stats;
	int r = stats_open(NULL, &stats);

	spec.ranks = ranks;
	if (r == 0)
		r = sort_run(&spec, &nobody, stats, &own.facts);
	if (r == 0) {
		stats_get_totals(stats, &own.totals);
		r = count_all(ranks, &own, counted->found);
	}
	stats_close(stats);
	return r;
}

/* Sum of what all phases have of it. */
static struct stats_volumes volumes_of(const struct census_entry *entry)
{
	struct stats_volumes sum = { 0 };

	for (enum phase i = 0; i < N_PHASES; i++) {
		const struct stats_volumes *of = &entry->totals.phases[i].volumes;

		sum.temporary_written_nbytes += of->temporary_written_nbytes;
		sum.temporary_read_nbytes += of->temporary_read_nbytes;
		sum.sent_nbytes += of->sent_nbytes;
		sum.wire_sent_nbytes += of->wire_sent_nbytes;
		sum.wire_received_nbytes += of->wire_received_nbytes;
	}
	return sum;
}

/*
 * At each place where a run is cut two ranks have the block, and one of them twice: it looks there
 * for its first item. What all have in memory has no blocks.
 */
static uint64_t cut_nbytes(const struct census_entry *all, unsigned n_ranks, bool fits)
{
	return fits ? 0 : 2 * all->facts.n_runs * (n_ranks - 1) * all->facts.plan.block_nbytes;
}

static void assert_disk(const struct census_entry *all, unsigned n_ranks, bool fits)
{
	const uint64_t n = all->facts.n_records_in * 8;
	const struct stats_volumes volumes = volumes_of(all);
	const uint64_t read = all->totals.phases[PHASE_RUNS].stages[STAGE_READ].nbytes;
	const uint64_t written = all->totals.phases[PHASE_MERGE].stages[STAGE_WRITE].nbytes;
	const uint64_t temporary = volumes.temporary_written_nbytes + volumes.temporary_read_nbytes;

	assert_int_equal(read, n);
	assert_int_equal(written, n);
	if (fits)
		assert_int_equal(temporary, 0);
	else
		assert_in_range(temporary, n / 4,
				2.05 * (double)n + cut_nbytes(all, n_ranks, fits));
}

/* Nothing was packed, and nothing went through a pass: what is on its way is the records. */
static void assert_wire(const struct census_entry *all, unsigned n_ranks, bool fits, bool is_random)
{
	const uint64_t others = all->facts.n_records_in * 8 * (n_ranks - 1) / n_ranks;
	const struct stats_volumes volumes = volumes_of(all);
	/* Of blocks of some KiB, what is told and asked of each weighs twice as much. */
	const double beside = fits ? 1.02 : 1.04;

	assert_int_equal(all->facts.n_passes, 1);
	assert_in_range(volumes.wire_sent_nbytes, is_random ? others - others / 20 : 1,
			beside * (double)others + cut_nbytes(all, n_ranks, fits));
	assert_in_range(volumes.sent_nbytes, 1, volumes.wire_sent_nbytes - 1);
	/* What is on its way when one of them looks may be in no phase of the other. */
	assert_in_range(volumes.wire_received_nbytes + 10000, volumes.wire_sent_nbytes,
			volumes.wire_sent_nbytes + 20000);
}

static void assert_balance(const struct found *found, unsigned n_ranks, bool fits)
{
	const struct sort_facts *all = &found->all.facts;
	const uint64_t share = all->n_records_out / n_ranks;
	const uint64_t n_blocks = fits ? 1 : all->n_runs;
	uint64_t n = 0;

	for (unsigned i = 0; i < n_ranks; i++) {
		assert_in_range(found->ranks[i].facts.n_records_out, 0,
				share + share / 100 + n_blocks * all->plan.block_nbytes / 8);
		n += found->ranks[i].facts.n_records_out;
	}
	assert_int_equal(n, all->n_records_in);
	assert_int_equal(n, all->n_records_out);
}

static void check_volumes(unsigned n_ranks, bool fits, bool is_random)
{
	struct counted counted = { .found = mmap(NULL, sizeof *counted.found,
						 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
						 -1, 0) };
	struct ranks_double ranks = ranks_of(&counted.asked, n_ranks);

	assert_ptr_not_equal(counted.found, MAP_FAILED);
	ask(&counted.asked, "u64", 8, is_random ? many_path : equal_path, NULL);
	counted.asked.spec.memory_nbytes = fits ? 32 << 20 : 15 << 19;
	counted.asked.spec.compression.mode = COMPRESS_NONE;
	ranks.settings.piece_nbytes = RANKS_DOUBLE_PIECE_NBYTES;
	ranks.body = sort_counted;
	ranks.argument = &counted;
	ranks_double_run(&ranks);
	ranks_double_assert_fine(&ranks);
	ranks_double_forget(&ranks);
	assert_disk(&counted.found->all, n_ranks, fits);
	assert_wire(&counted.found->all, n_ranks, fits, is_random);
	assert_balance(counted.found, n_ranks, fits);
	munmap(counted.found, sizeof *counted.found);
	unlink(together_path);
}

static void volumes_and_balance_are_those_promised(void **state)
{
	static uint64_t many[N_MANY];
	/* Were it const, these zeros would be in the program's file. */
	static uint64_t zeros[N_MANY];

	(void)state;
	strcpy(many_path, path_of("many"));
	strcpy(equal_path, path_of("equal"));
	fill_pattern(many, sizeof many, 2);
	for (unsigned n_ranks = 2; n_ranks <= 4; n_ranks += 2) {
		write_file(many_path, many, n_ranks * (sizeof many / 4));
		write_file(equal_path, zeros, n_ranks * (sizeof many / 4));
		for (unsigned i = 0; i < 4; i++)
			check_volumes(n_ranks, i & 1, i & 2);
	}
}

/* --- Checkpoints --- */

static char kept_path[512];

static void ask_to_keep(struct asked *asked)
{
	strcpy(kept_path, path_of("kept"));
	ask(asked, "u16", 8, random_path, random_path);
	sort_alone(asked);
	asked->spec.checkpoint_path = kept_path;
}

/* What a rank keeps; rank and name stay until the next call. */
static const char *kept_file(unsigned rank, const char *name)
{
	static char path[600];

	snprintf(path, sizeof path, "%s/rank-%04u%s%s", kept_path, rank, *name ? "/" : "", name);
	return path;
}

/* One of three is killed there, or what it sends is damaged, and all end with it. */
static void end_with(struct asked *asked, enum ranks_fault fault, unsigned rank, unsigned message)
{
	struct ranks_double ranks = ranks_of(asked, 3);

	ranks.settings.end_ns = minute_ns; /* all have the time to save what they have */
	ranks.fault = fault;
	ranks.fault_rank = rank;
	ranks.fault_message = message;
	ranks_double_run(&ranks);
	ranks_double_forget(&ranks);
}

/* Three that end while they merge: all that they keep is there. Returns what one else sends. */
static unsigned leave_kept(struct asked *asked)
{
	const unsigned n = count_messages(asked);

	end_with(asked, RANKS_DAMAGED, 1, n * 3 / 4);
	assert_int_equal(access(together_path, F_OK), -1);
	assert_int_equal(access(kept_file(1, "gsort-runs"), F_OK), 0);
	return n;
}

static void assert_nothing_kept(void)
{
	assert_int_equal(access(kept_path, F_OK), -1);
}

static void what_is_finished_when_a_rank_is_killed_is_taken_up(void **state)
{
	enum { N_PLACES = 5 };
	struct asked asked;
	unsigned n;

	(void)state;
	ask_to_keep(&asked);
	n = count_messages(&asked);
	assert_nothing_kept();
	for (unsigned at = 0; at < N_PLACES; at++) {
		end_with(&asked, RANKS_CUT, at % 3, (n - 1) * at / (N_PLACES - 1));
		end_with(&asked, RANKS_CUT, 1, n / 2);
		assert_agrees(&asked, 3, 0);
		assert_nothing_kept();
	}
}

static off_t nbytes_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_size;
}

/* Whoever takes up all of its part adds no run to it. */
static void a_part_that_is_in_runs_is_not_stored_again(void **state)
{
	struct asked asked;
	off_t nbytes;
	unsigned n;

	(void)state;
	ask_to_keep(&asked);
	n = leave_kept(&asked);
	nbytes = nbytes_of(kept_file(2, "gsort-manifest"));
	assert_true(nbytes_of(kept_file(2, "gsort-runs")) > 2 * (off_t)sizeof numbers / 3);
	end_with(&asked, RANKS_DAMAGED, 0, n / 2);
	assert_int_equal(nbytes_of(kept_file(2, "gsort-manifest")), nbytes);
	assert_agrees(&asked, 3, 0);
	assert_nothing_kept();
}

/* None of so many ranks does it, and one says why. */
static void check_refused(struct asked *asked, unsigned size, unsigned speaker, const char *text)
{
	struct ranks_double ranks = ranks_of(asked, size);

	ranks_double_run(&ranks);
	for (unsigned i = 0; i < size; i++) {
		assert_int_not_equal(ranks.ends[i].r, 0);
		if (i == speaker && !strstr(ranks.ends[i].text, text))
			print_message("%s\n", ranks.ends[i].text);
		assert_true((strstr(ranks.ends[i].text, text) != NULL) == (i == speaker));
	}
	ranks_double_forget(&ranks);
	assert_int_equal(access(together_path, F_OK), -1);
}

static void another_number_of_ranks_is_refused_once(void **state)
{
	struct asked asked;

	(void)state;
	ask_to_keep(&asked);
	leave_kept(&asked);
	check_refused(&asked, 2, 0, "number of ranks was '3' and is '2' now");
	check_refused(&asked, 5, 0, "number of ranks was '3' and is '5' now");
	assert_int_equal(access(kept_file(4, ""), F_OK), -1);
	assert_agrees(&asked, 3, 0);
	assert_nothing_kept();
}

static void damage_at_one_rank_is_said_and_without_its_part_all_goes_on(void **state)
{
	struct asked asked;
	FILE *file;

	(void)state;
	ask_to_keep(&asked);
	leave_kept(&asked);
	file = fopen(kept_file(1, "gsort-manifest"), "r+");
	assert_non_null(file);
	fseek(file, 100, SEEK_SET);
	fputc('!', file);
	fclose(file);
	check_refused(&asked, 3, 1, "rank-0001/gsort-manifest: the checkpoint is damaged");
	assert_int_equal(unlink(kept_file(1, "gsort-manifest")), 0);
	assert_int_equal(unlink(kept_file(1, "gsort-runs")), 0);
	assert_int_equal(rmdir(kept_file(1, "")), 0);
	assert_agrees(&asked, 3, 0);
	assert_nothing_kept();
}

/* Else what they keep would be there for good, and in the way of another sort. */
static void fewer_ranks_do_not_leave_what_others_keep(void **state)
{
	struct asked asked;

	(void)state;
	ask_to_keep(&asked);
	leave_kept(&asked);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(unlink(kept_file(i, "gsort-manifest")), 0);
		assert_int_equal(unlink(kept_file(i, "gsort-runs")), 0);
		assert_int_equal(rmdir(kept_file(i, "")), 0);
	}
	check_refused(&asked, 2, 0, "rank-0002: a checkpoint of a sort by more ranks");
	assert_agrees(&asked, 3, 0);
	assert_nothing_kept();
}

/* Another rank's is of another part. */
static void a_rank_takes_nothing_up_of_another(void **state)
{
	struct asked asked;
	char other[600];

	(void)state;
	ask_to_keep(&asked);
	leave_kept(&asked);
	strcpy(other, kept_file(0, ""));
	assert_int_equal(rename(kept_file(2, ""), path_of("aside")), 0);
	assert_int_equal(rename(other, kept_file(2, "")), 0);
	check_refused(&asked, 3, 2, "rank was '0' and is '2' now");
	assert_int_equal(rename(kept_file(2, ""), other), 0);
	assert_int_equal(rename(path_of("aside"), kept_file(2, "")), 0);
	assert_agrees(&asked, 3, 0);
	assert_nothing_kept();
}

/* --- calls that fail with one of them --- */

/* Those that a sort makes of which all goes well. */
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

enum { N_FAULT_RANKS = 2, SECONDS_A_SORT = 20 };

/* Of one rank a call fails, from the nth on, so often. */
static struct call_fault {
	unsigned rank, nth, n_times;
	enum call call;
} call_fault;

static atomic_uint (*n_calls)[N_CALLS]; /* of each rank; shared */

static bool call_fails(enum call call)
{
	const unsigned n = atomic_fetch_add(&n_calls[own_rank][call], 1) + 1;

	if (call_fault.n_times == 0 || own_rank != call_fault.rank || call != call_fault.call ||
	    n < call_fault.nth || n - call_fault.nth >= call_fault.n_times)
		return false;
	errno = call == CALL_PWRITE || call == CALL_FALLOCATE ? ENOSPC : EIO;
	return true;
}

static int counted_openat(int directory, const char *path, int flags, mode_t mode)
{
	return call_fails(CALL_OPENAT) ? -1 : syscalls_plain.openat(directory, path, flags, mode);
}

/* Of the output alone: what else is closed has been read, or is not wanted any more. */
static int counted_close(int fd)
{
	const bool is_output = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY && leads_to_output(fd);
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

/* Who never ends is ended by a signal, which the test sees. */
static int sort_with_faults(struct ranks *ranks, void *argument)
{
	struct asked asked = *(const struct asked *)argument;
	struct syscalls calls = syscalls_plain;

	own_rank = ranks_rank(ranks);
	alarm(SECONDS_A_SORT);
	calls.openat = counted_openat;
	calls.close = counted_close;
	calls.pread = counted_pread;
	calls.pwrite = counted_pwrite;
	calls.fallocate = counted_fallocate;
	calls.fsync = counted_fsync;
	calls.renameat = counted_renameat;
	asked.spec.io = &calls;
	return sort_share(ranks, &asked);
}

/*
 * What is written, and not there when it is brought to the disk or closed, is never got over, if
 * that call was made: how many there are is not the same each time.
 */
static bool must_fail(void)
{
	return call_fault.n_times > 0 &&
	       n_calls[call_fault.rank][call_fault.call] >= call_fault.nth &&
	       (call_fault.call == CALL_PWRITE || call_fault.call == CALL_FSYNC ||
		call_fault.call == CALL_CLOSE);
}

/* All have the time to tidy up, and do so. */
static void sort_with_fault(struct asked *asked)
{
	const unsigned n_names = count_names();
	struct ranks_double ranks = ranks_of(asked, N_FAULT_RANKS);
	bool all_fine = true, is_said = false, is_there = false;

	memset(n_calls, 0, N_FAULT_RANKS * sizeof *n_calls);
	ranks.body = sort_with_faults;
	ranks.settings.end_ns = minute_ns;
	ranks_double_run(&ranks);
	for (unsigned i = 0; i < ranks.size; i++) {
		const struct ranks_end *end = &ranks.ends[i];

		assert_in_range(end->status, 0, 127);
		all_fine = all_fine && end->r == 0 && end->status == 0;
		is_said = is_said || *end->text;
		is_there = is_there || strstr(end->text, "is complete, but its name");
	}
	ranks_double_forget(&ranks);
	assert_int_not_equal(all_fine, is_said);
	assert_false(all_fine && must_fail());
	is_there = is_there || all_fine;
	assert_int_equal(access(together_path, F_OK) == 0, is_there);
	if (is_there)
		assert_same();
	unlink(together_path);
	assert_int_equal(count_names(), n_names);
}

/* The first, one in between and the last of n; and all. */
static void check_call(struct asked *asked, unsigned n)
{
	const unsigned places[] = { 1, (n + 1) / 2, n, 1 };
	enum { N_PLACES = sizeof places / sizeof places[0], ALL = N_PLACES - 1 };

	for (unsigned i = 0; i < N_PLACES && n > 0; i++) {
		if (i > 0 && i != ALL && places[i] == places[i - 1])
			continue;
		call_fault.nth = places[i];
		call_fault.n_times = i == ALL ? UINT_MAX : 1;
		sort_with_fault(asked);
	}
}

static void check_calls(struct asked *asked)
{
	unsigned n[N_FAULT_RANKS][N_CALLS];

	call_fault = (struct call_fault){ 0 };
	sort_with_fault(asked);
	memcpy(n, n_calls, sizeof n);
	for (unsigned rank = 0; rank < N_FAULT_RANKS; rank++)
		for (enum call call = 0; call < N_CALLS; call++) {
			call_fault = (struct call_fault){ .rank = rank, .call = call };
			check_call(asked, n[rank][call]);
		}
}

static void call_that_fails_with_one_rank_is_no_output_or_the_right_one(void **state)
{
	struct asked asked;

	(void)state;
	n_calls = mmap(NULL, N_FAULT_RANKS * sizeof *n_calls, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(n_calls, MAP_FAILED);
	ask(&asked, "u64", 8, random_path, random_path);
	asked.spec.compression.mode = COMPRESS_NONE;
	asked.spec.verify = true;
	asked.spec.fsync = true;
	sort_alone(&asked);
	check_calls(&asked);
	asked.spec.zstd_level = 1;
	asked.spec.memory_nbytes = 16 << 20;
	sort_alone(&asked);
	check_calls(&asked);
	munmap(n_calls, N_FAULT_RANKS * sizeof *n_calls);
}

#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, start, fixture_finish)

static int run_same(void)
{
	const struct CMUnitTest same[] = {
		FIXTURE(any_number_of_ranks_writes_the_same),
		FIXTURE(what_ranks_have_in_files_is_the_same),
		FIXTURE(what_ranks_have_in_memory_is_not_stored),
		FIXTURE(ranks_with_little_room_store_what_they_have),
		FIXTURE(all_that_begins_alike_goes_to_one_rank),
		FIXTURE(no_two_ranks_write_to_one_stripe),
		FIXTURE(no_two_ranks_write_to_one_stripe_of_what_is_compressed),
		FIXTURE(compressed_output_is_that_of_one_process),
		FIXTURE(stripes_of_a_file_may_be_longer_than_frames),
		FIXTURE(edges_of_frames_may_overtake_each_other),
		FIXTURE(some_ranks_compress_nothing),
		FIXTURE(whatever_order_messages_come_in),
		FIXTURE(equal_records_of_all_ranks_meet),
		FIXTURE(limit_is_that_of_all_ranks),
		FIXTURE(records_are_numbered_through),
		FIXTURE(parts_and_their_list_are_those_of_one_process),
		FIXTURE(compressed_parts_are_those_of_one_process),
		FIXTURE(no_key_is_in_two_parts_that_end_at_keys),
		FIXTURE(inputs_that_are_sorted_are_merged),
		FIXTURE(equal_records_of_merged_inputs_meet),
		FIXTURE(inputs_are_merged_to_parts),
		FIXTURE(input_that_is_not_in_order_is_found_wherever_it_is),
		FIXTURE(part_of_a_list_that_was_changed_is_found_by_all_together),
		FIXTURE(first_disorder_of_all_ranks_is_found),
		FIXTURE(equal_records_of_neighbours_are_disorder_with_u),
		FIXTURE(there_may_be_less_to_sort_than_ranks),
		FIXTURE(fault_anywhere_is_no_output_or_the_right_one),
		FIXTURE(what_another_rank_says_wrongly_ends_all),
		FIXTURE(edge_of_a_frame_that_is_lost_is_missed),
		FIXTURE(who_has_failed_serves_nobody),
		FIXTURE(ranks_of_a_machine_do_what_its_first_has_chosen),
		FIXTURE(ranks_that_are_asked_for_something_else_are_named),
	};

	return cmocka_run_group_tests(same, NULL, NULL);
}

static int run_volumes(void)
{
	const struct CMUnitTest volumes[] = {
		FIXTURE(volumes_and_balance_are_those_promised),
	};

	return cmocka_run_group_tests(volumes, NULL, NULL);
}

static int run_checkpoints(void)
{
	const struct CMUnitTest checkpoints[] = {
		FIXTURE(what_is_finished_when_a_rank_is_killed_is_taken_up),
		FIXTURE(a_part_that_is_in_runs_is_not_stored_again),
		FIXTURE(another_number_of_ranks_is_refused_once),
		FIXTURE(fewer_ranks_do_not_leave_what_others_keep),
		FIXTURE(damage_at_one_rank_is_said_and_without_its_part_all_goes_on),
		FIXTURE(a_rank_takes_nothing_up_of_another),
	};

	return cmocka_run_group_tests(checkpoints, NULL, NULL);
}

static int run_calls(void)
{
	const struct CMUnitTest calls[] = {
		FIXTURE(call_that_fails_with_one_rank_is_no_output_or_the_right_one),
	};

	return cmocka_run_group_tests(calls, NULL, NULL);
}

/* usage: test_share [calls|volumes|checkpoints]: these, else all others */
int main(int argc, char **argv)
{
	if (argc < 2)
		return run_same();
	if (strcmp(argv[1], "calls") == 0)
		return run_calls();
	if (strcmp(argv[1], "volumes") == 0)
		return run_volumes();
	if (strcmp(argv[1], "checkpoints") == 0)
		return run_checkpoints();
	fprintf(stderr, "usage: test_share [calls|volumes|checkpoints]\n");
	return 2;
}
