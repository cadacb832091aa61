/*
 * integrity - was written what was read?
 *
 * Every record that is read is digested when it becomes an element, every record that is written
 * when it is decoded, and so is every record that -u drops, where it is found equal to the one that
 * is kept. Whatever lies between (sort, spill, merges) must keep
 *
 *	read = written + dropped		as multisets, up to 2^-64.
 *
 * and every two neighbours of the output must be in order.
 */
#pragma once

#include "src/check/verify.h"
#include "src/merge/merge.h"

struct integrity {
	struct record_totals totals; /* of all that was done */
	struct merge_result result;  /* of the final merge */
};

/*
 * Is the output what it must be, by what was found out on the way? Else -EIO after a message: a
 * fault of gsort or of the machine.
 */
int integrity_check(const struct integrity *integrity, const struct job *job);

/*
 * The same by reading the records back (--verify); `name` is that of the output, for messages.
 * -ESPIPE after a message if that cannot be done.
 */
int integrity_verify(const struct integrity *integrity, const struct job *job,
		     verify_read_fn *read_at, void *context, const char *name);

/* Print that this is how it ended. -EIO. */
int integrity_fail_verify(const char *name);

/* Print a message for -ESPIPE, which reading back reports without one. Returns r. */
int integrity_fail_read_back(int r, const char *name);
