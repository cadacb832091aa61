/*
 * test_gather_kernels.c - gathered items against copies made one by one
 *
 * Items of each length up to 512 bytes and some longer ones, in one to three slices at any address,
 * are gathered to any address, with guard bytes around. The rest of a case (key, ties, order, kept
 * part) follows from its number, which a failure prints.
 */
#include <stdlib.h>

#include "kernels/kernels.h"
#include "src/record/digest.h"
#include "tests/kernels/device.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

enum { SLICES_MAX = 3, REDZONE_NBYTES = 32, REDZONE = 0xa5 /* device_alloc() */, UNIT = 16 };

/* One gather. Pointers are to host memory, except those of `task`. */
struct gather_case {
	uint64_t seed;
	uint32_t nbytes, grain; /* of an item; addresses and sizes are multiples of it */
	uint64_t n;
	struct key_field key;
	uint32_t k;
	struct kernel_slice slices[SLICES_MAX]; /* on the device */
	void *buffers[SLICES_MAX];              /* the memory of the slices */
	size_t buffer_nbytes[SLICES_MAX];
	unsigned char *items; /* all slices, concatenated */
	uint32_t *order;      /* numbers of items */
	void *tables, *elements;
	size_t tables_nbytes, elements_nbytes, out_nbytes, out_at;
	unsigned char *out;
	struct gather_task task;
};

static uint64_t draw(struct gather_case *it, uint64_t below)
{
	return digest_mix64(++it->seed) % below;
}

static const unsigned char *item_of(const struct gather_case *it, uint64_t i)
{
	return it->items + (uint64_t)it->order[i] * it->nbytes;
}

static const unsigned char *key_of(const struct gather_case *it, uint32_t number)
{
	return it->items + (uint64_t)number * it->nbytes + it->key.offset;
}

/* Round up to whole units: they are loaded whole, so buffers begin and end at units. */
static size_t full_units(size_t nbytes)
{
	return (nbytes + UNIT - 1) / UNIT * UNIT;
}

/* Bytes have only two values, so that keys often tie and have long common prefixes. */
static void make_items(struct gather_case *it)
{
	const uint64_t n_values = draw(it, 2) ? 256 : 2;
	uint64_t left = it->n, at = 0;

	it->items = malloc(it->n * it->nbytes);
	for (uint64_t i = 0; i < it->n * it->nbytes; i++)
		it->items[i] = (unsigned char)draw(it, n_values);
	it->k = 1 + (uint32_t)draw(it, SLICES_MAX);
	for (uint32_t i = 0; i < it->k; i++) {
		const uint64_t n = i + 1 == it->k ? left : draw(it, left + 1);
		const size_t skew = draw(it, UNIT / it->grain) * it->grain;
		unsigned char *buffer;

		it->buffer_nbytes[i] = full_units(skew + n * it->nbytes);
		it->buffers[i] = buffer = kernel_memory_alloc(it->buffer_nbytes[i]);
		kernel_memory_write(buffer + skew, it->items + at, n * it->nbytes);
		it->slices[i] = (struct kernel_slice){ buffer + skew, n };
		at += n * it->nbytes;
		left -= n;
	}
}

static int compare_numbers(const void *a, const void *b, void *context)
{
	const struct gather_case *it = context;

	return memcmp(key_of(it, *(const uint32_t *)a), key_of(it, *(const uint32_t *)b),
		      it->key.nbytes);
}

/* Make sorted, nearly sorted or random elements of 8 or 16 bytes. Their upper part is not read. */
static void make_elements(struct gather_case *it)
{
	const uint32_t element_nbytes = draw(it, 2) ? 8 : 16;
	const uint64_t n_swaps = draw(it, 3);
	unsigned char *elements;

	it->order = malloc(it->n * sizeof *it->order);
	for (uint64_t i = 0; i < it->n; i++) {
		const uint64_t j = draw(it, i + 1);

		it->order[i] = it->order[j];
		it->order[j] = (uint32_t)i;
	}
	if (n_swaps < 2)
		qsort_r(it->order, it->n, sizeof *it->order, compare_numbers, it);
	for (uint64_t i = 0; i < n_swaps; i++) {
		const uint64_t a = draw(it, it->n), b = draw(it, it->n);
		const uint32_t number = it->order[a];

		it->order[a] = it->order[b];
		it->order[b] = number;
	}
	it->elements_nbytes = it->n * element_nbytes;
	elements = malloc(it->elements_nbytes);
	memset(elements, 0x5a, it->elements_nbytes);
	for (uint64_t i = 0; i < it->n; i++)
		memcpy(elements + i * element_nbytes, &it->order[i], sizeof *it->order);
	it->elements = kernel_memory_alloc(it->elements_nbytes);
	kernel_memory_write(it->elements, elements, it->elements_nbytes);
	it->task.elements = it->elements;
	it->task.element_nbytes = element_nbytes;
	free(elements);
}

/*
 * Choose which part is kept: mostly all of each item; otherwise the first items, or a part of each.
 */
