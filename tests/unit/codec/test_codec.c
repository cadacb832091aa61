/*
 * test_codec - items survive encoding and decoding, and garbage is rejected
 */
#include "io/codec/codec.h"

#include <errno.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "src/record/key_encoding.h"
#include "src/record/delta_pack.h"
#include "tests/support/guarded.h"
#include "tests/support/unit_test.h"

enum { MAX_N_ITEMS = 3000 };

static uint64_t random_state = 1;

static uint64_t random64(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return random_state ^ random_state >> 29;
}

static uint128_t random_bits_key(uint32_t nbytes)
{
	const uint128_t bits = (uint128_t)random64() << 64 | random64();

	return bits >> (128 - 8 * nbytes);
}

/* --- distributions: the next encoded key after `last` --- */

static uint128_t all_equal(uint128_t last, uint32_t nbytes)
{
	(void)nbytes;
	return last;
}

static uint128_t consecutive(uint128_t last, uint32_t nbytes)
{
	(void)nbytes;
	return last + 1;
}

static uint128_t close_by(uint128_t last, uint32_t nbytes)
{
	(void)nbytes;
	return last + random64() % 1000;
}

/* A run of 2^22 random keys. */
static uint128_t spread(uint128_t last, uint32_t nbytes)
{
	return last + (random_bits_key(nbytes) >> 21);
}

/* Differences of all widths. */
static uint128_t any_width(uint128_t last, uint32_t nbytes)
{
	return last + (random_bits_key(nbytes) >> random64() % (8 * nbytes));
}

static uint128_t rare_jumps(uint128_t last, uint32_t nbytes)
{
	return random64() % 500 ? last : last + (random_bits_key(nbytes) >> 5);
}

static uint128_t not_sorted(uint128_t last, uint32_t nbytes)
{
	(void)last;
	return random_bits_key(nbytes);
}

typedef uint128_t (*next_function)(uint128_t last, uint32_t nbytes);

static const next_function distributions[] = { all_equal, consecutive, close_by,  spread,
					       any_width, rare_jumps,  not_sorted };

enum { N_DISTRIBUTIONS = sizeof distributions / sizeof distributions[0] };

/* n encoded keys in a guarded buffer. */
static void *make_keys(next_function next, size_t n, uint32_t nbytes)
{
	unsigned char *keys = guarded_alloc(n * nbytes);
	uint128_t key = random_bits_key(nbytes);

	for (size_t i = 0; i < n; i++) {
		memcpy(keys + i * nbytes, &key, nbytes);
		key = next(key, nbytes);
	}
	return keys;
}

static const size_t lengths[] = { 1,   2,   7,   8,   9,   31,  255,  256,
				  257, 263, 264, 265, 511, 512, 1000, MAX_N_ITEMS };

/* The maximum encoded size of n keys: all widths full. */
static size_t worst_nbytes(size_t n, uint32_t nbytes)
{
	return (n + 7) / 8 * 8 * nbytes + (n / 256 + 1) * (nbytes + 1) + 64;
}

static struct codec_context *open_context(void)
{
	struct codec_context *context;

	assert_int_equal(codec_context_open(1, &context), 0);
	return context;
}

/* Encode and decode. Returns the stored size. */
static size_t assert_round_trip(const struct codec *codec, const void *keys, size_t n,
				uint32_t nbytes)
{
	struct codec_context *context = open_context();
	const size_t room = worst_nbytes(n, nbytes) + 1024;
	unsigned char *back = guarded_alloc(n * nbytes), *large = guarded_alloc(room), *stored;
	const struct codec_items items = { .items = (void *)keys, .n = n, .item_nbytes = nbytes };
	const struct codec_items items_back = { .items = back, .n = n, .item_nbytes = nbytes };
	ssize_t stored_nbytes = codec->encode(context, &items, large, room);

	assert_true(stored_nbytes > 0);
	stored = guarded_copy(large, (size_t)stored_nbytes);
	assert_int_equal(codec->decode(context, stored, (size_t)stored_nbytes, &items_back), 0);
	assert_memory_equal(back, keys, n * nbytes);
	guarded_free(stored, (size_t)stored_nbytes);
	guarded_free(back, n * nbytes);
	guarded_free(large, room);
	codec_context_close(context);
	return (size_t)stored_nbytes;
}

/* Encode to exactly the memory that is needed, which held other data. */
static void assert_delta_fits(const void *keys, size_t n, uint32_t nbytes)
{
	const size_t room = worst_nbytes(n, nbytes);
	unsigned char *large = calloc(1, room), *exact;
	const size_t stored_nbytes = delta_encode(keys, n, nbytes, large, room);

	assert_true(stored_nbytes > 0);
	exact = guarded_alloc(stored_nbytes);
	assert_int_equal(delta_encode(keys, n, nbytes, exact, stored_nbytes), stored_nbytes);
	assert_memory_equal(exact, large, stored_nbytes);
	guarded_free(exact, stored_nbytes);
	free(large);
}

