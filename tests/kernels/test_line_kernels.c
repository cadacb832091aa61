/*
 * test_line_kernels - lines of text on a device against lines sorted one by one
 *
 * Texts of all shapes go through the kernels as the CUDA back end calls them: find, make elements,
 * sort, break ties, order, measure, gather. What differs from case to case (lengths, common
 * prefixes, bytes, keys, order, -u, windows) follows from the number of the case: a failure names
 * it.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "src/record/digest.h"
#include "tests/kernels/device.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

enum { MAX_LINES = 3000, MAX_WINDOWS = 5, REDZONE = 0xa5 /* kernel_memory_alloc() */ };

struct line_case {
	uint64_t seed;
	unsigned char delimiter;
	bool has_keys, keys_decide, descending, unique;
	unsigned char *text; /* host */
	size_t nbytes;
	uint32_t n_text;  /* lines of the text, with keys */
	uint32_t n;       /* without keys */
	uint64_t *starts; /* host, n_text + 1 */
	uint32_t *order;  /* host: expected, n_kept */
	uint32_t n_kept;
	uint32_t first, n_output; /* of these, the lines of the output */
	struct kernel_lines lines;
	void *device_text;
	uint32_t *device_order;
	uint64_t *device_offsets;
};

static uint64_t draw(struct line_case *it, uint64_t below)
{
	return digest_mix64(++it->seed) % below;
}

/* Return how many bytes a line, or its key, has with the delimiter; and where it begins. */
static size_t find_line(const struct line_case *it, uint32_t line, bool is_key,
			const unsigned char **ret_line)
{
	const uint32_t i = it->has_keys ? 2 * line + !is_key : line;

	*ret_line = it->text + it->starts[i];
	return it->starts[i + 1] - it->starts[i];
}

/* Append a line of the text: n_common equal bytes, then n of few or many values. */
static void add_text_line(struct line_case *it, size_t n_common, size_t n, uint64_t n_values)
{
	for (size_t i = 0; i < n_common + n; i++) {
		unsigned char byte = i < n_common ? 'x' : (unsigned char)draw(it, n_values);

		if (byte == it->delimiter)
			byte = 1;
		it->text[it->nbytes++] = byte;
	}
	it->text[it->nbytes++] = it->delimiter;
	it->starts[++it->n_text] = it->nbytes;
}

/* Append a line and its key. The end of the key has a byte that is nowhere else in keys. */
static void add_line(struct line_case *it, size_t n_common, size_t n, uint64_t n_values)
{
	if (it->has_keys) {
		add_text_line(it, draw(it, 3) ? n_common : 0, draw(it, 12), 2);
		it->text[it->nbytes - 1] = 3;
		it->text[it->nbytes++] = it->delimiter;
		it->starts[it->n_text]++;
	}
	add_text_line(it, n_common, n, n_values);
	it->n++;
}

static void make_text(struct line_case *it)
{
	const size_t n_lines = draw(it, 4) == 0 ? draw(it, 5) : draw(it, MAX_LINES);
	const size_t n_common = draw(it, 3) == 0 ? draw(it, 300) : 0;
	const size_t max_nbytes = draw(it, 2) ? 12 : 60;
	const uint64_t n_values = draw(it, 2) ? 2 : 256;

	it->delimiter = draw(it, 2) ? '\n' : '\0';
	it->descending = draw(it, 2);
	it->unique = draw(it, 2);
	it->has_keys = draw(it, 2);
	it->keys_decide = it->has_keys && draw(it, 2);
	it->text = malloc(n_lines * (2 * n_common + max_nbytes + 20) + 100000);
	it->starts = calloc(2 * n_lines + 4, sizeof *it->starts);
	for (size_t i = 0; i < n_lines; i++)
		add_line(it, draw(it, 8) ? n_common : 0, draw(it, max_nbytes + 1), n_values);
	if (draw(it, 5) == 0)
		add_line(it, 0, draw(it, 50000), n_values);
}

