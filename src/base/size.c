/*
 * size.c - parse and format sizes (see size.h)
 */
#include "src/base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"

/* The suffix at index p is a factor of 2^(10 p). */
static const char suffixes[] = "bKMGTPE";

static const struct {
	uint64_t unit_nbytes; /* of a number without a suffix */
	bool has_percent;
	const char *suffixes, *examples; /* for messages */
} kinds[] = {
	[SIZE_OF_SPACE] = { 1024, true, "b, K, M, G, T, P, E, kB, MB ... or %",
			    "100b, 64K, 4G, 4GB or 50%" },
	[SIZE_OF_DATA] = { 1, false, "b, K, M, G, T, P, E, kB, MB ...", "100 (bytes), 4K or 4kB" },
};

/* Rounds down. A percentage may exceed 100. */
static int parse_percent(uint64_t percent, uint64_t *ret_nbytes)
{
	__extension__ const unsigned __int128 nbytes =
		(unsigned __int128)percent * memory_physical_nbytes() / 100;

	if (nbytes > UINT64_MAX)
		return -ERANGE;
	*ret_nbytes = (uint64_t)nbytes;
	return 0;
}

/* GNU sort accepts both cases up to T. It takes a lone 'B' as 1024; that is an error here. */
static int suffix_power(char letter)
{
	const char *suffix = memchr(suffixes, letter, sizeof suffixes - 1);

	if (!suffix && strchr("kmgt", letter))
		suffix = strchr(suffixes, letter - 'a' + 'A');
	return suffix ? (int)(suffix - suffixes) : -ENOTSUP;
}

/* Return the factor of a suffix: K and KiB are 1024, kB and KB 1000. */
static int parse_suffix(const char *text, uint64_t *ret_factor)
{
	const int power = suffix_power(text[0]);
	const bool is_decimal = strcmp(text + 1, "B") == 0;
	uint64_t factor = 1;

	if (power < 0)
		return power;
	if (text[1] && (power == 0 || (!is_decimal && strcmp(text + 1, "iB") != 0)))
		return -ENOTSUP;
	for (int i = 0; i < power; i++)
		factor *= is_decimal ? 1000 : 1024;
	*ret_factor = factor;
	return 0;
}

/*
 * Without a message. Returns -EINVAL if `text` does not begin with a digit, -ENOTSUP for an unknown
 * suffix, or -ERANGE.
 */
static int parse_size(const char *text, enum size_kind kind, uint64_t *ret_nbytes)
{
	uint64_t unit_nbytes = kinds[kind].unit_nbytes;
	uint64_t n = 0, nbytes;
	int r;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n))
			return -ERANGE;
	if (text[0] == '%' && !text[1] && kinds[kind].has_percent)
		return parse_percent(n, ret_nbytes);
	if (text[0]) {
		r = parse_suffix(text, &unit_nbytes);
		if (r < 0)
			return r;
	}
	if (__builtin_mul_overflow(n, unit_nbytes, &nbytes))
		return -ERANGE;
	*ret_nbytes = nbytes;
	return 0;
}

int size_parse_option(const char *option, const char *text, enum size_kind kind,
		      uint64_t *ret_nbytes)
{
	const int r = parse_size(text, kind, ret_nbytes);

	switch (r) {
	case -ENOTSUP:
		return fail(-EINVAL, "%s: invalid suffix in '%s'; use one of %s", option, text,
			    kinds[kind].suffixes);
	case -ERANGE:
		return fail(r, "%s: '%s' is too large; the maximum is 2^64 - 1 bytes", option,
			    text);
	case -EINVAL:
		return fail(r, "%s: '%s' is not a size; examples: %s", option, text,
			    kinds[kind].examples);
	}
	return r;
}

enum rounding { DOWN, NEAREST, UP };

/* Return nbytes in tenths of 2^(10 power) bytes. */
static uint64_t to_tenths(uint64_t nbytes, unsigned power, enum rounding rounding)
{
	__extension__ typedef unsigned __int128 wide;
	const wide unit = (wide)1 << 10 * power;
	const wide bias = rounding == UP ? unit - 1 : rounding == NEAREST ? unit / 2 : 0;

	return (uint64_t)(((wide)nbytes * 10 + bias) / unit);
}

/* Use the largest unit that gives at least 1 after rounding: 1 GiB, not 1024 MiB. */
static struct number_text format_rounded(uint64_t nbytes, enum rounding rounding)
{
	struct number_text result;
	unsigned power = 0;
	uint64_t tenths = to_tenths(nbytes, 0, rounding);

	while (power < sizeof suffixes - 2 && tenths >= 10240)
		tenths = to_tenths(nbytes, ++power, rounding);
	if (power == 0)
		snprintf(result.text, sizeof result, "%" PRIu64 " B", nbytes);
	else if (tenths % 10)
		snprintf(result.text, sizeof result, "%" PRIu64 ".%c %ciB", tenths / 10,
			 (char)('0' + tenths % 10), suffixes[power]);
	else
		snprintf(result.text, sizeof result, "%" PRIu64 " %ciB", tenths / 10,
			 suffixes[power]);
	return result;
}

struct number_text size_format(uint64_t nbytes)
{
	return format_rounded(nbytes, NEAREST);
}

struct number_text size_format_down(uint64_t nbytes)
{
	return format_rounded(nbytes, DOWN);
}

struct number_text size_format_up(uint64_t nbytes)
{
	return format_rounded(nbytes, UP);
}
