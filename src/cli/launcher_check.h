/*
 * launcher_check - who starts many processes with one command line
 */
#pragma once

#include "include/gsort.h"

/*
 * mpirun or srun has started several of this process, as it would ranks, but each sorts all by
 * itself: the first one of them warns, and names what would sort together. That is not so if each
 * is told to write a part of its own (--shard), or writes nothing. It is no failure: what starts a
 * program in one of several processes, or one for each of several files, looks the same. To be
 * called when the command line is taken.
 */
void launcher_warn(const struct gsort *sort);

/*
 * Ranks that were started by another launcher than that of their MPI library all take themselves
 * for rank 0 of 1, and each would sort everything. If the launcher started more than `n_ranks`,
 * print an error with the remedy and return -EINVAL, else 0.
 */
int launcher_check_ranks(unsigned n_ranks);

/*
 * Ranks of one machine share memory; yet Open MPI would look first, for some 0.2 s, whether there
 * is a network that other layers of it could use. Who has chosen one, by mpirun or in the
 * environment, has it. To be called by a rank, before MPI is started.
 */
void launcher_skip_network_probe(void);
