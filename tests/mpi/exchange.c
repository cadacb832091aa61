/*
 * exchange - exchange messages between ranks over MPI in every way
 *
 * usage: mpirun -np N exchange [LONGEST-MESSAGE [FRAGMENT]]
 *        mpirun -np N exchange abort|stop|long|short|forever
 *
 * Exits with 0 if all messages arrived as they were sent, otherwise with 2 and a message. The words
 * name a fault of rank 1, for which the others wait. `forever` exchanges messages until a rank
 * fails, and prints "going on" as soon as a test may make one fail.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/comm/transport.h"
#include "src/comm/comm.h"
#include "tests/support/comm_exercise.h"
#include "tools/cli/tool_main.h"

static bool is_action(const char *word)
{
	return strcmp(word, "abort") == 0 || strcmp(word, "stop") == 0 ||
	       strcmp(word, "long") == 0 || strcmp(word, "short") == 0 ||
	       strcmp(word, "forever") == 0;
}

static int exchange_forever(struct comm *comm)
{
	int r;

	for (unsigned i = 0;; i++) {
		r = comm_exercise(comm, 100000);
		if (r < 0)
			return r;
		if (i == 1 && comm_rank(comm) == 0) {
			puts("going on");
			fflush(stdout);
		}
	}
}

/* Rank 1 sends another length than rank 0 expects. */
static int send_wrong_length(struct comm *comm, size_t nbytes)
{
	struct comm_transfer transfer;
	char bytes[300] = { 0 };
	int r = 0;

	if (comm_rank(comm) == 0)
		r = comm_receive(comm, 1, 3, bytes, 200, 0, &transfer);
	else if (comm_rank(comm) == 1)
		r = comm_send(comm, 0, 3, bytes, nbytes, &transfer);
	if (r == 0 && comm_rank(comm) < 2)
		r = comm_wait(comm, &transfer);
	return r < 0 ? r : comm_barrier(comm);
}

static int inject_fault(struct comm *comm, const char *action)
{
	if (strcmp(action, "forever") == 0)
		return exchange_forever(comm);
	if (strcmp(action, "long") == 0 || strcmp(action, "short") == 0)
		return send_wrong_length(comm, strcmp(action, "long") == 0 ? 201 : 199);
	if (comm_rank(comm) != 1)
		return comm_barrier(comm);
	if (strcmp(action, "abort") == 0)
		return fail(-ECANCELED, "rank 1: that is all");
	raise(SIGSTOP);
	/* The process is continued before it is ended. */
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const bool is_word = argc > 1 && (argv[1][0] < '0' || argv[1][0] > '9');
	const size_t longest_nbytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	const struct comm_params params = {
		.timeout_ns = is_word ? 5000000000 : 60000000000,
		.fragment_nbytes = argc > 2 ? strtoul(argv[2], NULL, 0) : 0,
		.abort_timeout_ns = is_word ? 1000000000 : 0,
		.exit_process = _exit,
	};
	struct comm *comm;
	unsigned rank, size;

	if (is_word && !is_action(argv[1])) {
		fprintf(stderr, "usage: exchange [LONGEST-MESSAGE [FRAGMENT]]\n"
				"       exchange abort|stop|long|short|forever\n");
		return 2;
	}
	print_diagnostics_as("exchange");
	if (comm_open(&params, transport_mpi_open, NULL, &comm) < 0)
		return 2;
	rank = comm_rank(comm);
	size = comm_size(comm);
	if ((is_word ? inject_fault(comm, argv[1]) : comm_exercise(comm, longest_nbytes)) < 0 ||
	    comm_close(comm) < 0)
		comm_abort(comm, 2);
	if (rank == 0)
		printf("%u ranks: all arrived\n", size);
	return 0;
}
