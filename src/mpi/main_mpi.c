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
#include "src/lib/distributed.h"
#include "src/comm/mpi/transport_mpi.h"
#include "src/comm/comm.h"

/* While ranks meet, before the command line is read (--timeout). */
static const uint64_t meeting_stall_ns = UINT64_C(60) * 1000000000;

static void hear(void *context, const struct message *message)
{
	(void)context;
	if (message->kind != MESSAGE_DETAIL)
		say(message->kind == MESSAGE_WARNING ? GSORT_WARNING : GSORT_ERROR, message->text);
}

/* What of the first rank's command line is told to the others. */
static int tell_outcome(struct ranks *ranks, int r)
{
	int64_t outcome = r;
	const int told = ranks_broadcast(ranks, &outcome, sizeof outcome, 0);

	return told < 0 ? told : (int)outcome;
}

/*
 * The first rank takes the command line before the others do, and what is wrong with it is said
 * once: who hears of that waits to be ended.
 */
static int begin(void *context, struct gsort *sort)
{
	struct ranks *ranks = context;
	const int r = ranks_rank(ranks) == 0 ? 0 : tell_outcome(ranks, 0);

	company_join(sort, ranks);
	if (r < 0)
		ranks_barrier(ranks);
	return r < 0 ? r : 0;
}

/* All have, and nobody has done anything of it: neither sorted, nor answered. */
static int meet(struct gsort *sort, int r)
{
	const int met = company_meet(sort);

	return met < 0 ? met : r;
}

static int taken(void *context, struct gsort *sort, int r)
{
	struct ranks *ranks = context;

	if (r == 0)
		r = company_check(sort);
	if (r == 0)
		ranks_set_stall(ranks, company_stall_ns(sort));
	if (ranks_rank(ranks) == 0)
		r = tell_outcome(ranks, r);
	return r < 0 ? r : meet(sort, r);
}

static const struct command_line_face face = {
	.program = GSORT_PROGRAM "-mpi",
	.usage = "Usage: mpirun -np N " GSORT_PROGRAM "-mpi [OPTION]... -o FILE FILE...\n"
		 "Sort fixed-size binary records with N processes, on one machine or several.\n"
		 "\n"
		 "Inputs and the output are files that all processes can open. Several files are\n"
		 "sorted together. --shard is refused.\n",
	.get_option = company_get_option,
	.get_word = company_get_option_word,
};

/* What stands before what others than the first rank say. */
struct speaker {
	char name[RANKS_HOST_NBYTES + 32];
};

static const char *name_speaker(const struct ranks *ranks, struct speaker *ret_speaker)
{
	const unsigned rank = ranks_rank(ranks);

	snprintf(ret_speaker->name, sizeof ret_speaker->name, "rank %u, on %s", rank,
		 ranks_host(ranks, rank));
	return rank == 0 ? NULL : ret_speaker->name;
}

static int run_rank(struct ranks *ranks, int argc, char **argv)
{
	struct speaker speaker;
	const struct program_hooks hooks = { .context = ranks,
					     .face = &face,
					     .speaker = name_speaker(ranks, &speaker),
					     .begin = begin,
					     .taken = taken };
	const int status = program_run(&hooks, argc, argv);

	if (status == EXIT_TROUBLE || ranks_close(ranks) < 0) /* others wait for this rank */
		ranks_abort(ranks, EXIT_TROUBLE);
	return status;
}

/* An output that is not complete leaves no name behind, whoever ends this process. */
static void remove_names(void *context)
{
	(void)context;
	gsort_cleanup_files(process_lent());
}

static int run(int argc, char **argv)
{
	struct ranks_mpi_settings mpi = { .get_environment = getenv };
	const struct ranks_settings settings = { .stall_ns = meeting_stall_ns,
						 .before_end = remove_names,
						 .allow_reading = process_allow_reading,
						 .end = _exit };
	struct messages messages;
	struct ranks *ranks;
	int r;

	messages_init(&messages, hear, NULL);
	messages_enter(&messages);
	starter_look_for_no_network();
	r = ranks_open(&settings, ranks_mpi_open, &mpi, &ranks);
	return r < 0 ? EXIT_TROUBLE : run_rank(ranks, argc, argv);
}

int main(int argc, char **argv)
{
	program_prepare_memory();
	deadly_signals_ignore_limit(); /* the library has files before a sort handles them */
	progress_hold_signal();        /* MPI has threads before progress is asked for */
	return process_run_program(run, argc, argv);
}
