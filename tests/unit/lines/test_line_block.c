/*
 * test_line_block - lines are written only in their order
 */
#include "src/lines/line_block.h"

#include <errno.h>
#include <string.h>

#include "src/base/thread_pool.h"
#include "tests/support/captured_messages.h"
#include "tests/support/unit_test.h"

/* The lines in between begin with more equal bytes than the elements hold. */
static const char lines[] = "0\n1 and equal bytes 1\n1 and equal bytes 2\n2\n";

static int ignore_bytes(void *context, uint64_t offset, const void *bytes, size_t nbytes)
{
	(void)context, (void)offset, (void)bytes, (void)nbytes;
	return 0;
}

/* Sort the lines, replace the end of the third line, and write them. */
static int write_changed(const char *letters, char end)
{
	const struct line_sink sink = { .write = ignore_bytes, .max_nbytes = 4096 };
	struct line_block_params params = { .n_threads = 1, .memory_nbytes = 1 << 20 };
	const size_t nbytes = sizeof lines - 1;
	struct line_keys requested, keys;
	struct thread_pool *threads;
	struct line_block *block;
	struct digest digest;
	unsigned char *text;
	uint64_t n_sorted;
	int r;

	line_keys_init(&requested);
	for (; *letters; letters++)
		assert_true(line_keys_add_letter(&requested, *letters));
	assert_int_equal(line_keys_finish(&requested, &keys), 0);
	assert_int_equal(thread_pool_open(1, &threads), 0);
	params.keys = &keys;
	params.threads = threads;
	assert_int_equal(line_block_open(&params, &block), 0);
	text = line_block_text(block);
	memcpy(text, lines, nbytes);
	r = line_block_sort(block, &(struct line_range){ text, text + nbytes }, 1, text + nbytes,
			    &n_sorted);
	assert_int_equal(r, 0);
	assert_int_equal(n_sorted, nbytes);
	text[nbytes - sizeof "\n2\n"] = (unsigned char)end;
	captured_messages_reset(true);
	r = line_block_write(block, 4096, &sink, &digest);
	line_block_close(block);
	thread_pool_close(threads);
	line_keys_free(&keys);
	line_keys_free(&requested);
	return r;
}

TEST(lines_that_changed_after_the_sort_are_out_of_order)
{
	assert_int_equal(write_changed("", '2'), 0);
	assert_int_equal(write_changed("", '0'), -EIO);
	assert_string_equal(captured_messages_error(), "internal error: lines are out of order");
	assert_int_equal(write_changed("r", '0'), -EIO);
}