static void choose_what_is_kept(struct gather_case *it)
{
	struct gather_task *task = &it->task;

	task->items.item_nbytes = task->items.body_nbytes = task->out_nbytes = it->nbytes;
	task->limit = draw(it, 2) ? UINT64_MAX : it->n;
	if (draw(it, 6) == 0)
		task->limit = draw(it, it->n);
	if (draw(it, 6) == 0) {
		task->out_offset = (uint32_t)draw(it, it->nbytes);
		task->out_nbytes -= task->out_offset;
		/* After a count, or without a position. */
		task->items.body_offset = it->nbytes > 8 && draw(it, 2) ? 8 : 0;
		task->items.body_nbytes -= task->items.body_offset;
		task->items.body_nbytes -= (uint32_t)draw(it, task->items.body_nbytes);
	}
}

static void make_output(struct gather_case *it)
{
	it->out_at = REDZONE_NBYTES + draw(it, UNIT / it->grain) * it->grain;
	it->out_nbytes = full_units(it->out_at + it->n * it->nbytes + REDZONE_NBYTES);
	it->out = kernel_memory_alloc(it->out_nbytes);
	it->task.out = it->out + it->out_at;
	it->task.result = kernel_memory_alloc(sizeof *it->task.result);
	it->task.first = kernel_memory_alloc(it->nbytes);
	it->task.last = kernel_memory_alloc(it->nbytes);
}

static void open_case(struct gather_case *it, uint64_t seed, uint32_t nbytes, uint64_t n)
{
	*it = (struct gather_case){ .seed = seed << 32, .nbytes = nbytes, .n = n };
	it->grain = nbytes % 4 == 0 && draw(it, 4) ? 4 : 1;
	it->key.nbytes = 1 + (uint32_t)draw(it, nbytes < 20 ? nbytes : 20);
	it->key.offset = (uint32_t)draw(it, nbytes - it->key.nbytes + 1);
	make_items(it);
	make_elements(it);
	choose_what_is_kept(it);
	make_output(it);
	it->task.items.keys = (struct key_fields){ &it->key, 1, it->key.nbytes };
	it->tables_nbytes = kernel_items_nbytes(it->k, 1);
	it->tables = kernel_memory_alloc(it->tables_nbytes);
	it->task.n = n;
	assert_int_equal(launch_prepare_items(&it->task.items, it->slices, it->k, it->tables, NULL),
			 0);
}

static void close_case(struct gather_case *it)
{
	for (uint32_t i = 0; i < it->k; i++)
		kernel_memory_free(it->buffers[i], it->buffer_nbytes[i]);
	kernel_memory_free(it->task.last, it->nbytes);
	kernel_memory_free(it->task.first, it->nbytes);
	kernel_memory_free(it->task.result, sizeof *it->task.result);
	kernel_memory_free(it->out, it->out_nbytes);
	kernel_memory_free(it->tables, it->tables_nbytes);
	kernel_memory_free(it->elements, it->elements_nbytes);
	free(it->order);
	free(it->items);
}

static struct kernel_gather_result expected_gather_result(const struct gather_case *it)
{
	const uint64_t n_kept = it->task.limit < it->n ? it->task.limit : it->n;
	struct kernel_gather_result expected = { .n = n_kept, .n_counted = n_kept };

	for (uint64_t i = 0; i < it->n; i++) {
		struct digest *digest = i < n_kept ? &expected.digest : &expected.dropped;

		digest->sum += digest_record(item_of(it, i) + it->task.items.body_offset,
					     it->task.items.body_nbytes);
		digest->n_records++;
		expected.n_disorders +=
			0 < i && i < n_kept &&
			compare_numbers(&it->order[i - 1], &it->order[i], (void *)it) > 0;
	}
	return expected;
}

/* Compare the whole buffer, including guard bytes. */
static bool is_output_right(const struct gather_case *it, uint64_t n_kept)
{
	const size_t row_nbytes = it->task.out_nbytes;
	unsigned char *expected = malloc(it->out_nbytes), *actual = malloc(it->out_nbytes);
	bool is_right;

	memset(expected, REDZONE, it->out_nbytes);
	for (uint64_t i = 0; i < n_kept; i++)
		memcpy(expected + it->out_at + i * row_nbytes, item_of(it, i) + it->task.out_offset,
		       row_nbytes);
	kernel_memory_read(actual, it->out, it->out_nbytes);
	is_right = memcmp(actual, expected, it->out_nbytes) == 0;
	free(actual);
	free(expected);
	return is_right;
}

/* Return whether item i is at `item` on the device. */
static bool is_item(const struct gather_case *it, uint64_t i, const void *item)
{
	unsigned char *actual = malloc(it->nbytes);
	bool is_same;

	kernel_memory_read(actual, item, it->nbytes);
	is_same = memcmp(actual, item_of(it, i), it->nbytes) == 0;
	free(actual);
	return is_same;
}

