/*
 * line_elements.c - what stands for a line while it is sorted (see line_elements.h)
 */
#include "src/lines/line_elements.h"

#include "src/base/cancellation.h"
#include "src/device/cpu/cpu_sort.h"

enum {
	SMALL_GROUP_N = 4, /* elements that insertion sort puts in order */
	PREFETCH_N = 12,   /* elements fetched ahead of their turn */
	CHECK_N = 1 << 16, /* elements between two looks at a cancellation */
	/*
	 * After so many rounds of sorting by eight bytes, elements are compared in pairs. Each
	 * round is nested in the one before. If keys are not stored, it makes them again.
	 */
	MAX_ROUNDS = 256,
	MAX_REMADE_ROUNDS = 8,
};

/* Return whether to stop at the i-th element of a loop. */
static inline bool is_cancelled(const struct line_elements *in, size_t i)
{
	return i % CHECK_N == 0 && cancellation_is_requested(in->cancellation);
}

/* --- Lines and keys --- */

void line_key_entry_store(unsigned char *entry, uint64_t line, struct line_view key)
{
	const size_t header_nbytes = line_key_header_nbytes(key.nbytes);
	const uint64_t header[2] = { line, key.nbytes };

	memcpy(entry, header, header_nbytes);
	memcpy(entry + header_nbytes, key.bytes, key.nbytes);
}

struct line_view line_element_string(const struct line_elements *in,
				     const struct line_element *element, enum line_string string,
				     size_t prefix_nbytes, struct line_key_buffer *buffer)
{
	const uint64_t reference = element->reference;
	struct line_view line;

	if (in->stores_keys && string == STRING_KEY)
		return line_key_entry_key(in->key_memory + (reference >> LINE_LENGTH_BITS),
					  reference & LINE_LENGTH_UNKNOWN);
	line = line_reference_view(in, line_element_line(in, element));
	if (in->is_plain || string == STRING_LINE)
		return line;
	line_keys_normalise_prefix(in->keys, line.bytes, line.nbytes, prefix_nbytes, buffer);
	return (struct line_view){ buffer->bytes, buffer->n };
}

/* Compare keys that are made again; depth: as n_shared of line_keys_compare_normalised(). */
static int compare_remade(const struct line_elements *in, const struct line_element *a,
			  const struct line_element *b, size_t depth)
{
	return line_keys_compare_normalised(in->keys,
					    line_reference_view(in, line_element_line(in, a)),
					    line_reference_view(in, line_element_line(in, b)),
					    depth, in->buffers);
}

/* Compare strings that are in memory and whose first `depth` bytes are equal. */
static int compare_views(const struct line_elements *in, const struct line_element *a,
			 const struct line_element *b, enum line_string string, size_t depth)
{
	struct line_view a_string = line_element_string(in, a, string, SIZE_MAX, NULL);
	struct line_view b_string = line_element_string(in, b, string, SIZE_MAX, NULL);
	const size_t n = a_string.nbytes < b_string.nbytes ? a_string.nbytes : b_string.nbytes;
	const size_t n_skipped = n < depth ? n : depth;
	int order;

	a_string.bytes += n_skipped;
	a_string.nbytes -= n_skipped;
	b_string.bytes += n_skipped;
	b_string.nbytes -= n_skipped;
	order = line_view_compare(a_string, b_string);
	return line_string_is_descending(in, string) ? -order : order;
}

static int compare_strings(const struct line_elements *in, const struct line_element *a,
			   const struct line_element *b, enum line_string string, size_t depth)
{
	return string == STRING_KEY && line_keys_are_remade(in) ?
		       compare_remade(in, a, b, depth) :
		       compare_views(in, a, b, string, depth);
}

/* Compare by key, last resort and position. `string`, `depth`: what is known to be equal. */
static int compare_elements(const struct line_elements *in, const struct line_element *a,
			    const struct line_element *b, enum line_string string, size_t depth)
{
	int order = compare_strings(in, a, b, string, depth);

	if (order == 0 && string == STRING_KEY && line_keys_have_last_resort(in->keys))
		order = compare_strings(in, a, b, STRING_LINE, 0);
	return order ? order : a->reference < b->reference ? -1 : 1;
}

/* --- Elements that share a prefix --- */

static void insertion_sort(const struct line_elements *in, struct line_element *elements, size_t n,
			   enum line_string string, size_t depth)
{
	for (size_t i = 1; i < n; i++) {
		const struct line_element element = elements[i];
		size_t j = i;

		for (; j > 0 && compare_elements(in, &elements[j - 1], &element, string, depth) > 0;
		     j--)
			elements[j] = elements[j - 1];
		elements[j] = element;
	}
}

/* Move the i-th of n elements of a heap down to its place. The first one is the greatest. */
static void sift_down(const struct line_elements *in, struct line_element *elements, size_t n,
		      size_t i, enum line_string string, size_t depth)
{
	const struct line_element element = elements[i];

	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n &&
		    compare_elements(in, &elements[child], &elements[child + 1], string, depth) < 0)
			child++;
		if (compare_elements(in, &element, &elements[child], string, depth) >= 0)
			break;
		elements[i] = elements[child];
	}
	elements[i] = element;
}

