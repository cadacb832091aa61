/*
 * hidden_names - the names of unfinished files, for whoever has to remove them in a hurry (see
 * hidden_names.h)
 *
 * A slot's contents are set before it is live and never freed. A handler that runs while a slot is
 * given up tries to remove a name that is gone, and since names are random, that is nobody's.
 */
#include "io/output/hidden_names.h"

#include <stddef.h>
#include <unistd.h>

static struct hidden_name *fill(struct hidden_name *name, int directory)
{
	name->directory = directory;
	leftovers_make_name(name->name);
	atomic_store(&name->live, true);
	return name;
}

struct hidden_name *hidden_names_take(struct hidden_names *names, int directory,
				      struct hidden_name *own)
{
	if (!names)
		return fill(own, directory);
	for (int i = 0; i < HIDDEN_NAMES_MOST; i++)
		if (!atomic_exchange(&names->all[i].taken, true))
			return fill(&names->all[i], directory);
	return NULL;
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
