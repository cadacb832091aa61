/*
 * test_plan_limits - limits and sizes of all magnitudes are planned with, and never wrap around
 */

#include "tests/support/plan_requests.h"
#include "tests/support/unit_test.h"

/*
 * Builds without sanitizers detect wrapping, too. Builds with them are slower, and test fewer
 * requests.
 */
#ifdef __SANITIZE_ADDRESS__
enum { N_REQUESTS = 20000, N_USUAL_REQUESTS = 6000 };
#else
enum { N_REQUESTS = 100000, N_USUAL_REQUESTS = 30000 };
#endif
enum { REQUEST_NBYTES = 96 };

/* Return the same numbers on all machines (Marsaglia's xorshift). */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void draw_request(uint64_t *random, unsigned char bytes[static REQUEST_NBYTES])
{
	for (size_t at = 0; at < REQUEST_NBYTES; at += sizeof *random) {
		next_random(random);
		memcpy(bytes + at, random, sizeof *random);
	}
}

TEST(any_request_makes_a_plan_that_holds)
{
	uint64_t random = 0x9e3779b97f4a7c15;
	unsigned char bytes[REQUEST_NBYTES];

	for (int i = 0; i < N_REQUESTS; i++) {
		const char *broken;

		draw_request(&random, bytes);
		broken = find_fuzzed_plan_defect(bytes, sizeof bytes);
		if (broken)
			fail_msg("request %d: %s", i, broken);
	}
}

/* Make a request with some MiB of memory, and an input of up to a TiB, or a pipe. */
static void make_typical_request(struct plan_request *request, uint64_t *random)
{
	const uint64_t record_nbytes = request->layout->record_nbytes;

	request->memory_nbytes = PLAN_MIN_MEMORY_NBYTES + next_random(random) % (64 << 20);
	request->n_input_runs %= 1000;
	request->stream_codec_nbytes %= 16 << 20;
	request->input_nbytes = next_random(random) >> (24 + next_random(random) % 30);
	request->input_nbytes -= request->input_nbytes % record_nbytes;
	if (next_random(random) % 4 == 0 && request->layout->kind != LAYOUT_INDIRECT)
		request->input_nbytes = PLAN_SIZE_UNKNOWN;
}

TEST(plan_that_fits_also_fits_in_twice_the_memory)
{
	struct backend backend = backend_cpu;
	const struct device device = { .backend = &backend };
	uint64_t random = 0x9e3779b97f4a7c15;
	unsigned char bytes[REQUEST_NBYTES];
	struct layout layout;

	backend.get_info = get_requested_info;
	for (int i = 0; i < N_USUAL_REQUESTS; i++) {
		struct fuzz_data choices = { bytes, sizeof bytes };
		struct plan_request request;
		const char *broken;

		draw_request(&random, bytes);
		request = fuzz_data_take_request(&choices, &device, &layout);
		make_typical_request(&request, &random);
		broken = find_doubled_memory_defect(&request);
		if (broken) {
			print_request(&request);
			fail_msg("request %d: %s", i, broken);
		}
	}
}
