/*
 * gen.c - test data (see gen.h)
 *
 * Every distribution is a sequence of fractions of the whole key range, 128 bits wide. A record
 * that is one key is decoded from the upper bits of its fraction. So "sorted" is sorted in the
 * order of the type, and an 8-bit and a 128-bit file of the same seed have the same shape.
 *
 * For other records the normalised key (normalised_key.h) is made first, and its fields are put at
 * their places, the inverse of what a sort does:
 *
 *	prefix		the fraction	rest of the key
 *	prefix_nbytes	16 bytes	a hash of the fraction
 *
 * So a key longer than a fraction sorts as its fraction does, and equals the keys of equal
 * fractions. Where keys overlap, the more significant one is correct.
 *
 * Random numbers are counter-based (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011): a strong mix of seed and index instead of a state that is stepped.
 */
#include "tools/gen/gen.h"

#include <stdlib.h>
#include <string.h>

#include "io/output/output.h"
#include "src/base/int_math.h"
#include "src/base/thread_pool.h"
#include "src/record/key_batch.h"
#include "src/record/key_layout.h"
#include "src/record/load_upto16.h"

enum {
	N_DISTINCT_KEYS = 100,
	N_TEETH = 100,
	NEARLY_SORTED_ONE_IN = 100,
	N_CLUSTERS = 64,
	ZIPF_OCTAVES = 24,
};

/* Return the length of an ascending run. It bounds the step, so that a run stays in the range. */
static uint64_t run_length_of(enum gen_dist dist, uint64_t n)
{
	uint64_t run_length = n;

	if (dist == GEN_SAWTOOTH)
		run_length = n / N_TEETH + (n % N_TEETH != 0);
	else if (dist == GEN_ORGAN_PIPE)
		run_length = n / 2 + n % 2;
	return run_length ? run_length : 1;
}

/* Return a random word of index i. Streams are independent. */
static inline uint64_t random64(const struct gen *gen, uint64_t i, uint64_t stream)
{
	/* The golden ratio spreads neighbouring indices over all bits, as in SplitMix64. */
	return digest_mix64((gen->stream ^ stream * UINT64_C(0xd1342543de82ef95)) +
			    i * DIGEST_SEED);
}

/* Return a random fraction. The lower half, half of the work, is 0 for keys of up to 8 bytes. */
static inline uint128_t random128(const struct gen *gen, uint64_t i, uint64_t stream)
{
	const uint64_t low = gen->is_wide ? random64(gen, i, stream + 1) : 0;

	return (uint128_t)random64(gen, i, stream) << 64 | low;
}

/* Return a number below n from the upper half of a random word. */
static inline uint64_t below(uint64_t random, uint64_t n)
{
	return (random >> 32) * n >> 32;
}

/* Streams of an index; 128-bit numbers use two. */
enum { WORD_KEY = 0, WORD_CHOICE = 2, WORD_VALUE = 4 };

/* Return value j of a set of values. */
static inline uint128_t value_of(const struct gen *gen, uint64_t j)
{
	return random128(gen, j, WORD_VALUE);
}

/* Return point j of an ascending run: j steps and a random part of a step. */
static inline uint128_t ascending(const struct gen *gen, uint64_t j, uint64_t i)
{
	return j * gen->step + (gen->step >> 64) * random64(gen, i, WORD_KEY);
}

/* Approximate Zipf: octaves of ranks [2^e, 2^(e+1)) are equally likely, and so are their ranks. */
static inline uint128_t zipf(const struct gen *gen, uint64_t i)
{
	const uint64_t word = random64(gen, i, WORD_CHOICE);
	const uint64_t octave = UINT64_C(1) << below(word, ZIPF_OCTAVES);

	return value_of(gen, octave | (word & (octave - 1)));
}

/* Clusters are as wide as the fourth root of the range. */
static inline uint128_t clustered(const struct gen *gen, uint64_t i)
{
	const unsigned n_key_bits = (unsigned)gen->leading_key.record_nbytes * 8;
	const uint128_t within = (uint128_t)random64(gen, i, WORD_KEY) << 64 >> n_key_bits * 3 / 4;

	return value_of(gen, below(random64(gen, i, WORD_CHOICE), N_CLUSTERS)) + within;
}

