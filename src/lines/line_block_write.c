/*
 * line_block_write.c - write the lines of a sorted block (see line_block.h)
 */
#include "src/lines/line_block.h"
#include "src/lines/line_block_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/record/record_hash.h"

size_t line_count_format(uint64_t n, char text[static LINE_COUNT_NBYTES])
{
	return (size_t)snprintf(text, LINE_COUNT_NBYTES, "%7" PRIu64 " ", n);
}

/* Measure the lines of a bucket again, with their counts. */
static int measure_bucket(void *context, uint32_t task)
{
	const struct line_block *block = context;
	struct bucket *bucket = &((struct line_block *)context)->buckets[task];
	char text[LINE_COUNT_NBYTES];
	uint64_t next_count = 0;

	if (!bucket->is_changed)
		return 0;
	bucket->is_changed = false;
	bucket->nbytes = 0;
	for (uint64_t i = 0; i < bucket->n; i++) {
		if (block->equal == EQUAL_COUNT)
			bucket->nbytes += line_count_format(
				find_count(bucket, bucket->first_element + i, &next_count), text);
		bucket->nbytes += bucket_line(block, bucket, i).nbytes + 1;
	}
	return 0;
}

/* Lines on their way to the sink. */
struct write_buffer {
	unsigned char *bytes;
	size_t n;
	uint64_t offset; /* position of the first byte in the output */
};

/*
 * Return a buffer for the bytes from `offset` on. For direct writes its address in memory and their
 * position in the file are equal modulo align_nbytes.
 */
static struct write_buffer place_buffer(const struct line_block *block, uint64_t offset,
					unsigned char *memory)
{
	const uint64_t position = block->sink->is_run ? 0 : block->sink->begin + offset;
	const uint32_t align_nbytes = block->sink->align_nbytes;
	const size_t gap = align_nbytes ? (position - (uintptr_t)memory) % align_nbytes : 0;

	return (struct write_buffer){ .bytes = memory + gap, .offset = offset };
}

static int flush_buffer(const struct line_block *block, struct write_buffer *buffer)
{
	const int r = buffer->n == 0 ? 0 :
				       block->sink->write(block->sink->context, buffer->offset,
							  buffer->bytes, buffer->n);

	buffer->offset += buffer->n;
	buffer->n = 0;
	return r;
}

/* Add bytes to the buffer, of any number. */
static int put_bytes(const struct line_block *block, struct write_buffer *buffer,
		     const unsigned char *bytes, size_t nbytes)
{
	int r = 0;

	while (nbytes > block->buffer_nbytes - buffer->n && r == 0) {
		const size_t n = block->buffer_nbytes - buffer->n;

		memcpy(buffer->bytes + buffer->n, bytes, n);
		buffer->n += n;
		bytes += n;
		nbytes -= n;
		r = flush_buffer(block, buffer);
	}
	if (r == 0) {
		memcpy(buffer->bytes + buffer->n, bytes, nbytes);
		buffer->n += nbytes;
	}
	return r;
}

static int put_count(const struct line_block *block, struct write_buffer *buffer, uint64_t n)
{
	char text[LINE_COUNT_NBYTES];
	const size_t nbytes = line_count_format(n, text);

	return put_bytes(block, buffer, (const unsigned char *)text, nbytes);
}

/* Check that a bucket does not begin before the end of the one before it. */
static int check_border(const struct line_block *block, const struct bucket *bucket)
{
	const struct bucket *previous = bucket;
	struct line_key_buffer scratch[2] = { 0 };
	int order = 0;

	do {
		if (previous == block->buckets)
			return 0;
		previous--;
	} while (previous->n == 0);
	order = line_keys_compare(block->keys, bucket_line(block, previous, previous->n - 1),
				  bucket_line(block, bucket, 0), scratch);
	if (scratch[0].has_failed || scratch[1].has_failed)
		order = 0; /* no memory; what this costs is a check */
	line_key_buffer_free(&scratch[0]);
	line_key_buffer_free(&scratch[1]);
	return order > 0 ? fail_line_order() : 0;
}

static int write_bucket(void *context, uint32_t task)
{
	const struct line_block *block = context;
	struct bucket *bucket = &((struct line_block *)context)->buckets[task];
	struct line_key_buffer buffers[2] = { 0 };
	const struct line_elements in = line_block_elements(block, buffers);
	const struct line_element *elements = in.elements + bucket->first_element;
	const bool descending = line_string_is_descending(&in, STRING_KEY);
	struct line_view previous = { 0 };
	struct write_buffer buffer;
	unsigned char *memory;
	struct digest written = { .n_records = bucket->n };
	uint64_t next_count = 0;
	int r = 0, failed;

	bucket->written = (struct digest){ 0 };
	if (bucket->n == 0)
		return 0;
	r = check_border(block, bucket);
	if (r < 0)
		return r;
	memory = malloc(block->buffer_nbytes + block->sink->align_nbytes);
	if (!memory)
		return fail(-ENOMEM, "no memory for a buffer of %zu bytes", block->buffer_nbytes);
	buffer = place_buffer(block, bucket->offset, memory);
	for (uint64_t i = 0; i < bucket->n && r == 0; i++) {
		const struct line_view line = line_reference_view(&in, elements[i].reference);

		if (i + 2 * PREFETCH_N < bucket->n)
			line_reference_prefetch(&in, elements[i + 2 * PREFETCH_N].reference);
		if (i + PREFETCH_N < bucket->n)
			line_reference_prefetch_end(&in, elements[i + PREFETCH_N].reference);
		if (!in.stores_keys && i > 0) {
			const int order = in.is_plain ?
						  line_view_compare(previous, line) :
						  line_elements_compare_keys(&in, &elements[i - 1],
									     &elements[i],
									     bucket->depth);

			if (descending ? order < 0 : order > 0)
				r = fail_line_order();
		}
		previous = line;
		if (block->hashes_lines)
			written.sum += hash_bytes(line.bytes, line.nbytes);
		if (r == 0 && block->equal == EQUAL_COUNT)
			r = put_count(block, &buffer,
				      find_count(bucket, bucket->first_element + i, &next_count));
		/* The delimiter follows the line in the text. */
		if (r == 0)
			r = put_bytes(block, &buffer, line.bytes, line.nbytes + 1);
	}
	bucket->written = written;
	if (r == 0)
		r = flush_buffer(block, &buffer);
	free(memory);
	failed = line_block_free_buffers(buffers);
	return failed < 0 ? failed : r;
}

int line_block_measure(struct line_block *block, uint64_t *ret_nbytes)
{
	bool is_changed = false;
	int r = 0;

	for (uint32_t i = 0; i < block->n_buckets; i++)
		is_changed |= block->buckets[i].is_changed;
	if (is_changed)
		r = thread_pool_run(block->threads, measure_bucket, block, block->n_buckets);
	*ret_nbytes = 0;
	for (uint32_t i = 0; i < block->n_buckets; i++) {
		block->buckets[i].offset = *ret_nbytes;
		*ret_nbytes += block->buckets[i].nbytes;
	}
	return r;
}

int line_block_write(struct line_block *block, size_t buffer_nbytes, const struct line_sink *sink,
		     struct digest *ret_digest)
{
	int r;

	block->sink = sink;
	block->buffer_nbytes = buffer_nbytes;
	block->hashes_lines = ret_digest;
	r = thread_pool_run(block->threads, write_bucket, block, block->n_buckets);
	if (ret_digest)
		*ret_digest = (struct digest){ 0 };
	for (uint32_t i = 0; ret_digest && i < block->n_buckets; i++)
		digest_add(ret_digest, block->buckets[i].written);
	return r;
}
