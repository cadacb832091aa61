/*
 * hidden_names - the names of unfinished files, for whoever has to remove them in a hurry (see
 * hidden_names.h)
 *
 * A slot's contents are set before it is live and never freed. A handler that runs while a slot is
 * given up tries to remove a name that is gone, and since names are random, that is nobody's.
 */
#include "io/output/hidden_names.h"

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

struct hidden_name *hidden_names_take(struct hidden_names *names, int directory,
				      struct hidden_name *own)
{
	char name[LEFTOVERS_NAME_SIZE];

	leftovers_make_name(name);
	return hidden_names_share(names, directory, name, own);
}

struct hidden_name *hidden_names_share(struct hidden_names *names, int directory, const char *name,
				       struct hidden_name *own)
{
	struct hidden_name *slot = find_slot(names, own);

	if (!slot)
		return NULL;
	slot->directory = directory;
	snprintf(slot->name, sizeof slot->name, "%s", name);
	atomic_store(&slot->live, true);
	return slot;
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
