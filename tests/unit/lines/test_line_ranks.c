/*
 * test_line_ranks - a sort of lines by several ranks writes the bytes of one process, or nothing
 */
#include "src/lines/line_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/file/file.h"
#include "src/comm/comm.h"
#include "src/lines/line_input.h"
#include "tests/support/fake_ranks.h"
#include "tests/support/io_fixture.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

enum {
	N_WORDS = 9000,
	N_FEW = 2000,
	N_FOR_STRIPES = 5000, /* twice as many long lines are stripes of two ranks */
	LONG_NBYTES = 200,
	N_FAULT_RANKS = FOR_RACES_ONLY ? 2 : 3,
	SECONDS_A_SORT = 20
};

static const uint64_t minute_ns = UINT64_C(60) * 1000000000;
static char words_path[512], few_path[512], single_path[512], together_path[512], kept_path[512];

static void write_lines(const char *path, unsigned n, unsigned modulus, int nbytes)
{
	uint64_t *numbers = malloc(n * sizeof *numbers);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fill_pattern(numbers, n * sizeof *numbers, 1);
	for (unsigned i = 0; i < n; i++)
		fprintf(file, "%u %0*u\n", (unsigned)(numbers[i] % modulus), nbytes, i);
	assert_int_equal(fclose(file), 0);
	free(numbers);
}

static int start(void **state)
{
	const int r = fixture_start(state);

	if (r < 0)
		return r;
	strcpy(words_path, fixture_path("words"));
	strcpy(few_path, fixture_path("few"));
	strcpy(single_path, fixture_path("alone"));
	strcpy(together_path, fixture_path("together"));
	strcpy(kept_path, fixture_path("kept"));
	write_lines(words_path, N_WORDS, 1u << 30, 0);
	write_lines(few_path, N_FEW, 5, 0);
	return 0;
}

/* Options by their letters: "k", "1,1", "u". */
struct requested_sort {
	const char *options[9]; /* ends with NULL */
	const char *inputs[2];
	bool uses_memory;                                    /* of other ranks */
	bool has_two_threads;                                /* in each rank */
	ssize_t (*pwrite)(int, const void *, size_t, off_t); /* NULL: pwrite() */
	ssize_t (*pread)(int, void *, size_t, off_t);        /* NULL: pread() */
	int (*fsync)(int);                                   /* NULL: fsync() */
};

static int run_sort(const struct requested_sort *request, struct comm *comm, const char *output)
{
	struct syscalls calls = syscalls_plain;
	struct options options = OPTIONS_DEFAULTS;
	struct option_arguments arguments = { 0 };
	struct line_keys requested, keys = { 0 };
	struct line_sort_params params;
	struct sort_summary summary;
	int r = 0;

	if (request->pwrite)
		calls.pwrite = request->pwrite;
	if (request->pread)
		calls.pread = request->pread;
	if (request->fsync)
		calls.fsync = request->fsync;
	line_options_init(&options, &requested);
	for (size_t i = 0; request->options[i] && r == 0; i++) {
		const struct option_spec *spec =
			option_find(&line_option_table, request->options[i]);

		i += spec->argument != NULL;
		r = option_set(&line_option_table, spec,
			       spec->argument ? request->options[i] : NULL, &arguments, &options);
	}
	for (size_t i = 0; i < 2 && request->inputs[i] && r == 0; i++)
		r = options_add_input(&options, request->inputs[i]);
	options.spec.comm = comm;
	options.spec.disable_shared_memory = !request->uses_memory;
	options.spec.output_path = output;
	options.spec.n_threads = request->has_two_threads ? 2 : 1;
	options.spec.io = &calls;
	if (r == 0)
		r = line_options_finalize(&options, fixture_directory, &keys);
	params = line_options_params(&options, &keys, NULL);
	r = line_sort_run(&params, &summary);
	line_keys_free(&requested);
	line_keys_free(&keys);
	options_free(&options);
	return r;
}

/* A rank that hangs is ended by a signal, which assert_all_fail() detects. */
static int sort_on_rank(struct comm *comm, void *argument)
{
	alarm(SECONDS_A_SORT);
	return run_sort(argument, comm, together_path);
}

static struct fake_ranks fake_ranks_of(struct requested_sort *request, unsigned size)
{
	return (struct fake_ranks){ .size = size,
				    .params = { .timeout_ns = minute_ns },
				    .body = sort_on_rank,
				    .argument = request };
}

