/*
 * line_block_split.c - split the large buckets of a block of lines (see line_block.h)
 *
 * If many lines begin with the same bytes, they are in one bucket, which one thread would sort and
 * write while the others wait. Such a bucket is split by the next bytes of its lines, after those
 * that all lines of a sample share:
 *
 *	bucket    [ 192.168.0.9 ... 192.168.99.1 ]
 *	becomes   [ no 192.168. | to 192.168.17.4 | to 192.168.42.0 | ... | no 192.168. ]
 */
#include "src/lines/line_block_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"

enum {
	MIN_SPLIT_N = 32768,   /* lines of a bucket that is split */
	SPLITS_PER_THREAD = 4, /* a large bucket has more than this share of a thread's lines */
	N_PARTS = 64,          /* of a bucket, in addition to those at both ends; a power of two */
	SAMPLES_PER_PART = 16,
	N_SAMPLES = N_PARTS * SAMPLES_PER_PART,
};

struct split {
	const struct line_block *block;
	const struct bucket *bucket;
	struct line_element *elements;   /* of the bucket */
	unsigned char *part_of;          /* of each element */
	struct shared_prefix shared;     /* by the sample, after the depth of the bucket */
	uint64_t splitters[N_PARTS];     /* N_PARTS - 1: upper bounds of all parts but the last */
	uint64_t (*counts)[N_PARTS + 2]; /* of the elements of each slice, in each part */
	uint32_t n_slices;
};

/* Return the key of an element without the bytes that all keys of the bucket share. */
static struct line_view key_tail(const struct split *split, const struct line_elements *in,
				 uint64_t i)
{
	const struct line_view key = line_element_string(
		in, &split->elements[i], STRING_KEY,
		split->bucket->depth + MAX_SHARED_NBYTES + sizeof(uint64_t), &in->buffers[0]);
	/* A key that could not be made may be shorter. */
	const size_t depth = u64_min(split->bucket->depth, key.nbytes);

	return (struct line_view){ key.bytes + depth, key.nbytes - depth };
}

