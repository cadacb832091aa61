/*
 * size.h - parse sizes as GNU sort does, and format sizes
 *
 *	"100b" 100 bytes	"4K" 4 KiB	"1G" 1 GiB	"50%" half of the physical memory
 *
 * The unit of a number without a suffix, and whether % is allowed, depend on what is measured.
 */
#pragma once

#include <stdint.h>

enum size_kind {
	SIZE_OF_SPACE, /* memory or disk space: KiB without a suffix; % of the physical memory */
	SIZE_OF_DATA,  /* a record or a part of a file: bytes without a suffix; no % */
};

/*
 * Parse `text`: decimal digits and an optional suffix of b K M G T P E (also k m g t), or % for
 * space. Returns 0 and *ret_nbytes. Else *ret_nbytes is unchanged, a message names `option`
 * ("--buffer-size"), and the error is -ERANGE if the size exceeds 64 bits, or -EINVAL.
 */
int size_parse_option(const char *option, const char *text, enum size_kind kind,
		      uint64_t *ret_nbytes);

/* A formatted number. size_format(n).text is valid until the end of the whole expression. */
struct number_text {
	char text[32];
};

/*
 * Format nbytes in tenths of a unit, rounded to the nearest: "0 B", "1023 B", "1.5 KiB", "64 MiB",
 * "16 EiB".
 */
struct number_text size_format(uint64_t nbytes);

/* Like size_format(), rounded down (for what is available) or up (for what is needed). */
struct number_text size_format_down(uint64_t nbytes);
struct number_text size_format_up(uint64_t nbytes);
