/*
 * account - was written what was read?
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

#include "src/merge/merge.h"
#include "src/sort/around.h"

struct account {
	struct ledger ledger;       /* of all that was done */
	struct merge_result result; /* of the final merge */
};

/*
 * Is the output what it must be, by what was found out on the way? Else -EIO after a message: a
 * fault of gsort or of the machine.
 */
int account_check(const struct account *account, const struct job *job);

/*
 * The same by reading it back (--verify): the records, which begin at `begin`, and what is around
 * them. -ESPIPE after a message if that cannot be done.
 */
int account_verify(const struct account *account, const struct job *job, const struct around *frame,
		   struct output *output, uint64_t begin);
