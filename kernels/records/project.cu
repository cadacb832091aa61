/*
 * project - make items of records, if items are not the records themselves
 *
 * An item is assembled byte by byte, because each byte may come from another piece of the record.
 * Neighbouring threads write neighbouring words, and mostly read neighbouring bytes.
 */
#include "kernels/stream_pass.cuh"
#include "kernels/upload_table.cuh"
#include "src/device/co_rank.h"

size_t kernel_projection_nbytes(uint32_t n_copies)
{
	return round_up(n_copies * sizeof(kernel_projection_copy), 16);
}

struct projection_copy_starts {
	const kernel_projection_copy *copies;

	__device__ uint32_t operator[](uint32_t i) const
	{
		return copies[i].item_offset;
	}
};

/* Return byte `at` of the item made of a record. */
__device__ __forceinline__ unsigned char
item_byte(const projection_task &task, const unsigned char *record, uint64_t position, uint32_t at)
{
	const kernel_projection_copy *copy = task.copies;

	if (task.has_count && at < 8)
		return at == (task.count_is_big_endian ? 7u : 0u);
	if (task.has_position && at >= task.item_nbytes - 8)
		return (unsigned char)(position >> 8 * (at - (task.item_nbytes - 8)));
	copy += co_rank_pivot<uint32_t>(projection_copy_starts{ copy }, 0, task.n_copies, at, true,
					less_than()) -
		1;
	return record[copy->record_offset + (at - copy->item_offset)];
}

__global__ void __launch_bounds__(stream_pass::n_threads) make_items(projection_task task)
{
	const uint64_t n_bytes = task.n * task.item_nbytes;
	const uint64_t n_threads = (uint64_t)gridDim.x * stream_pass::n_threads;
	unsigned char *items = (unsigned char *)task.items;

	for (uint64_t word = (uint64_t)blockIdx.x * stream_pass::n_threads + threadIdx.x;
	     word * 4 < n_bytes; word += n_threads) {
		uint64_t i = word * 4 / task.item_nbytes;
		uint32_t at = (uint32_t)(word * 4 - i * task.item_nbytes), bytes = 0;

		for (unsigned b = 0; b < 4 && i < task.n; b++) {
			const unsigned char *record =
				(const unsigned char *)task.records + i * task.record_nbytes;

			bytes |= (uint32_t)item_byte(task, record, task.position + i, at) << 8 * b;
			if (++at == task.item_nbytes) {
				at = 0;
				i++;
			}
		}
		for (unsigned b = 0; word * 4 + 4 > n_bytes && b < n_bytes - word * 4; b++)
			items[word * 4 + b] = (unsigned char)(bytes >> 8 * b);
		if (word * 4 + 4 <= n_bytes)
			((uint32_t *)task.items)[word] = bytes;
	}
}

int launch_project(const struct projection_task *task, CUstream_st *stream)
{
	struct table_writer writer = { (uint64_t *)task->tables, stream, {}, 0, 0 };
	struct projection_task device_task = *task;

	if (task->n == 0)
		return 0;
	device_task.copies = (const kernel_projection_copy *)table_writer_put_bytes(
		&writer, task->copies, task->n_copies * sizeof(kernel_projection_copy));
	table_writer_flush(&writer);
	if (writer.r)
		return writer.r;
	LAUNCH(make_items, n_blocks_for(divide_up(task->n * task->item_nbytes, 4)),
	       stream_pass::n_threads, 0, stream, device_task);
	return (int)cudaGetLastError();
}
