/*
 * part_files - several files and a list of them, together or not at all (see part_files.h)
 *
 * Here the names are found, and what has them.
 */
#include "io/output/part_files_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/input/part_manifest.h"
#include "src/base/diagnostics.h"

/* Of what is put behind a name, and of the dot in front of one that is moved aside. */
enum { MAX_NAME_AFFIX_NBYTES = 32 };

/* --- names --- */

static void format_part_name(const char *base, uint32_t number, bool is_backup,
			     char name[static NAME_MAX + 1])
{
	char end[16] = "parts";

	if (number != MANIFEST_NUMBER)
		snprintf(end, sizeof end, "%04" PRIu32, number);
	snprintf(name, NAME_MAX + 1, "%s%s.%s%s", is_backup ? "." : "", base, end,
		 is_backup ? ".backup" : "");
}

void part_files_format_name(const struct part_files *files, uint32_t number, bool is_backup,
			    char name[static NAME_MAX + 1])
{
	format_part_name(files->base, number, is_backup, name);
}

void part_files_format_journal_name(const char *base, char name[static NAME_MAX + 1])
{
	snprintf(name, NAME_MAX + 1, ".%s.parts.pending", base);
}

/* The number that a name of the directory has; NO_PART_NUMBER: none. */
static uint32_t parse_part_number(const char *base, const char *name, bool *ret_is_backup)
{
	const size_t n_base = strlen(base);
	char expected[NAME_MAX + 1];
	unsigned long number;
	char *end;

	*ret_is_backup = name[0] == '.' && strncmp(name + 1, base, n_base) == 0 &&
			 name[1 + n_base] == '.';
	if (!*ret_is_backup && (strncmp(name, base, n_base) != 0 || name[n_base] != '.'))
		return NO_PART_NUMBER;
	name += *ret_is_backup;
	number = strtoul(name + n_base + 1, &end, 10);
	if (strncmp(name + n_base + 1, "parts", 5) == 0)
		number = MANIFEST_NUMBER;
	else if (end == name + n_base + 1 || number >= NO_PART_NUMBER)
		return NO_PART_NUMBER;
	format_part_name(base, (uint32_t)number, *ret_is_backup, expected);
	return strcmp(expected, name - *ret_is_backup) == 0 ? (uint32_t)number : NO_PART_NUMBER;
}

uint32_t part_files_parse_number(const struct part_files *files, const char *name,
				 bool *ret_is_backup)
{
	return parse_part_number(files->base, name, ret_is_backup);
}

bool part_files_is_reserved_name(const char *base, const char *name)
{
	char journal_name[NAME_MAX + 1];
	bool is_backup;

	part_files_format_journal_name(base, journal_name);
	return strcmp(name, journal_name) == 0 ||
	       parse_part_number(base, name, &is_backup) != NO_PART_NUMBER;
}

int part_files_make_path(const char *name, uint32_t n, uint32_t i, char **ret_path)
{
	char *path;
	const int r = i < n ? asprintf(&path, "%s.%04" PRIu32, name, i) :
			      asprintf(&path, "%s.parts", name);

	if (r < 0)
		return fail(-ENOMEM, "%s: %m", name);
	*ret_path = path;
	return 0;
}

static int alloc_part_paths(struct part_files *files)
{
	int r = 0;

	files->paths = calloc(files->n + UINT64_C(1), sizeof *files->paths);
	files->has_backup = calloc(files->n, sizeof *files->has_backup);
	if (!files->paths || !files->has_backup)
		return fail(-ENOMEM, "%s: no memory for %" PRIu32 " names", files->name, files->n);
	for (uint32_t i = 0; i <= files->n && r == 0; i++)
		r = part_files_make_path(files->name, files->n, i, &files->paths[i]);
	return r;
}

static int open_directory(struct part_files *files)
{
	const char *slash = strrchr(files->name, '/');
	const char *base = slash ? slash + 1 : files->name;
	char *directory_path = slash ? strndup(files->name, (size_t)(base - files->name)) :
				       strdup(".");
	int r;

	files->base = strdup(base);
	if (!directory_path || !files->base) {
		free(directory_path);
		return fail(-ENOMEM, "%s: %m", files->name);
	}
	if (strlen(base) + MAX_NAME_AFFIX_NBYTES > NAME_MAX)
		r = fail(-ENAMETOOLONG, "%s: %m, with the number of a part file", files->name);
	else if (!part_manifest_is_valid_name(base))
		r = fail(-EINVAL,
			 "%s: is no name that a list can have, which is UTF-8; choose another",
			 files->name);
	else if ((r = file_open(files->calls, AT_FDCWD, directory_path, O_PATH | O_DIRECTORY, 0,
				&files->directory)) < 0)
		fail(r, "%s: its directory: %m", files->name);
	free(directory_path);
	return r;
}