static void assert_same_output(void)
{
	enum { MAX_NBYTES = 4 << 20 };
	char *bytes = malloc(MAX_NBYTES);
	FILE *file = fopen(single_path, "r");
	size_t n;

	assert_non_null(file);
	n = fread(bytes, 1, MAX_NBYTES, file);
	fclose(file);
	assert_true(file_contains(together_path, bytes, n));
	free(bytes);
}

static void check(struct requested_sort *request, unsigned size, uint64_t seed)
{
	struct fake_ranks ranks = fake_ranks_of(request, size);
	const unsigned n_before = count_directory_entries();

	ranks.seed = seed;
	assert_int_equal(run_sort(request, NULL, single_path), 0);
	fake_ranks_succeed(&ranks);
	assert_same_output();
	unlink(together_path);
	unlink(single_path);
	assert_int_equal(count_directory_entries(), n_before);
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, fixture_finish)

FIXTURE_TEST(any_number_of_ranks_writes_the_same)
{
	static const unsigned sizes[] = { 3, 2, 8 };
	enum { N_SIZES = sizeof sizes / sizeof sizes[0], STEP = FOR_RACES_ONLY ? 5 : 1 };
	struct requested_sort requests[] = {
		{ .options = { "S", "1M" }, .inputs = { words_path, few_path } },
		{ .options = { "k", "1,1n", "r" }, .inputs = { words_path, few_path } },
		{ .options = { "s", "k", "1,1" }, .inputs = { few_path } },
		{ .options = { "u", "k", "1,1" }, .inputs = { few_path, words_path } },
		{ .options = { "limit", "7000", "S", "1M" }, .inputs = { few_path, words_path } },
		{ .options = { "u", "limit", "3" }, .inputs = { few_path } },
		{ .options = { "u", "count", "k", "1.1,1.2", "limit", "40" },
		  .inputs = { few_path, words_path } },
		{ .options = { "header", "2" }, .inputs = { few_path, words_path } },
		{ .options = { "zstd", "1", "limit", "0" }, .inputs = { few_path } },
		{ .options = { "zstd", "1", "header", "2" }, .inputs = { few_path, words_path } },
	};

	/* Each size with and without memory of other ranks. */
	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i += STEP) {
		requests[i].uses_memory = i % 2;
		check(&requests[i], sizes[i % N_SIZES], 0);
	}
}

FIXTURE_TEST(whatever_order_messages_come_in)
{
	struct requested_sort request = { .options = { "S", "1M" },
					  .inputs = { words_path, few_path },
					  .has_two_threads = true };

	for (uint64_t seed = 1; seed <= (FOR_RACES_ONLY ? 1 : 3); seed++)
		check(&request, 4, seed);
}

/* Lines of every length from 0 to a share, which begin and end around the borders of shares. */
FIXTURE_TEST(shares_are_whole_lines_wherever_they_end)
{
	enum { N_RANKS = 3, N_TEXTS = FOR_RACES_ONLY ? 1 : 14 };
	struct requested_sort request = { .inputs = { few_path } };

	for (unsigned n = 0; n < N_TEXTS; n++) {
		char text[64];
		size_t nbytes = 0;

		for (unsigned i = 0; i < 5 + n % 7; i++) {
			const unsigned length = (n * 7 + i * i * 3) % 9;

			for (unsigned j = 0; j < length; j++)
				text[nbytes++] = (char)('a' + (n + i) % 3);
			text[nbytes++] = '\n';
			if (nbytes > sizeof text - 10)
				break;
		}
		write_file(few_path, text, nbytes - n % 2); /* or without the last newline */
		check(&request, N_RANKS, 0);
	}
}

/* Replace the directory `path` by its file. */
static void take_part_file(const char *path, const char *name)
{
	char directory[600], file[700];

	snprintf(directory, sizeof directory, "%s.parts", path);
	snprintf(file, sizeof file, "%s/%s", directory, name);
	if (access(directory, F_OK) < 0)
		assert_int_equal(rename(path, directory), 0);
	unlink(path);
	assert_int_equal(rename(file, path), 0);
	rmdir(directory); /* if it is empty */
}

