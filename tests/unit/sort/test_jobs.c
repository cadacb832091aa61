/*
 * test_jobs - several sorts in one process at the same time report their own errors
 */
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/sort/sort.h"
#include "tests/support/io_fixture.h"
#include "tests/support/parsed_options.h"
#include "tests/support/unit_test.h"

enum { N = 100000, N_ROUNDS = 5 };

/* A sort and its messages. */
struct concurrent_sort {
	struct diagnostics messages;
	struct options options;
	unsigned n_warnings;
	int r;
};

static void collect_message(void *context, const struct message *message)
{
	struct concurrent_sort *one = context;

	one->n_warnings += message->kind == MESSAGE_WARNING;
}

static void *do_sort(void *argument)
{
	struct concurrent_sort *one = argument;
	const struct sort_spec spec = one->options.spec;
	const struct sort_observer nobody = { 0 };
	struct sort_summary summary;

	diagnostics_push(&one->messages);
	one->r = sort_run(&spec, &nobody, NULL, &summary);
	return NULL;
}

/* Files of 8-byte records, sorted and unsorted, and a truncated compressed file. */
static int start(void **state)
{
	static uint64_t sorted[N], mixed[N];
	static const unsigned char broken[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x08, 0x41,
						0x00, 0x00, 1,    2,    3,    4,    5 };
	const int r = fixture_start(state);

	for (uint64_t i = 0; i < N; i++) {
		sorted[i] = i;
		mixed[i] = i * UINT64_C(0x9e3779b97f4a7c15);
	}
	write_file(fixture_path("sorted"), sorted, sizeof sorted);
	write_file(fixture_path("mixed"), mixed, sizeof mixed);
	write_file(fixture_path("broken"), broken, sizeof broken);
	return r;
}

static void run_at_once(struct concurrent_sort *sorts, size_t n)
{
	pthread_t threads[8];

	for (size_t i = 0; i < n; i++) {
		diagnostics_init(&sorts[i].messages, collect_message, &sorts[i]);
		sorts[i].n_warnings = 0;
		assert_int_equal(thread_start(do_sort, &sorts[i], 0, &threads[i]), 0);
	}
	for (size_t i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		diagnostics_destroy(&sorts[i].messages);
	}
}

static void assert_failed(const struct concurrent_sort *one, int r, const char *part,
			  const char *path)
{
	assert_int_equal(one->r, r);
	if (!strstr(one->messages.text, part) || !strstr(one->messages.text, path))
		fail_msg("message '%s' has no '%s' or no '%s'", one->messages.text, part, path);
}

/* An error in a thread of one sort is not attributed to another, and hides none there. */
TEST_WITH(concurrent_sorts_report_separately, start, fixture_finish)
{
	const char *sorted = fixture_path("sorted"), *mixed = fixture_path("mixed");
	const char *broken = fixture_path("broken"), *out = fixture_path("out");
	struct concurrent_sort sorts[] = {
		{ .options =
			  PARSE_VALID("-t", "u64", "-m", sorted, mixed, "-o", fixture_path("a")) },
		{ .options = PARSE_VALID("-t", "u64", broken, "-o", fixture_path("b")) },
		{ .options = PARSE_VALID("-t", "u64", mixed, sorted, "-o", out) },
		{ .options =
			  PARSE_VALID("-t", "u64", fixture_path("none"), "-o", fixture_path("c")) },
	};
	enum { N_SORTS = sizeof sorts / sizeof sorts[0] };

	for (int round = 0; round < N_ROUNDS; round++) {
		run_at_once(sorts, N_SORTS);
		assert_failed(&sorts[0], -EINVAL, "record 3: disorder", mixed);
		assert_failed(&sorts[1], -EBADMSG, "truncated", broken);
		assert_int_equal(sorts[2].r, 0);
		assert_false(sorts[2].messages.failed);
		assert_failed(&sorts[3], -ENOENT, "No such file", "none");
		for (int i = 0; i < N_SORTS; i++)
			assert_int_equal(sorts[i].n_warnings, 0);
		assert_int_equal(unlink(out), 0);
	}
	assert_false(captured_messages_has_error()); /* nor has this thread */
	for (int i = 0; i < N_SORTS; i++)
		options_free(&sorts[i].options);
}
