/*
 * unlink_on_abort - the names of unfinished files, for whoever has to remove them in a hurry (see
 * unlink_on_abort.h)
 *
 * A slot's contents are set before it is live and never freed. A handler that runs while a slot is
 * given up tries to remove a name that is gone, and since names are random, that is nobody's.
 */
#include "io/output/unlink_on_abort.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

/* A slot that nobody else has; NULL: there is none. */
static struct temp_name *claim_name_slot(struct temp_names *names, struct temp_name *fallback)
{
	if (!names)
		return fallback;
	for (int i = 0; i < TEMP_NAMES_MAX; i++)
		if (!atomic_exchange(&names->slots[i].in_use, true))
			return &names->slots[i];
	return NULL;
}

static struct temp_name *register_temp_name(struct temp_names *names, int directory,
					    const char *name, bool is_directory,
					    bool is_being_created, struct temp_name *fallback)
{
	struct temp_name *slot = claim_name_slot(names, fallback);

	if (!slot)
		return NULL;
	slot->directory = directory;
	slot->is_directory = is_directory;
	slot->creator = pthread_self();
	snprintf(slot->name, sizeof slot->name, "%s", name);
	atomic_store(&slot->is_being_created, is_being_created);
	atomic_store(&slot->is_active, true);
	return slot;
}

/* Either who ends the process sees the name, or it is seen here that the process is ending. */
struct temp_name *temp_names_reserve(struct temp_names *names, int directory,
				     const struct orphan_owner *owner, bool is_directory,
				     struct temp_name *fallback)
{
	char name[TEMP_NAME_SIZE];
	struct temp_name *slot;

	orphans_make_temp_name(owner, name);
	slot = register_temp_name(names, directory, name, is_directory, true, fallback);
	if (!slot || !names || !atomic_load(&names->is_shut_down))
		return slot;
	temp_names_created(slot);
	for (;;)
		pause();
}

void temp_names_created(struct temp_name *slot)
{
	atomic_store(&slot->is_being_created, false);
}

struct temp_name *temp_names_adopt(struct temp_names *names, int directory, const char *name,
				   bool is_directory, struct temp_name *fallback)
{
	return register_temp_name(names, directory, name, is_directory, false, fallback);
}

void temp_names_release(struct temp_name *slot)
{
	atomic_store(&slot->is_active, false);
	atomic_store(&slot->in_use, false);
}

static void remove_names(struct temp_names *names, bool directories)
{
	for (int i = 0; i < TEMP_NAMES_MAX; i++) {
		const struct temp_name *slot = &names->slots[i];

		if (atomic_load(&slot->is_active) && slot->is_directory == directories)
			unlinkat(slot->directory, slot->name, directories ? AT_REMOVEDIR : 0);
	}
}

/* A directory can go when the files in it are gone. */
void temp_names_remove(struct temp_names *names)
{
	remove_names(names, false);
	remove_names(names, true);
}

/* A thread that was interrupted for this has created its file, or never will. */
static bool is_other_thread_creating(struct temp_names *names)
{
	for (int i = 0; i < TEMP_NAMES_MAX; i++) {
		const struct temp_name *slot = &names->slots[i];

		if (atomic_load(&slot->is_active) && atomic_load(&slot->is_being_created) &&
		    !pthread_equal(slot->creator, pthread_self()))
			return true;
	}
	return false;
}

void temp_names_shutdown(struct temp_names *names)
{
	atomic_store(&names->is_shut_down, true);
	while (is_other_thread_creating(names))
		poll(NULL, 0, 1);
	temp_names_remove(names);
}
