/*
 * check_cuda.c - the CUDA back end's operations, on little data
 *
 * Like tests/backend/check_backend.c, with so little data that emulated kernels and
 * compute-sanitizer take seconds. test_sort_kernels.c has its sorts and merges of keys.
 */
#include <stdio.h>

#include "tests/backend/check.h"
#include "tests/support/race.h"
#include "tools/gen/gen.h"

struct record_set {
	struct record_layout layout;
	enum record_dist dist;
	uint64_t n;
	bool for_races; /* together, these sets cover all kernels */
};

/* clang-format off */
static const struct record_set record_sets[] = {
	/* Items of each alignment, elements of 8 and 16 bytes. */
	{ { 100, { "0:b10" }, 0 }, RECORDS_RANDOM, 150, false },
	{ { 13, { "0:b11" }, 0 }, RECORDS_BITS, 300, false },
	{ { 2, { "1:i8" }, 0 }, RECORDS_RANDOM, 700, false },
	{ { 16, { "8:f64:r" }, 0 }, RECORDS_RANDOM, 200, false },
	{ { 12, { "3:i32be:r" }, 0 }, RECORDS_BITS, 200, true },
	{ { 5, { "1:b3" }, 0 }, RECORDS_BITS, 250, false },
	/* Items from this length on are hashed by another method. */
	{ { 17, { "2:u32" }, 0 }, RECORDS_RANDOM, 60, false },
	/* Ties, and keys with long common prefixes. */
	{ { 70, { "33:b17" }, 0 }, RECORDS_BITS, 100, false },
	{ { 64, { "0:b64" }, 0 }, RECORDS_NEARLY_EQUAL, 90, true },
	{ { 100, { "0:b100:r" }, 0 }, RECORDS_TWO, 200, false },
	{ { 24, { "4:f32be:r", "16:f64", "0:b20" }, 0 }, RECORDS_EQUAL, 80, false },
	/* Items that are not staged in shared memory. */
	{ { 1000, { "900:b20", "0:u32" }, 0 }, RECORDS_NEARLY_EQUAL, 40, true },
	{ { 1040, { "0:b1000" }, 0 }, RECORDS_TWO, 20, false },
	/* Equal numbers with different bits, and NaN. */
	{ { 12, { "5:f32be:n:r" }, 0 }, RECORDS_EXTREME, 200, false },
	{ { 15, { "1:t64be:r" }, 0 }, RECORDS_BITS, 200, false },
	{ { 20, { "3:c64:n:r", "12:t64" }, 0 }, RECORDS_EXTREME, 100, false },
	{ { 18, { "2:c128be:n" }, RECORDS_KEYS_ONLY }, RECORDS_EXTREME, 100, false },
	/* Items that differ from the record. */
	{ { 24, { "0:u32be" }, RECORDS_COUNT }, RECORDS_BITS, 150, true },
	{ { 40, { "30:i64", "2:f32:r" }, RECORDS_COUNT | RECORDS_KEYS_ONLY },
	  RECORDS_TWO, 90, false },
	{ { 9, { "0:b9" }, RECORDS_INDEX }, RECORDS_BITS, 150, false },
	/* The last of equal items is kept. */
	{ { 24, { "0:u32be" }, RECORDS_COUNT | RECORDS_KEEP_LAST }, RECORDS_BITS, 150, true },
	{ { 13, { "0:b11" }, RECORDS_KEEP_LAST }, RECORDS_BITS, 1300, false },
	{ { 70, { "33:b17" }, RECORDS_KEEP_LAST }, RECORDS_BITS, 100, false },
	{ { 1040, { "0:b1000" }, RECORDS_KEEP_LAST }, RECORDS_TWO, 20, false },
	{ { 9, { "0:b3" }, RECORDS_INDEX | RECORDS_KEEP_LAST }, RECORDS_BITS, 1100, false },
	{ { 5, { "0:b4" }, 0 }, RECORDS_SORTED, 0, false },
	{ { 5, { "0:b4" }, 0 }, RECORDS_SORTED, 1, false },
};
/* clang-format on */

/* Key-only records: each size, both byte orders, signed and float; several keys. */
static const char *const key_types[] = {
	"u32",
	"u64be",
	"b10",
	"u8",
	"i16be",
	"b3",
	"f32be",
	"b5",
	"b6",
	"b7",
	"i64",
	"f64",
	"b9",
	"b11",
	"b13",
	"b15",
	"b16",
	"i128be",
	"u128",
	"f64be",
	"f16",
	"u24",
	"i56be",
	"i72",
	"t64be",
	"f64:n",
	"f16:n",
	"2:u16 0:u16",
	"0:u32 4:u32",
	"0:f16 2:bf16be:r",
	"4:i32be:r 0:f32",
	"3:u32 0:u24",
	"8:u64 0:i64:r",
	"0:f64:r 8:f64be",
	"5:i72be 14:u16 0:u40:r",
};

