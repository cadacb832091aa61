/*
 * test_options - rules of option parsing that no sort shows, and random command lines
 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/parsed_options.h"
#include "tests/support/unit_test.h"

TEST(temporary_files_go_to_tmp_by_default)
{
	struct options options;

	unsetenv("TMPDIR");
	options = PARSE_VALID("-o", "out");
	assert_int_equal(options.spec.n_temp_dirs, 1);
	assert_string_equal(options.spec.temp_dirs[0], "/tmp");
	options_free(&options);
}

TEST(sizes_without_suffix_are_kib)
{
	struct options options;

	options = PARSE_VALID("-S", "10", "--device-memory=20", "--temp-limit=30", "-o", "out");
	assert_int_equal(options.spec.memory_nbytes, 10 << 10);
	assert_int_equal(options.spec.device_memory_nbytes, 20 << 10);
	assert_int_equal(options.spec.temp_limit_nbytes, 30 << 10);
	options_free(&options);
	options = PARSE_VALID("-S", "100b", "-o", "out");
	assert_int_equal(options.spec.memory_nbytes, 100);
	options_free(&options);
}

TEST(zstd_has_a_level_or_none)
{
	struct options options = PARSE_VALID("--zstd", "-o", "out");

	assert_int_equal(options.spec.zstd_level, 3);
	options_free(&options);
	options = PARSE_VALID("--zstd=9", "-o", "out.zst", "in");
	assert_int_equal(options.spec.zstd_level, 9);
	options_free(&options);
	options = PARSE_VALID("--zstd", "5", "-o", "out");
	assert_int_equal(options.spec.zstd_level, 3);
	assert_string_equal(options.spec.inputs[0], "5");
	options_free(&options);
	options = PARSE_VALID("-o", "out.zst");
	assert_int_equal(options.spec.zstd_level, 3);
	options_free(&options);
	options = PARSE_VALID("-o", ".zst");
	assert_int_equal(options.spec.zstd_level, 0);
	options_free(&options);
	ASSERT_REFUSED("--zstd", "'0'", "--zstd=0");
	ASSERT_REFUSED("--zstd", "''", "--zstd=");
	ASSERT_REFUSED("--zstd", "--check", "-c", "--zstd");
}

TEST(equal_values_of_one_option_are_no_contradiction)
{
	static const char *const arguments[][2] = {
		{ "-S1M", "-S1024K" },
		{ "-R1K", "-R1024" },
		{ "-tu32", "-tu32le" },
		{ "--limit=1", "--limit=01" },
		{ "--parallel=8", "--parallel=08" },
		{ "--zstd", "--zstd=03" },
		{ "--temp-limit=1M", "--temp-limit=1024" },
		{ "--temp-compress=zstd", "--temp-compress=zstd:3" },
		{ "--skip-bytes=1K", "--skip-bytes=1024b" },
		{ "--gpus=0,1", "--gpus=1,0" },
		{ "--gpus=7", "--gpus=07" },
		{ "--gpus=0,0,1", "--gpus=0,1,0" },
		{ "--gpus=all", "--gpus=all" },
	};

	struct options options = PARSE_VALID("-m", "--shard=2/8", "--shard=02/8", "-oout");

	options_free(&options);
	for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
		options = PARSE_VALID(arguments[i][0], "-oout", arguments[i][1]);
		options_free(&options);
	}
	ASSERT_REFUSED("--gpus: given", "'0,1' and as '0,2'", "--gpus=0,1", "--gpus=0,2", "-oout");
	ASSERT_REFUSED("--gpus: given", "'0,1' and as '1'", "--gpus=0,1", "--gpus=1", "-oout");
	ASSERT_REFUSED("--gpus: given", "'1' and as '0,1'", "--gpus=1", "--gpus=0,1", "-oout");
	ASSERT_REFUSED("--gpus: given", "'0,0,1' and as '0,1,1'", "--gpus=0,0,1", "--gpus=0,1,1",
		       "-oout");
	ASSERT_REFUSED("--gpus: given", "'all' and as '0'", "--gpus=all", "--gpus=0", "-oout");
	ASSERT_REFUSED("--gpus: 'x'", "is not a list", "--gpus=1", "--gpus=x", "-oout");
	ASSERT_REFUSED("--shard: given", "'1/2' and as '2/2'", "-m", "--shard=1/2", "--shard=2/2",
		       "-oout");
	ASSERT_REFUSED("--temp-limit: given", "", "--temp-limit=1M", "--temp-limit=1", "-oout");
	ASSERT_REFUSED("-S, --buffer-size: '", "is not a size", "-S1M", "-Sx", "-oout");
}

TEST(operands_end_the_options_if_posix_says_so)
{
	struct options options;

	setenv("POSIXLY_CORRECT", "1", 1);
	options = PARSE_VALID("-o", "out", "a", "-r");
	unsetenv("POSIXLY_CORRECT");
	assert_int_equal(options.spec.n_inputs, 2);
	assert_string_equal(options.spec.inputs[1], "-r");
	options_free(&options);
}

TEST(gpu_list_implies_cuda)
{
	struct options options = PARSE_VALID("--gpus=99", "-o", "out");

	assert_int_equal(options.spec.backend, BACKEND_CUDA);
	options_free(&options);
	options = PARSE_VALID("--gpus=all", "-o", "out");
	assert_int_equal(options.spec.backend, BACKEND_CUDA);
	assert_true(options.spec.gpus.all);
	assert_int_equal(options.spec.gpus.n, 0);
	options_free(&options);
	options = PARSE_VALID("--gpus=3,1,3", "-o", "out");
	assert_int_equal(options.spec.gpus.n, 3);
	options_free(&options);
	ASSERT_REFUSED("--gpus", "--backend=cpu", "--gpus=all", "--backend=cpu");
}

/* Reports have room for a limited text. */
TEST(long_key_lists_are_abbreviated)
{
	char text[KEYS_TEXT_NBYTES + 1];
	struct options options =
		PARSE_VALID("-R", "32", "-k", "8:i32be:r", "-k", "0:b4", "-o", "out");

	text[KEYS_TEXT_NBYTES] = '#';
	keys_format(options.spec.keys, options.spec.n_keys, options.spec.record_nbytes, text);
	assert_string_equal(text, "8:i32be:r,0:b4");
	options_free(&options);
	options = PARSE_VALID("-R", "99", "-k", "10:i32be:r", "-k", "20:i32be:r", "-k",
			      "30:i32be:r", "-k", "40:i32be:r", "-k", "50:i32be:r", "-k",
			      "60:i32be:r", "-o", "out");
	keys_format(options.spec.keys, options.spec.n_keys, options.spec.record_nbytes, text);
	assert_string_equal(text,
			    "10:i32be:r,20:i32be:r,30:i32be:r,40:i32be:r,50:i32be:r,60:i3...");
	assert_int_equal(text[KEYS_TEXT_NBYTES], '#');
	options_free(&options);
}