/* Return the bits of a special value in the low bits. */
static uint128_t special_bits(const struct gen *gen, uint64_t i)
{
	const unsigned n_key_bits = (unsigned)gen->leading_key.record_nbytes * 8;
	const unsigned n_fraction_bits = key_n_fraction_bits(&gen->leading_key.key);
	const uint128_t half = (uint128_t)1 << (n_key_bits - 1);
	const uint128_t infinity = n_fraction_bits ? half - ((uint128_t)1 << n_fraction_bits) :
						     half - 1;
	const uint64_t word = random64(gen, i, WORD_CHOICE);
	const uint128_t sign = word & 1 ? half : 0;

	switch (below(word, 4)) {
	case 0:
		return sign;
	case 1:
		return sign | infinity;
	case 2: /* NaN of any payload; in other types any large value */
		return sign | infinity | random128(gen, i, WORD_KEY) >> (128 - n_key_bits);
	default:
		return sign | (word >> 1 & 1);
	}
}

/* Return a special value as a fraction. */
static inline uint128_t special(const struct gen *gen, uint64_t i)
{
	const struct layout *leading_key = &gen->leading_key;

	return encode_key_bits_16(special_bits(gen, i), &leading_key->encoding)
	       << (128 - leading_key->record_nbytes * 8);
}

static inline uint128_t organ_pipe(const struct gen *gen, uint64_t i)
{
	const uint64_t from_end = gen->set.n_records - 1 - i;

	return ascending(gen, i < from_end ? i : from_end, i);
}

static inline uint128_t nearly_sorted(const struct gen *gen, uint64_t i)
{
	if (below(random64(gen, i, WORD_CHOICE), NEARLY_SORTED_ONE_IN) == 0)
		return random128(gen, i, WORD_KEY);
	return ascending(gen, i, i);
}

/* Make the fractions of a batch. The distribution is chosen outside of the loops. */
#define FOR_EACH(expression)                                                                       \
	for (uint64_t j = 0; j < n; j++) {                                                         \
		const uint64_t i = first + j;                                                      \
                                                                                                   \
		fractions[j] = (expression);                                                       \
	}                                                                                          \
	break

static void fill_fractions(const struct gen *gen, uint64_t first, uint64_t n, uint128_t *fractions)
{
	const uint64_t last = gen->set.n_records - 1;

	switch (gen->dist) {
	case GEN_RANDOM:
		FOR_EACH(random128(gen, i, WORD_KEY));
	case GEN_SORTED:
		FOR_EACH(ascending(gen, i, i));
	case GEN_REVERSED:
		FOR_EACH(ascending(gen, last - i, i));
	case GEN_EQUAL:
		FOR_EACH(value_of(gen, i - i));
	case GEN_TWO_KEYS:
		FOR_EACH(value_of(gen, below(random64(gen, i, WORD_CHOICE), 2)));
	case GEN_ZIPF:
		FOR_EACH(zipf(gen, i));
	case GEN_HUNDRED_KEYS:
		FOR_EACH(value_of(gen, below(random64(gen, i, WORD_CHOICE), N_DISTINCT_KEYS)));
	case GEN_NEARLY_SORTED:
		FOR_EACH(nearly_sorted(gen, i));
	case GEN_SAWTOOTH:
		FOR_EACH(ascending(gen, i % gen->run_length, i));
	case GEN_ORGAN_PIPE:
		FOR_EACH(organ_pipe(gen, i));
	case GEN_CLUSTERED:
		FOR_EACH(clustered(gen, i));
	case GEN_NAN:
		FOR_EACH(special(gen, i));
	}
}

#undef FOR_EACH

/* A batch stays in the first-level cache between the two steps. */
enum { BATCH_RECORDS = 256 };

#define NARROW(type)                                                                               \
	for (uint64_t j = 0; j < n; j++)                                                           \
		((type *)elements)[j] = (type)(fractions[j] >> shift);                             \
	break

