/*
 * line_block.c - sort the lines of a text in memory (see line_block.h)
 */
#include "src/lines/line_block.h"
#include "src/lines/line_block_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/cancellation.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/device/cpu/page_alloc.h"
#include "src/lines/line_scan.h"
#include "src/record/record_hash.h"

enum {
	BUCKET_N = 4096, /* lines of a bucket: fewer buckets if there are fewer lines */
	SAMPLES_PER_BUCKET = 16,
	/* To estimate ties, the square root of the number of lines times this is sampled. */
	TIE_SAMPLES = 4,
	PIECES_PER_THREAD = 8,
	MIN_PIECES = 64,
	MIN_PIECE_NBYTES = 16 << 10,
	ELEMENT_ALIGNMENT = 64,
	LINE_BATCH_N = 16,
	MIN_KEY_NBYTES = 8, /* space for each key of a line, however short it is */
};

/* The length of a line or key in line_block.length_of if it has as many bytes or more. */
enum { LENGTH_OF_MAX = LINE_KEY_LONG };

/* A part of the text that one task handles. */
struct piece {
	struct line_range range;
	uint64_t n_lines, first_line;
	uint64_t key_begin, key_end, key_nbytes; /* space for keys, and how much is used */
	uint64_t longest_nbytes;                 /* of its lines, with the delimiter */
	size_t max_key_nbytes;                   /* if keys are not stored; SIZE_MAX: unknown */
	struct digest digest;
	bool is_done; /* false: keys did not fit */
	/* How many of its lines belong to each bucket; later, where its next element goes. */
	uint64_t in_bucket[MAX_BUCKETS];
	uint64_t bucket_nbytes[MAX_BUCKETS]; /* of these lines with their delimiters */
};

/* --- The sample --- */

/* Return a line near `position` of a range. */
static struct line_view sample_line(const struct line_block *block, struct line_range range,
				    size_t position)
{
	const unsigned char *line = line_end(range.begin + position, block->keys->delimiter) + 1;

	if (line == range.end)
		line = range.begin;
	return (struct line_view){ line, (size_t)(line_end(line, block->keys->delimiter) - line) };
}

/*
 * Return the string of a line that buckets are divided by, in memory of its own if it is a key. Of
 * that, what follows the first prefix_nbytes + 1 bytes may be left out.
 */
static struct line_view make_string(const struct line_block *block, struct line_view line,
				    size_t prefix_nbytes, struct line_key_buffer *buffer)
{
	if (block->in.is_plain)
		return line;
	line_keys_normalise_prefix(block->keys, line.bytes, line.nbytes, prefix_nbytes, buffer);
	return (struct line_view){ buffer->bytes, buffer->n };
}

/*
 * Call `take` for n lines of the pieces, evenly distributed over the text. A line is taken once,
 * even if it is so long that the sample would have it several times.
 */
static void for_each_sample(const struct line_block *block, uint32_t n, size_t prefix_nbytes,
			    void (*take)(void *context, struct line_view string), void *context)
{
	struct line_key_buffer buffer = { 0 };
	const uint32_t n_per_piece = n / block->n_pieces + 1;

	for (uint32_t i = 0; i < block->n_pieces; i++) {
		const struct line_range range = block->pieces[i].range;
		const size_t step = (size_t)(range.end - range.begin) / n_per_piece;
		const unsigned char *previous = NULL;

		for (uint32_t j = 0; j < n_per_piece; j++) {
			const struct line_view line = sample_line(block, range, j * step);

			if (line.bytes != previous)
				take(context, make_string(block, line, prefix_nbytes, &buffer));
			previous = line.bytes;
		}
	}
	line_key_buffer_free(&buffer);
}

void shared_prefix_shorten(struct shared_prefix *shared, struct line_view string)
{
	uint32_t n = 0;

	if (string.nbytes == 0) { /* bytes may be NULL */
		shared->n = 0;
		return;
	}
	if (shared->n == UINT32_MAX) {
		shared->n = (uint32_t)u64_min(string.nbytes, MAX_SHARED_NBYTES);
		memcpy(shared->bytes, string.bytes, shared->n);
	}
	while (n < shared->n && n < string.nbytes && shared->bytes[n] == string.bytes[n])
		n++;
	shared->n = n;
}

static void shorten_shared(void *context, struct line_view string)
{
	shared_prefix_shorten(context, string);
}

struct sampled_string {
	uint64_t prefix;
	bool continues; /* after the prefix */
};

struct sample {
	const struct line_block *block;
	struct sampled_string *strings;
	size_t n;
};