TEST(encoded_keys_round_trip)
{
	for (uint32_t nbytes = 4; nbytes <= 16; nbytes *= 2)
		for (size_t d = 0; d < N_DISTRIBUTIONS; d++)
			for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
				const size_t n = lengths[i];
				void *keys = make_keys(distributions[d], n, nbytes);

				assert_round_trip(&codecs[CODEC_DELTA], keys, n, nbytes);
				assert_delta_fits(keys, n, nbytes);
				assert_round_trip(&codecs[CODEC_ZSTD], keys, n, nbytes);
				guarded_free(keys, n * nbytes);
			}
}

TEST(records_of_any_size_round_trip)
{
	static const uint32_t sizes[] = { 1, 3, 10, 100, 4096 };

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		unsigned char *records = guarded_alloc((size_t)100 * sizes[i]);

		for (size_t j = 0; j < (size_t)100 * sizes[i]; j++)
			records[j] = (unsigned char)(random64() % 7);
		assert_round_trip(&codecs[CODEC_ZSTD], records, 100, sizes[i]);
		guarded_free(records, (size_t)100 * sizes[i]);
	}
}

/* A difference of each width, alone in its miniblock. */
TEST(every_width_round_trips)
{
	for (uint32_t nbytes = 4; nbytes <= 16; nbytes *= 2)
		for (unsigned width = 0; width < 8 * nbytes; width++) {
			unsigned char *keys = guarded_alloc((size_t)300 * nbytes);
			uint128_t key = 0;

			for (size_t i = 0; i < 300; i++) {
				memcpy(keys + i * nbytes, &key, nbytes);
				key += i % 3 == 0 ? (uint128_t)1 << width : 0;
			}
			assert_round_trip(&codecs[CODEC_DELTA], keys, 300, nbytes);
			guarded_free(keys, (size_t)300 * nbytes);
		}
}

/* The format is fixed: all back ends must write the same bytes. */
TEST(delta_size_matches_its_header)
{
	const uint32_t keys[9] = { 1000, 1001, 1003, 1003, 1003, 1003, 1003, 1004, 1007 };
	/* Differences 0 1 2 0 0 0 0 1, 3: 2 bits each. */
	const unsigned char expected[64] = {
		0xe8, 0x03, 0, 0, 2, [32] = 0x24, 0x40, 0x03, 0x00,
	};
	unsigned char stored[64];

	assert_int_equal(delta_encode(keys, 9, 4, stored, sizeof stored), sizeof stored);
	assert_memory_equal(stored, expected, sizeof expected);
}

/* With too little memory as well as with enough. */
TEST(encoding_stops_at_capacity)
{
	struct codec_context *context = open_context();

	for (uint32_t nbytes = 4; nbytes <= 16; nbytes *= 2) {
		void *keys = make_keys(any_width, 600, nbytes);
		const struct codec_items items = { keys, 600, nbytes };

		for (size_t codec = CODEC_DELTA; codec <= CODEC_ZSTD; codec++)
			for (size_t room = 0; room < 600 * (size_t)nbytes; room += 37) {
				unsigned char *stored = guarded_alloc(room);
				const ssize_t r =
					codecs[codec].encode(context, &items, stored, room);

				assert_in_range(r, 0, room);
				guarded_free(stored, room);
			}
		guarded_free(keys, 600 * (size_t)nbytes);
	}
	codec_context_close(context);
}

TEST(random_keys_shrink_by_their_density)
{
	const size_t n = 1 << 17;
	uint32_t *keys = malloc(n * sizeof *keys);
	unsigned char *stored = malloc(n * sizeof *keys);
	double key = 0;
	size_t nbytes;

	/* A block of a run of 2^24 random u32, 256 apart: the sum of a geometric distribution. */
	for (size_t i = 0; i < n; i++) {
		keys[i] = (uint32_t)key;
		while (random64() % 256)
			key += 1;
		key += 1;
	}
	nbytes = delta_encode(keys, n, 4, stored, n * sizeof *keys);
	assert_true(nbytes > 0 && nbytes <= n * sizeof *keys * 36 / 100);
	free(stored);
	free(keys);
}

/* --- damaged data --- */

/* Decode garbage in guarded buffers: it ends, within them. */
static void decode_guarded(const struct codec *codec, const void *stored, size_t stored_nbytes,
			   size_t n, uint32_t nbytes)
{
	struct codec_context *context = open_context();
	unsigned char *copy = guarded_copy(stored, stored_nbytes);
	unsigned char *back = guarded_alloc(n * nbytes);
	const int r = codec->decode(context, copy, stored_nbytes,
				    &(struct codec_items){ back, n, nbytes });

	assert_true(r == 0 || r == -EBADMSG);
	guarded_free(back, n * nbytes);
	guarded_free(copy, stored_nbytes);
	codec_context_close(context);
}

