/*
 * check_backend - every operation of a back end, through its interface, against a reference
 *
 * usage: check_backend [cpu|cuda]
 *
 * The CPU back end is compared with plain code, any other with the CPU back end: bit for bit, on
 * the same data, which goes through a sweep of record types, lengths and distributions. Exits with
 * 77 (skipped, to Meson) if there is no such device.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "tests/backend/check.h"
#include "tests/support/elements.h"
#include "tests/support/captured_messages.h"

enum { EXIT_SKIPPED = 77 };

/* What knows of data nothing but its elements does the same to those of descending keys. */
enum known { KNOWS_NOTHING, KNOWS_RECORDS, KNOWS_ELEMENTS };

struct operation_check {
	const char *name;
	void (*check)(struct check *check);
	enum known known; /* of the data */
};

static const struct operation_check operations[] = {
	{ "alloc", check_alloc, KNOWS_NOTHING },
	{ "alloc of too much", check_alloc_of_too_much, KNOWS_NOTHING },
	{ "lanes and marks", check_queues, KNOWS_NOTHING },
	{ "device_queue_close", check_queue_close, KNOWS_NOTHING },
	{ "copy", check_copy, KNOWS_RECORDS },
	{ "encode", check_encode, KNOWS_RECORDS },
	{ "encode in place", check_encode_in_place, KNOWS_RECORDS },
	{ "decode", check_decode, KNOWS_RECORDS },
	{ "decode in place", check_decode_in_place, KNOWS_RECORDS },
	{ "sort", check_sort, KNOWS_ELEMENTS },
	{ "unique", check_unique, KNOWS_RECORDS },
	{ "sample", check_sample, KNOWS_RECORDS },
	{ "pack and unpack", check_pack_and_unpack, KNOWS_ELEMENTS },
	{ "merge", check_merge, KNOWS_ELEMENTS },
	{ "cut", check_cut, KNOWS_ELEMENTS },
};

static void check_operations(struct check *check, enum known known)
{
	for (unsigned i = 0; i < sizeof operations / sizeof operations[0]; i++) {
		if (operations[i].known != known)
			continue;
		check->operation = operations[i].name;
		operations[i].check(check);
	}
}

/* Lists that end with their filler. */
struct sweep {
	const char *types[56];
	bool descending; /* too */
	bool is_long;    /* only where the reference is fast */
	uint64_t lengths[20];
	int dists[N_DISTS + 1];
};

#define END_OF_LENGTHS UINT64_MAX
#define END_OF_DISTS (-1)

/* clang-format off */
static const struct sweep sweeps[] = {
	{
		/* Every type, around what vector loops and blocks of threads take at once. */
		.types = {
			"u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128",
			"f64:n", "f16:n", "bf16be:n", "f32be:n", "t64",
			"f16", "bf16be", "bool", "u24", "i40be", "u56", "i72", "u96be", "i120",
			"f32", "f64", "u16be", "u32be", "u64be", "u128be", "i16be", "i32be",
			"i64be", "i128be", "f32be", "f64be", "b1", "b2", "b3", "b4", "b5", "b6",
			"b7", "b8", "b9", "b10", "b11", "b12", "b13", "b14", "b15", "b16",
		},
		.descending = true,
		.lengths = { 0, 1, 33, 2049, END_OF_LENGTHS },
		.dists = { GEN_RANDOM, GEN_HUNDRED_KEYS, GEN_NAN, END_OF_DISTS },
	},
	{
		/* Keys that are all of the record. */
		.types = {
			"0:u32 4:u32", "0:u32be 4:i32be:r", "4:i32be:r 0:f32", "2:u16 0:u16",
			"1:i16be 0:u8:r", "3:u32 0:u24", "8:u64 0:i64:r", "0:f64:r 8:f64be",
			"8:f32 0:f64", "2:f64be:r 0:f16 10:f32 14:i16", "5:i72be 14:u16 0:u40:r",
		},
		.descending = true,
		.lengths = { 0, 1, 33, 2049, END_OF_LENGTHS },
		.dists = { GEN_RANDOM, GEN_HUNDRED_KEYS, GEN_NAN, END_OF_DISTS },
	},
	{
		/* Every distribution, around the tiles of the kernels (kernels/tuning.h). */
		.types = { "u32", "u64", "u128" },
		.lengths = {
			0, 1, 2, 3, 31, 1000, 2047, 2048, 4351, 4352, 4353, 7935, 7936, 7937,
			END_OF_LENGTHS,
		},
		.dists = {
			GEN_RANDOM, GEN_SORTED, GEN_REVERSED, GEN_EQUAL, GEN_TWO_KEYS, GEN_ZIPF,
			GEN_HUNDRED_KEYS, GEN_NEARLY_SORTED, GEN_SAWTOOTH, GEN_ORGAN_PIPE,
			GEN_CLUSTERED, GEN_NAN,
			ELEMENTS_ALL_ONES, END_OF_DISTS,
		},
	},
	{
		/* A merge pass, full and with an odd end. */
		.types = { "u32", "u64", "u128", "b10" },
		.lengths = { 69632, 126977, END_OF_LENGTHS },
		.dists = { GEN_RANDOM, GEN_EQUAL, END_OF_DISTS },
	},
	{
		/* Several merge passes. */
		.types = { "u32", "u64", "u128", "b5", "b10" },
		.is_long = true,
		.lengths = { 1000003, 4000037, END_OF_LENGTHS },
		.dists = { GEN_RANDOM, GEN_EQUAL, GEN_ORGAN_PIPE, GEN_ZIPF, END_OF_DISTS },
	},
};
/* clang-format on */