static void take_prefix(void *context, struct line_view string)
{
	struct sample *sample = context;

	sample->strings[sample->n++] = (struct sampled_string){
		.prefix =
			line_load_prefix(string, sample->block->shared.n,
					 line_string_is_descending(&sample->block->in, STRING_KEY)),
		.continues = string.nbytes > sample->block->shared.n + sizeof(uint64_t),
	};
}

static void add_entry_nbytes(void *context, struct line_view key)
{
	*(uint64_t *)context += line_key_entry_nbytes(key.nbytes);
}

static int compare_sampled(const void *a, const void *b)
{
	const uint64_t x = ((const struct sampled_string *)a)->prefix;
	const uint64_t y = ((const struct sampled_string *)b)->prefix;

	return (x > y) - (x < y);
}

/*
 * Return whether many keys need more than their prefix: a key ties with more than 0.5 others on
 * average. The share of tied pairs in the sorted sample estimates the share among all n keys.
 */
static bool has_many_ties(const struct sample *sample, uint64_t n)
{
	const double n_pairs = (double)sample->n * ((double)sample->n - 1) / 2;
	double n_tied_pairs = 0;
	size_t n_before = 0; /* with the same prefix */

	for (size_t i = 1; i < sample->n; i++) {
		n_before = sample->strings[i].prefix == sample->strings[i - 1].prefix ?
				   n_before + 1 :
				   0;
		if (sample->strings[i].continues)
			n_tied_pairs += (double)n_before;
	}
	return n_tied_pairs * (double)n > n_pairs / 2;
}

/* Return how many lines to sample: enough to choose splitters, and to estimate ties of n keys. */
static uint32_t count_samples(const struct line_block *block, uint64_t n, uint32_t n_buckets)
{
	const uint32_t n_for_ties = block->in.is_plain ? 0 :
							 TIE_SAMPLES * (uint32_t)sqrt((double)n);

	return n_for_ties > SAMPLES_PER_BUCKET * n_buckets ? n_for_ties :
							     SAMPLES_PER_BUCKET * n_buckets;
}

/*
 * Choose the shared prefix and the splitters of the buckets for the lines of the pieces, and
 * whether to store keys.
 */
static int choose_buckets(struct line_block *block)
{
	struct sample sample = { .block = block };
	uint32_t n_buckets = 1, n_samples;
	uint64_t n = 0, entries_nbytes = 0;

	for (uint32_t i = 0; i < block->n_pieces; i++)
		n += block->pieces[i].n_lines;
	while (2 * n_buckets < MAX_BUCKETS && n / n_buckets > BUCKET_N)
		n_buckets *= 2;
	n_samples = count_samples(block, n, n_buckets);
	block->n_splitter_slots = n_buckets;
	block->n_buckets = n_buckets + 2;
	for (uint32_t i = 0; i < n_buckets; i++)
		block->splitters[i] = UINT64_MAX;
	sample.strings = malloc((n_samples + 2 * (size_t)block->n_pieces) * sizeof *sample.strings);
	if (!sample.strings)
		return fail(-ENOMEM, "no memory for a sample of lines");
	block->shared.n = UINT32_MAX;
	for_each_sample(block, n_samples, MAX_SHARED_NBYTES, shorten_shared, &block->shared);
	for_each_sample(block, n_samples, block->shared.n + sizeof(uint64_t), take_prefix, &sample);
	qsort(sample.strings, sample.n, sizeof *sample.strings, compare_sampled);
	for (uint32_t i = 0; i + 1 < n_buckets; i++)
		block->splitters[i] = sample.strings[(i + 1) * sample.n / n_buckets].prefix;
	block->in.stores_keys = !block->in.is_plain && has_many_ties(&sample, n);
	if (block->in.stores_keys)
		for_each_sample(block, n_samples, SIZE_MAX, add_entry_nbytes, &entries_nbytes);
	block->mean_entry_nbytes = divide_up(entries_nbytes, sample.n);
	free(sample.strings);
	return 0;
}

/* Lines whose buckets are searched together: each step of a search waits for the step before. */
struct line_batch {
	uint32_t n;
	uint64_t prefixes[LINE_BATCH_N], nbytes[LINE_BATCH_N];
	int orders[LINE_BATCH_N]; /* of shared_prefix_load() */
};

