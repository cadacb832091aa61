/*
 * line_elements.c - what stands for a line while it is sorted (see line_elements.h)
 */
#include "src/lines/line_elements.h"

#include "src/device/cpu/cpu_sort.h"
#include "src/lines/line_scan.h"

enum {
	SMALL_GROUP_N = 4, /* elements that insertion sort puts in order */
	PREFETCH_N = 12,   /* elements fetched ahead of their turn */
};

/* --- Lines and keys --- */

static struct line_view view_reference(const struct line_elements *in, uint64_t reference)
{
	const unsigned char *line = in->text + (reference >> LINE_LENGTH_BITS);
	const uint64_t nbytes = reference & LINE_LENGTH_UNKNOWN;

	if (nbytes < LINE_LENGTH_UNKNOWN)
		return (struct line_view){ line, nbytes };
	return (struct line_view){ line, (size_t)(line_end(line, in->keys->delimiter) - line) };
}

static const struct line_key_entry *key_entry(const struct line_elements *in,
					      const struct line_element *element)
{
	return (const struct line_key_entry *)(const void *)(in->key_memory + element->reference);
}

struct line_view line_element_view(const struct line_elements *in,
				   const struct line_element *element)
{
	return view_reference(in, in->is_plain ? element->reference : key_entry(in, element)->line);
}

struct line_view line_element_string(const struct line_elements *in,
				     const struct line_element *element, enum line_string string)
{
	const struct line_key_entry *entry;

	if (in->is_plain)
		return view_reference(in, element->reference);
	entry = key_entry(in, element);
	if (string == STRING_LINE)
		return view_reference(in, entry->line);
	return (struct line_view){ entry->bytes, entry->nbytes };
}

/* Fetch the end of a line; if it has a key, whose entry was fetched before, also its beginning. */
void line_element_prefetch_line(const struct line_elements *in, const struct line_element *element)
{
	const uint64_t reference = in->is_plain ? element->reference : key_entry(in, element)->line;
	const unsigned char *line = in->text + (reference >> LINE_LENGTH_BITS);

	if (!in->is_plain)
		__builtin_prefetch(line);
	__builtin_prefetch(line + (reference & LINE_LENGTH_UNKNOWN));
}

/* Compare strings whose first `depth` bytes are equal. */
static int compare_strings(const struct line_elements *in, const struct line_element *a,
			   const struct line_element *b, enum line_string string, size_t depth)
{
	struct line_view a_string = line_element_string(in, a, string);
	struct line_view b_string = line_element_string(in, b, string);
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

/* Shorten what the strings share from `depth` on. Returns its length in all. */
static size_t shared_length(const struct line_elements *in, const struct line_element *elements,
			    size_t n, enum line_string which, size_t depth, bool *ret_are_equal)
{
	const struct line_view first = line_element_string(in, &elements[0], which);
	size_t shared = first.nbytes;

	*ret_are_equal = true;
	for (size_t i = 1; i < n; i++) {
		struct line_view string;
		size_t at = depth;

		if (i + PREFETCH_N < n)
			line_element_prefetch(in, &elements[i + PREFETCH_N]);
		string = line_element_string(in, &elements[i], which);
		*ret_are_equal &= string.nbytes == first.nbytes;
		if (shared > string.nbytes)
			shared = string.nbytes;
		if (at < shared && memcmp(first.bytes + at, string.bytes + at, shared - at) == 0)
			continue;
		while (at < shared && first.bytes[at] == string.bytes[at])
			at++;
		*ret_are_equal &= at == first.nbytes;
		shared = at;
	}
	return shared;
}

static void sort_by_prefix(const struct line_elements *in, struct line_element *elements, size_t n,
			   enum line_string which, size_t depth);

/* Sort by prefix, then by position. */
static void sort_elements(const struct line_elements *in, struct line_element *elements, size_t n)
{
	cpu_sort(&(struct sort_elements_op){ .elements = elements,
					     .n = n,
					     .scratch = in->scratch + (elements - in->elements),
					     .element_nbytes = sizeof *elements });
}

/*
 * Sort elements whose strings share `depth` bytes, where some end: these come first, or last in
 * descending order.
 */
static void sort_longer(const struct line_elements *in, struct line_element *elements, size_t n,
			enum line_string string, size_t depth)
{
	const bool descending = line_string_is_descending(in, string);
	size_t n_ended = 0;

	for (size_t i = 0; i < n; i++) {
		const bool ends = line_element_string(in, &elements[i], string).nbytes == depth;

		elements[i].prefix = ends == descending;
		n_ended += ends;
	}
	if (n_ended > 0)
		sort_elements(in, elements, n);
	sort_by_prefix(in, descending ? elements : elements + n_ended, n - n_ended, string, depth);
}

/* Sort elements whose strings are equal in the first `depth` bytes, or up to their ends. */
static void sort_group(const struct line_elements *in, struct line_element *elements, size_t n,
		       enum line_string string, size_t depth)
{
	bool are_equal;
	size_t shared;

	if (n <= SMALL_GROUP_N) {
		insertion_sort(in, elements, n, string, depth);
		return;
	}
	shared = shared_length(in, elements, n, string, depth, &are_equal);
	if (are_equal && string == STRING_KEY && line_keys_have_last_resort(in->keys)) {
		string = STRING_LINE;
		shared = shared_length(in, elements, n, string, 0, &are_equal);
	}
	if (!are_equal)
		sort_longer(in, elements, n, string, shared);
}

/*
 * Sort groups of elements with the same prefix. The prefix holds eight bytes of the strings from
 * `depth` on; zeros after the end of a string.
 */
static void sort_groups(const struct line_elements *in, struct line_element *elements, size_t n,
			enum line_string string, size_t depth)
{
	size_t begin = 0;

	for (size_t i = 1; i <= n; i++) {
		if (i + PREFETCH_N < n &&
		    elements[i + PREFETCH_N].prefix == elements[i + PREFETCH_N - 1].prefix)
			line_element_prefetch(in, &elements[i + PREFETCH_N]);
		if (i < n && elements[i].prefix == elements[begin].prefix)
			continue;
		if (i - begin > 1)
			sort_group(in, elements + begin, i - begin, string, depth);
		begin = i;
	}
}

/* Sort elements whose strings share `depth` bytes and go on. */
static void sort_by_prefix(const struct line_elements *in, struct line_element *elements, size_t n,
			   enum line_string string, size_t depth)
{
	const bool descending = line_string_is_descending(in, string);

	for (size_t i = 0; i < n; i++) {
		if (i + PREFETCH_N < n)
			line_element_prefetch(in, &elements[i + PREFETCH_N]);
		elements[i].prefix = line_load_prefix(line_element_string(in, &elements[i], string),
						      depth, descending);
	}
	sort_elements(in, elements, n);
	sort_groups(in, elements, n, string, depth);
}

int line_elements_compare_keys(const struct line_elements *in, const struct line_element *a,
			       const struct line_element *b)
{
	return compare_strings(in, a, b, STRING_KEY, 0);
}

void line_elements_sort(const struct line_elements *in, struct line_element *elements, size_t n,
			size_t depth)
{
	sort_elements(in, elements, n);
	sort_groups(in, elements, n, STRING_KEY, depth);
}

bool line_elements_need_scratch(void)
{
	return cpu_sort_scratch_nbytes(1, sizeof(struct line_element)) > 0;
}