/* Compare two lines without keys, or their keys. */
static int compare_text_lines(const uint32_t *a, const uint32_t *b, bool is_key,
			      const struct line_case *it)
{
	const unsigned char *x, *y;
	const size_t x_nbytes = find_line(it, *a, is_key, &x) - 1;
	const size_t y_nbytes = find_line(it, *b, is_key, &y) - 1;
	const int order = memcmp(x, y, x_nbytes < y_nbytes ? x_nbytes : y_nbytes);

	return order ? order : (x_nbytes > y_nbytes) - (x_nbytes < y_nbytes);
}

static int compare_lines(const void *a, const void *b, void *context)
{
	const struct line_case *it = context;
	int order = it->has_keys ? compare_text_lines(a, b, true, it) : 0;

	if (order || it->keys_decide)
		return order;
	order = compare_text_lines(a, b, false, it);
	return it->descending ? -order : order;
}

static int compare_stably(const void *a, const void *b, void *context)
{
	const int order = compare_lines(a, b, context);
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return order ? order : (x > y) - (x < y);
}

static void sort_expected(struct line_case *it)
{
	uint32_t n = 0;

	it->order = calloc(it->n + 1, sizeof *it->order);
	for (uint32_t i = 0; i < it->n; i++)
		it->order[i] = i;
	qsort_r(it->order, it->n, sizeof *it->order, compare_stably, it);
	for (uint32_t i = 0; i < it->n; i++)
		if (!it->unique || n == 0 ||
		    compare_lines(&it->order[n - 1], &it->order[i], it) != 0)
			it->order[n++] = it->order[i];
	it->n_kept = n;
}

static struct digest digest_lines(const struct line_case *it, const uint32_t *order, uint32_t n)
{
	struct digest digest = { .n_records = n };

	for (uint32_t i = 0; i < n; i++) {
		const unsigned char *line;
		const size_t nbytes = find_line(it, order ? order[i] : i, false, &line);

		digest.sum += digest_record(line, nbytes - 1);
	}
	return digest;
}

static void *alloc_zeroed(size_t nbytes)
{
	void *zeros = calloc(1, nbytes), *memory = kernel_memory_alloc(nbytes);

	kernel_memory_write(memory, zeros, nbytes);
	free(zeros);
	return memory;
}

static size_t text_nbytes(const struct line_case *it)
{
	return (it->nbytes + 15) / 16 * 16 + 16;
}

static void find_lines(struct line_case *it)
{
	const size_t scratch_nbytes = kernel_find_lines_scratch_nbytes(it->nbytes);
	void *scratch = kernel_memory_alloc(scratch_nbytes);
	uint64_t *n = kernel_memory_alloc(sizeof *n);
	const size_t starts_nbytes = (it->n_text + 1) * sizeof(uint64_t);
	uint64_t *starts = kernel_memory_alloc(starts_nbytes);
	uint64_t *found = malloc(starts_nbytes), n_found;
	const struct find_lines_task task = { .text = it->device_text,
					      .nbytes = it->nbytes,
					      .delimiter = it->delimiter,
					      .starts = starts,
					      .max_n = it->n_text,
					      .n = n,
					      .scratch = scratch };

	assert_int_equal(launch_find_lines(&task, NULL), 0);
	kernel_memory_read(&n_found, n, sizeof n_found);
	assert_int_equal(n_found, it->n_text);
	if (it->n > 0) {
		kernel_memory_read(found, starts, starts_nbytes);
		assert_memory_equal(found, it->starts, starts_nbytes);
	}
	it->lines = (struct kernel_lines){ .text = it->device_text,
					   .starts = starts,
					   .descending = it->descending,
					   .has_keys = it->has_keys,
					   .keys_decide = it->keys_decide };
	kernel_memory_free(scratch, scratch_nbytes);
	kernel_memory_free(n, sizeof *n);
	free(found);
}