static void check_sweep_of(struct check *check, const struct sweep *sweep, const char *type,
			   bool descending)
{
	for (const uint64_t *n = sweep->lengths; *n != END_OF_LENGTHS; n++)
		for (const int *dist = sweep->dists; *dist != END_OF_DISTS; dist++) {
			struct data data;

			data_make(check->reference, type, descending, *n, *dist, &data);
			check->data = &data;
			check_operations(check, KNOWS_RECORDS);
			if (!descending)
				check_operations(check, KNOWS_ELEMENTS);
			data_free(&data);
		}
}

static void check_sweep(struct check *check, const struct sweep *sweep)
{
	for (const char *const *type = sweep->types; *type; type++)
		for (int descending = 0; descending <= sweep->descending; descending++)
			check_sweep_of(check, sweep, *type, descending);
}

/*
 * Let this thread, and those that it starts, run on one processor. A case of a sweep takes
 * microseconds, and waking a thread on another processor takes longer than the case. If this fails,
 * the sweeps only take longer.
 */
static void stay_on_one_processor(void)
{
	cpu_set_t usable, first;

	CPU_ZERO(&first);
	if (sched_getaffinity(0, sizeof usable, &usable) < 0)
		return;
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) == 0; i++)
		if (CPU_ISSET(i, &usable))
			CPU_SET(i, &first);
	(void)sched_setaffinity(0, sizeof first, &first);
}

/* Print the numbers of cases. Returns 1 if any failed. */
static int report(const struct check *check)
{
	printf("%s against %s: %lu cases, %lu failed\n", check->subject.info.name,
	       check->reference->name, (unsigned long)check->n_cases,
	       (unsigned long)check->n_failures);
	return check->n_failures ? 1 : 0;
}

static int check_without_data(const struct subject *subject, const struct reference *reference)
{
	struct check check = { .subject = *subject, .reference = reference };

	check_operations(&check, KNOWS_NOTHING);
	return report(&check);
}

static int check_sweeps(const struct subject *subject, const struct reference *reference)
{
	struct check check = { .subject = *subject, .reference = reference };

	for (unsigned i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++)
		if (!sweeps[i].is_long || reference != &reference_plain)
			check_sweep(&check, &sweeps[i]);
	check.data = NULL;
	check_record_sweeps(&check);
	array_free(&check.subject, &check.in);
	array_free(&check.subject, &check.out);
	array_free(&check.subject, &check.scratch);
	return report(&check);
}

static const struct backend *find_backend(const char *name)
{
	if (strcmp(name, "cpu") == 0)
		return &backend_cpu;
#if HAVE_CUDA
	if (strcmp(name, "cuda") == 0)
		return &backend_cuda;
#endif
	return NULL;
}

/* 0, or why the program ends. */
static int open_backend(const char *name, struct subject *ret_subject)
{
	const struct backend *backend = find_backend(name);
	const char *why = "built without this back end";

	if (backend && backend->probe(&why) == 0)
		return subject_open(backend, 2, ret_subject) < 0 ? 1 : 0;
	printf("%s: no usable device: %s\n", name, why);
	return EXIT_SKIPPED;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "cpu";
	const struct reference *reference;
	struct subject subject;
	int r;

	captured_messages_reset(true);
	if (argc > 2 || (strcmp(name, "cpu") != 0 && strcmp(name, "cuda") != 0)) {
		fprintf(stderr, "usage: check_backend [cpu|cuda]\n");
		return 2;
	}
	r = open_backend(name, &subject);
	if (r)
		return r;
	reference = subject.device->backend == &backend_cpu ? &reference_plain : &reference_cpu;
	r = check_without_data(&subject, reference);
	if (reference == &reference_plain) {
		subject_close(&subject);
		stay_on_one_processor();
		if (open_backend(name, &subject) != 0)
			return 1;
	}
	r |= check_sweeps(&subject, reference);
	subject_close(&subject);
	return r;
}