/* Sort by comparing elements in pairs (Williams, "Algorithm 232: Heapsort", CACM 1964). */
static void heap_sort(const struct line_elements *in, struct line_element *elements, size_t n,
		      enum line_string string, size_t depth)
{
	for (size_t i = n / 2; i-- > 0;)
		sift_down(in, elements, n, i, string, depth);
	while (n-- > 1 && !cancellation_is_requested(in->cancellation)) {
		const struct line_element greatest = elements[0];

		elements[0] = elements[n];
		elements[n] = greatest;
		sift_down(in, elements, n, 0, string, depth);
	}
}

/* Fetch what the elements after the i-th of n refer to. */
static void prefetch_ahead(const struct line_elements *in, const struct line_element *elements,
			   size_t n, size_t i, enum line_string string)
{
	/* The reference to a line is in the entry of its key, which must be there first. */
	const size_t n_ahead = in->stores_keys && string == STRING_LINE ? 2 * PREFETCH_N :
									  PREFETCH_N;

	if (i + n_ahead < n)
		line_element_prefetch(in, &elements[i + n_ahead]);
	if (n_ahead > PREFETCH_N && i + PREFETCH_N < n)
		line_reference_prefetch(in, line_element_line(in, &elements[i + PREFETCH_N]));
}

/* What strings have in common. */
struct shared {
	size_t nbytes; /* their first bytes are equal */
	size_t min_nbytes, max_nbytes;
};

/* Find what strings share that share `depth` bytes, or less up to their ends. */
static struct shared find_shared(const struct line_elements *in,
				 const struct line_element *elements, size_t n,
				 enum line_string which, size_t depth)
{
	const struct line_view first =
		line_element_string(in, &elements[0], which, SIZE_MAX, &in->buffers[0]);
	struct shared shared = { first.nbytes, first.nbytes, first.nbytes };

	for (size_t i = 1; i < n; i++) {
		struct line_view string;
		size_t at = depth;

		if (is_cancelled(in, i))
			break;
		prefetch_ahead(in, elements, n, i, which);
		string = line_element_string(in, &elements[i], which, SIZE_MAX, &in->buffers[1]);
		if (string.nbytes < shared.min_nbytes)
			shared.min_nbytes = string.nbytes;
		if (string.nbytes > shared.max_nbytes)
			shared.max_nbytes = string.nbytes;
		if (shared.nbytes > shared.min_nbytes)
			shared.nbytes = shared.min_nbytes;
		if (at < shared.nbytes &&
		    memcmp(first.bytes + at, string.bytes + at, shared.nbytes - at) == 0)
			continue;
		while (at < shared.nbytes && first.bytes[at] == string.bytes[at])
			at++;
		shared.nbytes = at;
	}
	return shared;
}

static void sort_by_prefix(const struct line_elements *in, struct line_element *elements, size_t n,
			   enum line_string which, size_t depth, unsigned n_rounds);

void line_elements_sort_numbers(const struct line_elements *in, struct line_element *elements,
				size_t n)
{
	cpu_sort(&(struct sort_elements_op){ .elements = elements,
					     .n = n,
					     .scratch = in->scratch + (elements - in->elements),
					     .element_nbytes = sizeof *elements,
					     .cancellation = in->cancellation });
}

/*
 * Move elements whose strings end after `depth` bytes to the beginning, or to the end in
 * descending order. Returns their number.
 */
static size_t split_ended(const struct line_elements *in, struct line_element *elements, size_t n,
			  enum line_string string, size_t depth)
{
	const bool descending = line_string_is_descending(in, string);
	size_t n_ended = 0;

	for (size_t i = 0; i < n; i++) {
		const struct line_view view =
			line_element_string(in, &elements[i], string, depth, &in->buffers[0]);
		const bool ends = view.nbytes == depth;

		elements[i].prefix = ends == descending;
		n_ended += ends;
	}
	line_elements_sort_numbers(in, elements, n);
	return n_ended;
}

/*
 * Return whether elements with the same prefix, which holds the bytes of their strings from `depth`
 * on, have equal keys. (No normalised key is the beginning of another one.) False for few elements
 * whose keys would have to be made.
 */
static bool group_has_equal_keys(const struct line_elements *in,
				 const struct line_element *elements, size_t n,
				 enum line_string string, size_t depth)
{
	const size_t end = depth + sizeof elements->prefix;

	if (string != STRING_KEY || in->is_plain)
		return false;
	if (in->stores_keys)
		return (elements->reference & LINE_LENGTH_UNKNOWN) <= end;
	return in->max_key_nbytes <= end ||
	       (n > SMALL_GROUP_N &&
		line_element_string(in, elements, string, end, &in->buffers[0]).nbytes <= end);
}