/* --- what is there --- */

int part_files_backup(const struct part_files *files, uint32_t number)
{
	char name[NAME_MAX + 1], backup_name[NAME_MAX + 1];

	part_files_format_name(files, number, false, name);
	part_files_format_name(files, number, true, backup_name);
	return file_rename_noreplace(files->calls, files->directory.fd, name, backup_name);
}

int part_files_restore(const struct part_files *files, uint32_t number, bool overwrite)
{
	const int directory = files->directory.fd;
	char name[NAME_MAX + 1], backup_name[NAME_MAX + 1];

	part_files_format_name(files, number, false, name);
	part_files_format_name(files, number, true, backup_name);
	if (!overwrite)
		return file_rename_noreplace(files->calls, directory, backup_name, name);
	return files->calls->renameat(directory, backup_name, directory, name) < 0 ? -errno : 0;
}

int part_files_remove(const struct part_files *files, uint32_t number, bool is_backup)
{
	char name[NAME_MAX + 1];

	part_files_format_name(files, number, is_backup, name);
	return file_remove(files->calls, files->directory.fd, name, 0);
}

int part_files_for_each(struct part_files *files, part_files_visit_fn *visit)
{
	const struct dirent *entry;
	struct file readable_directory;
	DIR *stream;
	int r = 0;

	if (file_open(files->calls, files->directory.fd, ".", O_RDONLY | O_DIRECTORY, 0,
		      &readable_directory) < 0)
		return 0;
	stream = fdopendir(readable_directory.fd);
	if (!stream) {
		file_close(&readable_directory);
		return 0;
	}
	while (r == 0 && (entry = readdir(stream))) {
		bool is_backup;
		const uint32_t number = part_files_parse_number(files, entry->d_name, &is_backup);

		if (number != NO_PART_NUMBER)
			r = visit(files, number, is_backup, entry->d_name);
	}
	closedir(stream);
	return r;
}

