/*
 * distributed_options - are all ranks asked for the same? (see distributed.h)
 *
 * What is sorted, and from and into which files, is compared when inputs are open (share_meet()).
 * This is what must be known before: whether a rank is asked for a sort at all, and options that
 * only the first would heed. Those of resources may be each rank's own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/checkpoint/fingerprint.h"
#include "src/lib/lib_internal.h"
#include "src/comm/comm.h"
#include "src/sort/distributed_sort.h"

/* No argument is empty: that is an option that was not given. */
static void add_option(FILE *stream, const struct gsort *sort, unsigned row)
{
	const bool is_given = sort->arguments.given >> row & 1;
	const char *argument = sort->arguments.first[row];
	char spelling[OPTION_SPELLING_NBYTES];

	fprintf(stream, "%s%c%s%c", option_spell(&options_table.specs[row], spelling), 0,
		!is_given ? "" :
		argument  ? argument :
			    "given",
		0);
}

static int describe(const struct gsort *sort, struct description *ret_description)
{
	struct description description = { 0 };
	FILE *stream = open_memstream(&description.text, &description.nbytes);

	for (unsigned i = 0; stream && i < options_table.n_specs; i++)
		if (options_table.specs[i].company == COMPANY_ALIKE)
			add_option(stream, sort, i);
	if (!stream || fclose(stream) != 0) {
		free(description.text);
		return fail(-ENOMEM, "no memory for what is asked for");
	}
	*ret_description = description;
	return 0;
}

static int say(const struct ranks *ranks, const struct difference *difference)
{
	const char *option = difference->name, *host = ranks_host(ranks, 0);

	if (!*difference->was)
		return fail(-EINVAL,
			    "is asked for %s, and the first rank, on %s, is not; all ranks must be "
			    "asked for the same",
			    option, host);
	if (!*difference->is)
		return fail(-EINVAL,
			    "is not asked for %s, and the first rank, on %s, is; all ranks must be "
			    "asked for the same",
			    option, host);
	return fail(-EINVAL,
		    "%s is '%s' here, and '%s' with the first rank, on %s; all ranks must be asked "
		    "for the same",
		    option, difference->is, difference->was, host);
}

static int compare(struct ranks *ranks, const struct description *own)
{
	struct description first;
	struct difference difference;
	bool differs;
	int r = share_receive_description(ranks, own, &first);

	if (r < 0)
		return r;
	differs = description_differs(&first, own, ACCEPT_NONE, &difference);
	r = share_speak_first(ranks, differs);
	r = r > 0 ? say(ranks, &difference) : r;
	free(first.text);
	return r;
}

int company_meet(struct gsort *sort)
{
	struct description own = { 0 };
	struct messages *before;
	int r;

	if (!told_enter(sort, &before))
		return -EINVAL;
	r = describe(sort, &own);
	if (r == 0)
		r = compare(sort->ranks, &own);
	free(own.text);
	return told_leave(before, r);
}