static void check_part_files(struct requested_sort *request, const char *extension)
{
	struct fake_ranks ranks = fake_ranks_of(request, 3);

	assert_int_equal(run_sort(request, NULL, single_path), 0);
	fake_ranks_succeed(&ranks);
	for (unsigned i = 0; i <= 4; i++) {
		char name[32] = "manifest.json";

		if (i < 4)
			snprintf(name, sizeof name, "part-%04u%s", i, extension);
		take_part_file(single_path, name);
		take_part_file(together_path, name);
		assert_same_output();
	}
	unlink(single_path);
	unlink(together_path);
}

FIXTURE_TEST(part_files_are_those_of_one_process)
{
	struct requested_sort request = { .options = { "o", "x", "split", "4", "S", "1M", "r" },
					  .inputs = { words_path, few_path } };
	/* Some files are empty. */
	struct requested_sort compressed = { .options = { "o", "x", "split", "4", "zstd", "1",
							  "limit", "2" },
					     .inputs = { words_path, few_path } };

	check_part_files(&request, "");
	check_part_files(&compressed, ".zst");
}

FIXTURE_TEST(threads_of_a_rank_begin_a_compressed_output_once)
{
	enum { N_SORTS = FOR_RACES_ONLY ? 2 : 5 };
	struct requested_sort request = { .options = { "zstd", "1" },
					  .inputs = { words_path },
					  .has_two_threads = true };

	for (unsigned i = 0; i < N_SORTS; i++)
		check(&request, 2, 0);
}

/* --- Stripes --- */

FIXTURE_TEST(no_two_ranks_write_to_one_stripe)
{
	struct requested_sort request = { .options = { "S", "8M" },
					  .inputs = { words_path, words_path } };
	struct fake_ranks ranks = fake_ranks_of(&request, 5);

	write_lines(words_path, N_FOR_STRIPES, 1u << 30, LONG_NBYTES);
	stripe_writers_open();
	assert_int_equal(run_sort(&request, NULL, single_path), 0);
	request.pwrite = stripe_writers_pwrite;
	fake_ranks_succeed(&ranks);
	assert_same_output();
	assert_true(stripe_writers_close() >= 2);
}

/* --- Failures --- */

static struct fake_ranks fault_ranks(struct requested_sort *request, enum fake_rank_fault fault,
				     unsigned rank, unsigned message)
{
	struct fake_ranks ranks = fake_ranks_of(request, N_FAULT_RANKS);

	ranks.fault = fault;
	ranks.fault_rank = rank;
	ranks.fault_message = message;
	return ranks;
}

/* After the fault there is either no output or the correct one. */
static void nothing_wrong_appears(struct fake_ranks *ranks)
{
	bool all_fine = true;

	fake_ranks_run(ranks);
	for (unsigned i = 0; i < ranks->size; i++)
		all_fine = all_fine && ranks->exits[i].result == 0 && ranks->exits[i].status == 0;
	fake_ranks_free(ranks);
	if (all_fine || access(together_path, F_OK) == 0)
		assert_same_output();
	unlink(together_path);
}

static unsigned count_messages(struct requested_sort *request, unsigned rank)
{
	struct fake_ranks ranks = fake_ranks_of(request, N_FAULT_RANKS);
	unsigned n;

	fake_ranks_run(&ranks);
	n = ranks.exits[rank].n_sent;
	fake_ranks_free(&ranks);
	unlink(together_path);
	return n;
}

FIXTURE_TEST(fault_anywhere_is_no_output_or_the_right_one)
{
	static const enum fake_rank_fault kinds[] = { FAKE_FAULT_EXIT, FAKE_FAULT_EXIT_MIDWAY,
						      FAKE_FAULT_ERROR };
	enum { N_KINDS = sizeof kinds / sizeof kinds[0], N_PLACES = FOR_RACES_ONLY ? 2 : 6 };
	struct requested_sort requests[] = {
		{ .options = { "S", "1M" }, .inputs = { words_path, few_path } },
		{ .options = { "S", "1M", "zstd", "1" }, .inputs = { words_path, few_path } },
	};

	for (unsigned rank = 0; rank < 2; rank++) {
		struct requested_sort *request = &requests[rank];
		const unsigned n = count_messages(request, rank);

		assert_int_equal(run_sort(request, NULL, single_path), 0);
		assert_true(n > N_PLACES);
		for (unsigned at = 0; at < N_PLACES; at++) {
			struct fake_ranks ranks = fault_ranks(request, kinds[(at + rank) % N_KINDS],
							      rank, (n - 1) * at / (N_PLACES - 1));

			request->uses_memory = at % 4 == 3;
			nothing_wrong_appears(&ranks);
		}
	}
}

