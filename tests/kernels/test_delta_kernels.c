/*
 * test_delta_kernels.c - keys packed on the device are, byte for byte, those of the CPU
 *
 * Packed bytes are compared with delta_encode(), and unpacked keys with delta_decode(), also for
 * random bytes. Buffers have exactly the length that the interface requires.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "src/record/delta_pack.h"
#include "src/record/layout.h"
#include "tests/kernels/device.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

enum { KEYS_ALL_EQUAL, KEYS_CLOSE, KEYS_ANY_WIDTH, KEYS_MIXED, KEYS_UNSORTED, N_KINDS };

static uint64_t random_state = 1;

static uint64_t random64(void)
{
	return digest_mix64(random_state++);
}

/* Return a random key of at most n_bits. */
static encoded_key_t random_bits(uint32_t n_bits)
{
	const encoded_key_t bits = (encoded_key_t)random64() << 64 | random64();

	return n_bits ? bits >> (128 - n_bits) : 0;
}

static encoded_key_t draw_key(int kind, encoded_key_t last, uint64_t i, uint32_t nbytes)
{
	switch (kind) {
	case KEYS_ALL_EQUAL:
		return 42;
	case KEYS_CLOSE:
		return last + random64() % 1000;
	case KEYS_ANY_WIDTH:
		return last + random_bits((uint32_t)(i / 256 % (8 * nbytes + 1)));
	case KEYS_MIXED: /* some blocks shrink, others do not */
		return i / 1024 % 2 ? random_bits(8 * nbytes) : last + 3;
	default:
		return random_bits(8 * nbytes);
	}
}

/* Make n keys. The caller frees them. */
static unsigned char *make_keys(int kind, uint64_t n, uint32_t nbytes)
{
	unsigned char *keys = malloc(n * nbytes + 1);
	encoded_key_t code = 0;

	assert_non_null(keys);
	for (uint64_t i = 0; i < n; i++) {
		code = draw_key(kind, code, i, nbytes);
		memcpy(keys + i * nbytes, &code, nbytes);
	}
	return keys;
}

/* Keys, and their blocks of block_n as packed by the CPU. */
struct packed {
	uint64_t n;
	uint32_t nbytes, block_n, n_blocks;
	unsigned char *keys, *bytes;
	size_t all_nbytes; /* of the bytes */
	uint32_t *block_nbytes;
};

static uint32_t block_length(const struct packed *packed, uint32_t block)
{
	const uint64_t rest = packed->n - (uint64_t)block * packed->block_n;

	return rest < packed->block_n ? (uint32_t)rest : packed->block_n;
}

static void packed_make(int kind, uint64_t n, uint32_t nbytes, uint32_t block_n,
			struct packed *ret_packed)
{
	struct packed *packed = ret_packed;

	*packed = (struct packed){ .n = n, .nbytes = nbytes, .block_n = block_n };
	packed->n_blocks = (uint32_t)((n + block_n - 1) / block_n);
	packed->keys = make_keys(kind, n, nbytes);
	packed->bytes = malloc(n * nbytes + 1);
	packed->block_nbytes = malloc((packed->n_blocks + 1) * sizeof *packed->block_nbytes);
	assert_true(packed->bytes && packed->block_nbytes);
	for (uint32_t i = 0; i < packed->n_blocks; i++) {
		const void *keys = packed->keys + (size_t)i * block_n * nbytes;
		const size_t items_nbytes = (size_t)block_length(packed, i) * nbytes;
		unsigned char *to = packed->bytes + packed->all_nbytes;
		size_t stored =
			delta_encode(keys, block_length(packed, i), nbytes, to, items_nbytes - 1);

		if (stored == 0) {
			memcpy(to, keys, items_nbytes);
			stored = items_nbytes;
		}
		packed->block_nbytes[i] = (uint32_t)stored;
		packed->all_nbytes += stored;
	}
}

static void packed_free(struct packed *packed)
{
	free(packed->keys);
	free(packed->bytes);
	free(packed->block_nbytes);
}

