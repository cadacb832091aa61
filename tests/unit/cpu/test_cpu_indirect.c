/*
 * test_cpu_indirect - elements of records in several places lead back to them, and tell no lies
 */
#include "src/device/cpu/cpu_ops.h"

#include <signal.h>
#include <stdlib.h>

#include "src/device/cpu/cpu_sort.h"
#include "tests/support/record_fixture.h"
#include "tests/support/unit_test.h"

enum { N_SOURCES = BACKEND_MAX_SOURCES, MAX_OF_SOURCE = 100, N_MAX = N_SOURCES * MAX_OF_SOURCE };

struct numbered {
	const unsigned char *record;
	uint64_t number;
};

/* Records in sources of different lengths, some empty, each of which ends at an unmapped page. */
struct indirect_case {
	struct layout records, layout;
	struct slice sources[N_SOURCES];
	struct numbered in_order[N_MAX]; /* n */
	uint64_t n;
	uint128_t elements[N_MAX];
	struct digest digest;
};

static int compare(const void *a, const void *b, void *context)
{
	const struct numbered *x = a, *y = b;
	const int order = key_compare(context, x->record, y->record);

	return order ? order : (x->number > y->number) - (x->number < y->number);
}

static void make_source(struct indirect_case *indirect, unsigned i)
{
	const uint64_t record_nbytes = indirect->layout.record_nbytes;
	const uint64_t n = i % 3 == 1 ? 0 : random_number(record_nbytes, i) % MAX_OF_SOURCE;
	unsigned char *bytes = make_random_bytes(n * record_nbytes, i);

	/* So that many keys are equal. */
	for (uint64_t j = 0; j < n * record_nbytes; j++)
		bytes[j] = j % record_nbytes < 30 ? bytes[j] % 3 * 127 : bytes[j];
	for (uint64_t j = 0; j < n; j++)
		indirect->in_order[indirect->n + j] =
			(struct numbered){ bytes + j * record_nbytes, indirect->n + j };
	indirect->n += n;
	indirect->sources[i] = (struct slice){ bytes, n };
}

static void sort_elements(struct indirect_case *indirect)
{
	const uint32_t element_nbytes = indirect->layout.element_nbytes;
	const size_t scratch_nbytes = cpu_sort_scratch_nbytes(indirect->n, element_nbytes);
	void *scratch = guarded_alloc(scratch_nbytes);

	cpu_sort(&(struct sort_elements_op){ .elements = indirect->elements,
					     .n = indirect->n,
					     .scratch = scratch,
					     .element_nbytes = element_nbytes });
	guarded_free(scratch, scratch_nbytes);
}

static void set_up(struct indirect_case *indirect, uint64_t record_nbytes, const char *const *keys)
{
	uint64_t number = 0;

	*indirect = (struct indirect_case){
		.records = make_layout_of_keys(
			(struct layout_params){ .record_nbytes = record_nbytes }, keys),
	};
	assert_true(layout_make_indirect(&indirect->records, &indirect->layout));
	for (unsigned i = 0; i < N_SOURCES; i++) {
		make_source(indirect, i);
		cpu_encode_indirect(&(struct encode_op){
			.layout = &indirect->layout,
			.first_number = number,
			.records = indirect->sources[i].elements,
			.elements = (char *)indirect->elements +
				    number * indirect->layout.element_nbytes,
			.n = indirect->sources[i].n,
			.ret_digest = &indirect->digest,
		});
		number += indirect->sources[i].n;
	}
	sort_elements(indirect);
	qsort_r(indirect->in_order, indirect->n, sizeof indirect->in_order[0], compare,
		(void *)&indirect->records.record_keys);
}

static void tear_down(struct indirect_case *indirect)
{
	for (unsigned i = 0; i < N_SOURCES; i++)
		guarded_free((void *)indirect->sources[i].elements,
			     indirect->sources[i].n * indirect->layout.record_nbytes);
	layout_free(&indirect->records);
}

/* The elements [begin, begin + n) as records; the caller's to free. */
static unsigned char *decode(const struct indirect_case *indirect, uint64_t begin, uint64_t n,
			     struct decode_result *ret_result)
{
	const struct layout *layout = &indirect->layout;
	unsigned char *out = guarded_alloc(n * layout->record_nbytes);

