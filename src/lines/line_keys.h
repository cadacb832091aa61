/*
 * line_keys - the order of lines of text, as the options of GNU sort define it in the C locale
 *
 * Every order is expressed as the order of byte strings. line_keys_normalise() turns a line into a
 * normalised key, and memcmp() of two normalised keys gives the order of the lines:
 *
 *	text       its bytes, filtered (-d, -i) and folded (-f); then 00. Bytes 00 and 01 become
 *	           01 01 and 01 02.
 *	-n         sign and number of integer digits; digits, two a byte, without trailing zeros of
 *	           the fraction; then 00
 *	-g         class (no number, NaN, number), sign, exponent, mantissa
 *	-h         suffix and sign, then as -n
 *	-M         number of the month, 0 if it is none
 *	-V         class of the name; its symbols and numbers without the suffix; whether there is a
 *	           suffix; then those of the suffix
 *	-r         the complement of all these bytes
 *
 * Keys follow each other in the order of -k. Every part ends with a terminator or has a known
 * length, so no normalised key is the beginning of another one. Lines with equal keys are compared
 * by their bytes, as a last resort: line_keys_have_last_resort().
 *
 * Without any key the line itself is compared: line_keys_are_plain().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A line in memory without its delimiter, or a key. */
struct line_view {
	const unsigned char *bytes;
	size_t nbytes;
};

/* Compare bytes as memcmp() does; the end comes before any byte. */
static inline int line_view_compare(struct line_view a, struct line_view b)
{
	const size_t n = a.nbytes < b.nbytes ? a.nbytes : b.nbytes;
	int order;

	/* The first bytes of most lines differ. To look at them is faster than a call. */
	if (n >= sizeof(uint64_t)) {
		uint64_t a_word, b_word;

		memcpy(&a_word, a.bytes, sizeof a_word);
		memcpy(&b_word, b.bytes, sizeof b_word);
		if (a_word != b_word)
			return __builtin_bswap64(a_word) < __builtin_bswap64(b_word) ? -1 : 1;
	}
	order = n ? memcmp(a.bytes, b.bytes, n) : 0;
	return order ? order : (a.nbytes > b.nbytes) - (a.nbytes < b.nbytes);
}

/* Ordering options, global or of a key. */
struct line_order {
	/* b, d, f, g, h, i, M, n, r, V: which letters were given; bits by LINE_ORDER_LETTERS */
	uint32_t letters;
	bool skip_end_blanks; /* b of the key's end; letter b is that of its start */
};

/* A key: the text from a start to an end. Fields and characters count from 0. */
struct line_key {
	size_t start_field, start_char;
	size_t end_field; /* SIZE_MAX: the end of the line */
	size_t end_char;  /* 0: the end of the field; else the number of its characters */
	struct line_order order;
};

/* This many bytes after texts and keys are readable, because whole words are loaded. */
enum { LINE_SLACK_NBYTES = 64 };

/* Bytes that grow, with LINE_SLACK_NBYTES after the capacity; zeroed: empty. */
struct line_key_buffer {
	unsigned char *bytes;
	size_t n, capacity;
	bool has_failed; /* no memory */
};

struct line_keys {
	struct line_key *keys; /* n_keys */
	size_t n_keys;
	struct line_order global; /* of the options without -k */
	int separator;            /* -t; -1: the empty string between non-blank and blank */
	unsigned char delimiter;  /* of lines: '\n', or '\0' with -z */
	bool stable;              /* -s: no last-resort comparison */
	bool unique;              /* -u: nor with this */
};

/* Set the defaults. */
void line_keys_init(struct line_keys *keys);
void line_keys_free(struct line_keys *keys);

/* Add a global ordering option; false: it is none. */
bool line_keys_add_letter(struct line_keys *keys, char letter);

/* Skip what strtoull() skips before the digits of a number, except a minus. */
const char *line_number_digits(const char *text);

/* Add the key of -k POS1[,POS2]. Returns 0 or a negative errno after a message. */
int line_keys_add(struct line_keys *keys, const char *text);

/* Set -t. Returns 0 or -EINVAL after a message. */
int line_keys_set_separator(struct line_keys *keys, const char *text);

/*
 * All options are known: copy the keys, let those without letters inherit the global ones, and make
 * a key of global options without -k. Returns 0, or a negative errno after a message for options
 * that exclude each other. line_keys_free() frees the copy.
 */
int line_keys_finish(const struct line_keys *requested, struct line_keys *ret_keys);

/*
 * Return the options that define the order: "--lines -t, -k2.1n,2.0 -s". The caller frees it. NULL:
 * no memory.
 */
char *line_keys_format(const struct line_keys *keys);

/* Return whether lines are compared as they are, by their bytes. */
static inline bool line_keys_are_plain(const struct line_keys *keys)
{
	return keys->n_keys == 0;
}

/* Return whether plain lines are compared in reverse. */
bool line_keys_are_reversed(const struct line_keys *keys);

/* Return whether the whole line decides between lines of equal keys. */
static inline bool line_keys_have_last_resort(const struct line_keys *keys)
{
	return keys->n_keys > 0 && !keys->stable && !keys->unique;
}

/*
 * Replace the contents of `out` by the normalised key of a line. Without memory out->has_failed is
 * set.
 */
void line_keys_normalise(const struct line_keys *keys, const unsigned char *line, size_t nbytes,
			 struct line_key_buffer *out);

/*
 * As line_keys_normalise(), but what follows the first prefix_nbytes + 1 bytes may be left out.
 * Returns whether the normalised key is complete.
 */
bool line_keys_normalise_prefix(const struct line_keys *keys, const unsigned char *line,
				size_t nbytes, size_t prefix_nbytes, struct line_key_buffer *out);

/*
 * Compare the normalised keys of two lines as memcmp() does. n_shared: how many of their first
 * bytes are probably equal; only the run time depends on it. scratch: for the keys; without memory
 * its has_failed is set, and the result is meaningless.
 */
int line_keys_compare_normalised(const struct line_keys *keys, struct line_view a,
				 struct line_view b, size_t n_shared,
				 struct line_key_buffer scratch[2]);

/* Compare two lines by their keys, and by the last resort, as memcmp() does. scratch: as above. */
int line_keys_compare(const struct line_keys *keys, struct line_view a, struct line_view b,
		      struct line_key_buffer scratch[2]);

void line_key_buffer_free(struct line_key_buffer *buffer);

/* Free the buffer. Returns 0, or -ENOMEM after a message if a key could not be made. */
int line_key_buffer_finish(struct line_key_buffer *buffer);
