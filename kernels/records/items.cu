/*
 * items - tables of items and their keys (see items.cuh); cuts and samples of items
 */
#include "kernels/records/items.cuh"
#include "kernels/upload_table.cuh"

size_t kernel_items_nbytes(uint32_t k, uint32_t n_fields)
{
	return round_up(k * sizeof(item_slice) + n_fields * sizeof(key_field), 16);
}

/* Return the greatest power of two, up to 16, that divides x. */
static uint32_t alignment_of(uintptr_t x)
{
	return (uint32_t)((x | 16) & -(x | 16));
}

int launch_prepare_items(struct kernel_items *items, const struct kernel_slice *slices, uint32_t k,
			 void *tables, CUstream_st *stream)
{
	struct table_writer writer = { (uint64_t *)tables, stream, {}, 0, 0 };
	uintptr_t addresses = items->item_nbytes;
	uint64_t first = 0;

	items->k = k;
	items->items = k ? (const unsigned char *)slices[0].elements : NULL;
	items->slices = (const item_slice *)tables;
	for (uint32_t i = 0; i < k; i++) {
		table_writer_put(&writer, (uint64_t)(uintptr_t)slices[i].elements);
		table_writer_put(&writer, first);
		first += slices[i].n;
		addresses |= slices[i].n ? (uintptr_t)slices[i].elements : 0;
	}
	items->alignment = alignment_of(addresses);
	items->first_field = items->keys.fields[0];
	items->keys.fields = (const key_field *)table_writer_put_bytes(
		&writer, items->keys.fields, items->keys.n * sizeof(key_field));
	table_writer_flush(&writer);
	return writer.r;
}

static constexpr unsigned THREADS = 128;

/* Return the number of a slice's n items below the key, or not above it if equal_before. */
__device__ __forceinline__ uint64_t cut_slice(const kernel_items &items, const unsigned char *first,
					      uint64_t n, const unsigned char *key,
					      bool equal_before)
{
	uint64_t lo = 0, hi = n;

	CO_RANK_NARROW(uint64_t, lo, hi, i,
		       key_compare_normalised(&items.keys, first + i * items.item_nbytes, key) >=
			       (equal_before ? 1 : 0))
	return lo;
}

__global__ void __launch_bounds__(THREADS) cut_items(cut_items_task task)
{
	const uint32_t i = blockIdx.x * THREADS + threadIdx.x, k = task.items.k;

	if (i < k) {
		const item_slice *slice = &task.items.slices[i];
		const uint64_t end = i + 1 < k ? slice[1].first : task.n;

		task.cuts[i] = cut_slice(task.items, slice->items, end - slice->first, task.key,
					 i < task.slice);
	}
}

int launch_cut_items(const struct cut_items_task *task, CUstream_st *stream)
{
	struct table_writer writer = { (uint64_t *)task->scratch, stream, {}, 0, 0 };
	struct cut_items_task device_task = *task;

	if (task->items.k == 0)
		return 0;
	device_task.key =
		(const unsigned char *)table_writer_put_bytes(&writer, task->key, task->key_nbytes);
	table_writer_flush(&writer);
	if (writer.r)
		return writer.r;
	LAUNCH(cut_items, (unsigned)divide_up(task->items.k, THREADS), THREADS, 0, stream,
	       device_task);
	return (int)cudaGetLastError();
}

__global__ void __launch_bounds__(THREADS)
	sample_items(kernel_items items, uint64_t n_keys, uint64_t stride, kernel_key *keys)
{
	const uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x;

	if (i < n_keys) {
		const unsigned char *item = item_at(items, i * stride);

		keys[i].hi = item_key_word(items, item, 0);
		keys[i].lo = item_key_word(items, item, 8);
	}
}

int launch_sample_items(const struct kernel_items *items, uint64_t n, uint64_t stride,
			struct kernel_key *keys, CUstream_st *stream)
{
	const uint64_t n_keys = divide_up(n, stride);

	if (n_keys == 0)
		return 0;
	LAUNCH(sample_items, (unsigned)divide_up(n_keys, THREADS), THREADS, 0, stream, *items,
	       n_keys, stride, keys);
	return (int)cudaGetLastError();
}