/* Choose the buckets of a batch, from the line `first` of the piece on, and empty the batch. */
static void choose_buckets_of_batch(const struct line_block *block, struct piece *piece,
				    uint64_t first, struct line_batch *batch)
{
	uint32_t found[LINE_BATCH_N] = { 0 };

	for (uint32_t step = block->n_splitter_slots / 2; step > 0; step /= 2)
		for (uint32_t i = 0; i < LINE_BATCH_N; i++)
			found[i] += block->splitters[found[i] + step - 1] < batch->prefixes[i] ?
					    step :
					    0;
	for (uint32_t i = 0; i < batch->n; i++) {
		const int order = batch->orders[i];
		const uint32_t bucket = order == 0 ? 1 + found[i] :
					order > 0  ? block->n_buckets - 1 :
						     0;

		block->bucket_of[piece->first_line + first + i] = (unsigned char)bucket;
		piece->in_bucket[bucket]++;
		piece->bucket_nbytes[bucket] += batch->nbytes[i];
	}
	if (line_keys_are_remade(&block->in))
		memcpy(block->prefix_of + piece->first_line + first, batch->prefixes,
		       batch->n * sizeof *batch->prefixes);
	batch->n = 0;
}

/* --- Pieces --- */

static int count_lines(void *context, uint32_t task)
{
	struct line_block *block = context;
	struct piece *piece = &block->pieces[task];

	piece->n_lines = line_count(piece->range.begin,
				    (size_t)(piece->range.end - piece->range.begin),
				    block->keys->delimiter);
	return 0;
}

/* Add a line's key to the memory of the piece. Returns false if it does not fit. */
static bool add_key(struct line_block *block, struct piece *piece, uint64_t reference,
		    struct line_view key)
{
	const uint64_t begin = piece->key_begin + piece->key_nbytes;
	const uint64_t nbytes = line_key_entry_nbytes(key.nbytes);

	if (begin + nbytes > piece->key_end)
		return false;
	line_key_entry_store(block->key_memory + begin, reference, key);
	piece->key_nbytes += nbytes;
	return true;
}

/* Find the lines of a piece, make their keys, and choose their buckets. */
static int scan_piece(void *context, uint32_t task)
{
	struct line_block *block = context;
	struct piece *piece = &block->pieces[task];
	unsigned char *length_of = block->length_of + piece->first_line;
	struct line_batch batch = { 0 };
	struct line_scan scan = line_scan_start(piece->range.begin, block->keys->delimiter);
	struct line_key_buffer key = { 0 };
	const bool descending = line_string_is_descending(&block->in, STRING_KEY);
	uint64_t n = 0;

	*piece = (struct piece){ .range = piece->range,
				 .n_lines = piece->n_lines,
				 .first_line = piece->first_line,
				 .key_begin = piece->key_begin,
				 .key_end = piece->key_end };
	for (const unsigned char *line = piece->range.begin; line < piece->range.end;) {
		const unsigned char *end = line_scan_next(&scan);
		const size_t nbytes = (size_t)(end - line);
		struct line_view string = { line, nbytes };
		size_t n_stored;

		if (block->hashes_lines)
			piece->digest.sum += hash_bytes(line, nbytes);
		if (nbytes >= piece->longest_nbytes)
			piece->longest_nbytes = nbytes + 1;
		if (!block->in.is_plain) {
			/* A key is made only as far as its prefix needs, or as it can be stored. */
			const size_t prefix_nbytes =
				block->in.stores_keys ?
					piece->key_end - piece->key_begin - piece->key_nbytes :
					block->shared.n + sizeof(uint64_t);
			const bool is_complete = line_keys_normalise_prefix(
				block->keys, line, nbytes, prefix_nbytes, &key);

			string = (struct line_view){ key.bytes, key.n };
			if (key.has_failed ||
			    (block->in.stores_keys &&
			     !add_key(block, piece, line_reference(&block->in, line, nbytes),
				      string)))
				break;
			if (!is_complete)
				piece->max_key_nbytes = SIZE_MAX;
			else if (key.n > piece->max_key_nbytes)
				piece->max_key_nbytes = key.n;
		}
		n_stored = block->in.stores_keys ? string.nbytes : nbytes;
		length_of[n++] =
			(unsigned char)(n_stored < LENGTH_OF_MAX ? n_stored : LENGTH_OF_MAX);
		batch.nbytes[batch.n] = nbytes + 1;
		batch.orders[batch.n] = shared_prefix_load(&block->shared, string, descending,
							   &batch.prefixes[batch.n]);
		if (++batch.n == LINE_BATCH_N)
			choose_buckets_of_batch(block, piece, n - LINE_BATCH_N, &batch);
		line = end + 1;
		piece->is_done = line == piece->range.end;
	}
	choose_buckets_of_batch(block, piece, n - batch.n, &batch);
	piece->digest.n_records = piece->n_lines;
	return line_key_buffer_finish(&key);
}

