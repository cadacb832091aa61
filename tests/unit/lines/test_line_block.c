/*
 * test_line_block - blocks of lines: how they are divided, and that they are written in order
 */
#include "src/lines/line_block.h"
#include "src/lines/line_block_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/thread_pool.h"
#include "tests/support/captured_messages.h"
#include "tests/support/guarded.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

/* The lines in between begin with more equal bytes than the elements hold. */
static const char lines[] = "0\n1 and equal bytes 1\n1 and equal bytes 2\n2\n";

static int ignore_bytes(void *context, uint64_t offset, const void *bytes, size_t nbytes)
{
	(void)context, (void)offset, (void)bytes, (void)nbytes;
	return 0;
}

/* A block, and what it refers to. */
struct opened_block {
	struct line_keys requested, keys;
	struct thread_pool *threads;
	struct line_block *block;
};

/* letters: ordering options. */
static void open_block(const char *letters, uint32_t n_threads, size_t memory_nbytes,
		       struct opened_block *ret_block)
{
	struct line_block_params params = { .n_threads = n_threads,
					    .memory_nbytes = memory_nbytes,
					    .keys = &ret_block->keys };

	line_keys_init(&ret_block->requested);
	for (; *letters; letters++)
		assert_true(line_keys_add_letter(&ret_block->requested, *letters));
	assert_int_equal(line_keys_finish(&ret_block->requested, &ret_block->keys), 0);
	assert_int_equal(thread_pool_open(n_threads, &ret_block->threads), 0);
	params.threads = ret_block->threads;
	assert_int_equal(line_block_open(&params, &ret_block->block), 0);
}

static void close_block(struct opened_block *block)
{
	line_block_close(block->block);
	thread_pool_close(block->threads);
	line_keys_free(&block->keys);
	line_keys_free(&block->requested);
}

/* Sort the nbytes of lines at the beginning of the block's text. */
static void sort_text(struct line_block *block, size_t nbytes)
{
	unsigned char *text = line_block_text(block);
	uint64_t n_sorted;

	assert_int_equal(line_block_sort(block, &(struct line_range){ text, text + nbytes }, 1,
					 text + nbytes, &n_sorted, NULL),
			 0);
	assert_int_equal(n_sorted, nbytes);
}

/* Sort the lines after the first n_left_out bytes, change the last but one, and write them. */
static int write_changed(const char *letters, size_t n_left_out, char end)
{
	const struct line_sink sink = { .write = ignore_bytes, .max_nbytes = 4096 };
	const size_t nbytes = sizeof lines - 1 - n_left_out;
	struct opened_block opened;
	unsigned char *text;
	int r;

	open_block(letters, 1, 1 << 20, &opened);
	text = line_block_text(opened.block);
	memcpy(text, lines + n_left_out, nbytes);
	sort_text(opened.block, nbytes);
	text[nbytes - sizeof "\n2\n"] = (unsigned char)end;
	captured_messages_reset(true);
	r = line_block_write(opened.block, 4096, &sink, NULL);
	close_block(&opened);
	return r;
}

TEST(lines_that_changed_after_the_sort_are_out_of_order)
{
	assert_int_equal(write_changed("", 0, '2'), 0);
	assert_int_equal(write_changed("", 0, '0'), -EIO);
	assert_string_equal(captured_messages_error(), "internal error: lines are out of order");
	assert_int_equal(write_changed("", sizeof "0\n" - 1, '0'), -EIO);
	assert_int_equal(write_changed("r", 0, '0'), -EIO);
}

/* Append n lines, of which most have one of a few prefixes, and many are equal. */
static size_t make_lines_with_prefixes(unsigned char *text, uint64_t n)
{
	static const char *const beginnings[] = {
		"https://www.example.org/", "https://www.example.org/", "https://www.example.com/",
		"https://www.example.com/", "https://www.example.com/", "http://",
	};
	uint64_t random = 1;
	size_t nbytes = 0;

	for (uint64_t i = 0; i < n; i++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		nbytes += (size_t)sprintf((char *)text + nbytes, "%s%u\n",
					  beginnings[(random >> 33) % 6],
					  (unsigned)(random >> 40) % 60000);
		if (i % 50 == 0)
			nbytes += (size_t)sprintf((char *)text + nbytes, "%u\n",
						  (unsigned)(random >> 50));
	}
	return nbytes;
}

