/*
 * size - sizes as people write them: parsed as GNU sort parses them, printed to be read
 *
 *	"100b" 100 bytes	"4K" 4 KiB	"1G" 1 GiB	"50%" half of the physical memory
 *
 * What a number without a suffix counts, and whether there is a percentage, is a matter of what is
 * measured.
 */
#pragma once

#include <stdint.h>

enum size_kind {
	SIZE_OF_SPACE, /* memory or disk: without a suffix KiB; % of the physical memory */
	SIZE_OF_DATA,  /* a record or a part of a file: without a suffix bytes; no % */
};

/*
 * Parse `text`: decimal digits and at most one suffix of b K M G T P E (k, m, g and t as well) or,
 * of space, %. Returns 0 and *ret_nbytes; or, without a message and with *ret_nbytes untouched,
 * -EINVAL when it does not begin with a digit, -ENOTSUP when an unknown suffix follows the number,
 * -ERANGE when the size does not fit 64 bits.
 */
int size_parse(const char *text, enum size_kind kind, uint64_t *ret_nbytes);

/*
 * The same, with a message that names `option` ("--buffer-size", say); an unknown suffix is -EINVAL
 * then, too.
 */
int size_parse_option(const char *option, const char *text, enum size_kind kind,
		      uint64_t *ret_nbytes);

/*
 * Write `nbytes` as a person reads it, in tenths of a unit, the nearest: "0 B", "1023 B", "1.5
 * KiB", "64 MiB", "16 EiB".
 */
void size_format(uint64_t nbytes, char text[static 32]);

/* The same rounded down, for what there is, and up, for what will be needed. */
void size_format_down(uint64_t nbytes, char text[static 32]);
void size_format_up(uint64_t nbytes, char text[static 32]);
