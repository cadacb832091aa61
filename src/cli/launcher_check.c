/*
 * launcher_check - who starts many processes with one command line (see launcher_check.h)
 */
#include "src/cli/launcher_check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/print_message.h"

/* SLURM_NTASKS is no such thing: it is there in a job's script, too, which runs once. */
static const struct starter {
	const char *name, *n_variable, *number_variable;
} starters[] = {
	{ "mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" },
	{ "mpiexec", "PMI_SIZE", "PMI_RANK" },
	{ "srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID" },
};

enum { N_STARTERS = sizeof starters / sizeof *starters };

/* Of several; who none knows the number of is the first. */
static bool is_first_of_several(const struct starter *starter)
{
	const char *n = getenv(starter->n_variable), *number = getenv(starter->number_variable);

	return n && strtoul(n, NULL, 10) > 1 && (!number || strtoul(number, NULL, 10) == 0);
}

static bool writes_all(const struct gsort *sort)
{
	static const char *const others[] = { "shard", "check", "C", "explain" };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (gsort_get_set(sort, others[i]))
			return false;
	return true;
}

void starter_warn(const struct gsort *sort)
{
	char text[256];

	for (size_t i = 0; i < N_STARTERS && writes_all(sort); i++) {
		if (!is_first_of_several(&starters[i]))
			continue;
		snprintf(text, sizeof text,
			 "%s has started several processes (%s=%s), each of which sorts all of its "
			 "input by itself: gsort-mpi sorts one together",
			 starters[i].name, starters[i].n_variable, getenv(starters[i].n_variable));
		say(GSORT_WARNING, text);
		return;
	}
}

void starter_look_for_no_network(void)
{
	const char *n = getenv("OMPI_COMM_WORLD_SIZE");
	const char *n_here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");

	if (n && n_here && strcmp(n, n_here) == 0)
		setenv("OMPI_MCA_pml", "^cm,ucx", 0);
}
