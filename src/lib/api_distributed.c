/*
 * api_distributed.c - sorts of several MPI ranks (see api_cli.h)
 */
#include "src/lib/api_cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/size.h"
#include "src/checkpoint/fingerprint.h"
#include "src/comm/comm.h"
#include "src/lib/lib_internal.h"
#include "src/options/file_roles.h"
#include "src/sort/distributed_sort.h"

/* Refuse options that several ranks do not support, except one (NULL: none). */
static int check_mpi_support(const struct gsort *sort, const char *allowed_option)
{
	const struct option_table *table = sort->engine->option_table;

	for (unsigned i = 0; i < table->n_specs; i++) {
		const struct option_spec *row = &table->specs[i];

		if (option_is_present(&sort->arguments, i) && row->mpi_support == OPTION_MPI_NO &&
		    !(allowed_option && strcmp(row->name, allowed_option) == 0))
			return fail(-EINVAL, "%s is not supported with several ranks; %s",
				    option_format_name(row).text, row->mpi_substitute);
	}
	return 0;
}

void api_distributed_set_comm(struct gsort *sort, struct comm *comm)
{
	sort->comm = comm;
}

static bool has_single_rank(const struct gsort *sort)
{
	return !sort->comm || comm_size(sort->comm) == 1;
}

int api_distributed_check_files0(const struct gsort *sort, const char *path)
{
	return has_single_rank(sort) ? 0 : files0_require_regular_file(path);
}

static int check_distributed(struct gsort *sort)
{
	int r = check_mpi_support(sort, NULL);

	if (has_single_rank(sort)) /* the start of the sort does the other checks */
		return r;
	if (r == 0)
		r = api_start_check(sort, options_is_check(&sort->options) ? API_CHECK :
					  sort->options.explain            ? API_EXPLAIN :
									     API_SORT);
	return r < 0 ? r : api_check_files(sort);
}

int api_distributed_check(struct gsort *sort)
{
	return API_CALL(sort, check_distributed(sort));
}

uint64_t api_distributed_timeout_ns(const struct gsort *sort)
{
	return sort->options.timeout_s * 1000000000;
}

void api_distributed_notice_assumed(const struct gsort *sort)
{
	const struct sort_spec *spec = &sort->options.spec;
	const bool has_memory = gsort_get_set(sort, "buffer-size");
	const bool has_threads = gsort_get_set(sort, "parallel");
	char cpus[32];

	if (!spec->n_assumed_ranks || (has_memory && has_threads))
		return;
	snprintf(cpus, sizeof cpus, "%u CPUs (--parallel)", spec->n_threads);
	notice("--ranks: assuming %s%s%s for each rank",
	       has_memory ? "" : size_format(spec->memory_nbytes).text,
	       has_memory  ? "" :
	       has_threads ? " (-S)" :
			     " (-S) and ",
	       has_threads ? "" : cpus);
}

int api_distributed_check_planned(const struct gsort *sort, struct sort_spec *spec)
{
	if (!spec->n_assumed_ranks)
		return gsort_get_set(sort, "assume-rates") ?
			       fail(-EINVAL, "--assume-rates requires --ranks") :
			       0;
	if (spec->backend == BACKEND_AUTO) /* the GPUs of other hosts are unknown */
		spec->backend = BACKEND_CPU;
	return check_mpi_support(sort, "ranks");
}

bool api_is_reporting_rank(const struct gsort *sort)
{
	return !sort->comm || comm_rank(sort->comm) == 0;
}

/* --- Options of all ranks --- */

/* Describe each option by its name and value; "": not given. Values are never empty. */
static int describe_options(const struct gsort *sort, struct fingerprint *ret_fingerprint)
{
	const struct option_table *table = sort->engine->option_table;
	struct fingerprint fingerprint = { 0 };
	FILE *stream = open_memstream(&fingerprint.text, &fingerprint.nbytes);

	for (unsigned i = 0; stream && i < table->n_specs; i++) {
		const struct option_spec *row = &table->specs[i];
		const char *argument = gsort_get_set(sort, row->name);

		if (row->mpi_support == OPTION_MPI_SAME_ON_ALL)
			fprintf(stream, "%s%c%s%c", option_format_name(row).text, 0,
				!argument ? "" :
				*argument ? argument :
					    "given",
				0);
	}
	if (!stream || fclose(stream) != 0) {
		free(fingerprint.text);
		return fail(-ENOMEM, "no memory for the options of ranks");
	}
	*ret_fingerprint = fingerprint;
	return 0;
}

static int report_option_difference(const void *comm,
				    const struct fingerprint_difference *difference)
{
	const char *option = difference->name, *host = comm_host(comm, 0);

	if (!*difference->saved_value)
		return fail(
			-EINVAL,
			"%s is given here, but not on the first rank (%s); give it to all ranks",
			option, host);
	if (!*difference->value)
		return fail(
			-EINVAL,
			"%s is not given here, but on the first rank (%s); give it to all ranks",
			option, host);
	return fail(
		-EINVAL,
		"%s is '%s' here, but '%s' on the first rank (%s); give all ranks the same value",
		option, difference->value, difference->saved_value, host);
}

static int compare_options(struct gsort *sort)
{
	struct fingerprint local = { 0 };
	int r = describe_options(sort, &local);

	if (r == 0)
		r = distributed_compare_descriptions(sort->comm, &local, report_option_difference,
						     sort->comm);
	free(local.text);
	return r;
}

int api_distributed_compare_options(struct gsort *sort)
{
	return API_CALL(sort, compare_options(sort));
}

/* --- Progress and statistics --- */

/* Time between two queries of all ranks. */
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
	int r = reports_gather_ranks(&sort->reports, sort->comm, sort->stats, &sort->summary,
				     &sort->rank_stats);

	if (r == 0)
		r = rank_progress_finish(sort->rank_progress);
	if (r < 0 && sort->operation == API_SORT && reports_are_requested(&sort->options))
		notice("output complete, but reports could not be written");
	return r;
}
