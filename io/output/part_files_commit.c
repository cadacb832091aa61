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

static int fail_created_meanwhile(const struct part_files *files, const char *name)
{
	return fail(-EBUSY,
		    "%s: somebody else has made %s beside it since it was looked at; that stays as "
		    "it is: rename it, or let the output have another name",
		    files->name, name);
}

static int check_stale_part(const struct part_files *files, const struct stale_part *stale)
{
	char name[NAME_MAX + 1];
	struct file_state state;
	struct stat status;
	const int r = part_files_stat(files, stale->number, false, &status);

	if (r <= 0)
		return r;
	part_files_format_name(files, stale->number, false, name);
	state = file_state_from_stat(&status);
	if (!S_ISREG(status.st_mode) || !file_id_equal(file_id_from_stat(&status), stale->identity))
		return fail(-EBUSY,
			    "%s: %s beside it is another file than when it was looked at; that "
			    "stays as it is",
			    files->name, name);
	return file_state_is_unchanged(&stale->state, &state) ?
		       0 :
		       fail(-EBUSY,
			    "%s: %s beside it has changed since it was looked at, so it is not "
			    "removed; sort when nobody writes to it",
			    files->name, name);
}

/* What goes must be what it was, and nothing new may look like a part, or like one aside. */
static int check_new_name(struct part_files *files, uint32_t number, bool is_backup,
			  const char *name)
{
	if (is_backup)
		return fail_created_meanwhile(files, name);
	if (number < files->n || number == MANIFEST_NUMBER)
		return 0; /* its output looks at it */
	for (uint32_t i = 0; i < files->n_stale_parts; i++)
		if (files->stale_parts[i].number == number)
			return 0;
	return fail_created_meanwhile(files, name);
}

/* A list that is there is of somebody who was killed meanwhile, or of nobody that we know. */
static int check_journal(const struct part_files *files)
{
	char name[NAME_MAX + 1];

	part_files_format_journal_name(files->base, name);
	return files->has_orphan_journal ? fail_created_meanwhile(files, name) : 0;
}

static int recheck_targets(struct part_files *files, struct output **outputs)
{
	int r = 0;

	for (uint32_t i = 0; i <= files->n && r == 0; i++)
		r = output_check_target(outputs[i]);
	for (uint32_t i = 0; i < files->n_stale_parts && r == 0; i++)
		r = check_stale_part(files, &files->stale_parts[i]);
	return r == 0 ? part_files_for_each(files, check_new_name) : r;
}

/* --- the names --- */

static int fail_backup(const struct part_files *files, uint32_t number, int r)
{
	char name[NAME_MAX + 1];

	part_files_format_name(files, number, true, name);
	if (r == -EEXIST)
		return fail_created_meanwhile(files, name);
	return fail(r, "%s: older part files cannot be moved aside: %m", files->name);
}

/* 1: it was there. */
static int backup_part(struct part_files *files, uint32_t number)
{
	const int r = part_files_backup(files, number);

	return r == 0 ? 1 : r == -ENOENT ? 0 : fail_backup(files, number, r);
}

static int backup_stale_part(struct part_files *files)
{
	const struct stale_part *stale = &files->stale_parts[files->n_stale_backups];
	const int r = check_stale_part(files, stale);

	return r == 0 ? backup_part(files, stale->number) : r;
}

static int backup_all_parts(struct part_files *files)
{
	int r = backup_part(files, MANIFEST_NUMBER);

	files->has_manifest_backup = r > 0;
	for (; r >= 0 && files->n_stale_backups < files->n_stale_parts;
	     files->n_stale_backups += r >= 0)
		r = backup_stale_part(files);
	return r < 0 ? r : 0;
}

static int publish_next_part(struct part_files *files, struct output **outputs)
{
	const uint32_t i = files->n_published;
	struct output *output = outputs[i];
	int r = backup_part(files, i);

	if (r < 0)
		return r;
	files->has_backup[i] = r > 0;
	outputs[i] = NULL;
	r = output_commit(output, OUTPUT_UNSYNCED);
	if (r == 0)
		files->n_published++;
	else if (files->has_backup[i] && part_files_restore(files, i, false) == 0)
		files->has_backup[i] = false;
	return r;
}

