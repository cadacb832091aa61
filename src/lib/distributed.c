/*
 * distributed - a sort that several processes do together (see distributed.h)
 */
#include "src/lib/distributed.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/system_limits.h"
#include "src/lib/lib_internal.h"
#include "src/comm/comm.h"

/* All that ranks cannot do, but what is `allowed`; NULL: nothing is. */
static int check_options(const struct gsort *sort, const char *allowed)
{
	char spelling[OPTION_SPELLING_NBYTES];

	for (unsigned i = 0; i < options_table.n_specs; i++) {
		const struct option_spec *row = &options_table.specs[i];

		if (sort->arguments.given >> i & 1 && row->company == COMPANY_CANNOT &&
		    !(allowed && strcmp(row->name, allowed) == 0))
			return fail(-EINVAL, "%s is not possible with several ranks: %s",
				    option_spell(row, spelling), row->alone);
	}
	return 0;
}

static int check_files(const struct gsort *sort)
{
	const struct run_files files = begin_files(sort);

	return run_files_check(&files);
}

void company_join(struct gsort *sort, struct ranks *ranks)
{
	sort->ranks = ranks;
}

static enum purpose purpose_of(const struct options *options)
{
	if (options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET)
		return PURPOSE_CHECK;
	return options->explain ? PURPOSE_EXPLAIN : PURPOSE_SORT;
}

static bool is_alone(const struct gsort *sort)
{
	return !sort->ranks || ranks_size(sort->ranks) == 1;
}

int company_check_list(const struct gsort *sort, const char *path)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	struct stat status;

	if (is_alone(sort) || (!is_stdin && (stat(path, &status) < 0 || S_ISREG(status.st_mode))))
		return 0;
	return fail(-EINVAL,
		    "--files0-from: several ranks need a list that is a file, which each of them "
		    "reads: %s%s; write the names to a file that all ranks see",
		    is_stdin ? "standard input" : path,
		    is_stdin ? " is the first rank's alone" : " is no regular file");
}

int company_check(struct gsort *sort)
{
	struct messages *before;
	int r;

	if (!told_enter(sort, &before))
		return -EINVAL;
	r = check_options(sort, NULL);
	if (is_alone(sort)) /* what else is wrong is said once, when it begins */
		return told_leave(before, r);
	if (r == 0)
		r = begin_try(sort, purpose_of(&sort->options));
	if (r == 0) /* of inputs that are named by now: all ranks would say it of them */
		r = check_files(sort);
	return told_leave(before, r);
}

uint64_t company_stall_ns(const struct gsort *sort)
{
	return sort->options.stall_s * 1000000000;
}

int company_imagine(const struct gsort *sort, struct sort_spec *spec)
{
	if (!spec->n_ranks_assumed)
		return gsort_get_set(sort, "assume-rates") ?
			       fail(-EINVAL,
				    "--assume-rates needs --ranks: of this machine rates are "
				    "measured") :
			       0;
	if (spec->backend == BACKEND_AUTO) /* there are no devices of other machines here */
		spec->backend = BACKEND_CPU;
	return check_options(sort, "ranks");
}

bool company_tells(const struct gsort *sort)
{
	return !sort->ranks || ranks_rank(sort->ranks) == 0;
}

/* Between two questions to all ranks how far they are. */
static const uint64_t news_interval_ns = 500000000;

static void set_news(struct gsort *sort, struct news *news)
{
	struct news *before;

	pthread_mutex_lock(&sort->looking);
	before = sort->news;
	sort->news = news;
	pthread_mutex_unlock(&sort->looking);
	news_close(before);
}

int company_open_news(struct gsort *sort)
{
	struct news *news;
	int r = sort->ranks ? news_open(sort->ranks, sort->stats, news_interval_ns, &news) : 0;

	if (r == 0 && sort->ranks)
		set_news(sort, news);
	return r;
}

void company_close_news(struct gsort *sort)
{
	set_news(sort, NULL);
}

int company_report(struct gsort *sort)
{
	struct census_entry own = { .facts = sort->facts };
	int r;

	stats_finish(sort->stats); /* nothing is added to a trace that is gathered */
	stats_get_totals(sort->stats, &own.totals);
	r = census_take(sort->ranks, &own, &sort->census);
	if (r == 0)
		r = news_finish(sort->news);
	if (r == 0)
		r = company_gather_trace(sort);
	if (r < 0 && sort->purpose == PURPOSE_SORT && reports_are_wanted(&sort->options))
		tell("the output is complete, and what was to be told of it is not");
	return r;
}

void company_share_machine(struct ranks *ranks, struct sort_spec *spec)
{
	unsigned first;
	const unsigned n = ranks_count_neighbours(ranks, &first), n_cpus = cpus_available("");
	const long n_online = sysconf(_SC_NPROCESSORS_ONLN);

	if (spec->memory_nbytes == 0)
		spec->memory_nbytes = memory_available_nbytes("") / 2 / n;
	/* What has been bound to some processors has its share already. */
	if (spec->n_threads == 0 && (long)n_cpus >= n_online)
		spec->n_threads = n_cpus / n ? n_cpus / n : 1;
	/* Ranks of one machine would measure each other. */
	spec->measures_ceilings = false;
}