int part_files_stat_name(const struct part_files *files, const char *name, struct stat *ret_status)
{
	if (fstatat(files->directory.fd, name, ret_status, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ?
		       0 :
		       fail(-errno, "%s: cannot tell what %s beside it is: %m", files->name, name);
}

int part_files_stat(const struct part_files *files, uint32_t number, bool is_backup,
		    struct stat *ret_status)
{
	char name[NAME_MAX + 1];

	part_files_format_name(files, number, is_backup, name);
	return part_files_stat_name(files, name, ret_status);
}

/* What the older list has, and of that, what the new one has not. */
static int record_old_parts(struct part_files *files, const struct part_manifest *manifest)
{
	files->stale_parts = calloc(manifest->n_parts + 1, sizeof *files->stale_parts);
	files->old_parts = calloc(manifest->n_parts + 1, sizeof *files->old_parts);
	if (!files->stale_parts || !files->old_parts)
		return fail(-ENOMEM, "%s: no memory for a part manifest", files->name);
	for (size_t i = 0; i < manifest->n_parts; i++) {
		bool is_backup;
		const struct manifest_part *part = &manifest->parts[i];
		const uint32_t number = part_files_parse_number(files, part->name, &is_backup);
		struct stat status;
		int r = 0;

		if (number >= NO_PART_NUMBER || is_backup)
			continue;
		files->old_parts[files->n_old_parts++] = (struct old_part){ number, part->nbytes };
		if (number >= files->n)
			r = part_files_stat(files, number, false, &status);
		if (r < 0)
			return r;
		if (r > 0 && S_ISREG(status.st_mode))
			files->stale_parts[files->n_stale_parts++] =
				(struct stale_part){ number, file_id_from_stat(&status),
						     file_state_from_stat(&status) };
	}
	return 0;
}

/* What has a list's name must be one: it is nothing else that is replaced. */
static int parse_manifest_text(const char *text, size_t nbytes, const char *path,
			       struct part_manifest *ret_manifest)
{
	if (!part_manifest_detect(text, nbytes))
		return fail(-EEXIST,
			    "%s: is there, and no part manifest: rename it, or let the output have "
			    "another name",
			    path);
	return part_manifest_parse(text, nbytes, path, ret_manifest);
}

/* path: what messages call it. */
static int read_manifest_file(const struct file *file, const char *path,
			      struct part_manifest *ret_manifest)
{
	char *text = NULL;
	size_t nbytes = 0;
	int r = part_manifest_read(file, path, &text, &nbytes);

	if (r == 0)
		r = parse_manifest_text(text, nbytes, path, ret_manifest);
	free(text);
	return r;
}

int part_files_read_manifest(const struct part_files *files, const char *name,
			     struct part_manifest *ret_manifest)
{
	const int directory_length = (int)(strlen(files->name) - strlen(files->base));
	struct file file;
	char *path;
	int r = file_open(files->calls, files->directory.fd, name, O_RDONLY | O_NONBLOCK, 0, &file);

	*ret_manifest = (struct part_manifest){ 0 };
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fail(r, "%s: %s beside it: %m", files->name, name);
	if (asprintf(&path, "%.*s%s", directory_length, files->name, name) < 0) {
		r = fail(-ENOMEM, "%s: %m", files->name);
	} else {
		r = read_manifest_file(&file, path, ret_manifest);
		free(path);
	}
	file_close(&file);
	return r < 0 ? r : 1;
}

static int read_old_manifest(struct part_files *files)
{
	char name[NAME_MAX + 1];
	struct part_manifest manifest;
	int r;

	if (!files->has_manifest)
		return 0;
	part_files_format_name(files, MANIFEST_NUMBER, false, name);
	r = part_files_read_manifest(files, name, &manifest);
	if (r > 0)
		r = record_old_parts(files, &manifest);
	part_manifest_free(&manifest);
	return r;
}

/* Has the older list such a part? What is none of its, somebody else has put there. */
static bool is_old_part(const struct part_files *files, uint32_t number, uint64_t nbytes)
{
	for (uint32_t i = 0; i < files->n_old_parts; i++)
		if (files->old_parts[i].number == number)
			return files->old_parts[i].nbytes == nbytes;
	return false;
}

/* No file that has one of our names must be another than it seems to be. */
static int check_existing_part(struct part_files *files, uint32_t number, bool is_backup,
			       const char *name)
{
	struct stat status;
	const int r = is_backup ? 0 : part_files_stat(files, number, false, &status);

	if (r <= 0)
		return r;
	if (!S_ISREG(status.st_mode))
		return fail(S_ISDIR(status.st_mode) ? -EISDIR : -EEXIST,
			    "%s: %s beside it is no regular file, but has the name of a part "
			    "file",
			    files->name, name);
	if (number == MANIFEST_NUMBER || is_old_part(files, number, (uint64_t)status.st_size))
		return 0;
	if (number >= files->n)
		return fail(-EEXIST,
			    "%s: %s beside it is none of the %" PRIu32
			    " part files, but has such a name; remove it",
			    files->name, name, files->n);
	return fail(-EEXIST,
		    "%s: %s beside it has the name of a part file, but no part manifest "
		    "lists it; remove it, or let the output have another name",
		    files->name, name);
}

static int find_existing_parts(struct part_files *files)
{
	const int r = read_old_manifest(files);

	return r == 0 ? part_files_for_each(files, check_existing_part) : r;
}

static int part_files_alloc(const struct syscalls *calls, const char *name, uint32_t n,
			    struct part_files **ret_files)
{
	struct part_files *files = calloc(1, sizeof *files);
	int r;

	*ret_files = files;
	if (!files)
		return fail(-ENOMEM, "%s: %m", name);
	files->calls = calls;
	files->name = name;
	files->n = n;
	files->journal_file = files->directory = (struct file){ .calls = calls, .fd = -1 };
	r = open_directory(files);
	return r == 0 ? alloc_part_paths(files) : r;
}

int part_files_check(const struct syscalls *calls, const char *name, uint32_t n)
{
	struct part_files *files;
	int r = part_files_alloc(calls, name, n, &files);

	if (r == 0)
		r = part_files_find_orphans(files);
	if (r == 0 && !files->orphan_manifest.n_parts && !files->orphan_journal.n_parts)
		r = find_existing_parts(files);
	part_files_close(files);
	return r;
}

int part_files_open(const struct syscalls *calls, const char *name, uint32_t n,
		    struct part_files **ret_files)
{
	struct part_files *files;
	int r = part_files_alloc(calls, name, n, &files);

	if (r == 0)
		r = part_files_lock(files);
	if (r == 0)
		r = part_files_find_orphans(files);
	if (r == 0)
		r = part_files_recover(files);
	if (r == 0)
		r = find_existing_parts(files);
	if (files)
		part_files_unlock(files);
	if (r < 0) {
		part_files_close(files);
		return r;
	}
	*ret_files = files;
	return 0;
}

const char *part_files_path(const struct part_files *files, uint32_t i)
{
	return files->paths[i];
}

const char *part_files_name(const struct part_files *files, uint32_t i)
{
	return files->paths[i] + strlen(files->name) - strlen(files->base);
}

void part_files_close(struct part_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; files->paths && i <= files->n; i++)
		free(files->paths[i]);
	free(files->paths);
	free(files->has_backup);
	free(files->stale_parts);
	free(files->old_parts);
	part_manifest_free(&files->orphan_manifest);
	part_manifest_free(&files->orphan_journal);
	free(files->base);
	file_close(&files->directory);
	free(files);
}
