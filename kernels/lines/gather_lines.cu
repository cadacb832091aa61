/*
 * gather_lines - list the sorted lines, and write their bytes in that order
 *
 * The lines of the order are processed in segments of 1024. A block that gathers a segment adds up
 * the lengths of its lines in shared memory. Then each thread makes aligned words of 16 bytes of
 * the output: a binary search finds the line that a word begins in. So lines of any length keep all
 * threads busy. If lines are so long that there are few segments, several blocks share each.
 *
 * A block checks what it wrote: it hashes the lines and compares each with the previous line. If
 * several blocks share a segment, or a line does not end in the window, the line in the text is
 * used instead: then the order is checked, but not the copy. Lines with keys are always compared in
 * the text, because their keys are there.
 */
#include "kernels/lines/lines.cuh"
#include "kernels/records/tie_flags.cuh"

static_assert(LINE_SEGMENT == SEGMENT, "offsets are those of the segments of flags");

static constexpr unsigned GATHER_LINES_THREADS = stream_pass::n_threads;
/* Several blocks share a segment with more bytes. */
static constexpr uint64_t SEGMENT_BLOCK_NBYTES = 256 << 10;
static constexpr unsigned MAX_SEGMENT_BLOCKS = 1024;

/* --- The order --- */

/* Whether the string of sorted element i equals the previous one. */
struct lines_are_equal {
	kernel_lines lines;
	const uint128_t *elements;

	__device__ bool operator()(uint64_t i) const
	{
		if (i == 0)
			return false;

		const uint128_t a = elements[i - 1], b = elements[i];

		return a >> NUMBER_BITS == b >> NUMBER_BITS &&
		       line_first_difference(string_at(lines, number_of(a)),
					     string_at(lines, number_of(b)), 0,
					     UINT64_MAX) == UINT64_MAX;
	}
};

/* The scratch: a word of flags for each row, and a sum for each segment. */
struct order_flags {
	uint32_t *kept;
	uint64_t *sums;
};

static struct order_flags lay_out_order_flags(void *scratch, uint64_t n)
{
	struct order_flags flags;

	flags.kept = (uint32_t *)scratch;
	flags.sums = (uint64_t *)(flags.kept + n_segments_for(n) * WARP);
	return flags;
}

__global__ void __launch_bounds__(stream_pass::n_threads)
	flag_kept_lines(order_lines_task task, order_flags flags)
{
	stream_pass_memory &memory = *shared_memory<stream_pass_memory>();
	const unsigned lane = threadIdx.x % WARP;
	const uint128_t *elements = (const uint128_t *)task.elements;
	const lines_are_equal is_equal = { task.lines, elements };
	uint64_t n_dropped = 0, sum = 0;

	for (uint64_t segment = first_segment(); segment < n_segments_for(task.n);
	     segment += segment_step()) {
		const uint64_t base = segment * SEGMENT;
		const uint32_t equal = ballot_rows(base, task.n, is_equal);
		const uint32_t kept = ~equal & valid_mask(base + lane * WARP, task.n);
		const uint64_t n_kept = lanes_sum((uint64_t)__popc(kept), WARP);

		flags.kept[segment * WARP + lane] = kept;
		if (lane == 0)
			flags.sums[segment] = n_kept;
		for (unsigned row = 0; row < WARP; row++) {
			const bool is_dropped = lane_broadcast(equal, row, WARP) >> lane & 1;
			line_bytes line = {};

			if (is_dropped)
				line = line_at(task.lines,
					       number_of(elements[base + row * WARP + lane]));
			sum += hash_lines(line, is_dropped);
			n_dropped += is_dropped;
		}
	}
	block_add_digest(memory, n_dropped, sum, task.dropped);
}

