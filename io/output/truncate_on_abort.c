/*
 * truncate_on_abort - files that others have opened for us, for whoever has to cut them back in a
 * hurry (see truncate_on_abort.h)
 */
#include "io/output/truncate_on_abort.h"

#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A slot that nobody else has; NULL: there is none. */
static struct truncate_entry *claim_truncate_entry(struct truncate_table *table)
{
	for (int i = 0; table && i < TRUNCATE_MAX_ENTRIES; i++)
		if (!atomic_exchange(&table->entries[i].in_use, true))
			return &table->entries[i];
	return NULL;
}

struct truncate_entry *truncate_register(struct truncate_table *table, int fd, uint64_t start,
					 struct truncate_entry *fallback)
{
	struct truncate_entry *entry = claim_truncate_entry(table);

	if (!entry)
		entry = fallback;
	entry->fd = fd;
	entry->start = start;
	atomic_store(&entry->max_end, start);
	atomic_store(&entry->is_active, true);
	return entry;
}

void truncate_extend(struct truncate_entry *entry, uint64_t end)
{
	uint_least64_t max_end = atomic_load(&entry->max_end);

	while (max_end < end && !atomic_compare_exchange_weak(&entry->max_end, &max_end, end))
		;
}

/* Does the file end there, or before what can be ours does? */
static bool file_ends_within(const struct truncate_entry *entry, uint64_t min_end)
{
	struct stat status;

	return fstat(entry->fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 0 &&
	       (uint64_t)status.st_size >= min_end &&
	       (uint64_t)status.st_size <= atomic_load(&entry->max_end);
}

bool truncate_is_unmodified(const struct truncate_entry *entry)
{
	return file_ends_within(entry, entry->start + 1);
}

/* What another thread is about to allocate does not show until it is done; a cut waits for it. */
static bool may_be_unmodified(const struct truncate_entry *entry)
{
	return atomic_load(&entry->max_end) > entry->start && file_ends_within(entry, entry->start);
}

/* Either the handler does not see that it is live, or it is seen here that there is a handler. */
void truncate_unregister(struct truncate_table *table, struct truncate_entry *entry)
{
	atomic_store(&entry->is_active, false);
	while (table && atomic_load(&table->is_running))
		pause();
	atomic_store(&entry->in_use, false);
}

/* The hard limit stays, so that this may always be done. */
static void forbid_file_growth(struct truncate_table *table)
{
	struct rlimit limit;

	if (atomic_exchange(&table->has_truncated, true) || getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return;
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_FSIZE, &limit);
}

void truncate_run(struct truncate_table *table)
{
	atomic_store(&table->is_running, true);
	for (int i = 0; i < TRUNCATE_MAX_ENTRIES; i++) {
		const struct truncate_entry *entry = &table->entries[i];

		if (!atomic_load(&entry->is_active))
			continue;
		forbid_file_growth(table);
		/* If it cannot be cut, there is nobody to be told. */
		if (may_be_unmodified(entry) && ftruncate(entry->fd, (off_t)entry->start) < 0)
			continue;
	}
}

void truncate_wait_for_exit(const struct truncate_table *table)
{
	while (table && atomic_load(&table->has_truncated))
		pause();
}