static const char *describe_mismatch(const struct gather_case *it)
{
	const struct kernel_gather_result expected = expected_gather_result(it);
	struct kernel_gather_result actual;

	kernel_memory_read(&actual, it->task.result, sizeof actual);
	if (!is_output_right(it, expected.n))
		return "the output";
	if (actual.n != expected.n || actual.n_counted != expected.n_counted)
		return "the number of items";
	if (!digest_equal(actual.digest, expected.digest) ||
	    !digest_equal(actual.dropped, expected.dropped))
		return "a digest";
	if (actual.n_disorders != expected.n_disorders)
		return "the number of disorders";
	if (expected.n > 0 &&
	    (!is_item(it, 0, it->task.first) || !is_item(it, expected.n - 1, it->task.last)))
		return "the first or the last item";
	return NULL;
}

static void check_case(uint64_t seed, uint32_t nbytes, uint64_t n)
{
	struct gather_case it;
	const char *wrong;

	open_case(&it, seed, nbytes, n);
	assert_int_equal(launch_gather(&it.task, NULL), 0);
	wrong = describe_mismatch(&it);
	if (wrong)
		fail_msg("case %llu: %s: %llu items of %u bytes in %u slices",
			 (unsigned long long)seed, wrong, (unsigned long long)n, nbytes, it.k);
	close_case(&it);
}

/* Every 13th length covers each remainder of a power of two. */
enum { STEP = FOR_RACES_ONLY ? 13 : 1 };

TEST(items_of_every_length_are_gathered)
{
	for (uint32_t nbytes = 1; nbytes <= 512; nbytes += STEP)
		check_case(nbytes, nbytes, 1 + digest_mix64(nbytes) % 130);
}

/* Lengths at which another unit, pair of a digest, or lane is needed. */
TEST(short_items_are_gathered_from_and_to_any_address)
{
	const uint64_t n_cases = device_is_fast() ? 4000 : 300;

	for (uint64_t i = 0; i < n_cases; i += STEP)
		check_case(1000 + i, 1 + (uint32_t)(i % 69), 1 + digest_mix64(i) % 100);
}

/* More items than all blocks take that run at the same time. */
TEST(warps_go_on_to_the_items_behind_those_of_others)
{
	static const uint32_t sizes[] = { 16, 7, 101, 600 };
	const size_t n_sizes = FOR_RACES_ONLY ? 1 : sizeof sizes / sizeof sizes[0];
	const uint64_t n = device_is_fast() ? 500000 : 17500;

	for (size_t i = 0; i < n_sizes; i++)
		check_case(10000 + i, sizes[i], n + i);
}

/* Keep one of neighbours with equal keys: the flags, and the result, on the device. */
static void check_heads(uint64_t seed, uint32_t nbytes, bool keep_last)
{
	enum { N = 100, N_WORDS = (N + 31) / 32 };
	uint32_t flags[2 * N_WORDS] = { 0 }, *device_flags = kernel_memory_alloc(sizeof flags);
	uint64_t n_heads = 0, n_disorders = 0, *device_n = kernel_memory_alloc(sizeof n_heads);
	struct kernel_gather_result result;
	struct gather_case it;

	open_case(&it, seed, nbytes, N);
	it.task.limit = UINT64_MAX;
	for (uint64_t i = 0; i < N; i++) {
		const uint64_t neighbour = keep_last ? i + 1 : i - 1;
		const bool is_head = neighbour >= N ||
				     compare_numbers(&it.order[neighbour], &it.order[i], &it) != 0;

		if (i % 32 == 0)
			flags[N_WORDS + i / 32] = (uint32_t)n_heads;
		flags[i / 32] |= (uint32_t)!is_head << i % 32;
		n_heads += is_head;
		n_disorders += i > 0 && compare_numbers(&it.order[i - 1], &it.order[i], &it) > 0;
	}
	kernel_memory_write(device_flags, flags, sizeof flags);
	kernel_memory_write(device_n, &n_heads, sizeof n_heads);
	it.task.heads = (struct kernel_head_flags){ .equal = device_flags,
						    .keep_last = keep_last,
						    .before = device_flags + N_WORDS,
						    .n = device_n };
	assert_int_equal(launch_gather(&it.task, NULL), 0);
	kernel_memory_read(&result, it.task.result, sizeof result);
	if (result.n != n_heads || result.n_disorders != n_disorders)
		fail_msg("case %llu: %llu kept, not %llu; %llu disorders, not %llu",
			 (unsigned long long)seed, (unsigned long long)result.n,
			 (unsigned long long)n_heads, (unsigned long long)result.n_disorders,
			 (unsigned long long)n_disorders);
	close_case(&it);
	kernel_memory_free(device_n, sizeof n_heads);
	kernel_memory_free(device_flags, sizeof flags);
}

/* The disorder may be before a dropped item. */
TEST(disorder_is_counted_whichever_equal_item_is_kept)
{
	static const uint32_t sizes[] = { 2, 16, 101, 600 };

	for (uint64_t i = 0; i < 80; i += STEP)
		check_heads(20000 + i, sizes[i / 2 % 4], i % 2);
}