/* Check that the buckets hold n lines in order. */
static void assert_sorted(const struct line_block *block, bool is_descending, uint64_t n)
{
	struct line_view last = { 0 };
	uint64_t i = 0;

	for (uint32_t j = 0; j < block->n_buckets; j++)
		for (uint64_t k = 0; k < block->buckets[j].n; k++, i++) {
			const struct line_view line = bucket_line(block, &block->buckets[j], k);
			const int order = i > 0 ? line_view_compare(last, line) : -1;

			if (order == 0) /* in the order of the text */
				assert_true(last.bytes < line.bytes);
			else
				assert_true((order < 0) != (i > 0 && is_descending));
			last = line;
		}
	assert_int_equal(i, n);
}

static void check_lines_with_prefixes(const char *letters)
{
	enum {
		N = FOR_RACES_ONLY ? 50000 : 200000,
		N_LINES = N + N / 50,
		N_THREADS = 4,
		MAX_SHARE = 6
	};
	struct opened_block opened;

	open_block(letters, N_THREADS, 64 << 20, &opened);
	sort_text(opened.block, make_lines_with_prefixes(line_block_text(opened.block), N));
	assert_int_equal(line_block_n_lines(opened.block), N_LINES);
	for (uint32_t j = 0; j < opened.block->n_buckets; j++)
		assert_true(opened.block->buckets[j].n < N_LINES / MAX_SHARE);
	assert_sorted(opened.block, strchr(letters, 'r'), N_LINES);
	close_block(&opened);
}

TEST(lines_with_frequent_prefixes_are_divided_among_threads)
{
	check_lines_with_prefixes("");
	if (!FOR_RACES_ONLY)
		check_lines_with_prefixes("r");
	check_lines_with_prefixes("f");
}

/*
 * Sort n_long lines of equal letters, of different lengths, among n_short lines of digits, and
 * check the order, which is that of bytes.
 */
static void check_long_lines(const char *letters, unsigned n_long, unsigned n_short)
{
	enum { STEP = 9 }; /* so that eight bytes do not decide between two lines */
	struct opened_block opened;
	unsigned char *text;
	size_t nbytes = 0;

	open_block(letters, 1, 16 << 20, &opened);
	text = line_block_text(opened.block);
	for (unsigned i = 0; i < n_long + n_short; i++) {
		const unsigned number = i * 7919 % (n_long + n_short); /* in no order */
		const size_t n = number < n_long ? STEP * (size_t)(number + 1) : 0;

		memset(text + nbytes, 'a', n);
		nbytes += n;
		if (n == 0)
			nbytes += (size_t)sprintf((char *)text + nbytes, "%u", number);
		text[nbytes++] = '\n';
	}
	sort_text(opened.block, nbytes);
	assert_false(opened.block->in.stores_keys);
	assert_sorted(opened.block, strchr(letters, 'r'), n_long + n_short);
	close_block(&opened);
}

TEST(lines_with_long_common_beginnings_are_sorted)
{
	const unsigned n = FOR_RACES_ONLY ? 40 : 400; /* one thread sorts them */

	check_long_lines("", n, 0);
	check_long_lines("r", n, 0);
	check_long_lines("f", 30, 100 * n); /* keys are made again */
}

/* Let the memory of the block be the last nbytes before `end`, and sort a text in it. */
static bool fits_before(struct line_block *block, unsigned char *end, size_t nbytes,
			const char *text)
{
	const size_t text_nbytes = strlen(text);
	uint64_t n_sorted;

	block->memory = end - nbytes;
	block->memory_nbytes = nbytes;
	block->in.text = block->memory;
	memcpy(block->memory, text, text_nbytes);
	captured_messages_reset(true);
	return line_block_sort(block,
			       &(struct line_range){ block->memory, block->memory + text_nbytes },
			       1, block->memory + text_nbytes, &n_sorted, NULL) == 0 &&
	       n_sorted == text_nbytes;
}