__global__ void __launch_bounds__(stream_pass::n_threads)
	store_kept_lines(order_lines_task task, order_flags flags)
{
	const unsigned lane = threadIdx.x % WARP;
	const uint128_t *elements = (const uint128_t *)task.elements;

	for (uint64_t segment = first_segment(); segment < n_segments_for(task.n);
	     segment += segment_step()) {
		const uint32_t kept = flags.kept[segment * WARP + lane];
		const uint64_t n_before =
			flags.sums[segment] + lanes_exclusive_sum((uint64_t)__popc(kept), WARP);

		for (unsigned row = 0; row < WARP; row++) {
			const uint32_t row_kept = lane_broadcast(kept, row, WARP);
			const uint64_t to = lane_broadcast(n_before, row, WARP) +
					    __popc(row_kept & ((1u << lane) - 1));

			if (row_kept >> lane & 1)
				task.order[to] =
					number_of(elements[segment * SEGMENT + row * WARP + lane]);
		}
	}
}

__global__ void __launch_bounds__(stream_pass::n_threads) store_all_lines(order_lines_task task)
{
	const uint128_t *elements = (const uint128_t *)task.elements;

	for (uint64_t i = (uint64_t)blockIdx.x * stream_pass::n_threads + threadIdx.x; i < task.n;
	     i += (uint64_t)gridDim.x * stream_pass::n_threads)
		task.order[i] = number_of(elements[i]);
	if (blockIdx.x == 0 && threadIdx.x == 0)
		*task.n_kept = task.n;
}

int launch_order_lines(const struct order_lines_task *task, CUstream_st *stream)
{
	const struct order_flags flags = lay_out_order_flags(task->scratch, task->n);
	const unsigned n_blocks = n_blocks_for(task->n, SEGMENT * stream_pass::n_warps);
	int r;

	if (task->n == 0)
		return (int)cudaMemsetAsync(task->n_kept, 0, sizeof *task->n_kept, stream);
	if (!task->unique) {
		LAUNCH(store_all_lines, n_blocks_for(task->n), stream_pass::n_threads, 0, stream,
		       *task);
		return (int)cudaGetLastError();
	}
	LAUNCH(flag_kept_lines, n_blocks, stream_pass::n_threads, sizeof(stream_pass_memory),
	       stream, *task, flags);
	r = (int)cudaGetLastError();
	if (!r)
		r = launch_scan(flags.sums, n_segments_for(task->n), task->n_kept, stream);
	if (r)
		return r;
	LAUNCH(store_kept_lines, n_blocks, stream_pass::n_threads, 0, stream, *task, flags);
	return (int)cudaGetLastError();
}

/* --- The output --- */

/* Add up the bytes of the lines of each segment. */
__global__ void __launch_bounds__(stream_pass::n_threads)
	measure_segments(kernel_lines lines, const uint32_t *order, uint64_t n, uint64_t *sums)
{
	const unsigned lane = threadIdx.x % WARP;

	for (uint64_t segment = first_segment(); segment < n_segments_for(n);
	     segment += segment_step()) {
		uint64_t nbytes = 0;

		for (unsigned row = 0; row < WARP; row++) {
			const uint64_t i = segment * SEGMENT + row * WARP + lane;

			if (i < n)
				nbytes += line_at(lines, order[i]).nbytes + 1;
		}
		nbytes = lanes_sum(nbytes, WARP);
		if (lane == 0)
			sums[segment] = nbytes;
	}
}

int launch_measure_lines(const struct kernel_lines *lines, const uint32_t *order, uint64_t n,
			 uint64_t *offsets, uint64_t *total_nbytes, CUstream_st *stream)
{
	int r;

	if (n == 0)
		return (int)cudaMemsetAsync(total_nbytes, 0, sizeof *total_nbytes, stream);
	LAUNCH(measure_segments, n_blocks_for(n, SEGMENT * stream_pass::n_warps),
	       stream_pass::n_threads, 0, stream, *lines, order, n, offsets);
	r = (int)cudaGetLastError();
	return r ? r : launch_scan(offsets, n_segments_for(n), total_nbytes, stream);
}

/* The lines of a segment. */
struct segment_memory {
	stream_pass_memory block;
	const unsigned char *lines[SEGMENT];
	uint64_t offsets[SEGMENT + 1]; /* from the segment's beginning in the output */
	uint64_t warp_sums[stream_pass::n_warps];
};

