/*
 * temp_names - the names of unfinished files, for whoever has to remove them in a hurry (see
 * temp_names.h)
 *
 * A slot's contents are set before it is live and never freed. A handler that runs while a slot is
 * given up tries to remove a name that is gone, and since names are random, that is nobody's.
 */
#include "io/output/temp_names.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

/* A slot that nobody else has; NULL: there is none. */
static struct hidden_name *find_slot(struct hidden_names *names, struct hidden_name *own)
{
	if (!names)
		return own;
	for (int i = 0; i < HIDDEN_NAMES_MOST; i++)
		if (!atomic_exchange(&names->all[i].taken, true))
			return &names->all[i];
	return NULL;
}

static struct hidden_name *enter(struct hidden_names *names, int directory, const char *name,
				 bool is_being_made, struct hidden_name *own)
{
	struct hidden_name *slot = find_slot(names, own);

	if (!slot)
		return NULL;
	slot->directory = directory;
	slot->maker = pthread_self();
	snprintf(slot->name, sizeof slot->name, "%s", name);
	atomic_store(&slot->is_being_made, is_being_made);
	atomic_store(&slot->live, true);
	return slot;
}

/* Either who ends the process sees the name, or it is seen here that the process is ending. */
struct hidden_name *hidden_names_take(struct hidden_names *names, int directory,
				      const struct leftovers_owner *owner, struct hidden_name *own)
{
	char name[LEFTOVERS_NAME_SIZE];
	struct hidden_name *slot;

	leftovers_make_name(owner, name);
	slot = enter(names, directory, name, true, own);
	if (!slot || !names || !atomic_load(&names->is_over))
		return slot;
	hidden_names_made(slot);
	for (;;)
		pause();
}

void hidden_names_made(struct hidden_name *name)
{
	atomic_store(&name->is_being_made, false);
}

struct hidden_name *hidden_names_share(struct hidden_names *names, int directory, const char *name,
				       struct hidden_name *own)
{
	return enter(names, directory, name, false, own);
}

void hidden_names_give_up(struct hidden_name *name)
{
	atomic_store(&name->live, false);
	atomic_store(&name->taken, false);
}

void hidden_names_remove(struct hidden_names *names)
{
	for (int i = 0; i < HIDDEN_NAMES_MOST; i++)
		if (atomic_load(&names->all[i].live))
			unlinkat(names->all[i].directory, names->all[i].name, 0);
}

/* A thread that was interrupted for this has created its file, or never will. */
static bool are_others_making(struct hidden_names *names)
{
	for (int i = 0; i < HIDDEN_NAMES_MOST; i++) {
		const struct hidden_name *name = &names->all[i];

		if (atomic_load(&name->live) && atomic_load(&name->is_being_made) &&
		    !pthread_equal(name->maker, pthread_self()))
			return true;
	}
	return false;
}

void hidden_names_end(struct hidden_names *names)
{
	atomic_store(&names->is_over, true);
	while (are_others_making(names))
		poll(NULL, 0, 1);
	hidden_names_remove(names);
}