int line_elements_compare_keys(const struct line_elements *in, const struct line_element *a,
			       const struct line_element *b, size_t depth)
{
	const size_t end = depth + sizeof a->prefix;

	if (!line_keys_are_remade(in))
		return line_view_compare(line_element_string(in, a, STRING_KEY, SIZE_MAX, NULL),
					 line_element_string(in, b, STRING_KEY, SIZE_MAX, NULL));
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	return in->max_key_nbytes <= end ? 0 : compare_remade(in, a, b, end);
}

/*
 * Sort elements whose strings are equal in the first `depth` bytes, or up to their ends, after
 * n_rounds.
 */
static void sort_group(const struct line_elements *in, struct line_element *elements, size_t n,
		       enum line_string string, size_t depth, unsigned n_rounds)
{
	const unsigned max_rounds =
		string == STRING_KEY && line_keys_are_remade(in) ? MAX_REMADE_ROUNDS : MAX_ROUNDS;
	struct shared shared;
	size_t n_ended = 0;

	if (n <= SMALL_GROUP_N) {
		insertion_sort(in, elements, n, string, depth);
		return;
	}
	if (n_rounds > max_rounds) {
		heap_sort(in, elements, n, string, depth);
		return;
	}
	shared = find_shared(in, elements, n, string, depth);
	if (shared.nbytes == shared.max_nbytes && string == STRING_KEY &&
	    line_keys_have_last_resort(in->keys)) {
		string = STRING_LINE;
		shared = find_shared(in, elements, n, string, 0);
	}
	if (shared.nbytes == shared.max_nbytes)
		return;
	if (shared.nbytes == shared.min_nbytes)
		n_ended = split_ended(in, elements, n, string, shared.nbytes);
	sort_by_prefix(in, line_string_is_descending(in, string) ? elements : elements + n_ended,
		       n - n_ended, string, shared.nbytes, n_rounds);
}

/* Return whether the i-th of n elements has the prefix of a neighbour. */
static bool is_tied(const struct line_element *elements, size_t n, size_t i)
{
	return i < n && (elements[i].prefix == elements[i - 1].prefix ||
			 (i + 1 < n && elements[i].prefix == elements[i + 1].prefix));
}

/*
 * Sort groups of elements with the same prefix. The prefix holds eight bytes of the strings from
 * `depth` on; zeros after the end of a string.
 */
static void sort_groups(const struct line_elements *in, struct line_element *elements, size_t n,
			enum line_string string, size_t depth, unsigned n_rounds)
{
	const bool has_last_resort = line_keys_have_last_resort(in->keys);
	size_t begin = 0;

	if (cancellation_is_requested(in->cancellation) || in->buffers[0].has_failed ||
	    in->buffers[1].has_failed)
		return;
	for (size_t i = 1; i <= n; i++) {
		const uint64_t prefix = elements[begin].prefix;

		if (is_tied(elements, n, i + 2 * PREFETCH_N))
			line_element_prefetch(in, &elements[i + 2 * PREFETCH_N]);
		if (has_last_resort && is_tied(elements, n, i + PREFETCH_N)) {
			const uint64_t line = line_element_line(in, &elements[i + PREFETCH_N]);

			line_reference_prefetch(in, line);
			line_reference_prefetch_end(in, line);
		}
		if (i < n && elements[i].prefix == prefix)
			continue;
		if (i - begin > 1) {
			if (!group_has_equal_keys(in, elements + begin, i - begin, string, depth))
				sort_group(in, elements + begin, i - begin, string, depth,
					   n_rounds);
			else if (has_last_resort)
				sort_group(in, elements + begin, i - begin, STRING_LINE, 0, 0);
		}
		/* line_elements_compare_keys() needs the prefixes. */
		while (line_keys_are_remade(in) && begin < i)
			elements[begin++].prefix = prefix;
		begin = i;
	}
}

/* Sort elements whose strings share `depth` bytes and go on. */
static void sort_by_prefix(const struct line_elements *in, struct line_element *elements, size_t n,
			   enum line_string string, size_t depth, unsigned n_rounds)
{
	const bool descending = line_string_is_descending(in, string);

	for (size_t i = 0; i < n; i++) {
		if (is_cancelled(in, i))
			return;
		prefetch_ahead(in, elements, n, i, string);
		elements[i].prefix = line_load_prefix(
			line_element_string(in, &elements[i], string,
					    depth + sizeof elements->prefix, &in->buffers[0]),
			depth, descending);
	}
	line_elements_sort_numbers(in, elements, n);
	sort_groups(in, elements, n, string, depth, n_rounds + 1);
}

void line_elements_sort(const struct line_elements *in, struct line_element *elements, size_t n,
			size_t depth)
{
	line_elements_sort_numbers(in, elements, n);
	sort_groups(in, elements, n, STRING_KEY, depth, 0);
}

bool line_elements_need_scratch(void)
{
	return cpu_sort_scratch_nbytes(1, sizeof(struct line_element)) > 0;
}