/* Break the ties round after round, as cuda_ties_break() does. */
static void break_ties(struct line_case *it, void *elements)
{
	const struct kernel_tie_keys keys = { .lines = &it->lines };
	const size_t sort_nbytes = kernel_sort_scratch_nbytes(it->n, 16);
	const size_t ties_nbytes = kernel_ties_scratch_nbytes(it->n);
	void *buffers[2] = { kernel_memory_alloc(sort_nbytes), kernel_memory_alloc(sort_nbytes) };
	uint32_t *positions[2] = { kernel_memory_alloc(4 * it->n), kernel_memory_alloc(4 * it->n) };
	void *scratch = kernel_memory_alloc(ties_nbytes);
	struct tie_counts *counts = kernel_memory_alloc(sizeof *counts), found;
	uint64_t *common = kernel_memory_alloc(sizeof *common), at = LINE_ELEMENT_NBYTES;
	struct tie_break_task task = { .elements = elements, .list = elements, .n = it->n };

	for (unsigned round = 0;; round++) {
		assert_int_equal(launch_count_ties(keys, task.list, task.n, scratch, counts, NULL),
				 0);
		kernel_memory_read(&found, counts, sizeof found);
		if (found.n_elements == 0)
			break;
		if (found.n_elements == task.n) {
			assert_int_equal(launch_find_common_prefix(keys, task.list, task.n, at,
								   common, NULL),
					 0);
			kernel_memory_read(&at, common, sizeof at);
			if (at == UINT64_MAX)
				break;
		}
		task.ties_scratch = scratch;
		task.n_ties = found.n_elements;
		task.at = at;
		task.next = buffers[round % 2];
		task.next_positions = positions[round % 2];
		task.sort_scratch = buffers[round % 2 ^ 1];
		assert_int_equal(launch_break_ties(keys, &task, NULL), 0);
		task.list = task.next;
		task.positions = task.next_positions;
		task.n = task.n_ties;
		at += LINE_WORD_NBYTES;
	}
	for (unsigned i = 0; i < 2; i++) {
		kernel_memory_free(buffers[i], sort_nbytes);
		kernel_memory_free(positions[i], 4 * it->n);
	}
	kernel_memory_free(scratch, ties_nbytes);
	kernel_memory_free(counts, sizeof *counts);
	kernel_memory_free(common, sizeof *common);
}

/* Make the order of the sorted elements, and check it. */
static void order_lines(struct line_case *it, const void *elements)
{
	const size_t scratch_nbytes = kernel_ties_scratch_nbytes(it->n);
	uint64_t *n_kept = kernel_memory_alloc(sizeof *n_kept), n_found;
	uint32_t *order = malloc((it->n + 1) * sizeof *order);
	struct digest *dropped = alloc_zeroed(sizeof *dropped), found;
	struct order_lines_task task = { .lines = it->lines,
					 .elements = elements,
					 .n = it->n,
					 .unique = it->unique,
					 .n_kept = n_kept,
					 .dropped = dropped,
					 .scratch = kernel_memory_alloc(scratch_nbytes) };
	struct digest expected = digest_lines(it, NULL, it->n);
	const struct digest kept = digest_lines(it, it->order, it->n_kept);

	task.order = it->device_order = kernel_memory_alloc(it->n * sizeof *order);
	assert_int_equal(launch_order_lines(&task, NULL), 0);
	kernel_memory_read(&n_found, n_kept, sizeof n_found);
	kernel_memory_read(&found, dropped, sizeof found);
	assert_int_equal(n_found, it->n_kept);
	kernel_memory_read(order, task.order, it->n_kept * sizeof *order);
	assert_memory_equal(order, it->order, it->n_kept * sizeof *order);
	expected.n_records -= kept.n_records;
	expected.sum -= kept.sum;
	assert_true(digest_equal(found, expected));
	kernel_memory_free(task.scratch, scratch_nbytes);
	kernel_memory_free(n_kept, sizeof *n_kept);
	kernel_memory_free(dropped, sizeof *dropped);
	free(order);
}

