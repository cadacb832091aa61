/*
 * test_options - what every option means, and that every mistake is refused by name
 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/parsed_options.h"
#include "tests/support/unit_test.h"

static void defaults_sort_u64_from_standard_input(void **state)
{
	struct options options;

	(void)state;
	setenv("TMPDIR", "/somewhere", 1);
	options = PARSE_VALID("-o", "out");
	assert_int_equal(options.mode, MODE_SORT);
	assert_int_equal(options.spec.n_inputs, 1);
	assert_string_equal(options.spec.inputs[0], "-");
	assert_string_equal(options.spec.output_path, "out");
	assert_int_equal(options.spec.keys[0].nbytes, 8);
	assert_int_equal(options.spec.keys[0].kind, KEY_UNSIGNED);
	assert_false(options.spec.keys[0].big_endian || options.spec.keys[0].descending ||
		     options.spec.unique);
	assert_int_equal(options.spec.memory_nbytes, 0);
	assert_int_equal(options.spec.n_threads, 0);
	assert_int_equal(options.spec.batch_size, 0);
	assert_true(options.spec.temp_limit_nbytes == UINT64_MAX);
	assert_int_equal(options.spec.n_temp_dirs, 1);
	assert_string_equal(options.spec.temp_dirs[0], "/somewhere");
	assert_int_equal(options.spec.compression.mode, COMPRESS_AUTO);
	assert_int_equal(options.spec.backend, BACKEND_AUTO);
	assert_int_equal(options.progress, 0);
	options_free(&options);
	unsetenv("TMPDIR");
	options = PARSE_VALID("-o", "out");
	assert_string_equal(options.spec.temp_dirs[0], "/tmp");
	options_free(&options);
}

static void every_option_reaches_its_field(void **state)
{
	struct options options;

	(void)state;
	options = PARSE_VALID("-t", "f32be", "-rus", "-o", "out", "--verify", "--fsync", "--debug",
			      "--stats", "--stats-json=s.json", "--trace=t.json", "a", "b");
	assert_int_equal(options.spec.keys[0].kind, KEY_FLOAT);
	assert_int_equal(options.spec.keys[0].nbytes, 4);
	assert_true(options.spec.keys[0].big_endian && options.spec.keys[0].descending &&
		    options.spec.unique);
	assert_true(options.spec.verify && options.spec.fsync && options.debug && options.stats);
	assert_string_equal(options.stats_json_path, "s.json");
	assert_string_equal(options.trace_path, "t.json");
	assert_int_equal(options.spec.n_inputs, 2);
	assert_string_equal(options.spec.inputs[0], "a");
	assert_string_equal(options.spec.inputs[1], "b");
	assert_true(options.spec.measure_peak_rates);
	options_free(&options);

	options = PARSE_VALID("--explain", "--format=raw", "--checkpoint=c", "-o", "out", "a");
	assert_true(options.explain);
	assert_int_equal(options.spec.format, FORMAT_RAW);
	assert_string_equal(options.spec.checkpoint_path, "c");
	assert_false(options.spec.merge_inputs || options.spec.measure_peak_rates);
	options_free(&options);

	options = PARSE_VALID("-m", "-S", "64M", "--device-memory=1G", "-T/x", "-T", "/y",
			      "--temp-limit=0", "--parallel=3", "--batch-size", "2",
			      "--backend=cuda", "--gpus=0,12", "--progress=never",
			      "--temp-compress=zstd:7", "-oout");
	assert_int_equal(options.mode, MODE_MERGE);
	assert_true(options.spec.merge_inputs);
	assert_int_equal(options.spec.record_spec, RECORD_SPEC_NONE);
	assert_int_equal(options.spec.memory_nbytes, 64 << 20);
	assert_int_equal(options.spec.device_memory_nbytes, 1 << 30);
	assert_int_equal(options.spec.n_temp_dirs, 2);
	assert_string_equal(options.spec.temp_dirs[0], "/x");
	assert_string_equal(options.spec.temp_dirs[1], "/y");
	assert_int_equal(options.spec.temp_limit_nbytes, 0);
	assert_int_equal(options.spec.compression.mode, COMPRESS_ZSTD);
	assert_int_equal(options.spec.compression.zstd_level, 7);
	assert_int_equal(options.spec.n_threads, 3);
	assert_int_equal(options.spec.batch_size, 2);
	assert_int_equal(options.spec.backend, BACKEND_CUDA);
	assert_int_equal(options.spec.n_gpus, 2);
	assert_int_equal(options.spec.gpus[0], 0);
	assert_int_equal(options.spec.gpus[1], 12);
	assert_int_equal(options.progress, 2);
	options_free(&options);

	options = PARSE_VALID("-c", "f");
	assert_int_equal(options.mode, MODE_CHECK);
	options_free(&options);
	options = PARSE_VALID("-C", "f");
	assert_int_equal(options.mode, MODE_CHECK_QUIET);
	options_free(&options);
}

static void sizes_without_suffix_are_kib(void **state)
{
	struct options options;

	(void)state;
	options = PARSE_VALID("-S", "10", "--device-memory=20", "--temp-limit=30", "-o", "out");
	assert_int_equal(options.spec.memory_nbytes, 10 << 10);
	assert_int_equal(options.spec.device_memory_nbytes, 20 << 10);
	assert_int_equal(options.spec.temp_limit_nbytes, 30 << 10);
	options_free(&options);
	options = PARSE_VALID("-S", "100b", "-o", "out");
	assert_int_equal(options.spec.memory_nbytes, 100);
	options_free(&options);
}

static void options_may_follow_operands_until_a_double_dash(void **state)
{
	struct options options;

	(void)state;
	options = PARSE_VALID("a", "-o", "out", "b", "--", "-r");
	assert_int_equal(options.spec.n_inputs, 3);
	assert_string_equal(options.spec.inputs[2], "-r");
	assert_false(options.spec.keys[0].descending);
	options_free(&options);
}

static void long_names_may_be_shortened(void **state)
{
	struct options options;

	(void)state;
	options = PARSE_VALID("--rev", "--out=out");
	assert_true(options.spec.keys[0].descending);
	options_free(&options);
	ASSERT_REFUSED("'--st'", "ambiguous; use one of --stable, --stats, --stats-json", "--st",
		       "-oout");
}

static void unknown_options_that_are_nearly_known_say_which(void **state)
{
	(void)state;
	ASSERT_REFUSED("'--outptu'", "; did you mean --output? See --help", "--outptu", "x");
	ASSERT_REFUSED("'--buffersize=1M'", "did you mean --buffer-size?", "--buffersize=1M");
	ASSERT_REFUSED("'--tmeporary-directory=x'", "--temporary-directory?",
		       "--tmeporary-directory=x");
	ASSERT_REFUSED("'--keyonly'", "did you mean --keys-only?", "--keyonly");
	ASSERT_REFUSED("'--tye'", "did you mean --type?", "--tye");
	ASSERT_REFUSED("unknown option '--nonsense'; see --help", "", "--nonsense");
	ASSERT_REFUSED("unknown option '--xy'; see --help", "", "--xy");
	ASSERT_REFUSED("unknown option '--=x'; see --help", "", "--=x");
	ASSERT_REFUSED("unknown option '--temporary-directory-that-is-much-too-long'; see", "",
		       "--temporary-directory-that-is-much-too-long");
}

static void zstd_has_a_level_or_none(void **state)
{
	struct options options = PARSE_VALID("--zstd", "-o", "out");

	(void)state;
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

static void gpu_lists_are_checked(void **state)
{
	static const char *const lists[] = { "",   ",",   "0,",          ",0",    "0,,1", "a",
					     "-1", "0 1", "99999999999", "all,0", "0,all" };

	(void)state;
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
		ASSERT_REFUSED("--gpus", lists[i], "--gpus", lists[i]);
	ASSERT_REFUSED("--gpus", "--backend=cpu", "--gpus=0", "--backend=cpu");
}

static void a_check_takes_no_option_of_a_sort(void **state)
{
	(void)state;
	ASSERT_REFUSED("-c, --check ", "-o, --output", "-c", "-o", "out", "f");
	ASSERT_REFUSED("-C ", "-o, --output", "-C", "-o", "out", "f");
	ASSERT_REFUSED("-c, --check ", "-C", "-c", "-C", "f");
	ASSERT_REFUSED("-c, --check ", "-m, --merge", "-m", "-c", "f");
	ASSERT_REFUSED("-C ", "-m, --merge", "-m", "-C", "f");
	ASSERT_REFUSED("-c, --check ", "--explain", "-c", "--explain", "f");
	ASSERT_REFUSED("-C ", "--explain", "-C", "--explain", "f");
	ASSERT_REFUSED("-c, --check", "'g'", "-c", "f", "g");
	ASSERT_REFUSED("-C", "'g'", "-C", "f", "g");
}

static void check_accepts_the_words_of_gnu_sort(void **state)
{
	static const struct {
		const char *option;
		enum operation_mode mode;
	} checks[] = { { "--check", MODE_CHECK },
		       { "--check=diagnose-first", MODE_CHECK },
		       { "--check=quiet", MODE_CHECK_QUIET },
		       { "--check=silent", MODE_CHECK_QUIET } };

	(void)state;
	for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
		struct options options = PARSE_VALID(checks[i].option, "f");

		assert_int_equal(options.mode, checks[i].mode);
		assert_string_equal(options.spec.inputs[0], "f");
		options_free(&options);
	}
	ASSERT_REFUSED("-c, --check", "'loud'", "--check=loud", "f");
	ASSERT_REFUSED("-c, --check", "'diagnose-first' and as 'quiet'", "-c", "--check=quiet",
		       "f");
}

static void two_different_arguments_of_one_option_are_refused(void **state)
{
	static const char *const arguments[][2] = {
		{ "-tu32", "-tu64" },
		{ "-R8", "-R12" },
		{ "-S1M", "-S2M" },
		{ "--limit=1", "--limit=2" },
		{ "--parallel=1", "--parallel=2" },
		{ "--backend=cpu", "--backend=auto" },
		{ "--zstd", "--zstd=4" },
		{ "--temp-limit=0", "--temp-limit=1" },
		{ "--trace=a", "--trace=b" },
		{ "--temp-compress=none", "--temp-compress=delta" },
	};
	struct options options;

	(void)state;
	for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++)
		ASSERT_REFUSED("given twice", "", arguments[i][0], "-oout", arguments[i][1]);
	ASSERT_REFUSED("-S, --buffer-size", "'1M' and as '2M'", "-S", "1M", "--buffer-size=2M");
	options = PARSE_VALID("-S1M", "--buffer-size=1M", "-R8", "-k0:u8", "-k1:u8", "-T/x", "-T/y",
			      "--zstd", "--zstd=3", "-oout");
	assert_int_equal(options.spec.n_keys, 2);
	assert_int_equal(options.spec.n_temp_dirs, 2);
	options_free(&options);
}

static void equal_values_of_one_option_are_no_contradiction(void **state)
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

	(void)state;
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

static void operands_end_the_options_if_posix_says_so(void **state)
{
	struct options options;

	(void)state;
	setenv("POSIXLY_CORRECT", "1", 1);
	options = PARSE_VALID("-o", "out", "a", "-r");
	unsetenv("POSIXLY_CORRECT");
	assert_int_equal(options.spec.n_inputs, 2);
	assert_string_equal(options.spec.inputs[1], "-r");
	options_free(&options);
}

static void gpu_list_implies_cuda(void **state)
{
	struct options options = PARSE_VALID("--gpus=99", "-o", "out");

	(void)state;
	assert_int_equal(options.spec.backend, BACKEND_CUDA);
	options_free(&options);
	options = PARSE_VALID("--gpus=all", "-o", "out");
	assert_int_equal(options.spec.backend, BACKEND_CUDA);
	assert_true(options.spec.all_gpus);
	assert_int_equal(options.spec.n_gpus, 0);
	options_free(&options);
	options = PARSE_VALID("--gpus=3,1,3", "-o", "out");
	assert_int_equal(options.spec.n_gpus, 3);
	options_free(&options);
	ASSERT_REFUSED("--gpus", "--backend=cpu", "--gpus=all", "--backend=cpu");
}

static void there_is_one_output(void **state)
{
	struct options options;

	(void)state;
	ASSERT_REFUSED("'a'", "'b'", "-o", "a", "-o", "b");
	ASSERT_REFUSED("-o, --output", "empty", "-o", "");
	options = PARSE_VALID("-o", "a", "-o", "a");
	assert_string_equal(options.spec.output_path, "a");
	options_free(&options);
}

static void standard_input_is_read_once(void **state)
{
	(void)state;
	ASSERT_REFUSED("'-'", "once", "-o", "out", "-", "f", "-");
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
	assert_false(options->spec.n_gpus && options->spec.backend == BACKEND_CPU);
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

static void random_command_lines_are_consistent_or_refused(void **state)
{
	enum { N_WORDS = sizeof words / sizeof words[0], N_ROUNDS = 20000 };
	uint64_t random = 88172645463325252u;
	unsigned n_accepted = 0;

	(void)state;
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

static void conflicts_name_options(void **state)
{
	(void)state;
	for (unsigned i = 0; i < options_table.n_conflicts; i++) {
		assert_non_null(option_find(&options_table, options_table.conflicts[i].a));
		assert_non_null(option_find(&options_table, options_table.conflicts[i].b));
	}
}

static void each_option_states_whether_ranks_support_it(void **state)
{
	(void)state;
	for (unsigned i = 0; i < options_table.n_specs; i++) {
		const struct option_spec *spec = &options_table.specs[i];

		if ((spec->mpi_support == OPTION_MPI_NO) != (spec->mpi_substitute != NULL))
			fail_msg("--%s: state mpi_support, or what ranks use instead", spec->name);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(defaults_sort_u64_from_standard_input),
	cmocka_unit_test(every_option_reaches_its_field),
	cmocka_unit_test(sizes_without_suffix_are_kib),
	cmocka_unit_test(options_may_follow_operands_until_a_double_dash),
	cmocka_unit_test(long_names_may_be_shortened),
	cmocka_unit_test(unknown_options_that_are_nearly_known_say_which),
	cmocka_unit_test(zstd_has_a_level_or_none),
	cmocka_unit_test(gpu_lists_are_checked),
	cmocka_unit_test(a_check_takes_no_option_of_a_sort),
	cmocka_unit_test(check_accepts_the_words_of_gnu_sort),
	cmocka_unit_test(two_different_arguments_of_one_option_are_refused),
	cmocka_unit_test(equal_values_of_one_option_are_no_contradiction),
	cmocka_unit_test(operands_end_the_options_if_posix_says_so),
	cmocka_unit_test(gpu_list_implies_cuda),
	cmocka_unit_test(conflicts_name_options),
	cmocka_unit_test(there_is_one_output),
	cmocka_unit_test(standard_input_is_read_once),
	cmocka_unit_test(random_command_lines_are_consistent_or_refused),
	cmocka_unit_test(each_option_states_whether_ranks_support_it),
};

UNIT_TESTS(options, tests, NULL, NULL)
