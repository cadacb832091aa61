/*
 * test_cpu_gather - items in their order, and what is found out about them
 */
#include "src/device/cpu/gather.h"
#include "tests/support/record_fixture.h"
#include "tests/support/unit_test.h"

/* Six records of eight bytes, "KEY-" and a name, in this order: */
static const char records[][9] = { "0003-a..", "0001-b..", "0002-c..",
				   "0001-d..", "0003-e..", "0001-f.." };
/* and sorted. */
static const uint32_t in_order[] = { 1, 3, 5, 2, 0, 4 };
enum { N = 6, RECORD_NBYTES = 8, ITEM_NBYTES = 24 };

/* What is gathered, and what comes of it. */
struct gathered {
	struct layout layout;
	unsigned char items[N * ITEM_NBYTES], out[N * ITEM_NBYTES];
	uint64_t elements[N]; /* with numbers of 32 bits */
	unsigned char first[ITEM_NBYTES], last[ITEM_NBYTES];
	struct sort_op_result result;
};

static void set_up(struct gathered *gathered, struct layout_params request)
{
	request.record_nbytes = RECORD_NBYTES;
	*gathered = (struct gathered){ .layout = make_layout_of_keys(request, KEYS("0:b4")) };
	for (unsigned i = 0; i < N; i++) {
		gathered->elements[i] = UINT64_C(0x1234567800000000) | in_order[i];
		layout_project_record(&gathered->layout, records[i], 100 + i,
				      gathered->items + i * gathered->layout.item_nbytes);
	}
}

static void gather_as(struct gathered *gathered, bool unique, uint64_t limit, bool for_output,
		      bool scattered)
{
	struct item_lookup_entry entry;
	uint32_t buckets[3];
	struct item_lookup items;

	item_lookup_init(&(struct slice){ gathered->items, N }, 1, gathered->layout.item_nbytes,
			 &entry, buckets, &items);
	cpu_gather(&(struct gather_op){
		.layout = &gathered->layout,
		.items = &items,
		.elements = gathered->elements,
		.n = N,
		.n_ordered = N,
		.format = &(struct element_format){ .element_nbytes = 8, .number_bits = 32 },
		.out = gathered->out,
		.for_output = for_output,
		.unique = unique,
		.scattered = scattered,
		.limit = limit,
		.ret_first = gathered->first,
		.ret_last = gathered->last,
		.ret = &gathered->result });
}

/* Wherever items are said to lie, the same comes of it. */
static void gather(struct gathered *gathered, bool unique, uint64_t limit, bool for_output)
{
	struct gathered again = *gathered;

	gather_as(gathered, unique, limit, for_output, false);
	gather_as(&again, unique, limit, for_output, true);
	assert_memory_equal(again.out, gathered->out, sizeof again.out);
	assert_memory_equal(again.first, gathered->first, sizeof again.first);
	assert_memory_equal(again.last, gathered->last, sizeof again.last);
	assert_memory_equal(&again.result, &gathered->result, sizeof again.result);
	layout_free(&gathered->layout);
}

static struct digest digest_of(const char *names)
{
	struct digest digest = { 0 };

	for (; *names; names++)
		digest_add(&digest,
			   (struct digest){
				   1, digest_record((const unsigned char *)records[*names - 'a'],
						    RECORD_NBYTES) });
	return digest;
}

static void assert_digests(const struct gathered *gathered, const char *kept, const char *dropped)
{
	assert_true(digest_equal(gathered->result.digest, digest_of(kept)));
	assert_true(digest_equal(gathered->result.dropped, digest_of(dropped)));
	assert_int_equal(gathered->result.n, strlen(kept));
}

static void items_come_in_the_order_of_elements(void **state)
{
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ 0 });
	gather(&gathered, false, UINT64_MAX, true);
	assert_memory_equal(gathered.out, "0001-b..0001-d..0001-f..0002-c..0003-a..0003-e..", 48);
	assert_memory_equal(gathered.first, "0001-b..", 8);
	assert_memory_equal(gathered.last, "0003-e..", 8);
	assert_int_equal(gathered.result.n_disorders, 0);
	assert_int_equal(gathered.result.n_counted, 6);
	assert_digests(&gathered, "abcdef", "");
}

static void the_first_of_equals_is_kept(void **state)
{
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ 0 });
	gather(&gathered, true, UINT64_MAX, true);
	assert_memory_equal(gathered.out, "0001-b..0002-c..0003-a..", 24);
	assert_memory_equal(gathered.first, "0001-b..", 8);
	assert_memory_equal(gathered.last, "0003-a..", 8);
	assert_int_equal(gathered.result.n_counted, 6);
	assert_digests(&gathered, "bca", "dfe");
}

