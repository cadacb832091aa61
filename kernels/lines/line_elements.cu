/*
 * line_elements - find the lines of a text, and make their elements
 *
 * A warp reads a segment of the text in rows of 512 bytes, 16 bytes a lane. One pass counts the
 * delimiters of each segment, one block adds up the counts, and another pass writes where lines
 * start.
 */
#include "kernels/lines/lines.cuh"
#include "kernels/records/tie_flags.cuh"

static constexpr uint64_t LANE_NBYTES = 16, ROW_NBYTES = LANE_NBYTES * WARP;
static constexpr uint64_t TEXT_SEGMENT_NBYTES = 32 * ROW_NBYTES;

size_t kernel_find_lines_scratch_nbytes(uint64_t nbytes)
{
	return divide_up(nbytes, TEXT_SEGMENT_NBYTES) * sizeof(uint64_t);
}

/* Return a word in which the highest bit of each byte is set that equals the delimiter. */
__device__ __forceinline__ uint32_t delimiters_of_word(uint32_t word, uint32_t pattern)
{
	const uint32_t x = word ^ pattern;

	return ~(((x & 0x7f7f7f7f) + 0x7f7f7f7f) | x | 0x7f7f7f7f);
}

/* Return a mask of the delimiters among 16 bytes, of which the first `left` are in the text. */
__device__ __forceinline__ uint32_t find_delimiters(const unsigned char *text, uint64_t left,
						    uint32_t pattern)
{
	const uint128_t bytes = *(const uint128_t *)(const void *)text;
	uint32_t mask = 0;

#pragma unroll
	for (unsigned i = 0; i < LANE_NBYTES / 4; i++) {
		const uint32_t found = delimiters_of_word((uint32_t)(bytes >> 32 * i), pattern);

		/* Bits 7, 15, 23 and 31 become the four bits of this word. */
		mask |= ((found >> 7 & 1) | (found >> 14 & 2) | (found >> 21 & 4) |
			 (found >> 28 & 8))
			<< 4 * i;
	}
	return left < LANE_NBYTES ? mask & ((1u << (unsigned)left) - 1) : mask;
}

/* Return this lane's delimiters in a row of the text; 0 after its end. */
__device__ __forceinline__ uint32_t row_delimiters(const find_lines_task &task, uint64_t row)
{
	const uint64_t at = row * ROW_NBYTES + threadIdx.x % WARP * LANE_NBYTES;

	return at < task.nbytes ? find_delimiters(task.text + at, task.nbytes - at,
						  0x01010101u * task.delimiter) :
				  0;
}

__global__ void __launch_bounds__(stream_pass::n_threads)
	count_delimiters(find_lines_task task, uint64_t n_segments, uint64_t *counts)
{
	for (uint64_t segment = first_segment(); segment < n_segments; segment += segment_step()) {
		uint32_t n = 0;

		for (unsigned row = 0; row < TEXT_SEGMENT_NBYTES / ROW_NBYTES; row++)
			n += __popc(row_delimiters(
				task, segment * (TEXT_SEGMENT_NBYTES / ROW_NBYTES) + row));
		n = lanes_sum(n, WARP);
		if (threadIdx.x % WARP == 0)
			counts[segment] = n;
	}
}

__global__ void __launch_bounds__(stream_pass::n_threads)
	store_starts(find_lines_task task, uint64_t n_segments, const uint64_t *counts)
{
	if (blockIdx.x == 0 && threadIdx.x == 0)
		task.starts[0] = 0;
	for (uint64_t segment = first_segment(); segment < n_segments; segment += segment_step()) {
		uint64_t n_before = counts[segment];

		for (unsigned i = 0; i < TEXT_SEGMENT_NBYTES / ROW_NBYTES; i++) {
			const uint64_t row = segment * (TEXT_SEGMENT_NBYTES / ROW_NBYTES) + i;
			const uint64_t at = row * ROW_NBYTES + threadIdx.x % WARP * LANE_NBYTES;
			uint32_t mask = row_delimiters(task, row);
			const uint32_t n = __popc(mask);
			uint64_t to = 1 + n_before + lanes_exclusive_sum(n, WARP);

			for (; mask && to <= task.max_n; mask &= mask - 1)
				task.starts[to++] = at + __ffs((int)mask);
			n_before += lanes_sum(n, WARP);
		}
	}
}

