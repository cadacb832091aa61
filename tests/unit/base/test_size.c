/*
 * test_size - sizes are parsed as GNU sort parses them, and each mistake has its error
 */
#include "src/base/size.h"

#include <string.h>
#include <unistd.h>

#include "tests/support/captured_messages.h"
#include "tests/support/unit_test.h"

static uint64_t parsed(const char *text, enum size_kind kind)
{
	uint64_t nbytes = 42;

	assert_int_equal(size_parse_option("-S", text, kind, &nbytes), 0);
	return nbytes;
}

static void assert_refused(const char *text, const char *reason)
{
	uint64_t nbytes = 42;

	captured_messages_reset(true);
	assert_true(size_parse_option("-S", text, SIZE_OF_SPACE, &nbytes) < 0);
	assert_non_null(strstr(captured_messages_error(), reason));
	assert_int_equal(nbytes, 42);
}

TEST(number_alone_counts_in_the_given_unit)
{
	assert_int_equal(parsed("7", SIZE_OF_SPACE), 7 * 1024);
	assert_int_equal(parsed("7", SIZE_OF_DATA), 7);
	assert_int_equal(parsed("0", SIZE_OF_SPACE), 0);
}

TEST(suffix_overrides_the_unit)
{
	assert_int_equal(parsed("7b", SIZE_OF_SPACE), 7);
	assert_int_equal(parsed("7K", SIZE_OF_DATA), 7 << 10);
	assert_int_equal(parsed("7k", SIZE_OF_DATA), 7 << 10);
	assert_int_equal(parsed("7M", SIZE_OF_DATA), 7 << 20);
	assert_int_equal(parsed("7g", SIZE_OF_DATA), UINT64_C(7) << 30);
	assert_int_equal(parsed("7T", SIZE_OF_DATA), UINT64_C(7) << 40);
	assert_int_equal(parsed("7P", SIZE_OF_DATA), UINT64_C(7) << 50);
	assert_int_equal(parsed("7E", SIZE_OF_DATA), UINT64_C(7) << 60);
}

TEST(percent_is_of_physical_memory)
{
	const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	assert_int_equal(parsed("100%", SIZE_OF_SPACE), all);
	assert_int_equal(parsed("50%", SIZE_OF_SPACE), all / 2);
	assert_refused("99999999999999999%", "is too large");
}

TEST(largest_size_fits_and_one_more_does_not)
{
	assert_int_equal(parsed("18446744073709551615b", SIZE_OF_SPACE), UINT64_MAX);
	assert_refused("18446744073709551616b", "is too large");
	assert_int_equal(parsed("15E", SIZE_OF_DATA), UINT64_C(15) << 60);
	assert_refused("16E", "is too large");
	assert_refused("18446744073709551615", "is too large");
}

TEST(decimal_suffixes_end_with_B)
{
	static const struct {
		const char *text;
		uint64_t nbytes;
	} all[] = {
		{ "1kB", 1000 },
		{ "1KB", 1000 },
		{ "4GB", UINT64_C(4000000000) },
		{ "100TB", UINT64_C(100000000000000) },
		{ "1KiB", 1024 },
		{ "1MiB", 1 << 20 },
		{ "4GiB", UINT64_C(4) << 30 },
		{ "1TiB", UINT64_C(1) << 40 },
		{ "1T", UINT64_C(1) << 40 },
	};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		assert_int_equal(parsed(all[i].text, SIZE_OF_SPACE), all[i].nbytes);
		assert_int_equal(parsed(all[i].text, SIZE_OF_DATA), all[i].nbytes);
	}
	assert_int_equal(parsed("18EB", SIZE_OF_DATA), UINT64_C(18000000000000000000));
	assert_refused("19EB", "is too large");
}

TEST(mistakes_are_told_apart)
{
	assert_refused("", "is not a size");
	assert_refused("-1", "is not a size");
	assert_refused("+1", "is not a size");
	assert_refused(" 1", "is not a size");
	assert_refused("K", "is not a size");
	assert_refused("1x", "invalid suffix");
	assert_refused("1p", "invalid suffix");
	assert_refused("1B", "invalid suffix");
	assert_refused("1bB", "invalid suffix");
	assert_refused("1Ki", "invalid suffix");
	assert_refused("1KiBx", "invalid suffix");
	assert_refused("1 K", "invalid suffix");
	assert_refused("1.5G", "invalid suffix");
}

/* 64 GiB less a fifth, in whole bytes; was once printed as 51.1 GiB. */
static const uint64_t four_fifths_nbytes = (UINT64_C(64) << 30) - (UINT64_C(64) << 30) / 5;

TEST(sizes_are_printed_to_the_nearest_tenth_or_as_bounds)
{
	const struct {
		uint64_t nbytes;
		const char *down, *nearest, *up;
	} cases[] = {
		{ 0, "0 B", "0 B", "0 B" },
		{ 1023, "1023 B", "1023 B", "1023 B" },
		{ 1024, "1 KiB", "1 KiB", "1 KiB" },
		{ 1025, "1 KiB", "1 KiB", "1.1 KiB" },
		{ 1536, "1.5 KiB", "1.5 KiB", "1.5 KiB" },
		{ 1536 + 60, "1.5 KiB", "1.6 KiB", "1.6 KiB" },
		{ (1 << 20) - 1, "1023.9 KiB", "1 MiB", "1 MiB" },
		{ 64 << 20, "64 MiB", "64 MiB", "64 MiB" },
		{ four_fifths_nbytes, "51.2 GiB", "51.2 GiB", "51.3 GiB" },
		{ four_fifths_nbytes - 1, "51.1 GiB", "51.2 GiB", "51.2 GiB" },
		{ UINT64_MAX, "15.9 EiB", "16 EiB", "16 EiB" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_string_equal(size_format_down(cases[i].nbytes).text, cases[i].down);
		assert_string_equal(size_format(cases[i].nbytes).text, cases[i].nearest);
		assert_string_equal(size_format_up(cases[i].nbytes).text, cases[i].up);
	}
}