static void the_last_of_equals_is_kept(void **state)
{
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ .keep_last = true });
	gather(&gathered, true, 2, true);
	assert_memory_equal(gathered.out, "0001-f..0002-c..", 16);
	assert_memory_equal(gathered.first, "0001-f..", 8);
	assert_memory_equal(gathered.last, "0002-c..", 8);
	assert_int_equal(gathered.result.n_counted, 4);
	assert_digests(&gathered, "fc", "bdae");
	set_up(&gathered, (struct layout_params){ .keep_last = true, .argsort = true });
	gather(&gathered, true, UINT64_MAX, true);
	assert_memory_equal(gathered.out, "\x69\0\0\0\0\0\0\0\x66\0\0\0\0\0\0\0\x68\0\0\0\0\0\0\0",
			    24);
}

static void counts_of_equals_are_added_up(void **state)
{
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ .count = true });
	layout_set_item_count(&gathered.layout, gathered.items + 3 * 16, 1000);
	gather(&gathered, true, UINT64_MAX, true);
	assert_memory_equal(gathered.out,
			    "\xea\3\0\0\0\0\0\0"
			    "0001-b..",
			    16);
	assert_memory_equal(gathered.out + 16,
			    "\1\0\0\0\0\0\0\0"
			    "0002-c..",
			    16);
	assert_memory_equal(gathered.out + 32,
			    "\2\0\0\0\0\0\0\0"
			    "0003-a..",
			    16);
	assert_memory_equal(gathered.first, gathered.out, 16);
	assert_memory_equal(gathered.last, gathered.out + 32, 16);
	assert_int_equal(gathered.result.n_counted, 1005);
	assert_digests(&gathered, "bca", "dfe");
}

static void items_beyond_limit_are_dropped(void **state)
{
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ 0 });
	gather(&gathered, false, 2, true);
	assert_memory_equal(gathered.out, "0001-b..0001-d..\0", 17);
	assert_memory_equal(gathered.last, "0001-d..", 8);
	assert_int_equal(gathered.result.n_counted, 2);
	assert_digests(&gathered, "bd", "acef");
}

static void equals_of_the_last_within_the_limit_are_counted(void **state)
{
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ .count = true });
	gather(&gathered, true, 1, true);
	assert_memory_equal(gathered.out,
			    "\3\0\0\0\0\0\0\0"
			    "0001-b..\0",
			    17);
	assert_memory_equal(gathered.first, gathered.out, 16);
	assert_memory_equal(gathered.last, gathered.out, 16);
	assert_int_equal(gathered.result.n_counted, 3);
	assert_digests(&gathered, "b", "acdef");
}

static void a_limit_of_nothing_drops_everything(void **state)
{
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ 0 });
	gather(&gathered, true, 0, true);
	assert_int_equal(gathered.out[0], 0);
	assert_int_equal(gathered.first[0], 0);
	assert_digests(&gathered, "", "abcdef");
}

static void argsort_writes_positions(void **state)
{
	const uint64_t positions[] = { 101, 103, 105, 102, 100, 104 };
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ .argsort = true });
	gather(&gathered, false, UINT64_MAX, true);
	assert_memory_equal(gathered.out, positions, sizeof positions);
	assert_memory_equal(gathered.first, "0001\x65\0\0\0\0\0\0\0", 12);
	assert_memory_equal(gathered.last, "0003\x68\0\0\0\0\0\0\0", 12);
}

static void whole_items_are_kept_for_another_merge(void **state)
{
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ .argsort = true });
	gather(&gathered, false, UINT64_MAX, false);
	assert_memory_equal(gathered.out,
			    "0001\x65\0\0\0\0\0\0\0"
			    "0001\x67\0\0\0\0\0\0\0",
			    24);
}

/* The records are looked at, not the elements that brought them here. */
static void record_disorder_is_detected(void **state)
{
	struct gathered gathered;

	(void)state;
	set_up(&gathered, (struct layout_params){ 0 });
	gathered.elements[0] = 0;
	gathered.elements[4] = 1;
	gather(&gathered, false, UINT64_MAX, true);
	assert_int_equal(gathered.result.n_disorders, 2);
	set_up(&gathered, (struct layout_params){ 0 });
	gathered.elements[0] = 0;
	gathered.elements[4] = 1;
	gather(&gathered, false, N - 1, true);
	assert_int_equal(gathered.result.n_disorders, 2);
}

