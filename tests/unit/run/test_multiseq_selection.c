/*
 * test_multiseq_selection - a place in several sorted sequences is found in few draws
 */
#include "src/run/multiseq_selection.h"

#include "tests/support/unit_test.h"

enum { N = 5, EACH = 200000 };

/* The sequence of all numbers, dealt to N in turn: number i of a sequence is i * N + sequence. */
static uint64_t count_before(struct selection *selection, uint32_t sequence, uint64_t place)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < N; i++) {
		selection->n_before[i] = place + (i < sequence);
		n += selection->n_before[i];
	}
	return n;
}

static uint32_t select_rank(uint64_t rank, uint32_t *ret_n_draws)
{
	struct selection selection;
	uint32_t sequence, found = 0;
	uint64_t place;

	*ret_n_draws = 0;
	assert_int_equal(selection_open(N, &selection), 0);
	for (uint32_t i = 0; i < N; i++)
		selection.hi[i] = EACH;
	while (selection_draw(&selection, &sequence, &place)) {
		++*ret_n_draws;
		if (count_before(&selection, sequence, place) > rank) {
			selection_set_upper(&selection);
			continue;
		}
		selection_set_lower(&selection);
		selection.lo[sequence]++;
		found = (uint32_t)place * N + sequence;
	}
	selection_close(&selection);
	return found;
}

static void every_rank_is_selected_in_few_draws(void **state)
{
	uint32_t n_draws;

	(void)state;
	for (uint32_t rank = 0; rank < N * EACH; rank += 9973) {
		assert_int_equal(select_rank(rank, &n_draws), rank);
		assert_in_range(n_draws, 1, 100);
	}
}

static void empty_sequences_draw_nothing(void **state)
{
	struct selection selection;
	uint32_t sequence;
	uint64_t place;

	(void)state;
	assert_int_equal(selection_open(N, &selection), 0);
	assert_false(selection_draw(&selection, &sequence, &place));
	selection_close(&selection);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_rank_is_selected_in_few_draws),
	cmocka_unit_test(empty_sequences_draw_nothing),
};

UNIT_TESTS(multiseq_selection, tests, NULL, NULL)