TEST(garbage_is_refused_or_decoded)
{
	for (unsigned round = 0; round < 3000; round++) {
		const uint32_t nbytes = 4u << random64() % 3;
		const size_t n = 1 + random64() % 700;
		const size_t stored_nbytes = random64() % worst_nbytes(n, nbytes);
		unsigned char *stored = malloc(stored_nbytes + 1);

		for (size_t i = 0; i < stored_nbytes; i++)
			stored[i] = (unsigned char)(random64() >> 40);
		decode_guarded(&codecs[CODEC_DELTA], stored, stored_nbytes, n, nbytes);
		decode_guarded(&codecs[CODEC_ZSTD], stored, stored_nbytes, n, nbytes);
		free(stored);
	}
}

/* Encoded blocks with changed, removed and added bytes: garbage that is closer to valid data. */
TEST(changed_blocks_are_refused_or_decoded)
{
	unsigned char stored[32768];

	for (unsigned round = 0; round < 3000; round++) {
		const uint32_t nbytes = 4u << round % 3;
		const size_t codec = CODEC_DELTA + random64() % 2, n = 1 + random64() % 700;
		void *keys = make_keys(distributions[round % N_DISTRIBUTIONS], n, nbytes);
		struct codec_context *context = open_context();
		const struct codec_items items = { keys, n, nbytes };
		size_t nbytes_stored =
			(size_t)codecs[codec].encode(context, &items, stored, sizeof stored);

		assert_true(nbytes_stored > 0);
		for (unsigned i = 0; i < 3; i++)
			stored[random64() % nbytes_stored] = (unsigned char)random64();
		if (round % 4 == 0)
			nbytes_stored -= random64() % nbytes_stored;
		decode_guarded(&codecs[codec], stored, nbytes_stored, n, nbytes);
		codec_context_close(context);
		guarded_free(keys, n * nbytes);
	}
}

TEST(other_size_is_refused)
{
	struct codec_context *context = open_context();
	void *keys = make_keys(spread, 600, 8);
	const struct codec_items items = { keys, 600, 8 };
	unsigned char stored[6400];

	for (size_t codec = CODEC_DELTA; codec <= CODEC_ZSTD; codec++) {
		const ssize_t nbytes = codecs[codec].encode(context, &items, stored, sizeof stored);

		for (size_t n = 500; n < 700; n++) {
			uint64_t back[700];
			const int r = codecs[codec].decode(context, stored, (size_t)nbytes,
							   &(struct codec_items){ back, n, 8 });

			/* Up to seven additional keys need no additional space. */
			if (n < 600 - 8 || n > 608)
				assert_int_equal(r, -EBADMSG);
		}
		assert_int_equal(codecs[codec].decode(context, stored, (size_t)nbytes - 1, &items),
				 -EBADMSG);
		assert_int_equal(codecs[codec].decode(context, stored, 0, &items), -EBADMSG);
	}
	guarded_free(keys, 600 * 8);
	codec_context_close(context);
}

/* --- libzstd without memory --- */

static bool lacks_memory;

ZSTD_CCtx *__real_ZSTD_createCCtx(void);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void);
ZSTD_CCtx *__wrap_ZSTD_createCCtx(void)
{
	return lacks_memory ? NULL : __real_ZSTD_createCCtx();
}

ZSTD_DCtx *__real_ZSTD_createDCtx(void);
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void);
ZSTD_DCtx *__wrap_ZSTD_createDCtx(void)
{
	return lacks_memory ? NULL : __real_ZSTD_createDCtx();
}

static bool lacks_memory_within;

size_t __real_ZSTD_decompressDCtx(ZSTD_DCtx *context, void *to, size_t capacity, const void *from,
				  size_t nbytes);
size_t __wrap_ZSTD_decompressDCtx(ZSTD_DCtx *context, void *to, size_t capacity, const void *from,
				  size_t nbytes);
size_t __wrap_ZSTD_decompressDCtx(ZSTD_DCtx *context, void *to, size_t capacity, const void *from,
				  size_t nbytes)
{
	return lacks_memory_within ?
		       (size_t)-ZSTD_error_memory_allocation :
		       __real_ZSTD_decompressDCtx(context, to, capacity, from, nbytes);
}

/* Otherwise garbage would be taken for decoded items, and the reason for raw blocks be lost. */
TEST(zstd_without_memory_is_an_error)
{
	const struct codec *zstd = &codecs[CODEC_ZSTD];
	uint64_t sorted[MAX_N_ITEMS] = { 0 };
	unsigned char stored[sizeof sorted];
	const struct codec_items items = { sorted, MAX_N_ITEMS, sizeof sorted[0] };
	struct codec_context *context = open_context();
	ssize_t nbytes;

	lacks_memory = true;
	assert_int_equal(zstd->encode(context, &items, stored, sizeof stored), -ENOMEM);
	lacks_memory = false;
	nbytes = zstd->encode(context, &items, stored, sizeof stored);
	assert_true(nbytes > 0);
	lacks_memory = true;
	assert_int_equal(zstd->decode(context, stored, (size_t)nbytes, &items), -ENOMEM);
	lacks_memory = false;
	lacks_memory_within = true;
	assert_int_equal(zstd->decode(context, stored, (size_t)nbytes, &items), -ENOMEM);
	lacks_memory_within = false;
	assert_int_equal(zstd->decode(context, stored, (size_t)nbytes, &items), 0);
	codec_context_close(context);
}