static void assert_is_packed(const struct packed *packed)
{
	const size_t codes_nbytes = packed->n * packed->nbytes;
	const size_t sizes_nbytes = packed->n_blocks * sizeof(uint32_t);
	const size_t scratch_nbytes = kernel_delta_pack_scratch_nbytes(packed->n, packed->block_n);
	struct delta_pack_task task = {
		.elements = kernel_memory_alloc(codes_nbytes),
		.n = packed->n,
		.element_nbytes = packed->nbytes,
		.block_n = packed->block_n,
		.packed = kernel_memory_alloc(codes_nbytes),
		.packed_nbytes = kernel_memory_alloc(sizes_nbytes),
		.scratch = kernel_memory_alloc((scratch_nbytes + 15) / 16 * 16),
	};
	unsigned char *actual = malloc(codes_nbytes + 1);
	uint32_t *sizes = malloc(sizes_nbytes + 1);

	kernel_memory_write((void *)task.elements, packed->keys, codes_nbytes);
	assert_int_equal(launch_delta_pack(&task, NULL), 0);
	kernel_memory_read(actual, task.packed, codes_nbytes);
	kernel_memory_read(sizes, task.packed_nbytes, sizes_nbytes);
	for (uint32_t i = 0; i < packed->n_blocks; i++)
		if (sizes[i] != packed->block_nbytes[i])
			fail_msg("block %u of %u: %u bytes, not %u", i, packed->n_blocks, sizes[i],
				 packed->block_nbytes[i]);
	if (memcmp(actual, packed->bytes, packed->all_nbytes) != 0)
		fail_msg("%llu codes of %u bytes in blocks of %u: other bytes",
			 (unsigned long long)packed->n, packed->nbytes, packed->block_n);
	for (size_t i = packed->all_nbytes; i < codes_nbytes; i++)
		assert_int_equal(actual[i], 0xa5);
	kernel_memory_free((void *)task.elements, codes_nbytes);
	kernel_memory_free(task.packed, codes_nbytes);
	kernel_memory_free(task.packed_nbytes, sizes_nbytes);
	kernel_memory_free(task.scratch, (scratch_nbytes + 15) / 16 * 16);
	free(actual);
	free(sizes);
}

/* Unpack on the device. Returns the number of the damaged block. */
static uint32_t unpack(const struct kernel_packed_block *blocks, uint32_t n_blocks, uint32_t nbytes)
{
	const size_t tables_nbytes = kernel_delta_unpack_nbytes(n_blocks);
	struct delta_unpack_task task = {
		.blocks = blocks,
		.n_blocks = n_blocks,
		.element_nbytes = nbytes,
		.damaged = kernel_memory_alloc(sizeof *task.damaged),
		.tables = kernel_memory_alloc(tables_nbytes),
	};
	uint32_t damaged;

	assert_int_equal(launch_delta_unpack(&task, NULL), 0);
	kernel_memory_read(&damaged, task.damaged, sizeof damaged);
	kernel_memory_free(task.damaged, sizeof *task.damaged);
	kernel_memory_free(task.tables, tables_nbytes);
	return damaged;
}

/* Give each block its own memory, so that reading too far is detected. */
static void assert_comes_back(const struct packed *packed)
{
	struct kernel_packed_block *blocks = malloc((packed->n_blocks + 1) * sizeof *blocks);
	const size_t codes_nbytes = packed->n * packed->nbytes;
	unsigned char *keys = kernel_memory_alloc(codes_nbytes), *actual = malloc(codes_nbytes + 1);
	const unsigned char *bytes = packed->bytes;

	for (uint32_t i = 0; i < packed->n_blocks; i++) {
		const uint32_t nbytes = packed->block_nbytes[i];

		blocks[i] = (struct kernel_packed_block){
			.packed = kernel_memory_alloc(nbytes),
			.elements = keys + (size_t)i * packed->block_n * packed->nbytes,
			.packed_nbytes = nbytes,
			.n = block_length(packed, i),
		};
		kernel_memory_write((void *)blocks[i].packed, bytes, nbytes);
		bytes += nbytes;
	}
	assert_int_equal(unpack(blocks, packed->n_blocks, packed->nbytes), UINT32_MAX);
	kernel_memory_read(actual, keys, codes_nbytes);
	assert_memory_equal(actual, packed->keys, codes_nbytes);
	for (uint32_t i = 0; i < packed->n_blocks; i++)
		kernel_memory_free((void *)blocks[i].packed, blocks[i].packed_nbytes);
	kernel_memory_free(keys, codes_nbytes);
	free(blocks);
	free(actual);
}

