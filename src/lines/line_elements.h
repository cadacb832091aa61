/*
 * line_elements.h - what stands for a line while it is sorted
 *
 * An element has 16 bytes: eight bytes of the line's key, and where the line is. Elements are
 * sorted as 128-bit numbers (cpu_sort.h): by prefix, then by position. Those with the same prefix
 * are then sorted by the bytes that follow, as in an MSD radix sort of strings with cached
 * characters (Ng and Kakehi, 2007).
 *
 * Plain keys are the lines themselves. Others are normalised keys (line_keys.h). If eight bytes
 * decide between most keys, keys are made again for elements with the same prefix. Otherwise they
 * are stored in memory.
 */
#pragma once

#include "src/lines/line_keys.h"
#include "src/lines/line_scan.h"

/* Also limits what an element can refer to: there is less than 1 TiB of text or keys. */
enum { LINE_POSITION_BITS = 40, LINE_LENGTH_BITS = 64 - LINE_POSITION_BITS };

/* The length of a line in a reference if it has as many bytes or more. */
#define LINE_LENGTH_UNKNOWN ((UINT64_C(1) << LINE_LENGTH_BITS) - 1)

/* Compared as one number of 128 bits, whose upper half is the prefix. */
struct line_element {
	/* line_key_reference() if keys are stored; otherwise line_reference() */
	uint64_t reference;
	uint64_t prefix;
};

/*
 * The entry of a key in memory, at any address:
 *
 *	line_reference() of its line   the length of a long key   the key
 *	8 bytes                        8 bytes
 */
enum { LINE_KEY_LONG = 255 };

static inline size_t line_key_header_nbytes(size_t key_nbytes)
{
	return key_nbytes < LINE_KEY_LONG ? 8 : 16;
}

static inline size_t line_key_entry_nbytes(size_t key_nbytes)
{
	return line_key_header_nbytes(key_nbytes) + key_nbytes;
}

void line_key_entry_store(unsigned char *entry, uint64_t line, struct line_view key);

/* The elements of a text, and what they refer to. */
struct line_elements {
	const struct line_keys *keys;
	bool is_plain, is_reversed; /* of plain keys, and of lines as a last resort */
	bool stores_keys;           /* false: a key is the line, or is made again when needed */
	size_t max_key_nbytes;      /* of keys that are not stored; SIZE_MAX: unknown */
	struct line_key_buffer *buffers; /* of a thread: 2, for keys that are made again */
	const unsigned char *text, *key_memory;
	struct line_element *elements;
	struct line_element *scratch;            /* as many, for cpu_sort(), if it needs any */
	const struct cancellation *cancellation; /* NULL: never */
};

/* Return whether keys are made again when they are needed. */
static inline bool line_keys_are_remade(const struct line_elements *in)
{
	return !in->is_plain && !in->stores_keys;
}

/* The strings that elements are compared by: keys, then whole lines as a last resort. */
enum line_string { STRING_KEY, STRING_LINE };

static inline uint64_t line_make_reference(uint64_t position, size_t nbytes)
{
	return position << LINE_LENGTH_BITS |
	       (nbytes < LINE_LENGTH_UNKNOWN ? nbytes : LINE_LENGTH_UNKNOWN);
}

static inline uint64_t line_reference(const struct line_elements *in, const unsigned char *line,
				      size_t nbytes)
{
	return line_make_reference((uint64_t)(line - in->text), nbytes);
}

/* A reference to a key, whose entry is there. */
static inline uint64_t line_key_reference(const struct line_elements *in,
					  const unsigned char *entry, size_t key_nbytes)
{
	return line_make_reference((uint64_t)(entry - in->key_memory), key_nbytes);
}

/* Return the key in an entry; nbytes: its length, or anything from LINE_KEY_LONG on. */
static inline struct line_view line_key_entry_key(const unsigned char *entry, uint64_t nbytes)
{
	const size_t header_nbytes = line_key_header_nbytes(nbytes);

	if (nbytes >= LINE_KEY_LONG)
		memcpy(&nbytes, entry + 8, sizeof nbytes);
	return (struct line_view){ entry + header_nbytes, nbytes };
}

/* Return the line of a line_reference(). */
static inline struct line_view line_reference_view(const struct line_elements *in,
						   uint64_t reference)
{
	const unsigned char *line = in->text + (reference >> LINE_LENGTH_BITS);
	const uint64_t nbytes = reference & LINE_LENGTH_UNKNOWN;

	if (nbytes < LINE_LENGTH_UNKNOWN)
		return (struct line_view){ line, nbytes };
	return (struct line_view){ line, (size_t)(line_end(line, in->keys->delimiter) - line) };
}

/* Fetch the beginning of a line, or its end. */
static inline void line_reference_prefetch(const struct line_elements *in, uint64_t reference)
{
	__builtin_prefetch(in->text + (reference >> LINE_LENGTH_BITS));
}

static inline void line_reference_prefetch_end(const struct line_elements *in, uint64_t reference)
{
	__builtin_prefetch(in->text + (reference >> LINE_LENGTH_BITS) +
			   (reference & LINE_LENGTH_UNKNOWN));
}

/* Return the reference to the line of an element, or the string that it is compared by. */
static inline uint64_t line_element_line(const struct line_elements *in,
					 const struct line_element *element)
{
	uint64_t line = element->reference;

	if (in->stores_keys)
		memcpy(&line, in->key_memory + (line >> LINE_LENGTH_BITS), sizeof line);
	return line;
}

/*
 * A key that is not stored is made in the buffer; what follows its first prefix_nbytes + 1 bytes
 * may be left out. Without memory buffer->has_failed is set, and the key is meaningless.
 */
struct line_view line_element_string(const struct line_elements *in,
				     const struct line_element *element, enum line_string string,
				     size_t prefix_nbytes, struct line_key_buffer *buffer);

/*
 * Compare the keys of sorted elements as memcmp() does. Their prefixes hold eight bytes from
 * `depth` on, unless keys are stored or plain.
 */
int line_elements_compare_keys(const struct line_elements *in, const struct line_element *a,
			       const struct line_element *b, size_t depth);

/* Fetch what an element refers to: the line, or the entry of its key. */
static inline void line_element_prefetch(const struct line_elements *in,
					 const struct line_element *element)
{
	__builtin_prefetch((in->stores_keys ? in->key_memory : in->text) +
			   (element->reference >> LINE_LENGTH_BITS));
}

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

/*
 * Sort n of the elements, whose keys share the first `depth` bytes, and whose prefixes hold the
 * next eight. The prefixes are meaningless afterwards if keys are stored or plain. So are the
 * elements once cancellation is requested or a buffer has failed.
 */
void line_elements_sort(const struct line_elements *in, struct line_element *elements, size_t n,
			size_t depth);

/* Sort n of the elements as numbers: by prefix, then by reference. */
void line_elements_sort_numbers(const struct line_elements *in, struct line_element *elements,
				size_t n);

/* Return whether line_elements_sort() needs the scratch. */
bool line_elements_need_scratch(void);