	cpu_decode_indirect(&(struct decode_op){ .layout = layout,
						 .sources = indirect->sources,
						 .n_sources = N_SOURCES,
						 .elements = (const char *)indirect->elements +
							     begin * layout->element_nbytes,
						 .records = out,
						 .n = n,
						 .ret = ret_result });
	return out;
}

TEST(result_describes_written_items)
{
	struct indirect_case *indirect = malloc(sizeof *indirect);
	struct decode_result before, after;
	unsigned char *changed;

	set_up(indirect, 100, KEYS("0:b3"));
	guarded_free(decode(indirect, 0, indirect->n, &before), indirect->n * 100);
	/* Behind the key. */
	changed = (unsigned char *)indirect->in_order[0].record;
	changed[99] ^= 1;
	guarded_free(decode(indirect, 0, indirect->n, &after), indirect->n * 100);
	assert_false(digest_equal(before.digest, after.digest));
	assert_int_equal(after.n_disorders, 0);
	assert_true(after.first == before.first);
	/* In the key. */
	memset(changed, 0xff, 3);
	guarded_free(decode(indirect, 0, indirect->n, &after), indirect->n * 100);
	assert_int_equal(after.n_disorders, 1);
	assert_true(after.first > before.last);
	tear_down(indirect);
	free(indirect);
}

/*
 * Somebody who overwrites records at a moment of our choice: when the page at `page` is touched for
 * the first time, a byte elsewhere changes.
 */
struct overwriter {
	unsigned char *page;
	unsigned char *byte;
	unsigned char value; /* that it has then */
};

static struct overwriter overwriter;

static void on_touch(int signal_number, siginfo_t *info, void *context)
{
	(void)signal_number, (void)info, (void)context;
	/* Any other fault is met again, and ends the test. */
	signal(SIGSEGV, SIG_DFL);
	mprotect(overwriter.page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
	*overwriter.byte = overwriter.value;
}

/* Records in whole pages. */
struct pages_of_records {
	struct layout records, layout;
	struct slice source;
	unsigned char *map;
	size_t map_nbytes;
};

/* n of them, `shift` bytes behind the beginning of a page. */
static void lay_records(struct pages_of_records *pages, uint64_t n, uint64_t record_nbytes,
			uint64_t shift, const char *const *keys)
{
	*pages = (struct pages_of_records){
		.records = make_layout_of_keys(
			(struct layout_params){ .record_nbytes = record_nbytes }, keys),
		.map_nbytes = shift + n * record_nbytes,
	};
	assert_true(layout_make_indirect(&pages->records, &pages->layout));
	pages->map = mmap(NULL, pages->map_nbytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages->map, MAP_FAILED);
	for (size_t i = 0; i < pages->map_nbytes; i++)
		pages->map[i] = (unsigned char)random_number(7, i);
	pages->source = (struct slice){ pages->map + shift, n };
}

static void overwrite_when_touched(struct overwriter one)
{
	const struct sigaction action = { .sa_sigaction = on_touch, .sa_flags = SA_SIGINFO };

	overwriter = one;
	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	assert_int_equal(mprotect(one.page, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE), 0);
}

/*
 * Decode the records, which are in order, under `one`. What is reported must be what can be seen of
 * what was written; its neighbours out of order are returned.
 */
static uint64_t decode_overwritten(const struct pages_of_records *pages, struct overwriter one)
{
	const struct layout *layout = &pages->layout;
	const uint64_t n = pages->source.n, out_nbytes = n * layout->record_nbytes;
	unsigned char *out = guarded_alloc(out_nbytes);
	struct digest digest = { 0 };
	struct decode_result result;
	uint64_t n_disorders = 0;
	uint128_t elements[8];
	const struct encode_op encoding = {
		.layout = layout,
		.records = pages->source.elements,
		.elements = elements,
		.n = n,
	};

	cpu_encode_indirect(&encoding);
	overwrite_when_touched(one);
	cpu_decode_indirect(&(struct decode_op){ .layout = layout,
						 .sources = &pages->source,
						 .n_sources = 1,
						 .elements = elements,
						 .records = out,
						 .n = n,
						 .ret = &result });
	assert_true(signal(SIGSEGV, SIG_DFL) == SIG_DFL); /* it was touched */
	for (uint64_t i = 0; i < n; i++) {
		const unsigned char *record = out + i * layout->record_nbytes;

		digest_add(&digest,
			   (struct digest){ 1, digest_record(record, layout->record_nbytes) });
		n_disorders += i > 0 && key_compare(&layout->record_keys,
						    record - layout->record_nbytes, record) > 0;
	}
	assert_true(digest_equal(result.digest, digest));
	assert_int_equal(result.n_disorders, n_disorders);
	guarded_free(out, out_nbytes);
	return n_disorders;
}

static void tear_down_pages(struct pages_of_records *pages)
{
	munmap(pages->map, pages->map_nbytes);
	layout_free(&pages->records);
}

/* The first of three records lies in two pages, with the key in the second. */
TEST(a_key_overwritten_while_its_record_is_copied_is_disorder)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct pages_of_records pages;
	unsigned char *keys;

	lay_records(&pages, 3, 1000, page - 500, KEYS("900:u8"));
	keys = pages.map + page - 500 + 900;
	for (unsigned i = 0; i < 3; i++)
		keys[i * 1000] = (unsigned char)i;
	assert_int_equal(decode_overwritten(&pages, (struct overwriter){ pages.map, keys, 0xff }),
			 1);
	tear_down_pages(&pages);
}

