/*
 * api_distributed_options - are all ranks asked for the same? (see api_distributed.h)
 *
 * What is sorted, and from and into which files, is compared when inputs are open
 * (distributed_compare_specs()). This is what must be known before: whether a rank is asked for a
 * sort at all, and options that only the first would heed. Those of resources may be each rank's
 * own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/checkpoint/fingerprint.h"
#include "src/lib/lib_internal.h"
#include "src/comm/comm.h"
#include "src/sort/distributed_sort.h"

/* No argument is empty: that is an option that was not given. */
static void write_option_value(FILE *stream, const struct gsort *sort, unsigned row)
{
	const bool is_present = sort->arguments.present >> row & 1;
	const char *argument = sort->arguments.values[row];
	char spelling[OPTION_SPELLING_NBYTES];

	fprintf(stream, "%s%c%s%c", option_format_name(&options_table.specs[row], spelling), 0,
		!is_present ? "" :
		argument    ? argument :
			      "given",
		0);
}

static int describe_options(const struct gsort *sort, struct fingerprint *ret_fingerprint)
{
	struct fingerprint fingerprint = { 0 };
	FILE *stream = open_memstream(&fingerprint.text, &fingerprint.nbytes);

	for (unsigned i = 0; stream && i < options_table.n_specs; i++)
		if (options_table.specs[i].mpi_support == OPTION_MPI_SAME_ON_ALL)
			write_option_value(stream, sort, i);
	if (!stream || fclose(stream) != 0) {
		free(fingerprint.text);
		return fail(-ENOMEM, "no memory for what is asked for");
	}
	*ret_fingerprint = fingerprint;
	return 0;
}

static int report_option_difference(const void *comm,
				    const struct fingerprint_difference *difference)
{
	const char *option = difference->name, *host = comm_host(comm, 0);

	if (!*difference->saved_value)
		return fail(-EINVAL,
			    "is asked for %s, and the first rank, on %s, is not; all ranks must be "
			    "asked for the same",
			    option, host);
	if (!*difference->value)
		return fail(-EINVAL,
			    "is not asked for %s, and the first rank, on %s, is; all ranks must be "
			    "asked for the same",
			    option, host);
	return fail(-EINVAL,
		    "%s is '%s' here, and '%s' with the first rank, on %s; all ranks must be asked "
		    "for the same",
		    option, difference->value, difference->saved_value, host);
}

int api_distributed_compare_options(struct gsort *sort)
{
	struct fingerprint local = { 0 };
	struct diagnostics *saved;
	int r;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	r = describe_options(sort, &local);
	if (r == 0)
		r = distributed_compare_descriptions(sort->comm, &local, report_option_difference,
						     sort->comm);
	free(local.text);
	return api_end_call(saved, r);
}
