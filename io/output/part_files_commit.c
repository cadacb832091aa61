/*
 * part_files_commit - files and their list get their names (see part_files.h)
 *
 * What was there is moved aside first, and comes back if a name cannot be had.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "io/output/commit_point.h"
#include "io/output/part_files_internal.h"
#include "src/base/diagnostics.h"

/* --- since they were opened --- */

static int fail_made(const struct part_files *files, const char *name)
{
	return fail(-EBUSY,
		    "%s: somebody else has made %s beside it since it was looked at; that stays as "
		    "it is: rename it, or let the output have another name",
		    files->given, name);
}

static int check_stale(const struct part_files *files, const struct stale_part *stale)
{
	char name[NAME_MAX + 1];
	struct file_state state;
	struct stat status;
	const int r = part_files_look_at(files, stale->number, false, &status);

	if (r <= 0)
		return r;
	part_files_make_name(files, stale->number, false, name);
	state = file_state_of(&status);
	if (!S_ISREG(status.st_mode) ||
	    !file_identity_equal(file_identity_of(&status), stale->identity))
		return fail(-EBUSY,
			    "%s: %s beside it is another file than when it was looked at; that "
			    "stays as it is",
			    files->given, name);
	return file_state_is_same(&stale->state, &state) ?
		       0 :
		       fail(-EBUSY,
			    "%s: %s beside it has changed since it was looked at, so it is not "
			    "removed; sort when nobody writes to it",
			    files->given, name);
}

/* What goes must be what it was, and nothing new may look like a part, or like one aside. */
static int check_since(struct part_files *files, uint32_t number, bool is_aside, const char *name)
{
	if (is_aside)
		return fail_made(files, name);
	if (number < files->n || number == LIST_NUMBER)
		return 0; /* its output looks at it */
	for (uint32_t i = 0; i < files->n_stale; i++)
		if (files->stale[i].number == number)
			return 0;
	return fail_made(files, name);
}

/* A list that is there is of somebody who was killed meanwhile, or of nobody that we know. */
static int check_lock(const struct part_files *files)
{
	char name[NAME_MAX + 1];

	part_files_make_newer_name(files->base, name);
	return files->lock_is_left ? fail_made(files, name) : 0;
}

static int check_again(struct part_files *files, struct output **outputs)
{
	int r = 0;

	for (uint32_t i = 0; i <= files->n && r == 0; i++)
		r = output_check_target(outputs[i]);
	for (uint32_t i = 0; i < files->n_stale && r == 0; i++)
		r = check_stale(files, &files->stale[i]);
	return r == 0 ? part_files_look_through(files, check_since) : r;
}

/* --- the names --- */

static int fail_aside(const struct part_files *files, uint32_t number, int r)
{
	char name[NAME_MAX + 1];

	part_files_make_name(files, number, true, name);
	if (r == -EEXIST)
		return fail_made(files, name);
	return fail(r, "%s: older part files cannot be moved aside: %m", files->given);
}

/* 1: it was there. */
static int move_aside(struct part_files *files, uint32_t number)
{
	const int r = part_files_move_aside(files, number);

	return r == 0 ? 1 : r == -ENOENT ? 0 : fail_aside(files, number, r);
}

static int move_stale_aside(struct part_files *files)
{
	const struct stale_part *stale = &files->stale[files->n_aside];
	const int r = check_stale(files, stale);

	return r == 0 ? move_aside(files, stale->number) : r;
}

static int move_all_aside(struct part_files *files)
{
	int r = move_aside(files, LIST_NUMBER);

	files->list_is_aside = r > 0;
	for (; r >= 0 && files->n_aside < files->n_stale; files->n_aside += r >= 0)
		r = move_stale_aside(files);
	return r < 0 ? r : 0;
}

static int name_next(struct part_files *files, struct output **outputs)
{
	const uint32_t i = files->n_named;
	struct output *output = outputs[i];
	int r = move_aside(files, i);

	if (r < 0)
		return r;
	files->is_aside[i] = r > 0;
	outputs[i] = NULL;
	r = output_commit(output, OUTPUT_UNSYNCED);
	if (r == 0)
		files->n_named++;
	else if (files->is_aside[i] && part_files_move_back(files, i, false) == 0)
		files->is_aside[i] = false;
	return r;
}