TEST(reversal_is_the_last_word_of_a_key)
{
	ASSERT_REFUSED("'4:r:n'", ":r must be last; use 4:n:r", "-k4:r:n");
	ASSERT_REFUSED("'4:r:t'", ":r must be last; use 4:t:r", "-k4:r:t");
	ASSERT_REFUSED("'4:r:numpy'", ":r must be last; use 4:numpy:r", "-k4:r:numpy");
	ASSERT_REFUSED("'4:r:total'", ":r must be last; use 4:total:r", "-k4:r:total");
}

TEST(any_number_of_keys_is_accepted)
{
	enum { N = 5000 };
	char **argv = calloc(2 * N + 5, sizeof *argv);
	struct options options;
	int argc = 0;

	assert_non_null(argv);
	argv[argc++] = "gsort";
	argv[argc++] = "-R16";
	argv[argc++] = "-oout";
	for (int i = 0; i < N; i++) {
		argv[argc++] = "-k";
		argv[argc++] = i % 2 ? "3:u8" : "0:b2";
	}
	captured_messages_reset(true);
	assert_int_equal(parse_final_options(argc, argv, &options), 0);
	assert_int_equal(options.spec.n_keys, N);
	options_free(&options);
	free(argv);
}

/* The next number of a sequence (xorshift, Marsaglia 2003). */
static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* Check the invariants of accepted options. */
static void assert_consistent(const struct options *options)
{
	const bool is_check = options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET;

	assert_true(options->spec.n_inputs >= 1 && options->spec.n_temp_dirs >= 1);
	assert_true((options->spec.n_keys >= 1) !=
		    (options->spec.record_spec == RECORD_SPEC_REQUESTS));
	assert_true(options->spec.record_spec != RECORD_SPEC_REQUESTS ||
		    options->spec.n_key_requests >= 1);
	for (uint32_t i = 0; i < options->spec.n_keys; i++)
		assert_true(options->spec.keys[i].nbytes >= 1 &&
			    options->spec.keys[i].offset + options->spec.keys[i].nbytes <=
				    options->spec.record_nbytes);
	assert_false(options->spec.count && !options->spec.unique);
	assert_false(options->spec.argsort &&
		     (options->spec.count || options->spec.keys_only || options->spec.verify));
	assert_true(options->spec.batch_size != 1);
	assert_false(is_check && (options->spec.n_inputs > 1 || options->spec.output_path));
	assert_false((options->spec.verify || options->spec.fsync) && !options->spec.output_path);
	assert_false(options->spec.gpus.n && options->spec.backend == BACKEND_CPU);
}

