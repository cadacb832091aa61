/*
 * exchange - ranks that exchange messages over MPI in every way there is
 *
 * usage: mpirun -np N exchange [LONGEST-MESSAGE [PIECE]]
 *
 * Ends with 0 if everything arrived as it was sent, and with 2 after a line that says why not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/ranks/mpi/ranks_mpi.h"
#include "src/ranks/ranks.h"
#include "tests/support/ranks_exchange.h"
#include "tools/tool/messages_print.h"

int main(int argc, char **argv)
{
	struct ranks_mpi_settings how = { getenv };
	const size_t longest_nbytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	const struct ranks_settings settings = {
		.stall_ns = 60000000000,
		.piece_nbytes = argc > 2 ? strtoul(argv[2], NULL, 0) : 0,
		.end = _exit,
	};
	struct ranks *ranks;
	unsigned rank, size;

	messages_print_as("exchange");
	if (ranks_open(&settings, ranks_mpi_open, &how, &ranks) < 0)
		return 2;
	rank = ranks_rank(ranks);
	size = ranks_size(ranks);
	if (ranks_exchange(ranks, longest_nbytes) < 0 || ranks_close(ranks) < 0)
		ranks_abort(ranks, 2);
	if (rank == 0)
		printf("%u ranks: all arrived\n", size);
	return 0;
}