/* The last key is shorter than the word that is loaded, and inaccessible memory follows. */
TEST(keys_that_fill_the_memory_are_read_within_it)
{
	enum { N = 40, MIN_NBYTES = 2048, MAX_NBYTES = 16384, ALIGN_NBYTES = 64 };
	unsigned char *memory = guarded_alloc(MAX_NBYTES), *own_memory;
	struct opened_block opened;
	size_t own_nbytes, nbytes = MIN_NBYTES;

	open_block("f", 1, 1 << 20, &opened);
	own_memory = opened.block->memory;
	own_nbytes = opened.block->memory_nbytes;
	/* One of these lengths fills the memory, whose size is a multiple of the alignment. */
	for (int length = 1; length <= ALIGN_NBYTES; length++) {
		char text[MIN_NBYTES];
		size_t n = (size_t)sprintf(text, "%0*d\n", length, 0);

		for (int i = 0; i < N; i++)
			n += (size_t)sprintf(text + n, "%s, then %d\n",
					     i % 2 ? "equal bytes" : "more equal bytes", i);
		sprintf(text + n, "z\n");
		/* The last text, which is a byte shorter, needed nbytes. */
		while (nbytes > MIN_NBYTES &&
		       fits_before(opened.block, memory + MAX_NBYTES, nbytes, text))
			nbytes -= ALIGN_NBYTES;
		while (nbytes < MAX_NBYTES &&
		       !fits_before(opened.block, memory + MAX_NBYTES, nbytes, text))
			nbytes += ALIGN_NBYTES;
		assert_in_range(nbytes, MIN_NBYTES + 1, MAX_NBYTES - 1);
		assert_true(opened.block->in.stores_keys);
	}
	opened.block->memory = own_memory;
	opened.block->memory_nbytes = own_nbytes;
	close_block(&opened);
	guarded_free(memory, MAX_NBYTES);
}

/* Numbers of this length are copied before they are parsed. */
enum { N_DIGITS = 200 };

/* Of the copies of numbers; the failing one counts from 1, and 0 is none. */
static unsigned n_copies, failing_copy;

void *__real_malloc(size_t nbytes);
void *__wrap_malloc(size_t nbytes);
void *__wrap_malloc(size_t nbytes)
{
	return nbytes == N_DIGITS + 1 && ++n_copies == failing_copy ? NULL : __real_malloc(nbytes);
}

/* Sort long numbers while that copy fails. Returns what the sort returns. */
static int sort_numbers(unsigned copy)
{
	enum { N = 20 };
	struct opened_block opened;
	unsigned char *text;
	uint64_t n_sorted;
	size_t nbytes = 0;
	int r;

	open_block("g", 1, 1 << 20, &opened);
	text = line_block_text(opened.block);
	for (unsigned i = 0; i < N; i++)
		nbytes += (size_t)sprintf((char *)text + nbytes, "%u%0*u\n", 10 + i * 7 % N,
					  N_DIGITS - 2, 0);
	n_copies = 0;
	failing_copy = copy;
	r = line_block_sort(opened.block, &(struct line_range){ text, text + nbytes }, 1,
			    text + nbytes, &n_sorted, NULL);
	if (r == 0)
		assert_sorted(opened.block, false, N);
	close_block(&opened);
	return r;
}

/* A key of the sample may be lost: the sample only divides the work. */
TEST(sort_without_memory_for_a_key_fails_or_is_right)
{
	unsigned n_failed = 0, n;

	captured_messages_reset(true);
	assert_int_equal(sort_numbers(0), 0);
	n = n_copies;
	for (unsigned copy = 1; copy <= n; copy++) {
		const int r = sort_numbers(copy);

		assert_true(r == 0 || r == -ENOMEM);
		n_failed += r < 0;
	}
	assert_in_range(n_failed, 20, n);
}
