/*
 * part_files_recovery - what a process that was killed in the middle has left (see part_files.h)
 *
 *	.NAME.parts.pending	a copy of the list, from before the first name until after the last
 *
 * It tells which of the parts that have a name were that process's, though nothing is there that
 * would come back in their place; and .NAME.parts.backup, which goes last, what of that which is
 * aside it has put there. What neither explains is somebody else's, and stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/output/part_files_internal.h"
#include "config.h"
#include "src/base/diagnostics.h"

static const struct manifest_part *find_listed_part(const struct part_files *files,
						    const struct part_manifest *manifest,
						    uint32_t number)
{
	for (size_t i = 0; i < manifest->n_parts; i++) {
		bool is_backup;

		if (part_files_parse_number(files, manifest->parts[i].name, &is_backup) == number &&
		    !is_backup)
			return &manifest->parts[i];
	}
	return NULL;
}

/* Is that the file which the list names? */
static bool manifest_lists_file(const struct part_files *files,
				const struct part_manifest *manifest, uint32_t number,
				const struct stat *status)
{
	const struct manifest_part *part = find_listed_part(files, manifest, number);

	return part && S_ISREG(status->st_mode) && (uint64_t)status->st_size == part->nbytes;
}

/* --- what is there --- */

static int fail_unknown_orphan(const struct part_files *files, const char *name)
{
	return fail(-EEXIST,
		    "%s: %s beside it has the name of a file that a killed " GSORT_PROGRAM
		    " leaves, but no part "
		    "manifest lists it: rename it, or let the output have another name",
		    files->name, name);
}

int part_files_stat_manifest(const struct part_files *files, const char *name)
{
	struct stat status;
	const int r = part_files_stat_name(files, name, &status);

	return r > 0 && !S_ISREG(status.st_mode) ? fail_unknown_orphan(files, name) : r;
}

static int read_backup_manifest(struct part_files *files)
{
	char name[NAME_MAX + 1];
	int r;

	part_files_format_name(files, MANIFEST_NUMBER, true, name);
	r = part_files_stat_manifest(files, name);
	if (r > 0)
		r = part_files_read_manifest(files, name, &files->orphan_manifest);
	return r < 0 ? r : 0;
}

/* The copy names the parts as gsort does, each where it stands. */
static bool is_complete_journal(const struct part_files *files,
				const struct part_manifest *manifest)
{
	for (size_t i = 0; i < manifest->n_parts; i++) {
		bool is_backup;

		if (part_files_parse_number(files, manifest->parts[i].name, &is_backup) != i ||
		    is_backup)
			return false;
	}
	return true;
}

/* A copy that is not whole was not followed by any name. */
static int parse_journal(struct part_files *files, const char *name, const char *text,
			 size_t nbytes)
{
	struct diagnostics *previous_sink;
	int r;

	if (nbytes == 0)
		return 0;
	if (!part_manifest_detect(text, nbytes))
		return fail_unknown_orphan(files, name);
	previous_sink = diagnostics_push(NULL);
	r = part_manifest_parse(text, nbytes, name, &files->orphan_journal);
	diagnostics_push(previous_sink);
	if (r < 0)
		part_manifest_free(&files->orphan_journal);
	return is_complete_journal(files, &files->orphan_journal) ?
		       0 :
		       fail_unknown_orphan(files, name);
}

static int read_journal(struct part_files *files)
{
	char name[NAME_MAX + 1];
	struct file file;
	char *text = NULL;
	size_t nbytes;
	int r;

	part_files_format_journal_name(files->base, name);
	r = part_files_stat_manifest(files, name);
	if (r <= 0)
		return r;
	r = file_open(files->calls, files->directory.fd, name, O_RDONLY | O_NONBLOCK, 0, &file);
	if (r < 0)
		return fail(r, "%s: %s beside it: %m", files->name, name);
	r = part_manifest_read(&file, name, &text, &nbytes);
	if (r == 0)
		r = parse_journal(files, name, text, nbytes);
	free(text);
	file_close(&file);
	return r;
}

/* Where an older part comes back is nothing, or a new one. 1: that; 0; or a negative errno. */
static int check_restore_target(const struct part_files *files, uint32_t number)
{
	char name[NAME_MAX + 1];
	struct stat status;
	const int r = part_files_stat(files, number, false, &status);

	if (r <= 0 || manifest_lists_file(files, &files->orphan_journal, number, &status))
		return r;
	part_files_format_name(files, number, false, name);
	return fail(-EEXIST,
		    "%s: %s beside it is in the place of a part file that a killed " GSORT_PROGRAM
		    " had "
		    "moved aside, and no part manifest lists it: rename it",
		    files->name, name);
}

