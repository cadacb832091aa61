/*
 * main_mpi.c - gsort-mpi: sort with several processes started by MPI
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "src/base/diagnostics.h"
#include "src/cli/process_setup.h"
#include "src/cli/cli_main.h"
#include "src/cli/print_message.h"
#include "src/lib/api_cli.h"
#include "src/comm/transport.h"
#include "src/comm/comm.h"
#include "src/lines/cli/lines_main.h"
#include "src/sort/distributed_sort.h"

static const uint64_t ns_per_s = 1000000000;
static const uint64_t default_timeout_ns = UINT64_C(60) * 1000000000;

/* Return whether this argument is --timeout, perhaps abbreviated. */
static bool is_timeout_option(const char *argument)
{
	static const char option[] = "--timeout";
	const size_t nbytes = strcspn(argument, "=");

	return nbytes >= sizeof "--ti" - 1 && nbytes < sizeof option &&
	       strncmp(argument, option, nbytes) == 0;
}

/*
 * Return the value of --timeout, which must already hold while the ranks meet. The command line is
 * parsed after that, because rank 0 reports its errors for all ranks. So an argument that is no
 * number is ignored here.
 */
static uint64_t find_timeout_ns(int argc, char **argv)
{
	uint64_t timeout_ns = default_timeout_ns;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *value = strchr(argv[i], '=');
		unsigned long long seconds;
		char *end;

		if (!is_timeout_option(argv[i]))
			continue;
		value = value ? value + 1 : i + 1 < argc ? argv[i + 1] : "";
		seconds = strtoull(value, &end, 10);
		if (*value >= '0' && *value <= '9' && !*end && seconds <= UINT64_MAX / ns_per_s)
			timeout_ns = seconds * ns_per_s;
	}
	return timeout_ns;
}

static void on_comm_message(void *context, const struct message *message)
{
	(void)context;
	if (message->kind != MESSAGE_DEBUG)
		cli_message(message->kind == MESSAGE_WARNING ? GSORT_WARNING : GSORT_ERROR,
			    message->text);
}

/* Broadcast the result of parsing rank 0's command line. */
static int broadcast_outcome(struct comm *comm, int r)
{
	int64_t outcome = r;
	const int broadcast_error = comm_broadcast(comm, &outcome, sizeof outcome);

	return broadcast_error < 0 ? broadcast_error : (int)outcome;
}

/*
 * Rank 0 parses its command line first and reports its errors for all ranks. If it fails, the
 * others wait to be aborted.
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

/* Called when all ranks have parsed their command lines and before any of them acts on it. */
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
		 "With --lines, sort lines of text.\n"
		 "\n"
		 "Inputs and the output are files that all processes can open. Several files are\n"
		 "sorted together. --shard is refused.\n",
	.unsupported = unsupported_options,
	.get_option = api_distributed_get_option,
	.get_word = api_distributed_get_word,
};

/* The prefix of messages of ranks other than rank 0. */
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

/* Check that all ranks sort lines, or none does. */
static int compare_modes(struct comm *comm, bool sorts_lines)
{
	uint64_t n = sorts_lines;
	int r = comm_allreduce_sum(comm, &n, 1);

	if (r == 0 && comm_rank(comm) == 0 && n % comm_size(comm) != 0)
		r = fail(-EINVAL, "--lines is given to %u of %u ranks; give it to all ranks",
			 (unsigned)n, comm_size(comm));
	return distributed_broadcast_status(comm, r);
}

static int run_rank(struct comm *comm, int argc, char **argv)
{
	const bool sorts_lines = lines_is_requested(argc, argv);
	struct rank_label label;
	const struct cli_hooks hooks = { .context = comm,
					 .program = sorts_lines ? &lines_mpi_program : &mpi_program,
					 .message_prefix = format_rank_label(comm, &label),
					 .before_parse = wait_for_root,
					 .after_parse = check_command_line };
	const int status = compare_modes(comm, sorts_lines) < 0 ? EXIT_TROUBLE :
								  cli_main(&hooks, argc, argv);

	if (status == EXIT_TROUBLE || comm_close(comm) < 0) /* other ranks wait for this one */
		comm_abort(comm, EXIT_TROUBLE);
	return status;
}

/* Remove temporary files when this process ends for any reason. */
static void cleanup_files(void *context)
{
	(void)context;
	gsort_cleanup_files(process_get());
}

static int run_gsort_mpi(int argc, char **argv)
{
	const struct comm_params params = { .timeout_ns = find_timeout_ns(argc, argv),
					    .before_abort = cleanup_files,
					    .allow_peer_access = process_allow_memory_read,
					    .exit_process = _exit };
	struct diagnostics messages;
	struct comm *comm;
	int r;

	diagnostics_init(&messages, on_comm_message, NULL);
	diagnostics_push(&messages);
	launcher_skip_network_probe();
	r = comm_open(&params, transport_mpi_open, NULL, &comm);
	if (r < 0)
		return EXIT_TROUBLE;
	if (launcher_check_ranks(comm_size(comm)) < 0)
		comm_abort(comm, EXIT_TROUBLE);
	return run_rank(comm, argc, argv);
}

int main(int argc, char **argv)
{
	cli_configure_malloc();
	fatal_signals_ignore_size_limit(); /* the library opens files earlier */
	progress_display_block_signal();   /* MPI starts threads earlier */
	return process_run_main(run_gsort_mpi, argc, argv);
}
