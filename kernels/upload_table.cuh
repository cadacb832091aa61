/*
 * upload_table - copy small tables from host to device memory as kernel arguments
 *
 * One launch carries a few hundred words. So the host allocates nothing, does not wait for a copy,
 * and can free its table after the launch.
 */
#pragma once

#include "kernels/device.cuh"

/* Words of a table per launch: kernel arguments are limited to 4 KiB. */
static constexpr unsigned ARGS_TABLE_WORDS = 496;

struct args_table {
	uint64_t words[ARGS_TABLE_WORDS];
};

static __global__ void __launch_bounds__(WARP)
	store_words(args_table args_table, unsigned n, uint64_t *to)
{
	for (unsigned i = threadIdx.x; i < n; i += WARP)
		to[i] = args_table.words[i];
}

/* Writes consecutive words to device memory. Call table_writer_flush() at the end. */
struct table_writer {
	uint64_t *to;
	CUstream_st *stream;
	struct args_table args_table;
	unsigned n;
	int r;
};

static inline void table_writer_flush(struct table_writer *writer)
{
	if (!writer->r && writer->n) {
		LAUNCH(store_words, 1, WARP, 0, writer->stream, writer->args_table, writer->n,
		       writer->to);
		writer->r = (int)cudaGetLastError();
	}
	writer->to += writer->n;
	writer->n = 0;
}

static inline void table_writer_put(struct table_writer *writer, uint64_t word)
{
	writer->args_table.words[writer->n++] = word;
	if (writer->n == ARGS_TABLE_WORDS)
		table_writer_flush(writer);
}

/* Return the address of the next word. */
static inline void *table_writer_position(const struct table_writer *writer)
{
	return writer->to + writer->n;
}

/* Write bytes, padded to whole words; return their address in device memory. */
static inline void *table_writer_put_bytes(struct table_writer *writer, const void *bytes,
					   size_t nbytes)
{
	void *const at = table_writer_position(writer);

	for (size_t i = 0; i < nbytes; i += sizeof(uint64_t)) {
		const size_t n = nbytes - i < sizeof(uint64_t) ? nbytes - i : sizeof(uint64_t);
		uint64_t word = 0;

		__builtin_memcpy(&word, (const char *)bytes + i, n);
		table_writer_put(writer, word);
	}
	return at;
}