int launch_find_lines(const struct find_lines_task *task, CUstream_st *stream)
{
	const uint64_t n_segments = divide_up(task->nbytes, TEXT_SEGMENT_NBYTES);
	const unsigned n_blocks = n_blocks_for(n_segments, stream_pass::n_warps);
	int r;

	if (task->nbytes == 0)
		return (int)cudaMemsetAsync(task->n, 0, sizeof *task->n, stream);
	LAUNCH(count_delimiters, n_blocks, stream_pass::n_threads, 0, stream, *task, n_segments,
	       (uint64_t *)task->scratch);
	r = (int)cudaGetLastError();
	if (!r)
		r = launch_scan((uint64_t *)task->scratch, n_segments, task->n, stream);
	if (r)
		return r;
	LAUNCH(store_starts, n_blocks, stream_pass::n_threads, 0, stream, *task, n_segments,
	       (const uint64_t *)task->scratch);
	return (int)cudaGetLastError();
}

/*
 * Return the element of a line: a word of LINE_ELEMENT_NBYTES of its string (lines.cuh), and the
 * number of the line.
 */
__device__ __forceinline__ uint128_t make_line_element(const kernel_lines &lines, uint32_t number)
{
	const line_bytes string = string_at(lines, number);
	const uint64_t high = load_line(string, 0, 8);
	const uint64_t low = load_line(string, 8, LINE_ELEMENT_NBYTES - 8) |
			     line_remaining(string, 0, LINE_ELEMENT_NBYTES) << NUMBER_BITS;
	uint128_t key = (uint128_t)high << 64 | low;

	if (lines.descending)
		key ^= ~(uint128_t)0 >> 8 * word_key_nbytes(lines, number, 0, LINE_ELEMENT_NBYTES);
	return key >> NUMBER_BITS << NUMBER_BITS | number;
}

__global__ void __launch_bounds__(stream_pass::n_threads)
	make_line_elements(kernel_lines lines, uint64_t n, uint128_t *elements,
			   kernel_line_totals *totals)
{
	stream_pass_memory &memory = *shared_memory<stream_pass_memory>();
	uint64_t n_lines = 0, sum = 0, longest = 0;

	/* Warps stay together, because they hash long lines together. */
	for (uint64_t base = (uint64_t)blockIdx.x * stream_pass::n_threads; base < n;
	     base += (uint64_t)gridDim.x * stream_pass::n_threads) {
		const uint64_t i = base + threadIdx.x;
		line_bytes line = {};

		if (i < n) {
			line = line_at(lines, i);
			elements[i] = make_line_element(lines, (uint32_t)i);
			longest = line.nbytes >= longest ? line.nbytes + 1 : longest;
			n_lines++;
		}
		sum += hash_lines(line, i < n);
	}
	longest = lanes_max(longest, WARP);
	if (threadIdx.x % WARP == 0)
		atomicMax((unsigned long long *)&totals->longest_nbytes,
			  (unsigned long long)longest);
	block_add_digest(memory, n_lines, sum, &totals->digest);
}

int launch_make_line_elements(const struct kernel_lines *lines, uint64_t n, void *elements,
			      struct kernel_line_totals *totals, CUstream_st *stream)
{
	if (n > 0)
		LAUNCH(make_line_elements, n_blocks_for(n), stream_pass::n_threads,
		       sizeof(stream_pass_memory), stream, *lines, n, (uint128_t *)elements,
		       totals);
	return (int)cudaGetLastError();
}
