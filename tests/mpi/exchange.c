/*
 * exchange - ranks that exchange messages over MPI in every way there is
 *
 * usage: mpirun -np N exchange [LONGEST-MESSAGE [PIECE]]
 *        mpirun -np N exchange abort|stop|forever
 *
 * Ends with 0 if everything arrived as it was sent, and with 2 after a line that says why not. With
 * a word that befalls rank 1, for which the others wait; or they exchange until something befalls
 * them, and say when that may be.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/comm/mpi/transport_mpi.h"
#include "src/comm/comm.h"
#include "tests/support/ranks_exchange.h"
#include "tools/cli/print_diagnostics.h"

static bool is_known(const char *word)
{
	return strcmp(word, "abort") == 0 || strcmp(word, "stop") == 0 ||
	       strcmp(word, "forever") == 0;
}

static int exchange_forever(struct ranks *ranks)
{
	int r;

	for (unsigned i = 0;; i++) {
		r = ranks_exchange(ranks, 100000);
		if (r < 0)
			return r;
		if (i == 1 && ranks_rank(ranks) == 0) {
			puts("going on");
			fflush(stdout);
		}
	}
}

static int befall(struct ranks *ranks, const char *what)
{
	if (strcmp(what, "forever") == 0)
		return exchange_forever(ranks);
	if (ranks_rank(ranks) != 1)
		return ranks_barrier(ranks);
	if (strcmp(what, "abort") == 0)
		return fail(-ECANCELED, "rank 1: that is all");
	raise(SIGSTOP);
	/* Who ends what was stopped lets it go on first. */
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct ranks_mpi_settings how = { getenv };
	const bool is_word = argc > 1 && (argv[1][0] < '0' || argv[1][0] > '9');
	const size_t longest_nbytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	const struct ranks_settings settings = {
		.stall_ns = is_word ? 2000000000 : 60000000000,
		.piece_nbytes = argc > 2 ? strtoul(argv[2], NULL, 0) : 0,
		.end_ns = is_word ? 1000000000 : 0,
		.end = _exit,
	};
	struct ranks *ranks;
	unsigned rank, size;

	if (is_word && !is_known(argv[1])) {
		fprintf(stderr, "usage: exchange [LONGEST-MESSAGE [PIECE]]\n"
				"       exchange abort|stop|forever\n");
		return 2;
	}
	messages_print_as("exchange");
	if (ranks_open(&settings, ranks_mpi_open, &how, &ranks) < 0)
		return 2;
	rank = ranks_rank(ranks);
	size = ranks_size(ranks);
	if ((is_word ? befall(ranks, argv[1]) : ranks_exchange(ranks, longest_nbytes)) < 0 ||
	    ranks_close(ranks) < 0)
		ranks_abort(ranks, 2);
	if (rank == 0)
		printf("%u ranks: all arrived\n", size);
	return 0;
}