/* Make the elements of a piece, each in its bucket. */
static int make_elements(void *context, uint32_t task)
{
	struct line_block *block = context;
	struct piece *piece = &block->pieces[task];
	const unsigned char *line = piece->range.begin;
	const unsigned char *key = block->key_memory + piece->key_begin;
	const bool descending = line_string_is_descending(&block->in, STRING_KEY);

	for (uint64_t i = piece->first_line; i < piece->first_line + piece->n_lines; i++) {
		const uint32_t bucket = block->bucket_of[i];
		struct line_element *element = &block->in.elements[piece->in_bucket[bucket]++];
		size_t nbytes = block->length_of[i];
		struct line_view string;

		if (block->in.stores_keys) {
			string = line_key_entry_key(key, nbytes);
			element->reference = line_key_reference(&block->in, key, string.nbytes);
			key += line_key_entry_nbytes(string.nbytes);
		} else {
			if (nbytes == LENGTH_OF_MAX)
				nbytes = (size_t)(line_end(line, block->keys->delimiter) - line);
			string = (struct line_view){ line, nbytes };
			element->reference = line_reference(&block->in, line, nbytes);
			line += nbytes + 1;
		}
		element->prefix =
			line_keys_are_remade(&block->in) ?
				block->prefix_of[i] :
				line_load_prefix(string, block->buckets[bucket].depth, descending);
	}
	return 0;
}

/* Divide ranges into pieces of whole lines. */
static int divide_text(struct line_block *block, const struct line_range *ranges, size_t n)
{
	const uint32_t n_wanted = PIECES_PER_THREAD * block->n_threads > MIN_PIECES ?
					  PIECES_PER_THREAD * block->n_threads :
					  MIN_PIECES;
	uint64_t nbytes = 0, piece_nbytes;

	for (size_t i = 0; i < n; i++)
		nbytes += (uint64_t)(ranges[i].end - ranges[i].begin);
	piece_nbytes = nbytes / n_wanted + 1;
	if (piece_nbytes < MIN_PIECE_NBYTES)
		piece_nbytes = MIN_PIECE_NBYTES;
	if (n_wanted + n > block->max_pieces) {
		free(block->pieces);
		block->max_pieces = 0;
		block->pieces = malloc((n_wanted + n) * sizeof *block->pieces);
		if (!block->pieces)
			return fail(-ENOMEM, "no memory for %zu pieces of text", n_wanted + n);
		block->max_pieces = (uint32_t)(n_wanted + n);
	}
	block->n_pieces = 0;
	for (size_t i = 0; i < n; i++) {
		const unsigned char *begin = ranges[i].begin;

		while (begin < ranges[i].end) {
			const unsigned char *end = ranges[i].end;

			if ((uint64_t)(end - begin) > piece_nbytes)
				end = line_end(begin + piece_nbytes - 1, block->keys->delimiter) +
				      1;
			block->pieces[block->n_pieces++] =
				(struct piece){ .range = { begin, end } };
			begin = end;
		}
	}
	return 0;
}

/* --- The memory --- */

static uint64_t align_element(uint64_t nbytes)
{
	return (nbytes + ELEMENT_ALIGNMENT - 1) / ELEMENT_ALIGNMENT * ELEMENT_ALIGNMENT;
}

/* Return the memory of n elements with their buckets, lengths and scratch. */
static uint64_t elements_nbytes(uint64_t n)
{
	const uint64_t n_elements = line_elements_need_scratch() ? 2 * n : n;

	return align_element(n_elements * sizeof(struct line_element) + 2 * n);
}

/* Keys of this length always fit. Whether longer ones fit depends on the text. */
static uint64_t min_entry_nbytes(const struct line_block *block)
{
	if (line_keys_are_remade(&block->in))
		return sizeof *block->prefix_of;
	return block->in.is_plain ? 0 : line_key_entry_nbytes(MIN_KEY_NBYTES * block->keys->n_keys);
}

/*
 * Place elements and keys after the text. If those of a piece probably do not fit, it and all later
 * pieces are left out, but not the first piece if it may fit.
 */
