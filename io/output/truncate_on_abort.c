/*
 * truncate_on_abort - files that others have opened for us, for whoever has to cut them back in a hurry (see
 * truncate_on_abort.h)
 */
#include "io/output/truncate_on_abort.h"

#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A slot that nobody else has; NULL: there is none. */
static struct cut_back *find_slot(struct cut_backs *cuts)
{
	for (int i = 0; cuts && i < CUT_BACKS_MOST; i++)
		if (!atomic_exchange(&cuts->all[i].taken, true))
			return &cuts->all[i];
	return NULL;
}

struct cut_back *cut_back_take(struct cut_backs *cuts, int fd, uint64_t begin, struct cut_back *own)
{
	struct cut_back *slot = find_slot(cuts);

	if (!slot)
		slot = own;
	slot->fd = fd;
	slot->begin = begin;
	atomic_store(&slot->behind, begin);
	atomic_store(&slot->live, true);
	return slot;
}

void cut_back_reach(struct cut_back *cut, uint64_t end)
{
	uint_least64_t behind = atomic_load(&cut->behind);

	while (behind < end && !atomic_compare_exchange_weak(&cut->behind, &behind, end))
		;
}

/* Does the file end there, or before what can be ours does? */
static bool ends_at_or_behind(const struct cut_back *cut, uint64_t least)
{
	struct stat status;

	return fstat(cut->fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 0 &&
	       (uint64_t)status.st_size >= least &&
	       (uint64_t)status.st_size <= atomic_load(&cut->behind);
}

bool cut_back_is_ours(const struct cut_back *cut)
{
	return ends_at_or_behind(cut, cut->begin + 1);
}

/* What another thread is about to allocate does not show until it is done; a cut waits for it. */
static bool may_be_ours_soon(const struct cut_back *cut)
{
	return atomic_load(&cut->behind) > cut->begin && ends_at_or_behind(cut, cut->begin);
}

/* Either the handler does not see that it is live, or it is seen here that there is a handler. */
void cut_back_give_up(struct cut_backs *cuts, struct cut_back *cut)
{
	atomic_store(&cut->live, false);
	while (cuts && atomic_load(&cuts->is_cutting))
		pause();
	atomic_store(&cut->taken, false);
}

/* The hard limit stays, so that this may always be done. */
static void let_nothing_grow(struct cut_backs *cuts)
{
	struct rlimit limit;

	if (atomic_exchange(&cuts->has_cut, true) || getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return;
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_FSIZE, &limit);
}

void cut_back_all(struct cut_backs *cuts)
{
	atomic_store(&cuts->is_cutting, true);
	for (int i = 0; i < CUT_BACKS_MOST; i++) {
		const struct cut_back *cut = &cuts->all[i];

		if (!atomic_load(&cut->live))
			continue;
		let_nothing_grow(cuts);
		/* If it cannot be cut, there is nobody to be told. */
		if (may_be_ours_soon(cut) && ftruncate(cut->fd, (off_t)cut->begin) < 0)
			continue;
	}
}

void cut_back_wait_for_end(const struct cut_backs *cuts)
{
	while (cuts && atomic_load(&cuts->has_cut))
		pause();
}