static void disorder_past_prefix_is_detected(void **state)
{
	enum { LONG_NBYTES = 50 };

	(void)state;
	for (unsigned at = 0; at < LONG_NBYTES; at++) {
		struct gathered gathered = {
			.layout = make_layout_of_keys((struct layout_params){ .record_nbytes =
										      LONG_NBYTES },
						      KEYS("0:b50")),
			.elements = { 0, 0, 0 },
		};
		unsigned char items[2 * LONG_NBYTES] = { 0 }, out[2 * LONG_NBYTES];
		struct item_lookup_entry entry;
		uint32_t buckets[3];
		struct item_lookup lookup;

		items[at] = 1;
		item_lookup_init(&(struct slice){ items, 2 }, 1, LONG_NBYTES, &entry, buckets,
				 &lookup);
		cpu_gather(&(struct gather_op){ .layout = &gathered.layout,
						.items = &lookup,
						.n = 2,
						.out = out,
						.limit = UINT64_MAX,
						.ret = &gathered.result });
		assert_int_equal(gathered.result.n_disorders, 1);
		layout_free(&gathered.layout);
	}
}

/* Items that are copied before they are looked at are so some at a time. */
static void disorder_is_detected_anywhere(void **state)
{
	enum { N_ITEMS = 40, LONG_NBYTES = 1000 };
	struct layout layout = make_layout_of_keys(
		(struct layout_params){ .record_nbytes = LONG_NBYTES }, KEYS("0:u8"));
	unsigned char *items = make_random_bytes((uint64_t)N_ITEMS * LONG_NBYTES, 1);
	unsigned char *out = guarded_alloc((size_t)N_ITEMS * LONG_NBYTES);

	(void)state;
	for (unsigned i = 0; i < N_ITEMS; i++)
		items[i * LONG_NBYTES] = 1;
	for (unsigned i = 0; i < N_ITEMS; i++) {
		struct item_lookup_entry entry;
		uint32_t buckets[3];
		struct item_lookup lookup;
		struct sort_op_result result;

		items[i * LONG_NBYTES] = 0;
		item_lookup_init(&(struct slice){ items, N_ITEMS }, 1, LONG_NBYTES, &entry, buckets,
				 &lookup);
		cpu_gather(&(struct gather_op){ .layout = &layout,
						.items = &lookup,
						.n = N_ITEMS,
						.out = out,
						.scattered = true,
						.limit = UINT64_MAX,
						.ret = &result });
		assert_int_equal(result.n_disorders, i > 0);
		items[i * LONG_NBYTES] = 1;
	}
	guarded_free(items, (size_t)N_ITEMS * LONG_NBYTES);
	guarded_free(out, (size_t)N_ITEMS * LONG_NBYTES);
	layout_free(&layout);
}

/* Items of every length, from guarded memory into guarded memory. */
static void items_of_any_length_are_copied(void **state)
{
	enum { N_ITEMS = 20 };

	(void)state;
	for (uint64_t nbytes = 1; nbytes < 2000; nbytes += nbytes < 150 ? 1 : 97) {
		struct layout layout = make_layout_of_keys(
			(struct layout_params){ .record_nbytes = nbytes, .force_records = true },
			KEYS("0:u8"));
		unsigned char *items = make_random_bytes(N_ITEMS * nbytes, nbytes);
		unsigned char *out = guarded_alloc(N_ITEMS * nbytes);
		struct item_lookup_entry entry;
		uint32_t buckets[3];
		struct item_lookup lookup;
		struct sort_op_result result[2];

		item_lookup_init(&(struct slice){ items, N_ITEMS }, 1, nbytes, &entry, buckets,
				 &lookup);
		for (unsigned scattered = 0; scattered < 2; scattered++) {
			cpu_gather(&(struct gather_op){ .layout = &layout,
							.items = &lookup,
							.n = N_ITEMS,
							.out = out,
							.scattered = scattered,
							.limit = UINT64_MAX,
							.ret = &result[scattered] });
			assert_memory_equal(out, items, N_ITEMS * nbytes);
			memset(out, 0, N_ITEMS * nbytes);
		}
		assert_memory_equal(&result[0], &result[1], sizeof result[0]);
		guarded_free(items, N_ITEMS * nbytes);
		guarded_free(out, N_ITEMS * nbytes);
		layout_free(&layout);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(items_come_in_the_order_of_elements),
	cmocka_unit_test(the_first_of_equals_is_kept),
	cmocka_unit_test(the_last_of_equals_is_kept),
	cmocka_unit_test(counts_of_equals_are_added_up),
	cmocka_unit_test(items_beyond_limit_are_dropped),
	cmocka_unit_test(equals_of_the_last_within_the_limit_are_counted),
	cmocka_unit_test(a_limit_of_nothing_drops_everything),
	cmocka_unit_test(argsort_writes_positions),
	cmocka_unit_test(whole_items_are_kept_for_another_merge),
	cmocka_unit_test(record_disorder_is_detected),
	cmocka_unit_test(disorder_past_prefix_is_detected),
	cmocka_unit_test(disorder_is_detected_anywhere),
	cmocka_unit_test(items_of_any_length_are_copied),
};

UNIT_TESTS(cpu_gather, tests, NULL, NULL)
