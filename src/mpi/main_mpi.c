/*
 * main_mpi - gsort-mpi: gsort on several machines, by ranks that MPI has started
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config.h"
#include "src/base/diagnostics.h"
#include "src/cli/command_line.h"
#include "src/cli/fatal_signals.h"
#include "src/cli/exit_status.h"
#include "src/cli/process_setup.h"
#include "src/cli/cli_main.h"
#include "src/cli/progress_display.h"
#include "src/cli/print_message.h"
#include "src/cli/launcher_check.h"
#include "src/lib/api_distributed.h"
#include "src/comm/mpi/transport_mpi.h"
#include "src/comm/comm.h"

/* While ranks meet, before the command line is read (--timeout). */
static const uint64_t command_line_timeout_ns = UINT64_C(60) * 1000000000;

static void on_comm_message(void *context, const struct message *message)
{
	(void)context;
	if (message->kind != MESSAGE_DEBUG)
		cli_message(message->kind == MESSAGE_WARNING ? GSORT_WARNING : GSORT_ERROR,
			    message->text);
}

/* What of the first rank's command line is told to the others. */
static int broadcast_outcome(struct comm *comm, int r)
{
	int64_t outcome = r;
	const int broadcast_error = comm_broadcast(comm, &outcome, sizeof outcome, 0);

	return broadcast_error < 0 ? broadcast_error : (int)outcome;
}

/*
 * The first rank takes the command line before the others do, and what is wrong with it is said
 * once: who hears of that waits to be ended.
 */
static int wait_for_root(void *context, struct gsort *sort)
{
	struct comm *comm = context;
	const int r = comm_rank(comm) == 0 ? 0 : broadcast_outcome(comm, 0);

	api_distributed_set_comm(sort, comm);
	if (r < 0)
		comm_barrier(comm);
	return r < 0 ? r : 0;
}

/* All have, and nobody has done anything of it: neither sorted, nor answered. */
static int compare_rank_options(struct gsort *sort, int r)
{
	const int compare_error = api_distributed_compare_options(sort);

	return compare_error < 0 ? compare_error : r;
}

static int check_command_line(void *context, struct gsort *sort, int r)
{
	struct comm *comm = context;

	if (r == 0)
		r = api_distributed_check(sort);
	if (r == 0)
		comm_set_timeout(comm, api_distributed_timeout_ns(sort));
	if (comm_rank(comm) == 0)
		r = broadcast_outcome(comm, r);
	return r < 0 ? r : compare_rank_options(sort, r);
}

static const struct cli_program mpi_program = {
	.name = GSORT_PROGRAM "-mpi",
	.usage = "Usage: mpirun -np N " GSORT_PROGRAM "-mpi [OPTION]... -o FILE FILE...\n"
		 "Sort fixed-size binary records with N processes, on one machine or several.\n"
		 "\n"
		 "Inputs and the output are files that all processes can open. Several files are\n"
		 "sorted together. --shard is refused.\n",
	.get_option = api_distributed_get_option,
	.get_word = api_distributed_get_word,
};

/* What stands before what others than the first rank say. */
struct rank_label {
	char text[COMM_HOST_NBYTES + 32];
};

static const char *format_rank_label(const struct comm *comm, struct rank_label *ret_label)
{
	const unsigned rank = comm_rank(comm);

	snprintf(ret_label->text, sizeof ret_label->text, "rank %u, on %s", rank,
		 comm_host(comm, rank));
	return rank == 0 ? NULL : ret_label->text;
}

static int run_rank(struct comm *comm, int argc, char **argv)
{
	struct rank_label label;
	const struct cli_hooks hooks = { .context = comm,
					 .program = &mpi_program,
					 .message_prefix = format_rank_label(comm, &label),
					 .before_parse = wait_for_root,
					 .after_parse = check_command_line };
	const int status = cli_main(&hooks, argc, argv);

	if (status == EXIT_TROUBLE || comm_close(comm) < 0) /* others wait for this rank */
		comm_abort(comm, EXIT_TROUBLE);
	return status;
}

/* An output that is not complete leaves no name behind, whoever ends this process. */
static void cleanup_files(void *context)
{
	(void)context;
	gsort_cleanup_files(process_get());
}

static int run_gsort_mpi(int argc, char **argv)
{
	const struct comm_params settings = { .timeout_ns = command_line_timeout_ns,
					      .before_abort = cleanup_files,
					      .allow_peer_access = process_allow_memory_read,
					      .exit_process = _exit };
	struct diagnostics messages;
	struct comm *comm;
	int r;

	diagnostics_init(&messages, on_comm_message, NULL);
	diagnostics_push(&messages);
	launcher_skip_network_probe();
	r = comm_open(&settings, transport_mpi_open, NULL, &comm);
	if (r < 0)
		return EXIT_TROUBLE;
	if (launcher_check_ranks(comm_size(comm)) < 0)
		comm_abort(comm, EXIT_TROUBLE);
	return run_rank(comm, argc, argv);
}

int main(int argc, char **argv)
{
	cli_configure_malloc();
	fatal_signals_ignore_size_limit(); /* the library has files before a sort handles them */
	progress_display_block_signal();   /* MPI has threads before progress is asked for */
	return process_run_main(run_gsort_mpi, argc, argv);
}