FIXTURE_TEST(killed_rank_is_resumed)
{
	enum { N_PLACES = FOR_RACES_ONLY ? 2 : 4 };
	struct requested_sort request = { .options = { "S", "1M" },
					  .inputs = { words_path, few_path } };
	unsigned n;

	assert_int_equal(run_sort(&request, NULL, single_path), 0);
	request.options[2] = "checkpoint";
	request.options[3] = kept_path;
	n = count_messages(&request, 1);
	for (unsigned at = 0; at < N_PLACES; at++) {
		struct fake_ranks killed = fault_ranks(&request, FAKE_FAULT_EXIT,
						       at % N_FAULT_RANKS,
						       (n - 1) * at / (N_PLACES - 1));
		struct fake_ranks ranks = fake_ranks_of(&request, N_FAULT_RANKS);

		fake_ranks_run(&killed);
		fake_ranks_free(&killed);
		fake_ranks_succeed(&ranks);
		assert_same_output();
		unlink(together_path);
		assert_int_equal(access(kept_path, F_OK), -1);
	}
}

/* Wrapped to change the samples of rank 1, or to move the beginning of its share. */
static bool has_false_samples;
static uint64_t share_increment;

int __real_comm_allgatherv(struct comm *comm, const void *own_data, size_t nbytes, void **ret_data,
			   size_t *ret_sizes);
int __wrap_comm_allgatherv(struct comm *comm, const void *own_data, size_t nbytes, void **ret_data,
			   size_t *ret_sizes);
int __wrap_comm_allgatherv(struct comm *comm, const void *own_data, size_t nbytes, void **ret_data,
			   size_t *ret_sizes)
{
	/* The first call is that of the samples; the second word of each is an offset. */
	if (has_false_samples && comm_rank(comm) == 1) {
		((uint64_t *)(uintptr_t)own_data)[1] = UINT64_MAX / 2;
		has_false_samples = false;
	}
	return __real_comm_allgatherv(comm, own_data, nbytes, ret_data, ret_sizes);
}

int __real_line_input_take_share(struct line_input *input, uint64_t begin, uint64_t end,
				 unsigned n_more);
int __wrap_line_input_take_share(struct line_input *input, uint64_t begin, uint64_t end,
				 unsigned n_more);
int __wrap_line_input_take_share(struct line_input *input, uint64_t begin, uint64_t end,
				 unsigned n_more)
{
	return __real_line_input_take_share(input, begin > 0 ? begin + share_increment : begin, end,
					    n_more);
}

/* All ranks end with an error, and one of them reports why. */
static void assert_all_fail(struct requested_sort *request, const char *said)
{
	struct fake_ranks ranks = fake_ranks_of(request, 3);
	bool is_said = false;

	fake_ranks_run(&ranks);
	for (unsigned i = 0; i < ranks.size; i++) {
		assert_true(ranks.exits[i].result != 0 || ranks.exits[i].status != 0);
		assert_in_range(ranks.exits[i].status, 0, 127);
		is_said = is_said || strstr(ranks.exits[i].error_text, said);
	}
	if (!is_said)
		print_message("nobody says: %s, but: %s\n", said, ranks.exits[0].error_text);
	assert_true(is_said);
	fake_ranks_free(&ranks);
}

/* And there is no output. */
static void assert_ends(struct requested_sort *request, const char *said)
{
	assert_all_fail(request, said);
	assert_int_not_equal(access(together_path, F_OK), 0);
}

FIXTURE_TEST(false_samples_end_all)
{
	struct requested_sort request = { .inputs = { words_path } };

	has_false_samples = true;
	assert_ends(&request, "rank 1 on ");
	has_false_samples = false;
}

static ssize_t refuse_long_reads(int fd, void *bytes, size_t nbytes, off_t offset)
{
	if (fake_rank_number == 1 && nbytes > 30000) {
		errno = EIO;
		return -1;
	}
	return pread(fd, bytes, nbytes, offset);
}

FIXTURE_TEST(unreadable_share_ends_all)
{
	struct requested_sort request = { .inputs = { words_path }, .pread = refuse_long_reads };

	assert_ends(&request, "Input/output error");
}

