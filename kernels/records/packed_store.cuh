/*
 * packed_store - write rows of shared memory to one range of bytes
 *
 * The parts of the kept rows of a tile that are written follow each other in the output. Bytes of
 * one or several rows form a unit for one store, and neighbouring threads store neighbouring units.
 * Only the ends, before the first aligned unit and after the last, are stored byte by byte.
 */
#pragma once

#include "kernels/records/staged_rows.cuh"

struct staged_rows : stream_pass_memory {
	uint16_t kept[rows::n_rows + 1]; /* offsets in the slots, in output order */
	alignas(UNIT) unsigned char slots[rows::slots_nbytes];
};

/* A cursor over the output's bytes of the kept rows of a tile. */
struct row_cursor {
	const staged_rows &memory;
	uint32_t out_offset, row_nbytes;
	uint32_t kept, at; /* at byte `at` of the output's part of a row */

	__device__ row_cursor(const staged_rows &staged, const gather_task &task, uint32_t byte)
	    : memory(staged), out_offset(task.out_offset), row_nbytes(task.out_nbytes),
	      kept(byte / task.out_nbytes), at(byte % task.out_nbytes)
	{
	}

	__device__ const unsigned char *row() const
	{
		return memory.slots + memory.kept[kept] + out_offset;
	}

	__device__ unsigned char next_byte()
	{
		const unsigned char byte = row()[at];

		if (++at == row_nbytes) {
			at = 0;
			kept++;
		}
		return byte;
	}

	/* Return four bytes of one or several rows. */
	__device__ uint32_t next_bytes()
	{
		uint32_t word = 0;

		if (at + 4 < row_nbytes) {
			word = (uint32_t)load_bytes(row() + at, 4);
			at += 4;
			return word;
		}
		for (unsigned i = 0; i < 4; i++)
			word |= (uint32_t)next_byte() << 8 * i;
		return word;
	}

	/* Return four bytes, if rows consist of aligned words. */
	__device__ uint32_t current_word() const
	{
		return *(const uint32_t *)(const void *)(row() + at);
	}

	/* Return four words of one or two rows, if rows have at least four. */
	__device__ uint128_t current_words() const
	{
		const uint32_t current = memory.kept[kept] + at;
		const uint32_t next = memory.kept[kept + 1] + at - row_nbytes;
		uint32_t words[4];
		uint128_t unit;

#pragma unroll
		for (uint32_t i = 0; i < 4; i++) {
			const uint32_t position =
				(at + 4 * i < row_nbytes ? current : next) + 4 * i;

			words[i] = *(const uint32_t *)(const void *)(memory.slots + out_offset +
								     position);
		}
		__builtin_memcpy(&unit, words, sizeof unit);
		return unit;
	}
};

/* Return the distance from `to` to the next multiple of `unit`, at most nbytes. */
__device__ __forceinline__ uint32_t head_nbytes(const unsigned char *to, uint32_t unit,
						uint32_t nbytes)
{
	const uint32_t head = (unit - (uint32_t)((uintptr_t)to % unit)) % unit;

	return head < nbytes ? head : nbytes;
}

/* Write a range of `nbytes`: units as `take` returns them, and the ends byte by byte. */
template <class T, class Take>
__device__ __forceinline__ void write_units(const staged_rows &memory, const gather_task &task,
					    unsigned char *to, uint32_t nbytes, Take take)
{
	const uint32_t head = head_nbytes(to, sizeof(T), nbytes);
	const uint32_t n_units = (nbytes - head) / sizeof(T);
	const uint32_t tail = head + n_units * (uint32_t)sizeof(T), n_edges = nbytes - tail + head;
	const uint32_t rows_step = rows::n_threads * (uint32_t)sizeof(T) / task.out_nbytes;
	const uint32_t bytes_step = rows::n_threads * (uint32_t)sizeof(T) % task.out_nbytes;
	row_cursor row_cursor(memory, task, head + threadIdx.x * (uint32_t)sizeof(T));

	for (uint32_t i = threadIdx.x; i < n_units; i += rows::n_threads) {
		struct row_cursor current = row_cursor;

		((T *)(void *)(to + head))[i] = take(current);
		row_cursor.kept += rows_step;
		row_cursor.at += bytes_step;
		if (row_cursor.at >= task.out_nbytes) {
			row_cursor.at -= task.out_nbytes;
			row_cursor.kept++;
		}
	}
	for (uint32_t i = threadIdx.x; i < n_edges; i += rows::n_threads) {
		const uint32_t byte = i < head ? i : i - head + tail;
		struct row_cursor current(memory, task, byte);

		to[byte] = current.next_byte();
	}
}

/* Write the n_kept rows of a tile to `to`, which may have any alignment. */
template <bool WORDS>
__device__ __forceinline__ void write_rows(const staged_rows &memory, const gather_task &task,
					   unsigned char *to, uint32_t n_kept)
{
	const uint32_t nbytes = n_kept * task.out_nbytes;

	if (WORDS && ((uintptr_t)to | task.out_nbytes | task.out_offset) % 4 == 0)
		task.out_nbytes >= sizeof(uint128_t) ?
			write_units<uint128_t>(memory, task, to, nbytes,
					       [](row_cursor &row_cursor) {
						       return row_cursor.current_words();
					       }) :
			write_units<uint32_t>(memory, task, to, nbytes, [](row_cursor &row_cursor) {
				return row_cursor.current_word();
			});
	else
		write_units<uint32_t>(memory, task, to, nbytes, [](row_cursor &row_cursor) {
			return row_cursor.next_bytes();
		});
}