/* Load the lines of a segment. Returns their number. */
__device__ __forceinline__ uint32_t load_line_segment(segment_memory &memory,
						      const gather_lines_task &task,
						      uint64_t segment)
{
	constexpr unsigned PER_THREAD = SEGMENT / GATHER_LINES_THREADS;
	const uint64_t base = segment * SEGMENT;
	const uint32_t n = task.n - base < SEGMENT ? (uint32_t)(task.n - base) : SEGMENT;
	const unsigned first = threadIdx.x * PER_THREAD;
	uint64_t nbytes[PER_THREAD], sum = 0, before;

	for (unsigned i = 0; i < PER_THREAD; i++) {
		nbytes[i] = 0;
		if (first + i < n) {
			const uint64_t position = task.first_line + base + first + i;
			const line_bytes line = line_at(task.lines, task.order[position]);

			memory.lines[first + i] = line.bytes;
			nbytes[i] = line.nbytes + 1;
		}
		sum += nbytes[i];
	}
	before = lanes_exclusive_sum(sum, WARP);
	if (threadIdx.x % WARP == WARP - 1)
		memory.warp_sums[threadIdx.x / WARP] = before + sum;
	__syncthreads();
	for (unsigned i = 0; i < threadIdx.x / WARP; i++)
		before += memory.warp_sums[i];
	for (unsigned i = 0; i < PER_THREAD; i++) {
		memory.offsets[first + i] = before;
		before += nbytes[i];
	}
	if (threadIdx.x == GATHER_LINES_THREADS - 1)
		memory.offsets[SEGMENT] = before;
	__syncthreads();
	return n;
}