static void place_elements(struct line_block *block, const unsigned char *text_end)
{
	const uint64_t begin =
		align_element((uint64_t)(text_end - block->memory) + LINE_SLACK_NBYTES);
	const uint64_t available = block->memory_nbytes > begin ? block->memory_nbytes - begin : 0;
	/*
	 * Keys get the remaining memory: this much for each line, and the rest in proportion to the
	 * length of the text.
	 */
	const uint64_t min_key_nbytes = min_entry_nbytes(block);
	const uint64_t mean_key_nbytes = block->in.stores_keys ?
						 u64_max(block->mean_entry_nbytes, min_key_nbytes) :
						 min_key_nbytes;
	uint64_t n = 0, text_nbytes = 0, key_begin = 0, key_nbytes;
	uint32_t i = 0;

	for (; i < block->n_pieces; i++) {
		const uint64_t n_lines = n + block->pieces[i].n_lines;
		const uint64_t keys_nbytes = n_lines * (i == 0 ? min_key_nbytes : mean_key_nbytes);

		/* A margin, because keys of some pieces are longer. */
		if (elements_nbytes(n_lines) + keys_nbytes + keys_nbytes / 16 > available)
			break;
		block->pieces[i].first_line = n;
		n += block->pieces[i].n_lines;
		text_nbytes +=
			(uint64_t)(block->pieces[i].range.end - block->pieces[i].range.begin);
	}
	block->n_pieces = i;
	block->n_elements = n;
	block->in.elements = (struct line_element *)(void *)(block->memory + begin);
	block->in.scratch = block->in.elements + (line_elements_need_scratch() ? n : 0);
	block->bucket_of = (unsigned char *)(block->in.scratch + n);
	block->length_of = block->bucket_of + n;
	block->in.key_memory = block->key_memory = block->memory + begin + elements_nbytes(n);
	block->prefix_of = (uint64_t *)(void *)block->key_memory;
	if (!block->in.stores_keys || i == 0)
		return;
	key_nbytes = available - elements_nbytes(n) - n * min_key_nbytes;
	key_nbytes = key_nbytes > LINE_SLACK_NBYTES ? key_nbytes - LINE_SLACK_NBYTES : 0;
	for (i = 0; i < block->n_pieces; i++) {
		struct piece *piece = &block->pieces[i];
		const uint64_t nbytes = (uint64_t)(piece->range.end - piece->range.begin);

		piece->key_begin = key_begin;
		key_begin += piece->n_lines * min_key_nbytes;
		key_begin += (uint64_t)((double)key_nbytes * (double)nbytes / (double)text_nbytes);
		piece->key_end = key_begin;
	}
}

size_t line_block_text_nbytes(struct line_block *block, struct line_range sample)
{
	uint64_t nbytes = block->seen_nbytes, n = block->seen_n_lines;
	uint64_t key_nbytes = block->seen_key_nbytes;
	double per_byte;

	if (n == 0) {
		struct line_key_buffer key = { 0 };

		for (const unsigned char *line = sample.begin; line < sample.end; n++) {
			const unsigned char *end = line_end(line, block->keys->delimiter);

			if (block->in.stores_keys) {
				line_keys_normalise(block->keys, line, (size_t)(end - line), &key);
				key_nbytes += line_key_entry_nbytes(key.n);
			}
			nbytes += (uint64_t)(end + 1 - line);
			line = end + 1;
		}
		line_key_buffer_free(&key);
	}
	if (n == 0)
		return block->memory_nbytes / 2;
	if (key_nbytes < n * min_entry_nbytes(block))
		key_nbytes = n * min_entry_nbytes(block);
	/* Memory for each byte of text, without the text itself; and a margin. */
	per_byte = 1.05 * ((double)elements_nbytes(n) + (double)key_nbytes) / (double)nbytes;
	if (block->in.stores_keys && per_byte < 0.1)
		per_byte = 0.1;
	return (size_t)((double)(block->memory_nbytes - 4096) / (1 + per_byte));
}

/* --- Sorting --- */

/* Count a line of a bucket as dropped. */
static void record_drop(struct bucket *bucket, struct line_view line)
{
	bucket->nbytes -= line.nbytes + 1;
	bucket->dropped.n_records++;
	bucket->dropped.sum += hash_bytes(line.bytes, line.nbytes);
}

/* Store a count after the elements that are kept, and those counts that are there. */
static void add_count(struct bucket *bucket, struct line_element *elements, uint64_t n_kept,
		      uint64_t n_equal)
{
	if (n_equal > 1)
		elements[n_kept + bucket->n_counts++] =
			(struct line_element){ .reference = n_equal, .prefix = n_kept - 1 };
}

/*
 * Check the order of a sorted bucket, drop all but the first of lines with equal keys unless they
 * are kept, and let elements refer to lines instead of keys. Elements that are kept are at the
 * beginning, and counts follow. So the first count makes room for the next element. There is room
 * for it, because each count stands for a dropped element.
 */
static int finish_bucket(const struct line_block *block, struct bucket *bucket,
			 enum equal_lines equal)
{
	struct line_key_buffer buffers[2] = { 0 };
	const struct line_elements in = line_block_elements(block, buffers);
	struct line_element *elements = in.elements + bucket->first_element;
	const bool descending = line_string_is_descending(&in, STRING_KEY);
	struct line_element last = { 0 };
	uint64_t n_kept = 0, n_equal = 0;
	bool is_ordered = true;
	int r;