/* The last four bytes of 100 lie in a page of their own, and are loaded with some before them. */
TEST(bytes_overwritten_between_two_loads_are_digested_as_written)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct pages_of_records pages;

	for (uint64_t before = 1; before <= 96; before++) {
		unsigned char *byte;

		lay_records(&pages, 1, 100, page - 96, KEYS("0:u8"));
		byte = pages.map + page - before;
		decode_overwritten(&pages, (struct overwriter){ pages.map + page, byte,
								(unsigned char)~*byte });
		tear_down_pages(&pages);
	}
}

/* Two records that came to be equal are not in the order of the input. */
TEST(records_that_became_equal_keep_their_order)
{
	struct indirect_case *indirect = malloc(sizeof *indirect);
	unsigned char *one, *next;
	struct decode_result result;
	uint64_t i = 0;

	set_up(indirect, 100, KEYS("0:b3"));
	while (i + 1 < indirect->n &&
	       (indirect->in_order[i].number < indirect->in_order[i + 1].number ||
		memcmp(indirect->in_order[i].record, indirect->in_order[i + 1].record, 3) == 0))
		i++;
	assert_true(i + 1 < indirect->n);
	one = (unsigned char *)indirect->in_order[i].record;
	next = (unsigned char *)indirect->in_order[i + 1].record;
	/* The first of its key, so that none before it has a larger one now. */
	memcpy(next, one, 3);
	guarded_free(decode(indirect, i, 2, &result), (size_t)2 * 100);
	assert_int_equal(result.n_disorders, 1);
	tear_down(indirect);
	free(indirect);
}

TEST(unsuitable_records_stay_direct)
{
	static const struct {
		struct layout_params request;
		const char *key;
		bool expected;
	} cases[] = {
		{ { .record_nbytes = 100 }, "0:b12", true },
		{ { .record_nbytes = 100 }, "0:b13", false },
		{ { .record_nbytes = 32 }, "31:u8", true },
		{ { .record_nbytes = 31 }, "0:u8", false },
		{ { .record_nbytes = 8 }, "0:u64", false },
		{ { .record_nbytes = 100, .count = true }, "0:u8", false },
		{ { .record_nbytes = 100, .keys_only = true }, "0:u8", false },
		{ { .record_nbytes = 100, .argsort = true }, "0:u8", false },
	};

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct layout layout = make_layout_of_keys(cases[i].request, KEYS(cases[i].key)),
			      referring;

		assert_int_equal(layout_make_indirect(&layout, &referring), cases[i].expected);
		layout_free(&layout);
	}
}