static void sort_lines(struct line_case *it)
{
	void *elements = kernel_memory_alloc(16 * it->n);
	const size_t scratch_nbytes = kernel_sort_scratch_nbytes(it->n, 16);
	void *scratch = kernel_memory_alloc(scratch_nbytes);
	struct kernel_line_totals *totals = alloc_zeroed(sizeof *totals), found;
	uint64_t longest = 0;

	assert_int_equal(launch_make_line_elements(&it->lines, it->n, elements, totals, NULL), 0);
	kernel_memory_read(&found, totals, sizeof found);
	for (uint32_t i = 0; i < it->n; i++) {
		const unsigned char *line;
		const size_t nbytes = find_line(it, i, false, &line);

		longest = nbytes > longest ? nbytes : longest;
	}
	assert_int_equal(found.longest_nbytes, longest);
	assert_true(digest_equal(found.digest, digest_lines(it, NULL, it->n)));
	assert_int_equal(launch_sort(elements, it->n, 16, scratch, NULL), 0);
	break_ties(it, elements);
	order_lines(it, elements);
	kernel_memory_free(totals, sizeof *totals);
	kernel_memory_free(scratch, scratch_nbytes);
	kernel_memory_free(elements, 16 * it->n);
}

static unsigned char *write_expected(const struct line_case *it, size_t *ret_nbytes)
{
	unsigned char *out = malloc(it->nbytes + 1);

	*ret_nbytes = 0;
	for (uint32_t i = 0; i < it->n_output; i++) {
		const unsigned char *line;
		const size_t n = find_line(it, it->order[it->first + i], false, &line);

		memcpy(out + *ret_nbytes, line, n);
		*ret_nbytes += n;
	}
	return out;
}

/* Return where segment i begins in the output. */
static size_t segment_begin(const struct line_case *it, size_t i)
{
	size_t nbytes = 0;

	for (size_t k = 0; k < i * LINE_SEGMENT; k++) {
		const unsigned char *line;

		nbytes += find_line(it, it->order[it->first + k], false, &line);
	}
	return nbytes;
}

/* Draw the end of a window: anywhere, or in the last 16 bytes before a segment. */
static size_t draw_window_end(struct line_case *it, size_t begin, size_t nbytes)
{
	const size_t n_segments = it->n_output / LINE_SEGMENT;

	if (n_segments > 0 && draw(it, 2)) {
		const size_t at = segment_begin(it, 1 + draw(it, n_segments)),
			     before = draw(it, 16);

		if (at >= begin + before)
			return at - before;
	}
	return begin + draw(it, nbytes - begin + 1);
}

/* Gather all segments to windows; add up what they report. */
static void gather_windows(struct line_case *it, const unsigned char *expected, size_t nbytes,
			   uint64_t n_expected_disorders)
{
	const size_t n_windows = 1 + draw(it, MAX_WINDOWS);
	struct digest *digest = alloc_zeroed(sizeof *digest), found;
	uint64_t *n_disorders = alloc_zeroed(sizeof *n_disorders), n_found;
	const struct digest kept = digest_lines(it, it->order + it->first, it->n_output);
	size_t begin = 0;

	for (size_t i = 0; i < n_windows; i++) {
		const size_t end = i + 1 == n_windows ? nbytes : draw_window_end(it, begin, nbytes);
		const size_t out_nbytes = (end - begin + 31) / 16 * 16;
		unsigned char *out = kernel_memory_alloc(out_nbytes), *bytes = malloc(out_nbytes);
		const struct gather_lines_task task = {
			.lines = it->lines,
			.order = it->device_order,
			.first_line = it->first,
			.n = it->n_output,
			.offsets = it->device_offsets,
			.n_segments = (it->n_output + LINE_SEGMENT - 1) / LINE_SEGMENT,
			.longest_nbytes = draw(it, 2) ? 1 : 1 << 20,
			.begin = begin,
			.end = end,
			.out = out,
			.digest = digest,
			.n_disorders = n_disorders,
		};

		assert_int_equal(launch_gather_lines(&task, NULL), 0);
		kernel_memory_read(bytes, out, out_nbytes);
		assert_memory_equal(bytes, expected + begin, end - begin);
		for (size_t j = end - begin; j < out_nbytes; j++)
			assert_int_equal(bytes[j], REDZONE);
		kernel_memory_free(out, out_nbytes);
		free(bytes);
		begin = end;
	}
	kernel_memory_read(&found, digest, sizeof found);
	kernel_memory_read(&n_found, n_disorders, sizeof n_found);
	assert_true(digest_equal(found, kept));
	assert_int_equal(n_found, n_expected_disorders);
	kernel_memory_free(digest, sizeof *digest);
	kernel_memory_free(n_disorders, sizeof *n_disorders);
}

