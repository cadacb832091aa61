/*
 * gen - test data (see gen.h)
 *
 * Every distribution is made as a code, the unsigned integer that sorts like the record, and the
 * record is decoded from it; so "sorted" is sorted in the order of the type, whatever the type. The
 * code is made 128 bits wide, as a fraction of the whole range, and its upper bits are kept: an
 * 8-bit and a 128-bit file of the same seed have the same shape. Records with keys are made of the
 * same fractions (gen_record.h).
 *
 * Random numbers are counter-based (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC 2011): a strong mix of seed and index instead of a state that is stepped.
 */
#include "tools/gen/gen.h"

#include <errno.h>
#include <string.h>

#include "src/record/key_encode.h"
#include "tools/gen/gen_record.h"

enum {
	N_DISTINCT_KEYS = 100,
	N_TEETH = 100,
	NEARLY_SORTED_ONE_IN = 100,
	N_CLUSTERS = 64,
	ZIPF_OCTAVES = 24,
};

static const char *const dist_names[] = {
	[GEN_RANDOM] = "random",
	[GEN_SORTED] = "sorted",
	[GEN_REVERSED] = "reversed",
	[GEN_EQUAL] = "equal",
	[GEN_TWO_KEYS] = "two-keys",
	[GEN_ZIPF] = "zipf",
	[GEN_HUNDRED_KEYS] = "hundred-keys",
	[GEN_NEARLY_SORTED] = "nearly-sorted",
	[GEN_SAWTOOTH] = "sawtooth",
	[GEN_ORGAN_PIPE] = "organ-pipe",
	[GEN_CLUSTERED] = "clustered",
	[GEN_NAN] = "nan",
};

enum { N_DISTS = sizeof dist_names / sizeof dist_names[0] };

int gen_parse_dist(const char *name, enum gen_dist *ret_dist)
{
	for (unsigned i = 0; i < N_DISTS; i++)
		if (!strcmp(name, dist_names[i])) {
			*ret_dist = (enum gen_dist)i;
			return 0;
		}
	return -EINVAL;
}

const char *gen_dist_name(unsigned i, char *text)
{
	(void)text;
	return i < N_DISTS ? dist_names[i] : NULL;
}

const char *gen_list_dists(char text[static GEN_DIST_NAMES_NBYTES])
{
	text[0] = '\0';
	for (unsigned i = 0; i < N_DISTS; i++) {
		if (i)
			strcat(text, " ");
		strcat(text, dist_names[i]);
	}
	return text;
}

/*
 * How long an ascending stretch is; it bounds the step, so that a stretch stays within the range.
 */
static uint64_t run_length_of(enum gen_dist dist, uint64_t n)
{
	uint64_t run_length = n;

	if (dist == GEN_SAWTOOTH)
		run_length = n / N_TEETH + (n % N_TEETH != 0);
	else if (dist == GEN_ORGAN_PIPE)
		run_length = n / 2 + n % 2;
	return run_length ? run_length : 1;
}

/* Random word of index i; `which` tells independent words of one index apart. */
static inline uint64_t random64(const struct gen *gen, uint64_t i, uint64_t stream)
{
	/* The golden ratio spreads neighbouring indices over all bits, as SplitMix64 does. */
	return digest_mix64((gen->stream ^ stream * UINT64_C(0xd1342543de82ef95)) +
			    i * DIGEST_SEED);
}

/* The lower half is made only for keys that reach down to it: it is half of the work. */
static inline uint128_t random128(const struct gen *gen, uint64_t i, uint64_t stream)
{
	const uint64_t low = gen->is_wide ? random64(gen, i, stream + 1) : 0;

	return (uint128_t)random64(gen, i, stream) << 64 | low;
}

/* A number below n from the upper half of a random word. */
static inline uint64_t below(uint64_t random, uint64_t n)
{
	return (random >> 32) * n >> 32;
}

/* The words that an index may ask for; the 128-bit ones take two. */
enum { WORD_KEY = 0, WORD_CHOICE = 2, WORD_VALUE = 4 };

/* The j-th value of a small set of values, the same wherever it occurs. */
static inline uint128_t value_of(const struct gen *gen, uint64_t j)
{
	return random128(gen, j, WORD_VALUE);
}

