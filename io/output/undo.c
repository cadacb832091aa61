/*
 * undo.c - what a fatal signal undoes (see undo.h)
 *
 * The handler takes no lock: entries are claimed, activated and freed with atomics. A handler that
 * runs while a name is being freed tries to remove a name that is gone. Names are random, so this
 * cannot be a name of someone else.
 *
 * Truncating while other threads write: first the process's limit on the size of files
 * (RLIMIT_FSIZE) becomes 0. File systems check the limit while they hold the file's lock for a
 * write or an allocation, and truncating takes the same lock. So what has passed the limit is
 * complete before the cut, and later writes fail. The handler waits for no writer, which may be the
 * thread that it has interrupted.
 */
#include "io/output/undo.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMIT_IDLE, COMMIT_BEGUN, COMMIT_TERMINATING }; /* of commit_state */

/* --- entries --- */

static struct undo_entry *claim_entry(struct undo_table *table)
{
	for (int i = 0; table && i < UNDO_MAX_ENTRIES; i++)
		if (!atomic_exchange(&table->entries[i].in_use, true))
			return &table->entries[i];
	return NULL;
}

static struct undo_entry *add_name(struct undo_table *table, int directory, const char *name,
				   enum undo_action action, bool is_being_created,
				   struct undo_entry *fallback)
{
	struct undo_entry *entry = table ? claim_entry(table) : fallback;

	if (!entry)
		return NULL;
	entry->action = action;
	entry->fd = directory;
	entry->creator = pthread_self();
	snprintf(entry->name, sizeof entry->name, "%s", name);
	atomic_store(&entry->is_being_created, is_being_created);
	atomic_store(&entry->is_active, true);
	return entry;
}

/* Either the handler sees the name, or this thread sees that the process is aborting. */
struct undo_entry *undo_reserve_name(struct undo_table *table, int directory,
				     const struct orphan_owner *owner, enum undo_action action,
				     struct undo_entry *fallback)
{
	char name[TEMP_NAME_SIZE];
	struct undo_entry *entry;

	orphans_make_temp_name(owner, name);
	entry = add_name(table, directory, name, action, true, fallback);
	if (entry && table && atomic_load(&table->is_aborting)) {
		undo_name_created(entry);
		undo_wait_if_aborting(table);
	}
	return entry;
}

void undo_name_created(struct undo_entry *entry)
{
	atomic_store(&entry->is_being_created, false);
}

struct undo_entry *undo_adopt_name(struct undo_table *table, int directory, const char *name,
				   enum undo_action action, struct undo_entry *fallback)
{
	return add_name(table, directory, name, action, false, fallback);
}

struct undo_entry *undo_add_truncation(struct undo_table *table, int fd, uint64_t start,
				       struct undo_entry *fallback)
{
	struct undo_entry *entry = claim_entry(table);

	if (!entry)
		entry = fallback;
	entry->action = UNDO_TRUNCATE;
	entry->fd = fd;
	entry->start = start;
	atomic_store(&entry->is_being_created, false);
	atomic_store(&entry->max_end, start);
	atomic_store(&entry->is_active, true);
	return entry;
}

void undo_extend_truncation(struct undo_entry *entry, uint64_t end)
{
	uint_least64_t max_end = atomic_load(&entry->max_end);

	while (max_end < end && !atomic_compare_exchange_weak(&entry->max_end, &max_end, end))
		;
}

/*
 * Return whether the size of the file is at least min_end, and at most the size that this process
 * can have written.
 */
static bool has_size_from(const struct undo_entry *entry, uint64_t min_end)
{
	struct stat status;

	return fstat(entry->fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 0 &&
	       (uint64_t)status.st_size >= min_end &&
	       (uint64_t)status.st_size <= atomic_load(&entry->max_end);
}

bool undo_is_growth_ours(const struct undo_entry *entry)
{
	return has_size_from(entry, entry->start + 1);
}

/* Either the handler does not see the entry, or this thread sees that the process is aborting. */
void undo_remove(struct undo_table *table, struct undo_entry *entry)
{
	atomic_store(&entry->is_active, false);
	if (entry->action == UNDO_TRUNCATE)
		undo_wait_if_aborting(table);
	atomic_store(&entry->in_use, false);
}

/* --- the signal handler --- */

/* Set the soft limit of file sizes to 0. The hard limit stays, so this is always permitted. */
static void forbid_file_growth(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return;
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_FSIZE, &limit);
}

/*
 * The file may have its old size because another thread is just allocating space, which shows only
 * when that is done; truncating waits for it. Nothing can be done about a failure.
 */
static void undo_growth(const struct undo_entry *entry)
{
	forbid_file_growth();
	if (atomic_load(&entry->max_end) > entry->start && has_size_from(entry, entry->start) &&
	    ftruncate(entry->fd, (off_t)entry->start) < 0)
		return;
}

void undo_run(struct undo_table *table)
{
	for (enum undo_action action = 0; action < N_UNDO_ACTIONS; action++)
		for (int i = 0; i < UNDO_MAX_ENTRIES; i++) {
			const struct undo_entry *entry = &table->entries[i];

			if (!atomic_load(&entry->is_active) || entry->action != action)
				continue;
			if (action == UNDO_TRUNCATE)
				undo_growth(entry);
			else
				unlinkat(entry->fd, entry->name,
					 action == UNDO_RMDIR ? AT_REMOVEDIR : 0);
		}
}

/* A thread that the handler has interrupted has created its file, or never will. */
static bool is_other_thread_creating(const struct undo_table *table)
{
	for (int i = 0; i < UNDO_MAX_ENTRIES; i++) {
		const struct undo_entry *entry = &table->entries[i];

		if (atomic_load(&entry->is_active) && atomic_load(&entry->is_being_created) &&
		    !pthread_equal(entry->creator, pthread_self()))
			return true;
	}
	return false;
}

void undo_abort(struct undo_table *table)
{
	atomic_store(&table->is_aborting, true);
	while (is_other_thread_creating(table))
		poll(NULL, 0, 1);
	undo_run(table);
}

void undo_wait_if_aborting(const struct undo_table *table)
{
	while (table && atomic_load(&table->is_aborting))
		pause();
}

/* --- killed or committed --- */

bool undo_commit_begin(struct undo_table *table)
{
	int expected = COMMIT_IDLE;
	const bool is_first = !table || atomic_compare_exchange_strong(&table->commit_state,
								       &expected, COMMIT_BEGUN);

	while (expected == COMMIT_TERMINATING)
		pause();
	return is_first;
}

void undo_commit_rollback(struct undo_table *table)
{
	if (table)
		atomic_store(&table->commit_state, COMMIT_IDLE);
}

int undo_pending_signal(const struct undo_table *table)
{
	return atomic_load(&table->commit_state) == COMMIT_IDLE ?
		       atomic_load(&table->pending_signal) :
		       0;
}

bool undo_signal_may_kill(struct undo_table *table, int signal_number)
{
	int expected = COMMIT_IDLE;

	atomic_store(&table->pending_signal, signal_number);
	return atomic_compare_exchange_strong(&table->commit_state, &expected,
					      COMMIT_TERMINATING) ||
	       expected == COMMIT_TERMINATING;
}