static void check(int kind, uint64_t n, uint32_t nbytes, uint32_t block_n)
{
	struct packed packed;

	packed_make(kind, n, nbytes, block_n, &packed);
	assert_is_packed(&packed);
	assert_comes_back(&packed);
	packed_free(&packed);
}

#define FOR_EACH_SIZE(nbytes) for (uint32_t nbytes = 4; nbytes <= 16; nbytes *= 2)
#define FOR_EACH_KIND(kind) for (int kind = 0; kind < N_KINDS; kind++)

/* Lengths at the limits of groups, miniblocks and warps. */
TEST(blocks_of_every_length_are_packed_as_on_the_cpu)
{
	static const uint32_t lengths[] = {
		1, 7, 8, 9, 31, 255, 256, 257, 511, 512, 513, 777, 1030
	};

	FOR_EACH_SIZE(nbytes)
	FOR_EACH_KIND(kind)
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		check(kind, lengths[i], nbytes, 1030);
}

TEST(the_last_block_may_be_shorter)
{
	static const uint32_t block_lengths[] = { 1, 8, 256, 300, 1024 };

	FOR_EACH_SIZE(nbytes)
	FOR_EACH_KIND(kind)
	for (size_t i = 0; i < sizeof block_lengths / sizeof block_lengths[0];
	     i += FOR_RACES_ONLY ? 3 : 1) {
		const uint32_t block_n = block_lengths[i];

		check(kind, 3 * block_n, nbytes, block_n);
		check(kind, 3 * block_n + 1, nbytes, block_n);
		check(kind, 4 * block_n - 1, nbytes, block_n);
	}
}

/* More blocks than one launch has room for, and than one warp places. */
TEST(there_may_be_many_blocks)
{
	check(KEYS_CLOSE, 64 * 200 + 5, 4, 64);
}

TEST(every_width_is_packed_as_on_the_cpu)
{
	FOR_EACH_SIZE(nbytes)
	check(KEYS_ANY_WIDTH, 256 * (8 * nbytes + 1), nbytes, 256 * 50);
}

TEST(nothing_is_packed_to_nothing)
{
	const struct delta_pack_task task = { .element_nbytes = 4, .block_n = 256 };

	assert_int_equal(launch_delta_pack(&task, NULL), 0);
	assert_int_equal(unpack(NULL, 0, 4), UINT32_MAX);
}

TEST(long_sequences_are_packed_as_on_the_cpu)
{
	if (!device_is_fast())
		skip();
	FOR_EACH_SIZE(nbytes)
	FOR_EACH_KIND(kind)
	{
		check(kind, 4000037, nbytes, (1 << 20) / nbytes);
		check(kind, 1000003, nbytes, 4096 / nbytes);
	}
}

/* Decode on the CPU and on the device, and check that both agree, for any bytes. */
static void check_bytes(const unsigned char *bytes, uint32_t packed_nbytes, uint32_t n,
			uint32_t nbytes)
{
	unsigned char *expected = malloc(n * nbytes), *actual = malloc(n * nbytes);
	void *packed = kernel_memory_alloc(packed_nbytes), *keys = kernel_memory_alloc(n * nbytes);
	const struct kernel_packed_block block = { packed, keys, packed_nbytes, n };
	const int r = delta_decode(bytes, packed_nbytes, expected, n, nbytes);

	kernel_memory_write(packed, bytes, packed_nbytes);
	assert_int_equal(unpack(&block, 1, nbytes), r == 0 ? UINT32_MAX : 0);
	kernel_memory_read(actual, keys, n * nbytes);
	if (r == 0)
		assert_memory_equal(actual, expected, n * nbytes);
	kernel_memory_free(packed, packed_nbytes);
	kernel_memory_free(keys, n * nbytes);
	free(expected);
	free(actual);
}

TEST(garbage_is_refused_or_decoded_as_on_the_cpu)
{
	for (unsigned round = 0; round < 200; round++) {
		const uint32_t nbytes = 4u << random64() % 3, n = 1 + (uint32_t)(random64() % 700);
		const uint32_t packed_nbytes = (uint32_t)(random64() % (n * nbytes)) / 16 * 16;
		unsigned char *bytes = malloc(packed_nbytes + 1);

		for (uint32_t i = 0; i < packed_nbytes; i++)
			bytes[i] = (unsigned char)(random64() % 4 ? random64() : 0);
		check_bytes(bytes, packed_nbytes, n, nbytes);
		free(bytes);
	}
}