static void measure_and_gather(struct line_case *it, uint64_t n_disorders)
{
	const size_t offsets_nbytes = (it->n / LINE_SEGMENT + 1) * sizeof(uint64_t);
	uint64_t *total = kernel_memory_alloc(sizeof *total), total_nbytes;
	unsigned char *expected;
	size_t nbytes;

	expected = write_expected(it, &nbytes);
	it->device_offsets = kernel_memory_alloc(offsets_nbytes);
	assert_int_equal(launch_measure_lines(&it->lines, it->device_order + it->first,
					      it->n_output, it->device_offsets, total, NULL),
			 0);
	kernel_memory_read(&total_nbytes, total, sizeof total_nbytes);
	assert_int_equal(total_nbytes, nbytes);
	gather_windows(it, expected, nbytes, n_disorders);
	kernel_memory_free(it->device_offsets, offsets_nbytes);
	kernel_memory_free(total, sizeof *total);
	free(expected);
}

/*
 * Swap two neighbours that differ, on the device, too, and let the output begin with the first line
 * or with the second of these. Returns whether there are any.
 */
static bool swap_neighbours(struct line_case *it)
{
	for (uint32_t i = 1; i < it->n_kept; i++) {
		const uint32_t line = it->order[i];

		if (compare_lines(&it->order[i - 1], &it->order[i], it) == 0)
			continue;
		it->order[i] = it->order[i - 1];
		it->order[i - 1] = line;
		kernel_memory_write(it->device_order, it->order, it->n_kept * sizeof line);
		it->first = draw(it, 2) ? i : 0;
		it->n_output = it->n_kept - it->first;
		return true;
	}
	return false;
}

static void run_case(uint64_t number)
{
	struct line_case it = { .seed = number << 32 };

	make_text(&it);
	sort_expected(&it);
	it.device_text = kernel_memory_alloc(text_nbytes(&it));
	kernel_memory_write(it.device_text, it.text, it.nbytes);
	find_lines(&it);
	sort_lines(&it);
	it.first = draw(&it, 2) ? draw(&it, it.n_kept + 1) : 0;
	it.n_output = draw(&it, 2) ? draw(&it, it.n_kept - it.first + 1) : it.n_kept - it.first;
	measure_and_gather(&it, 0);
	if (swap_neighbours(&it))
		measure_and_gather(&it, 1);
	kernel_memory_free(it.device_text, text_nbytes(&it));
	kernel_memory_free((void *)it.lines.starts, (it.n_text + 1) * sizeof *it.starts);
	kernel_memory_free(it.device_order, it.n * sizeof *it.order);
	free(it.text);
	free(it.starts);
	free(it.order);
}

TEST(lines_are_sorted_as_one_by_one)
{
	const uint64_t n_cases = device_is_fast() ? 500 : FOR_RACES_ONLY ? 5 : 40;

	for (uint64_t i = 0; i < n_cases; i++) {
		print_message("case %llu\n", (unsigned long long)i);
		run_case(i);
	}
}