static int check_orphan(struct part_files *files, uint32_t number, bool is_backup, const char *name)
{
	struct stat status;
	int r;

	if (!is_backup || number == MANIFEST_NUMBER)
		return 0;
	r = part_files_stat(files, number, true, &status);
	if (r > 0 && !manifest_lists_file(files, &files->orphan_manifest, number, &status))
		return fail_unknown_orphan(files, name);
	if (r > 0 && !files->has_manifest)
		r = check_restore_target(files, number);
	return r < 0 ? r : 0;
}

int part_files_find_orphans(struct part_files *files)
{
	struct stat status;
	int r = part_files_stat(files, MANIFEST_NUMBER, false, &status);

	files->has_manifest = r > 0;
	if (r >= 0)
		r = read_backup_manifest(files);
	if (r == 0)
		r = read_journal(files);
	return r == 0 ? part_files_for_each(files, check_orphan) : r;
}

/* --- and is put in order --- */

static int fail_remove_orphan(const struct part_files *files, const char *name, int r)
{
	return fail(r,
		    "%s: %s beside it was left by a " GSORT_PROGRAM
		    " that was killed, and cannot be removed: "
		    "%m",
		    files->name, name);
}

/* The parts that were new, and are none of the older ones. */
static int remove_new_parts(const struct part_files *files)
{
	const struct part_manifest *journal = &files->orphan_journal;

	for (uint32_t i = 0; i < journal->n_parts; i++) {
		struct stat status;
		int r = 0;

		if (!find_listed_part(files, &files->orphan_manifest, i))
			r = part_files_stat(files, i, false, &status);
		if (r > 0 && manifest_lists_file(files, journal, i, &status) &&
		    (r = part_files_remove(files, i, false)) < 0)
			fail_remove_orphan(files, journal->parts[i].name, r);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The list goes last, or comes back: until then whoever is killed here leaves it to the next. */
static int recover_backup(struct part_files *files, uint32_t number, bool is_backup,
			  const char *name)
{
	int r;

	if (!is_backup || number == MANIFEST_NUMBER)
		return 0;
	if (files->has_manifest) {
		r = part_files_remove(files, number, true);
		return r < 0 ? fail_remove_orphan(files, name, r) : 0;
	}
	r = check_restore_target(files, number);
	if (r < 0)
		return r;
	r = part_files_restore(files, number, r > 0);
	return r < 0 ? fail(r,
			    "%s: %s beside it was left by a " GSORT_PROGRAM
			    " that was killed, and cannot be "
			    "put back: %m",
			    files->name, name) :
		       0;
}

static int remove_backup_manifest(const struct part_files *files)
{
	char name[NAME_MAX + 1];
	struct stat status;
	int r;

	part_files_format_name(files, MANIFEST_NUMBER, true, name);
	r = part_files_stat_name(files, name, &status);
	if (r <= 0)
		return r;
	r = file_remove(files->calls, files->directory.fd, name, 0);
	return r < 0 ? fail_remove_orphan(files, name, r) : 0;
}

int part_files_recover(struct part_files *files)
{
	int r = files->has_manifest ? 0 : remove_new_parts(files);

	if (r == 0)
		r = part_files_for_each(files, recover_backup);
	if (r == 0 && files->has_manifest)
		r = remove_backup_manifest(files);
	files->has_orphan_journal = files->has_orphan_journal && r < 0;
	if (r < 0 || files->has_manifest || !files->orphan_manifest.n_parts)
		return r;
	r = part_files_restore(files, MANIFEST_NUMBER, false);
	if (r < 0)
		return fail(r, "%s: the older part manifest cannot be restored: %m", files->name);
	files->has_manifest = true;
	notice("%s: what a " GSORT_PROGRAM " that was killed had moved aside is put back",
	       files->name);
	return 0;
}

int part_files_write_journal(struct part_files *files, const char *manifest)
{
	char name[NAME_MAX + 1];
	int r = files->journal_file.fd < 0 ?
			-EACCES :
			file_write_at(&files->journal_file, 0, manifest, strlen(manifest));

	part_files_format_journal_name(files->base, name);
	return r < 0 ? fail(r, "%s: %s beside it, a copy of the list, cannot be written: %m",
			    files->name, name) :
		       0;
}