static ssize_t refuse_to_write(int fd, const void *bytes, size_t nbytes, off_t offset)
{
	if (fake_rank_number != 1 || !fake_rank_writes_output(fd))
		return pwrite(fd, bytes, nbytes, offset);
	errno = EIO;
	return -1;
}

/* Others still read the runs of the rank, whose threads must end. */
FIXTURE_TEST(unwritable_output_ends_all)
{
	struct requested_sort request = { .options = { "S", "1M" },
					  .inputs = { words_path, words_path },
					  .pwrite = refuse_to_write };

	write_lines(words_path, N_FOR_STRIPES, 1u << 30, LONG_NBYTES);
	assert_ends(&request, "Input/output error");
}

static int refuse_to_sync(int fd)
{
	if (fake_rank_number != 1)
		return fsync(fd);
	errno = EIO;
	return -1;
}

FIXTURE_TEST(unsynced_share_leaves_the_input)
{
	static const char text[] = "c\nb\na\n";
	struct requested_sort request = { .inputs = { together_path }, .fsync = refuse_to_sync };

	write_file(together_path, text, sizeof text - 1);
	assert_all_fail(&request, "Input/output error");
	assert_true(file_contains(together_path, text, sizeof text - 1));
}

/* Lines between the shares would be lost. */
FIXTURE_TEST(gap_between_shares_ends_all)
{
	struct requested_sort request = { .inputs = { words_path } };

	share_increment = 1000;
	assert_ends(&request, "lines of rank 1 begin at byte ");
	share_increment = 0;
}

/* Wrapped to fail with this size; 0: never. */
static size_t refused_nbytes;

void *__real_realloc(void *memory, size_t nbytes);
void *__wrap_realloc(void *memory, size_t nbytes);
void *__wrap_realloc(void *memory, size_t nbytes)
{
	return refused_nbytes && nbytes == refused_nbytes ? NULL : __real_realloc(memory, nbytes);
}

void *__real_reallocarray(void *memory, size_t n, size_t nbytes);
void *__wrap_reallocarray(void *memory, size_t n, size_t nbytes);
void *__wrap_reallocarray(void *memory, size_t n, size_t nbytes)
{
	return refused_nbytes && n * nbytes == refused_nbytes ?
		       NULL :
		       __real_reallocarray(memory, n, nbytes);
}

/* Write sorted lines: n_short lines, a line of that length, and n_short other lines. */
static void write_long_line(const char *path, int n_short, int length)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (int i = 0; i < n_short; i++)
		fprintf(file, "%0999d\n", 0);
	fprintf(file, "%0*d\n", length, 0);
	for (int i = 0; i < n_short; i++)
		fprintf(file, "1%0998d\n", 0);
	assert_int_equal(fclose(file), 0);
}

FIXTURE_TEST(header_without_memory_ends_all)
{
	enum { NBYTES = 20000 };
	struct requested_sort request = { .options = { "header", "1" }, .inputs = { few_path } };

	write_long_line(few_path, 0, NBYTES);
	refused_nbytes = NBYTES + sizeof "\n";
	assert_ends(&request, "no memory for a header");
	refused_nbytes = 0;
}

/* The share of rank 0 ends in the long line. Only its result tells that it did not go on. */
FIXTURE_TEST(part_file_without_memory_for_a_line_ends_all)
{
	enum { N_SHORT = 29, NBYTES = 30000 };
	const struct requested_sort split = { .options = { "o", "x", "split", "1" },
					      .inputs = { few_path } };
	struct requested_sort request = { .options = { "m" }, .inputs = { single_path } };
	struct fake_ranks ranks = fake_ranks_of(&request, 3);

	write_long_line(few_path, N_SHORT, NBYTES);
	assert_int_equal(run_sort(&split, NULL, single_path), 0);
	refused_nbytes = NBYTES + NBYTES / 2 + 64; /* array_reserve() */
	fake_ranks_run(&ranks);
	refused_nbytes = 0;
	assert_string_equal(ranks.exits[0].error_text, "no memory for a line of 30000 bytes");
	assert_int_equal(ranks.exits[0].result, -ENOMEM);
	fake_ranks_free(&ranks);
	assert_int_not_equal(access(together_path, F_OK), 0);
}