/* Change a byte or truncate: more likely to be accepted than random bytes. */
TEST(changed_blocks_are_refused_or_decoded_as_on_the_cpu)
{
	for (unsigned round = 0; round < 200; round++) {
		const uint32_t nbytes = 4u << round % 3, n = 100 + (uint32_t)(random64() % 700);
		struct packed packed;
		uint32_t cut = 0;

		packed_make(KEYS_CLOSE, n, nbytes, n, &packed);
		assert_true(packed.block_nbytes[0] < n * nbytes);
		packed.bytes[random64() % packed.all_nbytes] = (unsigned char)random64();
		if (round % 4 == 0)
			cut = (uint32_t)(random64() % packed.block_nbytes[0]) / 32 * 32;
		check_bytes(packed.bytes, packed.block_nbytes[0] - cut, n, nbytes);
		packed_free(&packed);
	}
}

/* Two miniblocks with differences of 56 bits. 57 and 55 bits would have the same length. */
TEST(impossible_widths_are_refused)
{
	enum { N = 2 * 256 };
	uint64_t keys[N];
	unsigned char bytes[sizeof keys];
	uint32_t packed_nbytes;

	for (uint64_t i = 0; i < N; i++)
		keys[i] = i << 55;
	packed_nbytes = (uint32_t)delta_encode(keys, N, sizeof *keys, bytes, sizeof bytes);
	assert_int_equal(bytes[2 * sizeof *keys], 56);
	bytes[2 * sizeof *keys]++;
	bytes[2 * sizeof *keys + 1]--;
	assert_int_equal(delta_decode(bytes, packed_nbytes, keys, N, sizeof *keys), -EBADMSG);
	check_bytes(bytes, packed_nbytes, N, sizeof *keys);
}

/* The other blocks are unpacked. */
TEST(the_first_damaged_block_is_reported)
{
	enum { N_BLOCKS = 9, BLOCK_N = 300 };
	struct kernel_packed_block blocks[N_BLOCKS];
	struct packed packed;
	unsigned char *bytes, *keys, actual[BLOCK_N * 8];

	packed_make(KEYS_CLOSE, BLOCK_N, 8, BLOCK_N, &packed);
	bytes = kernel_memory_alloc(packed.all_nbytes);
	keys = kernel_memory_alloc(N_BLOCKS * sizeof actual);
	kernel_memory_write(bytes, packed.bytes, packed.all_nbytes);
	for (uint32_t i = 0; i < N_BLOCKS; i++)
		blocks[i] = (struct kernel_packed_block){ bytes, keys + i * sizeof actual,
							  (uint32_t)packed.all_nbytes, BLOCK_N };
	blocks[7].packed_nbytes -= 32;
	blocks[4].packed_nbytes = 0;
	blocks[5].n--;
	blocks[5].packed_nbytes += 32;
	assert_int_equal(unpack(blocks, N_BLOCKS, 8), 4);
	kernel_memory_read(actual, keys + 8 * sizeof actual, sizeof actual);
	assert_memory_equal(actual, packed.keys, sizeof actual);
	kernel_memory_free(bytes, packed.all_nbytes);
	kernel_memory_free(keys, N_BLOCKS * sizeof actual);
	packed_free(&packed);
}

/* --- A device that cannot clear memory --- */

static bool clearing_fails;

/* The prototype of the runtime, with other type names. */
int __real_cudaMemsetAsync(void *to, int byte, size_t nbytes, void *stream);
int __wrap_cudaMemsetAsync(void *to, int byte, size_t nbytes, void *stream);
int __wrap_cudaMemsetAsync(void *to, int byte, size_t nbytes, void *stream)
{
	return clearing_fails ? 1 : __real_cudaMemsetAsync(to, byte, nbytes, stream);
}

/* If the error were lost, memory that was never written would be taken for keys. */
TEST(failed_submit_returns_error)
{
	const struct kernel_packed_block block = { .n = 1 };
	const struct delta_pack_task pack = { .n = 1, .element_nbytes = 8, .block_n = 1 };
	const struct delta_unpack_task unpack = { .blocks = &block,
						  .n_blocks = 1,
						  .element_nbytes = 8 };

	clearing_fails = true;
	assert_int_equal(launch_delta_pack(&pack, NULL), 1);
	assert_int_equal(launch_delta_unpack(&unpack, NULL), 1);
	clearing_fails = false;
}
