/*
 * record_sweeps - layouts, lengths and data that check_backend goes through with records
 */
#include "tests/backend/check.h"

/* clang-format off */
static const struct record_layout layouts[] = {
	/* The sort benchmark's, and its keys alone. */
	{ 100, { "0:b10" }, 0 },
	{ 100, { "0:b10" }, RECORDS_KEYS_ONLY },
	/* Elements of 8 bytes, of 16, with the key's end in each of their bytes. */
	{ 16, { "0:u64" }, 0 },
	{ 16, { "8:f64:r" }, 0 },
	{ 8, { "4:i32" }, 0 },
	{ 5, { "0:b4" }, 0 },
	{ 1, { "0:u8" }, 0 },
	{ 2, { "1:i8" }, 0 },
	{ 13, { "0:b11" }, 0 },
	{ 13, { "0:b12" }, 0 },
	{ 14, { "1:b13:r" }, 0 },
	{ 70, { "33:b16" }, 0 },
	{ 70, { "33:b17" }, 0 },
	{ 24, { "4:f32be:r", "16:f64" }, 0 },
	/* Numbers that are equal and not the same, and what is none. */
	{ 8, { "0:f64:n" }, 0 },
	{ 12, { "5:f32be:n:r" }, 0 },
	{ 20, { "3:c64:n:r", "12:t64" }, 0 },
	{ 18, { "2:c128be:n" }, RECORDS_KEYS_ONLY },
	{ 16, { "1:t64be", "9:f16:n" }, RECORDS_COUNT },
	/* Keys that overlap, and that are one. */
	{ 32, { "0:u64", "4:u64be:r", "0:b32" }, 0 },
	{ 20, { "3:b4", "7:u16be", "9:u8", "10:b9" }, 0 },
	{ 48, { "40:u64be", "0:i128", "32:i16be:r", "0:b40" }, 0 },
	/* Much to be refined. */
	{ 64, { "0:b64" }, 0 },
	{ 200, { "0:b200:r" }, 0 },
	{ 4096, { "0:b3000" }, 0 },
	{ 4096, { "4000:u32" }, 0 },
	{ 65536, { "100:b10" }, 0 },
	/* What is put together. */
	{ 24, { "0:u32" }, RECORDS_COUNT },
	{ 24, { "0:u32be" }, RECORDS_COUNT },
	{ 24, { "5:b15" }, RECORDS_INDEX },
	{ 40, { "30:i64", "2:f32:r" }, RECORDS_COUNT | RECORDS_KEYS_ONLY },
	{ 40, { "30:i64", "2:f32:r" }, RECORDS_COUNT | RECORDS_INDEX },
	{ 9, { "0:b9" }, RECORDS_INDEX },
	/* The last of equal items is kept: short, long and wide items, short and long keys. */
	{ 8, { "4:i32" }, RECORDS_KEEP_LAST },
	{ 70, { "33:b17" }, RECORDS_KEEP_LAST },
	{ 4096, { "0:b3000" }, RECORDS_KEEP_LAST },
	{ 24, { "0:u32be" }, RECORDS_COUNT | RECORDS_KEEP_LAST },
	{ 24, { "5:b15" }, RECORDS_INDEX | RECORDS_KEEP_LAST },
	{ 40, { "30:i64", "2:f32:r" }, RECORDS_COUNT | RECORDS_INDEX | RECORDS_KEEP_LAST },
};
/* clang-format on */

enum {
	N_LAYOUTS = sizeof layouts / sizeof layouts[0],
	MAX_DATA_NBYTES = 4 << 20, /* of a data set that plain code is to sort */
};

static void check_layout(struct check *check, const struct record_layout *layout, uint64_t n)
{
	if (n * layout->record_nbytes > MAX_DATA_NBYTES && check->reference == &reference_plain)
		return;
	for (int dist = 0; dist < N_RECORD_DISTS; dist++) {
		struct record_data data;

		record_data_make(layout, (enum record_dist)dist, n, &data);
		check->records = &data;
		check_records(check);
		record_data_free(&data);
	}
}

static void check_random_layouts(struct check *check)
{
	static const uint64_t lengths[] = { 1, 33, 500, 1025 };

	for (uint64_t record_nbytes = 1; record_nbytes <= 70; record_nbytes++)
		for (uint64_t seed = 0; seed < 12; seed++) {
			struct record_data data;

			record_data_make_random(record_nbytes, seed, lengths[seed % 4], &data);
			check->records = &data;
			check_records(check);
			record_data_free(&data);
		}
}

void check_record_sweeps(struct check *check)
{
	/* Around blocks of threads, tiles and passes of the kernels (kernels/tuning.h). */
	static const uint64_t lengths[] = { 0, 1, 2, 3, 17, 33, 100, 1000, 2049 };
	static const uint64_t long_lengths[] = { 7937, 70001 };

	for (unsigned i = 0; i < N_LAYOUTS; i++) {
		const bool is_wide = layouts[i].record_nbytes > 200;

		for (unsigned j = 0; j < sizeof lengths / sizeof lengths[0]; j++)
			if (!is_wide || lengths[j] <= 100)
				check_layout(check, &layouts[i], lengths[j]);
	}
	for (unsigned j = 0; j < sizeof long_lengths / sizeof long_lengths[0]; j++) {
		check_layout(check, &layouts[0], long_lengths[j]);
		check_layout(check, &layouts[2], long_lengths[j]);
	}
	check_random_layouts(check);
	check->records = NULL;
}
