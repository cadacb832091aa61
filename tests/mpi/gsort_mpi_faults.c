/*
 * gsort_mpi_faults - gsort-mpi whose ranks can stop at given points or have another version
 *
 * If the environment variable GSORT_TEST_STOP_AT of a rank is begun, sorted, written or checked,
 * the rank stops there until SIGCONT, after creating the file NAME.PID. GSORT_TEST_VERSION is the
 * version that a rank reports.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/comm/comm.h"
#include "src/sort/distributed_sort.h"

static void stop_at_phase(const char *point)
{
	const char *wanted = getenv("GSORT_TEST_STOP_AT");
	char path[64];
	FILE *file;

	if (!wanted || strcmp(wanted, point) != 0)
		return;
	snprintf(path, sizeof path, "%s.%ld", point, (long)getpid());
	file = fopen(path, "w");
	if (!file)
		abort();
	fclose(file);
	raise(SIGSTOP);
}

/* The output has been created, and all ranks have opened it. */
int __real_distributed_agree_plan(struct job *job, enum cache_policy *output_policy);
int __wrap_distributed_agree_plan(struct job *job, enum cache_policy *output_policy);
int __wrap_distributed_agree_plan(struct job *job, enum cache_policy *output_policy)
{
	stop_at_phase("begun");
	return __real_distributed_agree_plan(job, output_policy);
}

/* The rank has sorted its part of the input. */
int __real_distributed_exchange(struct sort *sort);
int __wrap_distributed_exchange(struct sort *sort);
int __wrap_distributed_exchange(struct sort *sort)
{
	stop_at_phase("sorted");
	return __real_distributed_exchange(sort);
}

/* The rank has written its partition of the output. */
int __real_distributed_finish_partition(struct sort *sort);
int __wrap_distributed_finish_partition(struct sort *sort);
int __wrap_distributed_finish_partition(struct sort *sort)
{
	stop_at_phase("written");
	return __real_distributed_finish_partition(sort);
}

/* The output is checked but not committed. */
struct sort_output;
int __real_sort_output_close_joined(struct sort_output *out);
int __wrap_sort_output_close_joined(struct sort_output *out);
int __wrap_sort_output_close_joined(struct sort_output *out)
{
	stop_at_phase("checked");
	return __real_sort_output_close_joined(out);
}

/* --- a sort of lines --- */

struct line_sort;

int __real_line_ranks_exchange_runs(struct line_sort *sort);
int __wrap_line_ranks_exchange_runs(struct line_sort *sort);
int __wrap_line_ranks_exchange_runs(struct line_sort *sort)
{
	stop_at_phase("sorted");
	return __real_line_ranks_exchange_runs(sort);
}

int __real_line_ranks_finish(struct line_sort *sort);
int __wrap_line_ranks_finish(struct line_sort *sort);
int __wrap_line_ranks_finish(struct line_sort *sort)
{
	int r;

	stop_at_phase("written");
	r = __real_line_ranks_finish(sort);
	if (r == 0)
		stop_at_phase("checked");
	return r;
}

int __real_comm_open(const struct comm_params *params, transport_open_fn *open, void *argument,
		     struct comm **ret_comm);
int __wrap_comm_open(const struct comm_params *params, transport_open_fn *open, void *argument,
		     struct comm **ret_comm);
int __wrap_comm_open(const struct comm_params *params, transport_open_fn *open, void *argument,
		     struct comm **ret_comm)
{
	struct comm_params versioned_params = *params;

	versioned_params.version = getenv("GSORT_TEST_VERSION");
	return __real_comm_open(&versioned_params, open, argument, ret_comm);
}