	for (uint64_t i = 0; i < bucket->n && is_ordered; i++) {
		const struct line_element element = elements[i];
		const uint64_t line = line_element_line(&in, &element);
		const int order = n_kept > 0 ? line_elements_compare_keys(&in, &last, &element,
									  bucket->depth) :
					       0;

		if (i + PREFETCH_N < bucket->n && !line_keys_are_remade(&in))
			line_element_prefetch(&in, &elements[i + PREFETCH_N]);
		is_ordered = descending ? order >= 0 : order <= 0;
		if (equal != EQUAL_KEEP && n_kept > 0 && order == 0) {
			record_drop(bucket, line_reference_view(&block->in, line));
			n_equal++;
			continue;
		}
		if (equal == EQUAL_COUNT)
			add_count(bucket, elements, n_kept, n_equal);
		elements[n_kept + bucket->n_counts] = elements[n_kept];
		elements[n_kept++] = (struct line_element){ line, element.prefix };
		last = element;
		n_equal = 1;
	}
	if (equal == EQUAL_COUNT)
		add_count(bucket, elements, n_kept, n_equal);
	line_elements_sort_numbers(&in, elements + n_kept, bucket->n_counts);
	bucket->counts = (const struct line_count *)(const void *)(elements + n_kept);
	bucket->counted = bucket->first_element;
	bucket->n = n_kept;
	bucket->is_changed |= equal == EQUAL_COUNT;
	r = line_block_free_buffers(buffers);
	return r < 0 || is_ordered ? r : fail_line_order();
}

static int sort_bucket(void *context, uint32_t task)
{
	struct line_block *block = context;
	struct bucket *bucket = &block->buckets[task];
	struct line_key_buffer buffers[2] = { 0 };
	const struct line_elements in = line_block_elements(block, buffers);
	int r;

	if (bucket->n > 1)
		line_elements_sort(&in, in.elements + bucket->first_element, bucket->n,
				   bucket->depth);
	r = line_block_free_buffers(buffers);
	if (r == 0)
		r = cancellation_check(in.cancellation);
	if (r < 0)
		return r;
	/* Without stored keys the order is checked when lines are written. */
	if (block->counts || (!block->in.stores_keys && !block->keys->unique))
		return 0;
	return finish_bucket(block, bucket, block->keys->unique ? EQUAL_DROP : EQUAL_KEEP);
}

static int finish_task(void *context, uint32_t task)
{
	struct line_block *block = context;

	return finish_bucket(block, &block->buckets[task], block->equal);
}

int line_block_count_equal(struct line_block *block, bool keeps)
{
	block->equal = keeps ? EQUAL_KEEP : EQUAL_COUNT;
	return thread_pool_run(block->threads, finish_task, block, block->n_buckets);
}

/* Scan the pieces. If the keys of a piece do not fit, it and all later pieces are left out. */
static int scan_pieces(struct line_block *block)
{
	uint32_t n_done = 0;
	int r = thread_pool_run(block->threads, scan_piece, block, block->n_pieces);

	if (r < 0)
		return r;
	block->n_elements = 0;
	block->in.max_key_nbytes = 0;
	for (; n_done < block->n_pieces && block->pieces[n_done].is_done; n_done++) {
		const struct piece *piece = &block->pieces[n_done];

		block->n_elements += piece->n_lines;
		if (piece->max_key_nbytes > block->in.max_key_nbytes)
			block->in.max_key_nbytes = piece->max_key_nbytes;
	}
	block->n_pieces = n_done;
	return 0;
}

/* Compute where the buckets begin, and where each piece puts its elements in them. */
static void place_buckets(struct line_block *block)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < block->n_buckets; i++) {
		const bool shares = i > 0 && i + 1 < block->n_buckets;

		block->buckets[i] = (struct bucket){ .first_element = n,
						     .depth = shares ? block->shared.n : 0 };
		for (uint32_t j = 0; j < block->n_pieces; j++) {
			const uint64_t n_lines = block->pieces[j].in_bucket[i];

			block->pieces[j].in_bucket[i] = n;
			block->buckets[i].nbytes += block->pieces[j].bucket_nbytes[i];
			n += n_lines;
		}
		block->buckets[i].n = n - block->buckets[i].first_element;
	}
}

