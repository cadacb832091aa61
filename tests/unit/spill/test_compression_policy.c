/*
 * test_compression_policy.c - the codec depends on the option and the speed of the disk
 */
#include "io/spill/compression_policy.h"

#include <errno.h>

#include "tests/support/unit_test.h"

TEST(modes_are_parsed)
{
	static const char *const wrong[] = {
		"",        "Auto",  "raw",     "delta:1", "zstd:",   "zstd:0",          "zstd:x",
		"zstd:-1", "zstd3", "zstd:99", "zstd: 3", "zstd:3 ", "zstd:99999999999"
	};
	struct compression_params choice;

	assert_int_equal(compression_parse("auto", &choice), 0);
	assert_int_equal(choice.mode, COMPRESS_AUTO);
	assert_int_equal(compression_parse("none", &choice), 0);
	assert_int_equal(choice.mode, COMPRESS_NONE);
	assert_int_equal(compression_parse("zstd", &choice), 0);
	assert_int_equal(choice.mode, COMPRESS_ZSTD);
	assert_int_equal(choice.zstd_level, 3);
	assert_int_equal(compression_parse("zstd:19", &choice), 0);
	assert_int_equal(choice.zstd_level, 19);
	assert_int_equal(compression_parse("delta", &choice), 0);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_int_equal(compression_parse(wrong[i], &choice), -EINVAL);
	assert_int_equal(choice.mode, COMPRESS_DELTA);
}

static struct compression *open_mode(const char *mode, bool are_encoded_keys)
{
	struct compression_params choice;
	struct compression *compression;

	assert_int_equal(compression_parse(mode, &choice), 0);
	assert_int_equal(compression_open(&choice, are_encoded_keys, &compression), 0);
	return compression;
}

/* Only Zstandard needs a context, whose size depends on the level. */
static void assert_codec(const char *mode, bool are_encoded_keys, enum codec_id codec,
			 int zstd_level)
{
	struct compression *compression = open_mode(mode, are_encoded_keys);
	const struct compression_plan plan = compression_plan_window(compression);
	struct compression_params choice;

	assert_int_equal(plan.codec, codec);
	assert_int_equal(plan.probe_codec, CODEC_RAW);
	compression_close(compression);
	assert_int_equal(compression_parse(mode, &choice), 0);
	assert_int_equal(compression_context_nbytes(&choice, are_encoded_keys, 1 << 20),
			 zstd_level ? codec_context_nbytes(zstd_level, 1 << 20) : 0);
}

TEST(delta_of_records_is_zstd)
{
	assert_codec("none", true, CODEC_RAW, 0);
	assert_codec("delta", true, CODEC_DELTA, 0);
	assert_codec("delta", false, CODEC_ZSTD, 1);
	assert_codec("zstd:9", true, CODEC_ZSTD, 9);
	assert_int_equal(compression_plan_window(NULL).codec, CODEC_RAW);
}

/* Samples of 1 MiB: encoding halves it in 100 us; writing takes write_ns per byte. */
static void record_windows(struct compression *compression, unsigned n, uint64_t write_ns)
{
	for (unsigned i = 0; i < n; i++)
		compression_record_sample(compression, &(struct compression_sample){
							       .encoder_input_nbytes = 1 << 20,
							       .encoded_nbytes = 1 << 19,
							       .encode_ns = 100000,
							       .items_nbytes = 1 << 20,
							       .stored_nbytes = 1 << 20,
							       .write_ns = write_ns << 20,
						       });
}

TEST(auto_follows_the_disk)
{
	struct compression *compression = open_mode("auto", true);
	struct compression_plan plan = compression_plan_window(compression);

	/* Nothing is measured yet: store raw, and probe delta. */
	assert_int_equal(plan.codec, CODEC_RAW);
	assert_int_equal(plan.probe_codec, CODEC_DELTA);
	assert_int_equal(compression_plan_window(compression).probe_codec, CODEC_RAW);
	record_windows(compression, 1, 10); /* a slow disk */
	assert_int_equal(compression_plan_window(compression).codec, CODEC_DELTA);
	record_windows(compression, 1000, 0); /* infinitely fast */
	assert_int_equal(compression_plan_window(compression).codec, CODEC_RAW);
	record_windows(compression, 1000, 10);
	assert_int_equal(compression_plan_window(compression).codec, CODEC_DELTA);
	compression_close(compression);
}

TEST(auto_probes_periodically)
{
	struct compression *compression = open_mode("auto", false);
	unsigned n_trials = 0;

	for (unsigned i = 0; i < 160; i++) {
		const struct compression_plan plan = compression_plan_window(compression);

		record_windows(compression, 1, 0);
		assert_int_equal(plan.codec, CODEC_RAW);
		n_trials += plan.probe_codec == CODEC_ZSTD;
	}
	assert_int_equal(n_trials, 10);
	compression_close(compression);
}
