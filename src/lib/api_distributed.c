/*
 * api_distributed - a sort that several processes do together (see api_distributed.h)
 */
#include "src/lib/api_distributed.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/system_limits.h"
#include "src/lib/lib_internal.h"
#include "src/comm/comm.h"

/* All that ranks cannot do, but what is `allowed`; NULL: nothing is. */
static int check_mpi_support(const struct gsort *sort, const char *allowed_option)
{
	char spelling[OPTION_SPELLING_NBYTES];

	for (unsigned i = 0; i < options_table.n_specs; i++) {
		const struct option_spec *row = &options_table.specs[i];

		if (sort->arguments.present >> i & 1 && row->mpi_support == OPTION_MPI_NO &&
		    !(allowed_option && strcmp(row->name, allowed_option) == 0))
			return fail(-EINVAL, "%s is not possible with several ranks: %s",
				    option_format_name(row, spelling), row->mpi_substitute);
	}
	return 0;
}

static int check_distributed_files(const struct gsort *sort)
{
	const struct command_files files = api_command_files(sort);

	return command_files_check(&files);
}

void api_distributed_set_comm(struct gsort *sort, struct comm *comm)
{
	sort->comm = comm;
}

static enum api_operation requested_operation(const struct options *options)
{
	if (options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET)
		return API_CHECK;
	return options->explain ? API_EXPLAIN : API_SORT;
}

static bool has_single_rank(const struct gsort *sort)
{
	return !sort->comm || comm_size(sort->comm) == 1;
}

int api_distributed_check_files0(const struct gsort *sort, const char *path)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	struct stat status;

	if (has_single_rank(sort) ||
	    (!is_stdin && (stat(path, &status) < 0 || S_ISREG(status.st_mode))))
		return 0;
	return fail(-EINVAL,
		    "--files0-from: several ranks need a list that is a file, which each of them "
		    "reads: %s%s; write the names to a file that all ranks see",
		    is_stdin ? "standard input" : path,
		    is_stdin ? " is the first rank's alone" : " is no regular file");
}

int api_distributed_check(struct gsort *sort)
{
	struct diagnostics *saved;
	int r;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	r = check_mpi_support(sort, NULL);
	if (has_single_rank(sort)) /* what else is wrong is said once, when it begins */
		return api_end_call(saved, r);
	if (r == 0)
		r = api_start_check(sort, requested_operation(&sort->options));
	if (r == 0) /* of inputs that are named by now: all ranks would say it of them */
		r = check_distributed_files(sort);
	return api_end_call(saved, r);
}

uint64_t api_distributed_timeout_ns(const struct gsort *sort)
{
	return sort->options.timeout_s * 1000000000;
}

int api_distributed_check_planned(const struct gsort *sort, struct sort_spec *spec)
{
	if (!spec->n_assumed_ranks)
		return gsort_get_set(sort, "assume-rates") ?
			       fail(-EINVAL,
				    "--assume-rates needs --ranks: of this machine rates are "
				    "measured") :
			       0;
	if (spec->backend == BACKEND_AUTO) /* there are no devices of other machines here */
		spec->backend = BACKEND_CPU;
	return check_mpi_support(sort, "ranks");
}

bool is_reporting_rank(const struct gsort *sort)
{
	return !sort->comm || comm_rank(sort->comm) == 0;
}

/* Between two questions to all ranks how far they are. */
static const uint64_t rank_progress_interval_ns = 500000000;

static void replace_rank_progress(struct gsort *sort, struct rank_progress *rank_progress)
{
	struct rank_progress *old_progress;

	pthread_mutex_lock(&sort->progress_lock);
	old_progress = sort->rank_progress;
	sort->rank_progress = rank_progress;
	pthread_mutex_unlock(&sort->progress_lock);
	rank_progress_close(old_progress);
}

int api_distributed_open_progress(struct gsort *sort)
{
	struct rank_progress *rank_progress;
	int r = sort->comm ? rank_progress_open(sort->comm, sort->stats, rank_progress_interval_ns,
						&rank_progress) :
			     0;

	if (r == 0 && sort->comm)
		replace_rank_progress(sort, rank_progress);
	return r;
}

void api_distributed_close_progress(struct gsort *sort)
{
	replace_rank_progress(sort, NULL);
}

int api_distributed_gather_stats(struct gsort *sort)
{
	struct rank_summary local = { .summary = sort->summary };
	int r;

	stats_finish(sort->stats); /* nothing is added to a trace that is gathered */
	stats_get_totals(sort->stats, &local.totals);
	r = rank_stats_gather(sort->comm, &local, &sort->rank_stats);
	if (r == 0)
		r = rank_progress_finish(sort->rank_progress);
	if (r == 0)
		r = api_distributed_gather_trace(sort);
	if (r < 0 && sort->operation == API_SORT && reports_are_requested(&sort->options))
		notice("the output is complete, and what was to be told of it is not");
	return r;
}

void api_distributed_divide_host(struct comm *comm, struct sort_spec *spec)
{
	unsigned first_rank;
	const unsigned n = comm_host_size(comm, &first_rank), n_cpus = cpus_available("");
	const long n_online = sysconf(_SC_NPROCESSORS_ONLN);

	if (spec->memory_nbytes == 0)
		spec->memory_nbytes = memory_available_nbytes("") / 2 / n;
	/* What has been bound to some processors has its share already. */
	if (spec->n_threads == 0 && (long)n_cpus >= n_online)
		spec->n_threads = n_cpus / n ? n_cpus / n : 1;
	/* Ranks of one machine would measure each other. */
	spec->measure_peak_rates = false;
}