/* Add up what was seen of lines. Returns the bytes of the pieces. */
static uint64_t record_lines(struct line_block *block, struct digest *ret_digest)
{
	uint64_t nbytes = 0, key_nbytes = 0;

	block->longest_nbytes = 0;
	for (uint32_t i = 0; i < block->n_pieces; i++) {
		const struct piece *piece = &block->pieces[i];

		nbytes += (uint64_t)(piece->range.end - piece->range.begin);
		key_nbytes += piece->key_nbytes;
		if (piece->longest_nbytes > block->longest_nbytes)
			block->longest_nbytes = piece->longest_nbytes;
		if (ret_digest)
			digest_add(ret_digest, piece->digest);
	}
	block->seen_nbytes = nbytes;
	block->seen_n_lines = block->n_elements;
	block->seen_key_nbytes = key_nbytes;
	return nbytes;
}

/* Leave out the second half of the lines. Returns false if there is only one line. */
static bool halve_range(const struct line_block *block, struct line_range *range)
{
	const unsigned char delimiter = block->keys->delimiter;
	const unsigned char *middle = range->begin + (range->end - range->begin - 1) / 2;
	const unsigned char *end = line_end(middle, delimiter) + 1;

	if (end == range->end)
		end = line_end(range->begin, delimiter) + 1;
	if (end == range->end)
		return false;
	range->end = end;
	return true;
}

/*
 * Scan as many of the first pieces as fit in memory, and leave out the others. If the keys of most
 * pieces do not fit, try fewer pieces, which then get more memory each. A single line always fits,
 * because its key is not stored.
 */
static int scan_fitting_pieces(struct line_block *block, const unsigned char *text_end)
{
	uint32_t n = block->n_pieces, n_placed;
	int r = thread_pool_run(block->threads, count_lines, block, n);

	while (r == 0) {
		block->n_pieces = n;
		r = choose_buckets(block);
		if (r < 0)
			break;
		place_elements(block, text_end);
		n_placed = block->n_pieces;
		r = scan_pieces(block);
		if (r < 0 || (block->n_pieces > 0 && block->n_pieces >= n_placed / 2))
			break;
		if (n > 1) {
			n = n_placed > 1 ? n_placed / 2 : 1;
			continue;
		}
		if (!halve_range(block, &block->pieces[0].range))
			return fail(-E2BIG, "internal error: a line does not fit in memory");
		r = count_lines(block, 0);
	}
	return r;
}

int line_block_sort(struct line_block *block, const struct line_range *ranges, size_t n,
		    const unsigned char *text_end, uint64_t *ret_n_sorted,
		    struct digest *ret_digest)
{
	int r = divide_text(block, ranges, n);

	*ret_n_sorted = 0;
	block->n_buckets = 0;
	block->n_elements = 0;
	block->equal = EQUAL_KEEP;
	block->has_selection = false;
	block->hashes_lines = ret_digest;
	if (ret_digest)
		*ret_digest = (struct digest){ 0 };
	if (r < 0 || block->n_pieces == 0)
		return r;
	r = scan_fitting_pieces(block, text_end);
	if (r < 0)
		return r;
	place_buckets(block);
	r = thread_pool_run(block->threads, make_elements, block, block->n_pieces);
	if (r == 0)
		r = line_block_split_buckets(block);
	if (r == 0)
		r = thread_pool_run(block->threads, sort_bucket, block, block->n_buckets);
	if (r == 0)
		*ret_n_sorted = record_lines(block, ret_digest);
	return r;
}

static int hash_piece(void *context, uint32_t task)
{
	struct line_block *block = context;
	struct piece *piece = &block->pieces[task];
	const unsigned char *end;

	for (const unsigned char *line = piece->range.begin; line < piece->range.end;
	     line = end + 1) {
		end = line_end(line, block->keys->delimiter);
		piece->digest.sum += hash_bytes(line, (size_t)(end - line));
		piece->digest.n_records++;
	}
	return 0;
}

int line_block_add_digest(struct line_block *block, struct line_range range, struct digest *digest)
{
	int r = divide_text(block, &range, 1);

	if (r == 0)
		r = thread_pool_run(block->threads, hash_piece, block, block->n_pieces);
	for (uint32_t i = 0; i < block->n_pieces && r == 0; i++)
		digest_add(digest, block->pieces[i].digest);
	return r;
}

/* --- A sorted block --- */

static struct bucket *first_bucket(const struct line_block *block)
{
	for (uint32_t i = 0; i < block->n_buckets; i++)
		if (block->buckets[i].n > 0)
			return (struct bucket *)&block->buckets[i];
	return NULL;
}

static struct bucket *last_bucket(const struct line_block *block)
{
	for (uint32_t i = block->n_buckets; i-- > 0;)
		if (block->buckets[i].n > 0)
			return (struct bucket *)&block->buckets[i];
	return NULL;
}

uint64_t line_block_drop_first(struct line_block *block)
{
	struct bucket *bucket = first_bucket(block);
	uint64_t next = 0;

	record_drop(bucket, line_block_first(block));
	bucket->is_changed = true; /* a count was measured, too */
	bucket->n--;
	return find_count(bucket, bucket->first_element++, &next);
}

