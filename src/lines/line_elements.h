/*
 * line_elements.h - what stands for a line while it is sorted
 *
 * An element has 16 bytes: eight bytes of the line's key, and where the line is. Elements are
 * sorted as 128-bit numbers (cpu_sort.h): by prefix, then by position. Those with the same prefix
 * are then sorted by the bytes that follow, as in an MSD radix sort of strings with cached
 * characters (Ng and Kakehi, 2007).
 *
 * Plain keys are the lines themselves. Others are normalised keys in memory (line_keys.h).
 */
#pragma once

#include "src/lines/line_keys.h"

/* Text and keys may be read so far past their end. */
enum { LINE_SLACK_NBYTES = 64 };

/* Also limits what an element can refer to: there is less than 1 TiB of text or keys. */
enum { LINE_POSITION_BITS = 40, LINE_LENGTH_BITS = 64 - LINE_POSITION_BITS };

/* The length of a line in a reference if it has as many bytes or more. */
#define LINE_LENGTH_UNKNOWN ((UINT64_C(1) << LINE_LENGTH_BITS) - 1)

/* Compared as one number of 128 bits, whose upper half is the prefix. */
struct line_element {
	/* Plain keys: line_reference(); others: the offset of a key entry */
	uint64_t reference;
	uint64_t prefix;
};

/*
 * The entry of a key in memory, at any address:
 *
 *	line_reference() of its line   its length   the key
 *	8 bytes                        1 byte, or 0xff and 8 bytes
 */
enum { LINE_KEY_LONG = 0xff, LINE_KEY_HEADER_NBYTES = 8 + 1 };

static inline size_t line_key_entry_nbytes(size_t key_nbytes)
{
	return LINE_KEY_HEADER_NBYTES + (key_nbytes < LINE_KEY_LONG ? 0 : 8) + key_nbytes;
}

static inline uint64_t line_key_entry_line(const unsigned char *entry)
{
	uint64_t reference;

	memcpy(&reference, entry, sizeof reference);
	return reference;
}

static inline struct line_view line_key_entry_key(const unsigned char *entry)
{
	const unsigned char *bytes = entry + LINE_KEY_HEADER_NBYTES;
	uint64_t nbytes = entry[8];

	if (nbytes == LINE_KEY_LONG) {
		memcpy(&nbytes, bytes, sizeof nbytes);
		bytes += sizeof nbytes;
	}
	return (struct line_view){ bytes, nbytes };
}

void line_key_entry_store(unsigned char *entry, uint64_t line, struct line_view key);

/* The elements of a text, and what they refer to. */
struct line_elements {
	const struct line_keys *keys;
	bool is_plain, is_reversed; /* of plain keys, and of lines as a last resort */
	const unsigned char *text, *key_memory;
	struct line_element *elements;
	struct line_element *scratch; /* as many, for cpu_sort(), if it needs any */
};

/* The strings that elements are compared by: keys, then whole lines as a last resort. */
enum line_string { STRING_KEY, STRING_LINE };

static inline uint64_t line_reference(const struct line_elements *in, const unsigned char *line,
				      size_t nbytes)
{
	return (uint64_t)(line - in->text) << LINE_LENGTH_BITS |
	       (nbytes < LINE_LENGTH_UNKNOWN ? nbytes : LINE_LENGTH_UNKNOWN);
}

/* Return the line of an element, or the string that it is compared by. */
struct line_view line_element_view(const struct line_elements *in,
				   const struct line_element *element);
struct line_view line_element_string(const struct line_elements *in,
				     const struct line_element *element, enum line_string string);

/* Fetch what an element refers to: the line, or the entry of its key. */
static inline void line_element_prefetch(const struct line_elements *in,
					 const struct line_element *element)
{
	__builtin_prefetch(in->is_plain ? in->text + (element->reference >> LINE_LENGTH_BITS) :
					  in->key_memory + element->reference);
}

/* Fetch the end of a line; if it has a key, whose entry was fetched before, also its beginning. */
void line_element_prefetch_line(const struct line_elements *in, const struct line_element *element);

/* Return whether elements are ordered by this string in descending order. (The bytes of normalised
 * keys are complemented instead.) */
static inline bool line_string_is_descending(const struct line_elements *in,
					     enum line_string string)
{
	return in->is_reversed && (in->is_plain || string == STRING_LINE);
}

/* Return eight bytes of a string from `depth` on, as a number that has their order. */
static inline uint64_t line_load_prefix(struct line_view string, size_t depth, bool descending)
{
	const size_t rest = string.nbytes > depth ? string.nbytes - depth : 0;
	uint64_t word = 0;

	if (rest > 0) {
		memcpy(&word, string.bytes + depth, sizeof word);
		word = __builtin_bswap64(word);
		if (rest < sizeof word)
			word &= ~(UINT64_MAX >> (8 * rest));
	}
	return descending ? ~word : word;
}

/* Compare the keys of two elements, not their lines. */
int line_elements_compare_keys(const struct line_elements *in, const struct line_element *a,
			       const struct line_element *b);

/*
 * Sort n of the elements, whose keys share the first `depth` bytes, and whose prefixes hold the
 * next eight. The prefixes are meaningless afterwards.
 */
void line_elements_sort(const struct line_elements *in, struct line_element *elements, size_t n,
			size_t depth);

/* Return whether line_elements_sort() needs the scratch. */
bool line_elements_need_scratch(void);