/* Store records that are one key: the upper bits of the fractions are the encoded keys. */
static void store_plain(const struct layout *layout, const uint128_t *fractions, uint64_t n,
			void *records)
{
	const unsigned shift = 128 - (unsigned)layout->record_nbytes * 8;
	_Alignas(uint128_t) unsigned char elements[BATCH_RECORDS * sizeof(uint128_t)];
	struct decode_result unused;

	switch (layout->element_nbytes) {
	case 4:
		NARROW(uint32_t);
	case 8:
		NARROW(uint64_t);
	default:
		NARROW(uint128_t);
	}
	key_batch_decode(layout, elements, n, false, records, &unused);
}

#undef NARROW

/* Make bools 0 or 1, in the same order. */
static void normalise_bools(const struct layout *layout, uint64_t n, unsigned char *records)
{
	for (uint64_t i = 0; i < n; i++)
		records[i * layout->record_nbytes + layout->key.offset] >>= 7;
}

/* --- Records with keys --- */

/* Streams of random bytes. */
enum { STREAM_PREFIX = 1, STREAM_TAIL, STREAM_FILLER };

/* Fill with SplitMix64, starting at `state`. */
static void put_random(uint64_t state, unsigned char *to, uint64_t nbytes)
{
	for (uint64_t offset = 0; offset < nbytes; offset += 8) {
		const uint64_t word = digest_mix64(state += DIGEST_SEED);

		memcpy(to + offset, &word, nbytes - offset < 8 ? nbytes - offset : 8);
	}
}

static uint64_t stream_of(const struct gen *gen, uint64_t stream, uint64_t i)
{
	return digest_mix64(digest_mix64(gen->stream + stream) ^ i);
}

/* Make the normalised key after the prefix. */
static void put_key(const struct gen *gen, uint128_t fraction, unsigned char *key)
{
	const uint64_t hi = (uint64_t)(fraction >> 64), lo = (uint64_t)fraction;
	const uint64_t words[2] = { __builtin_bswap64(hi), __builtin_bswap64(lo) };
	const uint32_t n_remaining = gen->layout.record_keys.key_nbytes - gen->prefix_nbytes;

	key += gen->prefix_nbytes;
	memcpy(key, words, n_remaining < sizeof words ? n_remaining : sizeof words);
	if (n_remaining > sizeof words)
		put_random(stream_of(gen, STREAM_TAIL, digest_mix64(hi) ^ lo), key + sizeof words,
			   n_remaining - sizeof words);
}

/* Store a field whose equal values differ in bits: any of these values. */
static void put_value(const struct key_field *field, const unsigned char *key,
		      unsigned char *record)
{
	const struct key_encoding map = key_field_encoding(field);
	uint64_t encoded_key = 0;

	for (uint32_t i = 0; i < field->nbytes; i++)
		encoded_key = encoded_key << 8 | key[i];
	store_upto_16(record, decode_raw_key_8(encoded_key, &map), field->nbytes);
}

/* Store a field of plain bits: the inverse of key_field_load(). */
static void put_bits(const struct key_field *field, const unsigned char *key, unsigned char *record)
{
	const unsigned char complement = field->descending ? 0xff : 0;
	const unsigned char sign = field->has_sign ? 0x80 : 0;
	unsigned char negate_mask = 0;

	for (uint32_t i = 0; i < field->nbytes; i++) {
		unsigned char byte = key[i] ^ complement ^ negate_mask;

		if (i == 0) {
			byte ^= sign;
			negate_mask = field->is_float && byte >> 7 ? 0xff : 0;
			byte ^= negate_mask & 0x7f;
		}
		record[field->reversed ? field->nbytes - 1 - i : i] = byte;
	}
}

static void put_field(const struct key_field *field, const unsigned char *key,
		      unsigned char *record)
{
	if (field->form == KEY_FORM_BITS)
		put_bits(field, key + field->start, record + field->offset);
	else
		put_value(field, key + field->start, record + field->offset);
}

/*
 * Store records [first, first + n). Keys sort as the fractions do, as far as they are long enough.
 */
static void store_records(const struct gen *gen, uint64_t first, const uint128_t *fractions,
			  uint64_t n, void *records)
{
	const struct key_fields *keys = &gen->layout.record_keys;
	unsigned char key[LAYOUT_MAX_RECORD_NBYTES];
	unsigned char *record = records;

	put_random(stream_of(gen, STREAM_PREFIX, 0), key, gen->prefix_nbytes);
	for (uint64_t i = 0; i < n; i++) {
		put_random(stream_of(gen, STREAM_FILLER, first + i), record,
			   gen->set.record_nbytes);
		put_key(gen, fractions[i], key);
		for (uint32_t field = keys->n; field-- > 0;)
			put_field(&keys->fields[field], key, record);
		record += gen->set.record_nbytes;
	}
}