/* clang-format off */
static const char *const words[] = {
	"-o", "-t", "-S", "-T", "-c", "-C", "-m", "-r", "-u", "-R", "-k", "-R12",
	"-k4:i64", "0:b3:r", "--count", "--keys-only", "--argsort", "--limit=3",
	"--partial", "keep", "--skip-bytes", "-rus", "--explain", "--verify", "--fsync",
	"--parallel", "--batch-size=2", "--backend", "--gpus", "--progress", "--stats",
	"--stats-json", "--trace=t", "--debug", "--temp-limit", "--temp-compress", "zstd:3",
	"--files0-from=/dev/null", "--", "--s", "-", "-x", "", "1", "0,1", "u32be",
	"f64", "b16", "always", "cpu", "1G", "50%", "file",
};
/* clang-format on */

TEST(random_command_lines_are_consistent_or_refused)
{
	enum { N_WORDS = sizeof words / sizeof words[0], N_ROUNDS = 20000 };
	uint64_t random = 88172645463325252u;
	unsigned n_accepted = 0;

	for (int round = 0; round < N_ROUNDS; round++) {
		char *argv[MAX_ARGS + 2] = { "gsort" };
		const int argc = 1 + (int)(next_random(&random) % 8);
		struct options options;
		int r;

		for (int i = 1; i < argc; i++)
			argv[i] = (char *)words[next_random(&random) % N_WORDS];
		captured_messages_reset(true);
		r = parse_final_options(argc, argv, &options);
		assert_int_equal(r < 0, captured_messages_has_error());
		if (r < 0)
			continue;
		n_accepted++;
		assert_consistent(&options);
		options_free(&options);
	}
	assert_true(n_accepted > N_ROUNDS / 100 && n_accepted < N_ROUNDS / 2);
}

TEST(conflicts_name_options)
{
	for (unsigned i = 0; i < options_table.n_conflicts; i++) {
		const struct option_conflict *conflict = &options_table.conflicts[i];

		assert_true(conflict->a[0] && conflict->b[0]);
		for (unsigned k = 0; k < CONFLICT_MAX_A && conflict->a[k]; k++)
			assert_non_null(option_find(&options_table, conflict->a[k]));
		for (unsigned k = 0; k < CONFLICT_MAX_B && conflict->b[k]; k++)
			assert_non_null(option_find(&options_table, conflict->b[k]));
	}
}

TEST(each_option_states_whether_ranks_support_it)
{
	for (unsigned i = 0; i < options_table.n_specs; i++) {
		const struct option_spec *spec = &options_table.specs[i];

		if ((spec->mpi_support == OPTION_MPI_NO) != (spec->mpi_substitute != NULL))
			fail_msg("--%s: state mpi_support, or what ranks use instead", spec->name);
	}
}
