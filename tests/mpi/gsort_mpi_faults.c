/*
 * gsort_mpi_faults - gsort-mpi, of which a rank stops when it has come so far, or is of another
 * version
 *
 * GSORT_TEST_STOP_AT in the environment of a rank says where: begun, sorted, written or checked.
 * There it waits for SIGCONT, and a file that is called so, and with its process behind a dot,
 * appears. So a test can do something at a moment that it knows, and has not to hit it.
 * GSORT_TEST_VERSION is the version that a rank says it has.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/comm/comm.h"
#include "src/sort/distributed_sort.h"

static void stop_at(const char *point)
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

/* The output has been begun, and all see it. */
int __real_share_agree(struct sort *sort);
int __wrap_share_agree(struct sort *sort);
int __wrap_share_agree(struct sort *sort)
{
	stop_at("begun");
	return __real_share_agree(sort);
}

/* Its part of the input is sorted. */
int __real_share_exchange(struct sort *sort);
int __wrap_share_exchange(struct sort *sort);
int __wrap_share_exchange(struct sort *sort)
{
	stop_at("sorted");
	return __real_share_exchange(sort);
}

/* It has written its range of the output. */
int __real_share_settle(struct sort *sort);
int __wrap_share_settle(struct sort *sort);
int __wrap_share_settle(struct sort *sort)
{
	stop_at("written");
	return __real_share_settle(sort);
}

/* All of that is checked, and the output has not got its name. */
int __real_share_complete(struct sort *sort);
int __wrap_share_complete(struct sort *sort);
int __wrap_share_complete(struct sort *sort)
{
	stop_at("checked");
	return __real_share_complete(sort);
}

int __real_ranks_open(const struct ranks_settings *settings, transport_opener *open, void *argument,
		      struct ranks **ret_ranks);
int __wrap_ranks_open(const struct ranks_settings *settings, transport_opener *open, void *argument,
		      struct ranks **ret_ranks);
int __wrap_ranks_open(const struct ranks_settings *settings, transport_opener *open, void *argument,
		      struct ranks **ret_ranks)
{
	struct ranks_settings all = *settings;

	all.version = getenv("GSORT_TEST_VERSION");
	return __real_ranks_open(&all, open, argument, ret_ranks);
}
