/*
 * check_cuda.c - the CUDA back end's operations on records and packed keys, on little data
 *
 * Like tests/backend/check_backend.c, with so little data that emulated kernels and
 * compute-sanitizer take seconds. Each data set takes one path through the code.
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

/* Key-only records: blocks that shrink, and blocks that do not. */
static const struct key_set {
	const char *type;
	enum gen_dist dist;
	uint64_t n;
} key_sets[] = {
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

static void check_key_sets(struct check *check)
{
	for (unsigned i = 0; i < sizeof key_sets / sizeof key_sets[0]; i++) {
		const struct key_set *set = &key_sets[i];
		struct data data;

		data_make(check->reference, set->type, false, set->n, set->dist, &data);
		check->data = &data;
		check->operation = "pack";
		check_pack(check);
		check->operation = "unpack";
		check_unpack(check);
		data_free(&data);
	}
	check->data = NULL;
}

/* More keys than fit in the buffer of results. */
static void check_large_result(struct check *check)
{
	struct data data;

	data_make(check->reference, "u64", false, 6000, GEN_RANDOM, &data);
	check->data = &data;
	check->operation = "sample";
	check_sample(check);
	data_free(&data);
	check->data = NULL;
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
	check_key_sets(&check);
	check_large_result(&check);
	array_free(&check.subject, &check.in);
	array_free(&check.subject, &check.out);
	array_free(&check.subject, &check.scratch);
	subject_close(&check.subject);
	printf("%lu cases, %lu failed\n", (unsigned long)check.n_cases,
	       (unsigned long)check.n_failures);
	return check.n_failures ? 1 : 0;
}