/*
 * Point j of an ascending stretch: j steps, and part of one more at random, so that no two
 * neighbours differ by the same amount and the order still holds.
 */
static inline uint128_t ascending(const struct gen *gen, uint64_t j, uint64_t i)
{
	return j * gen->step + (gen->step >> 64) * random64(gen, i, WORD_KEY);
}

/* Zipf in steps: every octave of ranks [2^e, 2^(e+1)) is equally likely, a rank within it too. */
static inline uint128_t zipf(const struct gen *gen, uint64_t i)
{
	const uint64_t word = random64(gen, i, WORD_CHOICE);
	const uint64_t octave = UINT64_C(1) << below(word, ZIPF_OCTAVES);

	return value_of(gen, octave | (word & (octave - 1)));
}

/* Clusters as wide as the fourth root of the range. */
static inline uint128_t clustered(const struct gen *gen, uint64_t i)
{
	const unsigned n_key_bits = (unsigned)gen->leading_key.record_nbytes * 8;
	const uint128_t within = (uint128_t)random64(gen, i, WORD_KEY) << 64 >> n_key_bits * 3 / 4;

	return value_of(gen, below(random64(gen, i, WORD_CHOICE), N_CLUSTERS)) + within;
}

/* The bits of a special value, in the low bits of the result; `half` is the sign bit. */
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
	case 2: /* a NaN of any payload; in other types, any large value */
		return sign | infinity | random128(gen, i, WORD_KEY) >> (128 - n_key_bits);
	default:
		return sign | (word >> 1 & 1);
	}
}

/* A special value as a fraction of the range, like all others. */
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

/* Codes in 128-bit fractions, for a batch; the choice of distribution is outside of the loops. */
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

/* Batches that stay in the first-level cache between the two steps. */
enum { BATCH_RECORDS = 256 };

#define NARROW(type)                                                                               \
	for (uint64_t j = 0; j < n; j++)                                                           \
		((type *)elements)[j] = (type)(fractions[j] >> shift);                             \
	break

/* The upper bits of the fractions are the codes. */
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
	key_decode_batch(layout, elements, n, false, records, &unused);
}

#undef NARROW

/* As programs write them: 0 or 1. The order stays. */
static void normalise_bools(const struct layout *layout, uint64_t n, unsigned char *records)
{
	for (uint64_t i = 0; i < n; i++)
		records[i * layout->record_nbytes + layout->key.offset] >>= 7;
}

static bool is_plain(const struct gen *gen)
{
	return gen->is_encoded_key && gen->prefix_nbytes == 0;
}

void gen_fill(const struct gen *gen, uint64_t first, uint64_t n, void *records)
{
	uint128_t fractions[BATCH_RECORDS];
	unsigned char *output = records;

	while (n) {
		const uint64_t n_batch = n < BATCH_RECORDS ? n : BATCH_RECORDS;

		fill_fractions(gen, first, n_batch, fractions);
		if (is_plain(gen))
			store_plain(&gen->layout, fractions, n_batch, output);
		else
			gen_record_store(gen, first, fractions, n_batch, output);
		if (gen->layout.key.kind == KEY_BOOL)
			normalise_bools(&gen->layout, n_batch, output);
		first += n_batch;
		n -= n_batch;
		output += n_batch * gen->layout.record_nbytes;
	}
}

static void fill_data_set(const struct data_set *data_set, uint64_t first, uint64_t n,
			  void *records)
{
	gen_fill((const struct gen *)data_set, first, n, records);
}

/*
 * Keys of more than 16 bytes are bytes, of which the first 16 sort in the same way; of a complex
 * number the real part weighs most.
 */
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
	/* Records of several keys are made key by key, whatever they are sorted as. */
	const bool is_encoded_key = layout_is_key_only(layout) &&
				    layout->key.nbytes == layout->record_nbytes;

	*ret_gen = (struct gen){
		.set = { .record_nbytes = layout->record_nbytes,
			 .n_records = n_records,
			 .fill = fill_data_set },
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

void gen_set_prefix(struct gen *gen, uint32_t prefix_nbytes)
{
	gen->prefix_nbytes = prefix_nbytes;
}