void gen_fill(const struct data_set *data_set, uint64_t first, uint64_t n, void *records)
{
	const struct gen *gen = (const struct gen *)data_set;
	uint128_t fractions[BATCH_RECORDS];
	unsigned char *output = records;

	while (n) {
		const uint64_t n_batch = n < BATCH_RECORDS ? n : BATCH_RECORDS;

		fill_fractions(gen, first, n_batch, fractions);
		if (gen->is_encoded_key && gen->prefix_nbytes == 0)
			store_plain(&gen->layout, fractions, n_batch, output);
		else
			store_records(gen, first, fractions, n_batch, output);
		if (gen->layout.key.kind == KEY_BOOL)
			normalise_bools(&gen->layout, n_batch, output);
		first += n_batch;
		n -= n_batch;
		output += n_batch * gen->layout.record_nbytes;
	}
}

/* Return the layout of the most significant part of the first key: 16 bytes, or the real part. */
static struct layout leading_key_layout(const struct layout *layout)
{
	struct key key = layout->key;
	struct layout leading_key;

	key.offset = 0;
	if (key.nbytes > sizeof(encoded_key_t))
		key.nbytes = sizeof(encoded_key_t);
	if (key.kind == KEY_COMPLEX) {
		key.kind = KEY_FLOAT;
		key.nbytes /= 2;
	}
	layout_make_key_only(&key, &leading_key);
	return leading_key;
}

void gen_init(const struct layout *layout, enum gen_dist dist, uint64_t n_records, uint64_t seed,
	      struct gen *ret_gen)
{
	const uint64_t run_length = run_length_of(dist, n_records);
	/* Records of several keys are made key by key, even if one encoded key covers them. */
	const bool is_encoded_key = layout_is_key_only(layout) &&
				    layout->key.nbytes == layout->record_nbytes;

	*ret_gen = (struct gen){
		.set = { .record_nbytes = layout->record_nbytes,
			 .n_records = n_records,
			 .fill = gen_fill },
		.layout = *layout,
		.leading_key = leading_key_layout(layout),
		.is_encoded_key = is_encoded_key,
		.is_wide = (is_encoded_key ? layout->record_nbytes :
					     layout->record_keys.key_nbytes) > 8,
		.dist = dist,
		.stream = digest_mix64(seed ^ DIGEST_SEED),
		.run_length = run_length,
		.step = ~(uint128_t)0 / run_length,
	};
}

/* --- Files --- */

/* A block stays in the second-level cache of a core until it is written. */
enum { BLOCK_NBYTES = 512 << 10 };

struct gen_job {
	const struct data_set *set;
	struct output *output;
	uint64_t block_records;
};

static int write_block(void *context, uint64_t block, void *buffer)
{
	const struct gen_job *job = context;
	const uint64_t record_nbytes = job->set->record_nbytes;
	const uint64_t first = block * job->block_records;
	const uint64_t n = u64_min(job->set->n_records - first, job->block_records);
	int r;

	job->set->fill(job->set, first, n, buffer);
	r = output_write_at(job->output, first * record_nbytes, buffer, n * record_nbytes);
	if (r < 0) /* other threads may wait for this block */
		output_cancel(job->output);
	return r;
}

int gen_write_file(const struct data_set *data_set, const struct syscalls *calls, const char *path,
		   unsigned n_threads)
{
	struct gen_job job = { .set = data_set,
			       .block_records = BLOCK_NBYTES / data_set->record_nbytes };
	int r;

	r = output_open(calls, path, data_set->n_records * data_set->record_nbytes, &job.output);
	if (r < 0)
		return r;
	r = threads_run_blocks(n_threads, divide_up(data_set->n_records, job.block_records),
			       BLOCK_NBYTES, write_block, &job);
	if (r < 0) {
		output_abort(job.output);
		return r;
	}
	return output_commit(job.output, OUTPUT_UNSYNCED);
}