uint64_t line_block_drop_last(struct line_block *block)
{
	struct bucket *bucket = last_bucket(block);
	uint64_t next = bucket->n_counts ? bucket->n_counts - 1 : 0;

	record_drop(bucket, line_block_last(block));
	bucket->is_changed = true;
	bucket->n--;
	return find_count(bucket, bucket->first_element + bucket->n, &next);
}

int line_block_drop_equal(struct line_block *block, struct line_view last)
{
	struct line_key_buffer buffers[2] = { 0 };
	struct bucket *bucket = first_bucket(block);
	struct line_view first;

	if (!last.bytes || !bucket)
		return 0;
	first = line_block_first(block);
	if ((block->in.is_plain ?
		     line_view_compare(first, last) :
		     line_keys_compare_normalised(block->keys, first, last, 0, buffers)) == 0) {
		bucket->first_element++;
		bucket->n--;
		record_drop(bucket, first);
	}
	return line_block_free_buffers(buffers);
}

void line_block_truncate(struct line_block *block, uint64_t n)
{
	for (uint32_t i = 0; i < block->n_buckets; i++) {
		struct bucket *bucket = &block->buckets[i];

		if (bucket->n > n) {
			bucket->n = n;
			bucket->is_changed = true;
		}
		n -= bucket->n;
	}
}

void line_block_select(struct line_block *block, uint64_t first, uint64_t n)
{
	for (uint32_t i = 0; i < block->n_buckets; i++) {
		struct bucket *bucket = &block->buckets[i];
		uint64_t skip;

		if (!block->has_selection) {
			bucket->all_first_element = bucket->first_element;
			bucket->all_n = bucket->n;
		}
		skip = first < bucket->all_n ? first : bucket->all_n;
		bucket->first_element = bucket->all_first_element + skip;
		bucket->n = n < bucket->all_n - skip ? n : bucket->all_n - skip;
		first -= skip;
		n -= bucket->n;
		bucket->is_changed = true;
	}
	block->has_selection = true;
}

uint64_t line_block_n_lines(const struct line_block *block)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < block->n_buckets; i++)
		n += block->buckets[i].n;
	return n;
}

size_t line_block_longest(const struct line_block *block)
{
	return block->longest_nbytes;
}

struct digest line_block_dropped_digest(const struct line_block *block)
{
	struct digest dropped = { 0 };

	for (uint32_t i = 0; i < block->n_buckets; i++)
		digest_add(&dropped, block->buckets[i].dropped);
	return dropped;
}

struct line_view line_block_first(const struct line_block *block)
{
	const struct bucket *bucket = first_bucket(block);

	return bucket ? bucket_line(block, bucket, 0) : (struct line_view){ 0 };
}

struct line_view line_block_last(const struct line_block *block)
{
	const struct bucket *bucket = last_bucket(block);

	return bucket ? bucket_line(block, bucket, bucket->n - 1) : (struct line_view){ 0 };
}

/* --- Opening --- */

int line_block_open(const struct line_block_params *params, struct line_block **ret_block)
{
	struct line_block *block = calloc(1, sizeof *block);

	if (!block)
		return fail(-ENOMEM, "no memory for a sort of lines");
	block->keys = params->keys;
	block->counts = params->counts;
	block->threads = params->threads;
	block->n_threads = params->n_threads;
	block->in.keys = params->keys;
	block->in.cancellation = params->cancellation;
	block->in.is_plain = line_keys_are_plain(params->keys);
	block->in.is_reversed = line_keys_are_reversed(params->keys);
	block->memory_nbytes = params->memory_nbytes;
	page_alloc_init(&block->allocator);
	block->memory = page_alloc_map(&block->allocator, block->memory_nbytes);
	if (!block->memory) {
		line_block_close(block);
		return fail(-ENOMEM, "no memory for lines: %zu bytes; use a smaller -S",
			    params->memory_nbytes);
	}
	block->in.text = block->memory;
	*ret_block = block;
	return 0;
}

void line_block_close(struct line_block *block)
{
	if (!block)
		return;
	page_alloc_unmap(block->memory, block->memory_nbytes + block->reserved_nbytes);
	page_alloc_destroy(&block->allocator);
	free(block->pieces);
	free(block);
}

void line_block_reserve(struct line_block *block, size_t nbytes)
{
	block->memory_nbytes += block->reserved_nbytes;
	block->reserved_nbytes = nbytes;
	block->memory_nbytes -= nbytes;
}

unsigned char *line_block_text(struct line_block *block)
{
	return block->memory;
}