static int compare_prefixes(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Choose the shared prefix and the splitters. Returns false if no prefixes of the sample differ. */
static bool choose_splitters(struct split *split, const struct line_elements *in)
{
	const bool descending = line_string_is_descending(in, STRING_KEY);
	uint64_t prefixes[N_SAMPLES];

	split->shared.n = UINT32_MAX;
	for (uint64_t i = 0; i < N_SAMPLES; i++)
		shared_prefix_shorten(&split->shared,
				      key_tail(split, in, i * split->bucket->n / N_SAMPLES));
	for (uint64_t i = 0; i < N_SAMPLES; i++)
		prefixes[i] =
			line_load_prefix(key_tail(split, in, i * split->bucket->n / N_SAMPLES),
					 split->shared.n, descending);
	qsort(prefixes, N_SAMPLES, sizeof *prefixes, compare_prefixes);
	for (size_t i = 0; i + 1 < N_PARTS; i++)
		split->splitters[i] = prefixes[(i + 1) * SAMPLES_PER_PART];
	/* A frequent prefix has a part of its own. */
	for (size_t i = N_PARTS - 2; i > 0; i--)
		if (split->splitters[i] == split->splitters[i - 1] &&
		    (i == 1 || split->splitters[i - 1] != split->splitters[i - 2]) &&
		    split->splitters[i] > 0)
			split->splitters[i - 1]--;
	return prefixes[0] != prefixes[N_SAMPLES - 1];
}

/* Return the part of an element, and let its prefix follow the shared one. */
static uint32_t choose_part(const struct split *split, struct line_element *element,
			    struct line_view tail, bool descending)
{
	uint64_t prefix;
	const int order = shared_prefix_load(&split->shared, tail, descending, &prefix);
	uint32_t part = 0;

	if (order)
		return order < 0 ? 0 : N_PARTS + 1;
	for (uint32_t step = N_PARTS / 2; step > 0; step /= 2)
		part += split->splitters[part + step - 1] < prefix ? step : 0;
	element->prefix = prefix;
	return 1 + part;
}

/* Choose the parts of a slice of the elements. */
static int choose_parts(void *context, uint32_t task)
{
	const struct split *split = context;
	struct line_key_buffer buffers[2] = { 0 };
	const struct line_elements in = line_block_elements(split->block, buffers);
	const bool descending = line_string_is_descending(&in, STRING_KEY);
	const uint64_t begin = equal_share_begin(split->bucket->n, task, split->n_slices);
	const uint64_t end = equal_share_begin(split->bucket->n, task + 1, split->n_slices);
	uint64_t *counts = split->counts[task];

	for (uint64_t i = begin; i < end; i++) {
		uint32_t part;

		if (i + PREFETCH_N < end)
			line_element_prefetch(&in, &split->elements[i + PREFETCH_N]);
		part = choose_part(split, &split->elements[i], key_tail(split, &in, i), descending);
		split->part_of[i] = (unsigned char)part;
		counts[part]++;
	}
	return line_block_free_buffers(buffers);
}

/* Move all elements to their parts. Their order in a part is undefined. */
static void move_elements(const struct split *split, const uint64_t begins[N_PARTS + 3])
{
	struct line_element *elements = split->elements;
	unsigned char *part_of = split->part_of;
	uint64_t next[N_PARTS + 2];

	memcpy(next, begins, sizeof next);
	for (uint32_t part = 0; part < N_PARTS + 2; part++)
		while (next[part] < begins[part + 1]) {
			const uint64_t i = next[part];
			const uint32_t to = part_of[i];
			const struct line_element element = elements[i];
			const uint64_t place = next[to]++;

			elements[i] = elements[place];
			elements[place] = element;
			part_of[i] = part_of[place];
			part_of[place] = (unsigned char)to;
		}
}

/* Replace the bucket by its parts that are not empty. */
static void replace_bucket(struct line_block *block, uint32_t index, const struct split *split,
			   const uint64_t begins[N_PARTS + 3])
{
	const struct bucket bucket = block->buckets[index];
	uint32_t n = 0, to = index;

	for (uint32_t part = 0; part < N_PARTS + 2; part++)
		n += begins[part] < begins[part + 1];
	memmove(block->buckets + index + n, block->buckets + index + 1,
		(block->n_buckets - index - 1) * sizeof *block->buckets);
	block->n_buckets += n - 1;
	for (uint32_t part = 0; part < N_PARTS + 2; part++) {
		const bool shares = part > 0 && part < N_PARTS + 1;

		if (begins[part] == begins[part + 1])
			continue;
		block->buckets[to++] = (struct bucket){
			.first_element = bucket.first_element + begins[part],
			.n = begins[part + 1] - begins[part],
			.depth = bucket.depth + (shares ? split->shared.n : 0),
			.is_changed = true /* its bytes were not counted */
		};
	}
}

/* Split a bucket. *ret_is_split: false: its lines cannot be divided. */
static int split_bucket(struct line_block *block, uint32_t index, bool *ret_is_split)
{
	struct line_key_buffer buffers[2] = { 0 };
	const struct line_elements in = line_block_elements(block, buffers);
	const struct bucket *bucket = &block->buckets[index];
	struct split split = { .block = block,
			       .bucket = bucket,
			       .elements = in.elements + bucket->first_element,
			       .part_of = block->bucket_of + bucket->first_element,
			       .n_slices = SPLITS_PER_THREAD * block->n_threads };
	uint64_t begins[N_PARTS + 3] = { 0 };
	const bool is_divisible = choose_splitters(&split, &in);
	int r = line_block_free_buffers(buffers);

	*ret_is_split = false;
	if (r < 0 || !is_divisible)
		return r;
	split.counts = calloc(split.n_slices, sizeof *split.counts);
	if (!split.counts)
		return fail(-ENOMEM, "no memory to divide lines");
	r = thread_pool_run(block->threads, choose_parts, &split, split.n_slices);
	for (uint32_t part = 0; part < N_PARTS + 2; part++) {
		uint64_t n = 0;

		for (uint32_t i = 0; i < split.n_slices; i++)
			n += split.counts[i][part];
		begins[part + 1] = begins[part] + n;
		*ret_is_split |= n > 0 && n < bucket->n;
	}
	free(split.counts);
	if (r < 0)
		return r;
	move_elements(&split, begins);
	replace_bucket(block, index, &split, begins);
	return 0;
}

int line_block_split_buckets(struct line_block *block)
{
	const uint64_t max_n =
		u64_max(block->n_elements / (SPLITS_PER_THREAD * block->n_threads), MIN_SPLIT_N);

	/* The parts of a bucket may be large, too. */
	for (uint32_t i = 0; i < block->n_buckets;) {
		bool is_split = false;
		int r = 0;

		if (block->buckets[i].n > max_n && block->n_threads > 1 &&
		    block->n_buckets + N_PARTS + 1 < MAX_SPLIT_BUCKETS)
			r = split_bucket(block, i, &is_split);
		if (r < 0)
			return r;
		i += !is_split;
	}
	return 0;
}