static int sync_names(const struct part_files *files)
{
	struct file directory;
	int r = file_open(files->calls, files->directory.fd, ".", O_RDONLY | O_DIRECTORY, 0,
			  &directory);

	if (r < 0)
		return r;
	r = file_sync(&directory);
	file_close(&directory);
	return r;
}

static int name_all(struct part_files *files, struct output **outputs, bool is_durable)
{
	struct output *list = outputs[files->n];
	int r = move_all_aside(files);

	while (r == 0 && files->n_named < files->n)
		r = name_next(files, outputs);
	/* A list whose name outlives the machine's end must not be alone. */
	if (r == 0 && is_durable && (r = sync_names(files)) < 0)
		fail(r, "%s: the names of its part files cannot be synced: %m", files->given);
	if (r < 0)
		return r;
	outputs[files->n] = NULL;
	return output_commit(list, OUTPUT_UNSYNCED);
}

static void put_back(const struct part_files *files, uint32_t number, bool is_aside, bool is_named)
{
	const int r = is_aside ? part_files_move_back(files, number, is_named) :
		      is_named ? part_files_remove(files, number, false) :
				 0;
	char name[NAME_MAX + 1];

	part_files_make_name(files, number, is_aside, name);
	if (r < 0 && r != -ENOENT)
		warn("%s: %s beside it cannot be %s: %s", files->given, name,
		     is_aside ? "put back, as it was before" : "removed", strerror(-r));
}

static void put_all_back(struct part_files *files)
{
	for (uint32_t i = 0; i < files->n; i++)
		put_back(files, i, files->is_aside[i], i < files->n_named);
	for (uint32_t i = 0; i < files->n_aside; i++)
		put_back(files, files->stale[i].number, true, false);
	put_back(files, LIST_NUMBER, files->list_is_aside, false);
}

/* Is it gone? */
static bool remove_older(const struct part_files *files, uint32_t number)
{
	const int r = part_files_remove(files, number, true);
	char name[NAME_MAX + 1];

	part_files_make_name(files, number, true, name);
	if (r < 0)
		warn("%s: %s beside it is older, and cannot be removed: %s", files->given, name,
		     strerror(-r));
	return r == 0;
}

/* The new ones are there. What cannot be removed is left to the next, with the list of it. */
static void drop_older(const struct part_files *files)
{
	bool are_gone = true;

	for (uint32_t i = 0; i < files->n; i++)
		if (files->is_aside[i])
			are_gone &= remove_older(files, i);
	for (uint32_t i = 0; i < files->n_aside; i++)
		are_gone &= remove_older(files, files->stale[i].number);
	if (files->list_is_aside && are_gone)
		remove_older(files, LIST_NUMBER);
}

int part_files_commit(struct part_files *files, struct output **outputs, const char *list,
		      bool is_durable)
{
	bool is_first = false;
	int r = part_files_lock(files);

	if (r == 0)
		r = check_lock(files);
	if (r == 0)
		r = check_again(files, outputs);
	if (r == 0)
		r = part_files_begin(files, list);
	if (r == 0) {
		is_first = commitment_make(files->calls->commitment);
		part_files_keep_lock(files);
		r = name_all(files, outputs, is_durable);
		if (r < 0)
			put_all_back(files);
		else
			drop_older(files);
	}
	part_files_unlock(files);
	for (uint32_t i = 0; i <= files->n; i++) {
		output_abort(outputs[i]);
		outputs[i] = NULL;
	}
	if (r < 0 && is_first)
		commitment_revoke(files->calls->commitment);
	if (r < 0)
		return r;
	if (is_durable && (r = sync_names(files)) < 0)
		fail(r, "%s: is complete, but its name may not be on stable storage: %m",
		     files->paths[files->n]);
	return r;
}