/* Return the line of the segment that has the byte at `offset`. */
__device__ __forceinline__ uint32_t find_line(const segment_memory &memory, uint32_t n,
					      uint64_t offset)
{
	uint32_t low = 0, high = n; /* offsets[low] <= offset < offsets[high] */

	while (high - low > 1) {
		const uint32_t middle = (low + high) / 2;

		if (memory.offsets[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Return n <= 16 bytes of the segment's output from `offset` on, the first one lowest. */
__device__ __forceinline__ uint128_t gather_word(const segment_memory &memory, uint32_t n_lines,
						 uint64_t offset, uint32_t n)
{
	uint32_t line = find_line(memory, n_lines, offset);
	uint128_t word = 0;

	for (uint32_t filled = 0; filled < n; line++) {
		const uint64_t left = memory.offsets[line + 1] - offset;
		const unsigned char *from = memory.lines[line] + (offset - memory.offsets[line]);
		const uint32_t take = left < n - filled ? (uint32_t)left : n - filled;

		word |= (uint128_t)load_bytes(from, take < 8 ? take : 8) << 8 * filled;
		if (take > 8)
			word |= (uint128_t)load_bytes(from + 8, take - 8) << 8 * (filled + 8);
		filled += take;
		offset += take;
	}
	return word;
}

/* Write the part of the segment that is in the window. */
__device__ __forceinline__ void write_segment(const segment_memory &memory,
					      const gather_lines_task &task, uint32_t n_lines,
					      uint64_t segment_begin, unsigned blocks_per_segment)
{
	const uint64_t segment_end = segment_begin + memory.offsets[n_lines];
	/* From here on, positions count from the window's beginning, where `out` is aligned. */
	const uint64_t begin = segment_begin > task.begin ? segment_begin - task.begin : 0;
	const uint64_t end = segment_end <= task.begin ? 0 :
			     segment_end < task.end    ? segment_end - task.begin :
							 task.end - task.begin;
	const uint64_t first = blockIdx.x % blocks_per_segment * GATHER_LINES_THREADS + threadIdx.x;
	const uint64_t step = (uint64_t)blocks_per_segment * GATHER_LINES_THREADS * 16;

	if (begin >= end)
		return;
	for (uint64_t at = begin / 16 * 16 + first * 16; at < end; at += step) {
		const uint64_t from = at < begin ? begin : at;
		const uint32_t n = (uint32_t)((end < at + 16 ? end : at + 16) - from);
		const uint128_t word =
			gather_word(memory, n_lines, from + task.begin - segment_begin, n);

		if (n == 16)
			*(uint128_t *)(void *)(task.out + at) = word;
		else
			for (uint32_t i = 0; i < n; i++)
				task.out[from + i] = (unsigned char)(word >> 8 * i);
	}
}

/*
 * Return a line where this block has written it, or in the text if others write it: this block only
 * has a part of the segment, or the line does not end in the window.
 */
__device__ __forceinline__ line_bytes written_line(const segment_memory &memory,
						   const gather_lines_task &task,
						   uint64_t segment_begin, bool is_alone,
						   uint32_t i)
{
	const uint64_t begin = segment_begin + memory.offsets[i];
	const uint64_t end = segment_begin + memory.offsets[i + 1];
	const bool is_written = is_alone && begin >= task.begin && end <= task.end;

	return { is_written ? task.out + (begin - task.begin) : memory.lines[i], end - begin - 1 };
}

/* Return whether line i of the segment, which is `line`, and the line before are out of order. */
__device__ __forceinline__ bool is_disordered(const segment_memory &memory,
					      const gather_lines_task &task, uint64_t segment,
					      bool is_alone, uint32_t i, line_bytes line)
{
	const uint64_t position = task.first_line + segment * SEGMENT + i;
	const uint32_t *order = task.order + position;
	line_bytes last;

	if (position == 0)
		return false;
	if (task.lines.has_keys)
		return lines_are_disordered(task.lines, string_at(task.lines, order[-1]),
					    string_at(task.lines, order[0]),
					    string_key_nbytes(task.lines, order[-1]));
	last = i > 0 ? written_line(memory, task, task.offsets[segment], is_alone, i - 1) :
		       line_at(task.lines, order[-1]);
	return lines_are_disordered(task.lines, last, line, 0);
}

/* Hash the lines that begin in the window, and compare each with the line before. */
__device__ __forceinline__ void check_segment(segment_memory &memory, const gather_lines_task &task,
					      uint32_t n_lines, uint64_t segment, bool is_alone)
{
	const uint64_t segment_begin = task.offsets[segment];
	uint64_t n = 0, sum = 0, n_disorders = 0;

	for (uint32_t base = 0; base < n_lines; base += GATHER_LINES_THREADS) {
		const uint32_t i = base + threadIdx.x;
		const uint64_t begin = i < n_lines ? segment_begin + memory.offsets[i] : 0;
		const bool is_mine = i < n_lines && begin >= task.begin && begin < task.end;
		line_bytes line = {};

		if (is_mine) {
			line = written_line(memory, task, segment_begin, is_alone, i);
			n++;
			n_disorders += is_disordered(memory, task, segment, is_alone, i, line);
		}
		sum += hash_lines(line, is_mine);
	}
	block_add_digest(memory.block, n, sum, task.digest);
	n_disorders = block_sum(memory.block, n_disorders);
	if (threadIdx.x == 0 && n_disorders > 0)
		atomicAdd((unsigned long long *)task.n_disorders, (unsigned long long)n_disorders);
}

__global__ void __launch_bounds__(GATHER_LINES_THREADS)
	gather_lines(gather_lines_task task, unsigned blocks_per_segment)
{
	segment_memory &memory = *shared_memory<segment_memory>();
	const uint64_t segment = task.first_segment + blockIdx.x / blocks_per_segment;
	const uint32_t n_lines = load_line_segment(memory, task, segment);

	write_segment(memory, task, n_lines, task.offsets[segment], blocks_per_segment);
	__syncthreads();
	if (blockIdx.x % blocks_per_segment == 0)
		check_segment(memory, task, n_lines, segment, blocks_per_segment == 1);
}

int launch_gather_lines(const struct gather_lines_task *task, CUstream_st *stream)
{
	const uint64_t n_blocks = divide_up(task->longest_nbytes, SEGMENT_BLOCK_NBYTES);
	const unsigned blocks_per_segment =
		(unsigned)(n_blocks < MAX_SEGMENT_BLOCKS ? n_blocks : MAX_SEGMENT_BLOCKS);

	if (task->n_segments > 0 && n_blocks > 0)
		LAUNCH(gather_lines, task->n_segments * blocks_per_segment, GATHER_LINES_THREADS,
		       sizeof(segment_memory), stream, *task, blocks_per_segment);
	return (int)cudaGetLastError();
}