static int sync_part_directory(const struct part_files *files)
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

static int publish_all_parts(struct part_files *files, struct output **outputs, bool is_durable)
{
	struct output *manifest = outputs[files->n];
	int r = backup_all_parts(files);

	while (r == 0 && files->n_published < files->n)
		r = publish_next_part(files, outputs);
	/* A list whose name outlives the machine's end must not be alone. */
	if (r == 0 && is_durable && (r = sync_part_directory(files)) < 0)
		fail(r, "%s: the names of its part files cannot be synced: %m", files->name);
	if (r < 0)
		return r;
	outputs[files->n] = NULL;
	return output_commit(manifest, OUTPUT_UNSYNCED);
}

static void undo_part(const struct part_files *files, uint32_t number, bool is_backup,
		      bool is_published)
{
	const int r = is_backup    ? part_files_restore(files, number, is_published) :
		      is_published ? part_files_remove(files, number, false) :
				     0;
	char name[NAME_MAX + 1];

	part_files_format_name(files, number, is_backup, name);
	if (r < 0 && r != -ENOENT)
		warn("%s: %s beside it cannot be %s: %s", files->name, name,
		     is_backup ? "put back, as it was before" : "removed", strerror(-r));
}

static void undo_all_parts(struct part_files *files)
{
	for (uint32_t i = 0; i < files->n; i++)
		undo_part(files, i, files->has_backup[i], i < files->n_published);
	for (uint32_t i = 0; i < files->n_stale_backups; i++)
		undo_part(files, files->stale_parts[i].number, true, false);
	undo_part(files, MANIFEST_NUMBER, files->has_manifest_backup, false);
}

/* Is it gone? */
static bool remove_backup(const struct part_files *files, uint32_t number)
{
	const int r = part_files_remove(files, number, true);
	char name[NAME_MAX + 1];

	part_files_format_name(files, number, true, name);
	if (r < 0)
		warn("%s: %s beside it is older, and cannot be removed: %s", files->name, name,
		     strerror(-r));
	return r == 0;
}

/* The new ones are there. What cannot be removed is left to the next, with the list of it. */
static void remove_all_backups(const struct part_files *files)
{
	bool all_removed = true;

	for (uint32_t i = 0; i < files->n; i++)
		if (files->has_backup[i])
			all_removed &= remove_backup(files, i);
	for (uint32_t i = 0; i < files->n_stale_backups; i++)
		all_removed &= remove_backup(files, files->stale_parts[i].number);
	if (files->has_manifest_backup && all_removed)
		remove_backup(files, MANIFEST_NUMBER);
}

int part_files_commit(struct part_files *files, struct output **outputs, const char *manifest,
		      bool is_durable)
{
	bool is_first = false;
	int r = part_files_lock(files);

	if (r == 0)
		r = check_journal(files);
	if (r == 0)
		r = recheck_targets(files, outputs);
	if (r == 0)
		r = part_files_write_journal(files, manifest);
	if (r == 0) {
		is_first = commit_begin(files->calls->commit_point);
		part_files_keep_journal(files);
		r = publish_all_parts(files, outputs, is_durable);
		if (r < 0)
			undo_all_parts(files);
		else
			remove_all_backups(files);
	}
	part_files_unlock(files);
	for (uint32_t i = 0; i <= files->n; i++) {
		output_abort(outputs[i]);
		outputs[i] = NULL;
	}
	if (r < 0 && is_first)
		commit_rollback(files->calls->commit_point);
	if (r < 0)
		return r;
	if (is_durable && (r = sync_part_directory(files)) < 0)
		fail(r, "%s: is complete, but its name may not be on stable storage: %m",
		     files->paths[files->n]);
	return r;
}
