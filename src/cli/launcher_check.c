/*
 * launcher_check - who starts many processes with one command line (see launcher_check.h)
 */
#include "src/cli/launcher_check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "src/cli/print_message.h"

/* SLURM_NTASKS is no such thing: it is there in a job's script, too, which runs once. */
static const struct launcher {
	const char *name, *size_variable, *rank_variable, *remedy;
} launchers[] = {
	{ "mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
	  "use the mpirun of the MPI library that " GSORT_PROGRAM "-mpi was built with" },
	{ "mpiexec", "PMI_SIZE", "PMI_RANK",
	  "use the mpiexec of the MPI library that " GSORT_PROGRAM "-mpi was built with" },
	{ "srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",
	  "give srun the --mpi= that this MPI library needs (srun --mpi=list names them), "
	  "or use mpirun" },
};

enum { N_LAUNCHERS = sizeof launchers / sizeof *launchers };

/* Of several; who none knows the number of is the first. */
static bool is_first_process(const struct launcher *launcher)
{
	const char *size = getenv(launcher->size_variable), *rank = getenv(launcher->rank_variable);

	return size && strtoul(size, NULL, 10) > 1 && (!rank || strtoul(rank, NULL, 10) == 0);
}

static bool writes_full_output(const struct gsort *sort)
{
	static const char *const exempt_options[] = { "shard", "check", "C", "explain" };

	for (size_t i = 0; i < sizeof exempt_options / sizeof *exempt_options; i++)
		if (gsort_get_set(sort, exempt_options[i]))
			return false;
	return true;
}

void launcher_warn(const struct gsort *sort)
{
	char text[256];

	for (size_t i = 0; i < N_LAUNCHERS && writes_full_output(sort); i++) {
		if (!is_first_process(&launchers[i]))
			continue;
		snprintf(text, sizeof text,
			 "%s has started several processes (%s=%s), each of which sorts all of its "
			 "input by itself: " GSORT_PROGRAM "-mpi sorts one together",
			 launchers[i].name, launchers[i].size_variable,
			 getenv(launchers[i].size_variable));
		cli_message(GSORT_WARNING, text);
		return;
	}
}

int launcher_check_ranks(unsigned n_ranks)
{
	char text[256];

	for (size_t i = 0; i < N_LAUNCHERS; i++) {
		const char *size = getenv(launchers[i].size_variable);

		if (!size || strtoul(size, NULL, 10) <= n_ranks)
			continue;
		snprintf(text, sizeof text, "%s has started %s ranks (%s), but MPI sees %u: %s",
			 launchers[i].name, size, launchers[i].size_variable, n_ranks,
			 launchers[i].remedy);
		cli_message(GSORT_ERROR, text);
		return -EINVAL;
	}
	return 0;
}

void launcher_skip_network_probe(void)
{
	const char *size = getenv("OMPI_COMM_WORLD_SIZE");
	const char *local_size = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");

	if (size && local_size && strcmp(size, local_size) == 0)
		setenv("OMPI_MCA_pml", "^cm,ucx", 0);
}