enum { N_KEY_TYPES = sizeof key_types / sizeof key_types[0], N_TYPES_FOR_RACES = 3 };

/* At the limits of blocks of threads, and with several blocks. */
static const uint64_t key_lengths[] = { 0, 1, 7, 127, 128, 129, 700 };

static const struct key_check {
	const char *operation;
	void (*check)(struct check *check);
} key_checks[] = {
	{ "encode", check_encode }, { "encode in place", check_encode_in_place },
	{ "decode", check_decode }, { "decode in place", check_decode_in_place },
	{ "unique", check_unique }, { "sample", check_sample },
	{ "cut", check_cut },
};

/* Blocks that shrink, and blocks that do not. */
static const struct key_set {
	const char *type;
	enum gen_dist dist;
	uint64_t n;
} packed_sets[] = {
	{ "u32", GEN_RANDOM, 700 },  { "u64", GEN_HUNDRED_KEYS, 1100 }, { "f64", GEN_RANDOM, 40 },
	{ "u128", GEN_RANDOM, 600 }, { "u32", GEN_EQUAL, 0 },
};

static void check_record_sets(struct check *check)
{
	for (unsigned i = 0; i < sizeof record_sets / sizeof record_sets[0]; i++) {
		const struct record_set *set = &record_sets[i];
		struct record_data data;

		if (FOR_RACES_ONLY && !set->for_races)
			continue;
		record_data_make(&set->layout, set->dist, set->n, &data);
		check->records = &data;
		check_records(check);
		record_data_free(&data);
	}
	check->records = NULL;
}

static void check_keys(struct check *check, const struct key_set *set, bool descending,
		       const struct key_check *checks, size_t n_checks)
{
	struct data data;

	data_make(check->reference, set->type, descending, set->n, set->dist, &data);
	check->data = &data;
	for (size_t i = 0; i < n_checks; i++) {
		check->operation = checks[i].operation;
		checks[i].check(check);
	}
	data_free(&data);
	check->data = NULL;
}

static void check_key_types(struct check *check)
{
	static const enum gen_dist dists[] = { GEN_RANDOM, GEN_HUNDRED_KEYS, GEN_EQUAL };
	const unsigned n_types = FOR_RACES_ONLY ? N_TYPES_FOR_RACES : N_KEY_TYPES;

	for (unsigned type = 0; type < n_types; type++)
		for (unsigned i = 0; i < sizeof key_lengths / sizeof key_lengths[0]; i++) {
			const struct key_set set = { key_types[type], dists[(type + i) % 3],
						     key_lengths[i] };

			check_keys(check, &set, i % 2, key_checks,
				   sizeof key_checks / sizeof key_checks[0]);
		}
}

static void check_packed_sets(struct check *check)
{
	static const struct key_check packing = { "pack and unpack", check_pack_and_unpack };

	for (unsigned i = 0; i < sizeof packed_sets / sizeof packed_sets[0]; i++)
		check_keys(check, &packed_sets[i], false, &packing, 1);
}

/* More tiles than blocks in the emulated grid. Records as wide as elements, and narrower ones. */
static void check_many_tiles(struct check *check)
{
	check_keys(check, &(struct key_set){ "u32", GEN_RANDOM, 2500 }, false, key_checks,
		   sizeof key_checks / sizeof key_checks[0]);
	check_keys(check, &(struct key_set){ "b10", GEN_RANDOM, 2500 }, false, key_checks,
		   sizeof key_checks / sizeof key_checks[0]);
}

/* More keys than fit in the buffer of results. */
static void check_large_result(struct check *check)
{
	static const struct key_check sample = { "sample", check_sample };

	check_keys(check, &(struct key_set){ "u64", GEN_RANDOM, 6000 }, false, &sample, 1);
}

int main(void)
{
	struct check check = { .reference = &reference_plain };
	const char *why;

	if (backend_cuda.probe(&why) < 0) {
		printf("skipped: no device: %s\n", why);
		return 77;
	}
	subject_must(subject_open(&backend_cuda, 1, &check.subject), "open");
	check_record_sets(&check);
	check_key_types(&check);
	check_packed_sets(&check);
	check_many_tiles(&check);
	check_large_result(&check);
	array_free(&check.subject, &check.in);
	array_free(&check.subject, &check.out);
	array_free(&check.subject, &check.scratch);
	subject_close(&check.subject);
	printf("%lu cases, %lu failed\n", (unsigned long)check.n_cases,
	       (unsigned long)check.n_failures);
	return check.n_failures ? 1 : 0;
}
