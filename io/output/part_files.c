/*
 * part_files.c - a directory of part files that appears at once (see part_files.h)
 *
 * The target is an atomic_target like that of a single file: in the end its path must lead to the
 * same directory, and the directory must not have gained or lost a file. The files in it are
 * recorded as well, because a write to one of them does not change the directory.
 *
 * From the first file on that gets its name in the hidden directory, signals do not end the process
 * (undo.h). So a signal handler finds only files with temporary names there, which it knows.
 */
#include "io/output/part_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file/file.h"
#include "io/input/part_manifest.h"
#include "io/output/atomic_file.h"
#include "io/output/undo.h"
#include "src/base/diagnostics.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/* A file of the old directory, as it was when the output was opened. */
struct old_file {
	char *name;
	struct file_id identity;
	struct file_state state;
};

struct part_files {
	const struct syscalls *calls;
	char *path; /* as given, without slashes at the end */
	uint32_t n;
	char **paths; /* n + 1, the manifest's last */

	struct atomic_target target;
	struct old_file *old_files; /* n_old_files */
	size_t n_old_files;

	struct file directory;         /* the hidden one */
	bool is_joined;                /* another rank has created it */
	struct undo_entry *undo_entry; /* NULL: temp_name is not registered */
	struct undo_entry own_undo_entry;
	char temp_name[TEMP_NAME_SIZE]; /* of a directory to remove; "": there is none */
};

/* --- names --- */

static char *part_path(const struct part_files *files, uint32_t i, const char *extension)
{
	char *path;
	const int r = i < files->n ? asprintf(&path, "%s/part-%04" PRIu32 "%s", files->path, i,
					      extension) :
				     asprintf(&path, "%s/" PART_MANIFEST_NAME, files->path);

	return r < 0 ? NULL : path;
}

static bool alloc_paths(struct part_files *files, const char *path, const char *extension)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	files->path = strndup(path, length);
	files->paths = calloc(files->n + UINT64_C(1), sizeof *files->paths);
	if (!files->path || !files->paths)
		return false;
	for (uint32_t i = 0; i <= files->n; i++)
		if (!(files->paths[i] = part_path(files, i, extension)))
			return false;
	return true;
}

static int alloc_part_files(const struct syscalls *calls, const char *path, uint32_t n,
			    const char *extension, struct part_files **ret_files)
{
	struct part_files *files = calloc(1, sizeof *files);

	*ret_files = files;
	if (!files)
		return fail(-ENOMEM, "%s: %m", path);
	files->calls = calls;
	files->n = n;
	files->directory = (struct file){ .calls = calls, .fd = -1 };
	files->target.directory = files->target.old_file = files->directory;
	return alloc_paths(files, path, extension) ?
		       0 :
		       fail(-ENOMEM, "%s: no memory for the names of part files", path);
}

/* --- the old directory --- */

static int fail_foreign(const struct part_files *files, const char *name)
{
	return fail(-EEXIST,
		    "%s: contains %s, which is not one of its part files; rename the directory, "
		    "or choose another name",
		    files->path, name);
}

/* Find a part file in the manifest; NULL if it is not listed, or not with its usual name. */
static const struct manifest_part *find_listed_part(const struct part_manifest *manifest,
						    const char *name)
{
	char *end;
	unsigned long number;

	if (strncmp(name, "part-", 5) != 0 || name[5] < '0' || name[5] > '9')
		return NULL;
	number = strtoul(name + 5, &end, 10);
	return number < manifest->n_parts && strcmp(manifest->parts[number].name, name) == 0 ?
		       &manifest->parts[number] :
		       NULL;
}

struct old_files_reader {
	struct part_files *files;
	const struct part_manifest *manifest;
};

static int record_old_file(const struct file *directory, const char *name, void *context)
{
	const struct old_files_reader *reader = context;
	const struct part_manifest *manifest = reader->manifest;
	struct part_files *files = reader->files;
	const bool is_manifest = strcmp(name, PART_MANIFEST_NAME) == 0;
	const struct manifest_part *part = is_manifest ? NULL : find_listed_part(manifest, name);
	struct old_file *old_file = &files->old_files[files->n_old_files];
	struct stat status;

	if ((!is_manifest && !part) || files->n_old_files > manifest->n_parts)
		return fail_foreign(files, name);
	if (fstatat(directory->fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return fail_foreign(files, name);
	if (part && part->nbytes != (uint64_t)status.st_size)
		return fail(
			-EEXIST,
			"%s: %s has %jd bytes, not %" PRIu64
			" as in the part manifest; rename the directory, or choose another name",
			files->path, name, (intmax_t)status.st_size, part->nbytes);
	*old_file = (struct old_file){ strdup(name), file_id_from_stat(&status),
				       file_state_from_stat(&status) };
	if (!old_file->name)
		return -ENOMEM;
	files->n_old_files++;
	return 0;
}

static int refuse_entry(const struct file *directory, const char *name, void *context)
{
	(void)directory;
	return fail_foreign(context, name);
}

/* Record the files of the old directory. It is empty, or its manifest lists all of them. */
static int record_old_files(struct part_files *files)
{
	const struct file *directory = &files->target.old_file;
	struct part_manifest manifest = { 0 };
	struct old_files_reader reader = { files, &manifest };
	struct file file;
	int r = file_open(files->calls, directory->fd, PART_MANIFEST_NAME,
			  O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &file);

	if (r == -ENOENT || r == -ELOOP)
		return directory_for_each(directory, refuse_entry, files);
	if (r < 0)
		return r;
	r = part_manifest_read(&file, files->paths[files->n], &manifest);
	file_close(&file);
	if (r == 0 && !(files->old_files = calloc(manifest.n_parts + 1, sizeof *files->old_files)))
		r = -ENOMEM;
	if (r == 0)
		r = directory_for_each(directory, record_old_file, &reader);
	part_manifest_free(&manifest);
	if (r == 0 && files->n_old_files > 0 &&
	    faccessat(directory->fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		r = -errno;
	return r;
}

static int examine_target(struct part_files *files)
{
	const char *slash = strrchr(files->path, '/'), *name = slash ? slash + 1 : files->path;
	struct stat status;
	const bool exists = stat(files->path, &status) == 0;
	int r;

	if (!exists && errno != ENOENT)
		return fail(-errno, "%s: %m", files->path);
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return fail(-EINVAL, "%s: not a name for a new directory", files->path);
	if (exists && !S_ISDIR(status.st_mode))
		return fail(-ENOTDIR,
			    "%s: exists, and is no directory of part files; rename it, or choose "
			    "another name",
			    files->path);
	r = atomic_target_open(files->calls, files->path, exists ? &status : NULL, &files->target);
	if (r == 0 && exists)
		r = record_old_files(files);
	return r < 0 && exists ? fail(r, "%s: cannot be replaced: %m", files->path) : r;
}

/* Return whether the target is still the original directory, or still missing. */
static int check_target(const struct part_files *files)
{
	const int r = atomic_target_verify(&files->target);

	if (r < 0)
		return r;
	for (size_t i = 0; i < files->n_old_files; i++) {
		const struct old_file *old = &files->old_files[i];
		struct file_state state;
		struct stat status;

		if (fstatat(files->target.old_file.fd, old->name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return fail(-errno, "%s: %s in it: %m", files->path, old->name);
		state = file_state_from_stat(&status);
		if (!file_id_equal(file_id_from_stat(&status), old->identity) ||
		    !file_state_is_unchanged(&old->state, &state))
			return fail(
				-EBUSY,
				"%s: %s changed during the sort; directory kept; sort again when "
				"no process writes to it",
				files->path, old->name);
	}
	return 0;
}

bool part_files_old_file_id(const struct part_files *files, size_t i, struct file_id *ret_file_id)
{
	if (i >= files->n_old_files)
		return false;
	*ret_file_id = files->old_files[i].identity;
	return true;
}

/* --- the hidden directory --- */

static int open_hidden(struct part_files *files)
{
	int r = file_open(files->calls, files->target.directory.fd, files->temp_name,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &files->directory);

	if (r == 0 && !files->is_joined)
		orphans_lock(&files->directory);
	return r;
}

/* Only the owner gets access until the directory has the permissions of the old one. */
static int create_hidden(struct part_files *files, const struct orphan_owner *owner)
{
	const struct file *parent = &files->target.directory;
	const mode_t mode = files->target.had_file ? 0700 : 0777;
	int r;

	files->undo_entry = undo_reserve_name(files->calls->undo, parent->fd, owner, UNDO_RMDIR,
					      &files->own_undo_entry);
	if (!files->undo_entry)
		return -EMFILE;
	r = files->calls->mkdirat(parent->fd, files->undo_entry->name, mode) < 0 ? -errno : 0;
	if (r == 0)
		strcpy(files->temp_name, files->undo_entry->name);
	undo_name_created(files->undo_entry);
	return r < 0 ? r : open_hidden(files);
}

int part_files_open(const struct syscalls *calls, const char *path, uint32_t n,
		    const char *extension, const struct orphan_owner *owner,
		    struct part_files **ret_files)
{
	struct part_files *files;
	int r = alloc_part_files(calls, path, n, extension, &files);

	if (r == 0)
		r = examine_target(files);
	if (r == 0) {
		orphans_remove(&files->target.directory, owner);
		r = create_hidden(files, owner);
	}
	if (r < 0) {
		part_files_close(files, false);
		return fail(r, "%s: cannot create a temporary directory beside it: %m", path);
	}
	orphans_warn(&files->target.directory, files->path, NULL, UINT64_MAX);
	*ret_files = files;
	return 0;
}

int part_files_open_existing(const struct syscalls *calls, const char *path, uint32_t n,
			     const char *extension, const char *temp_name,
			     struct part_files **ret_files)
{
	struct part_files *files;
	int r = alloc_part_files(calls, path, n, extension, &files);

	if (r == 0 && !orphans_is_temp_name(temp_name))
		r = -EPROTO;
	if (r == 0)
		r = atomic_target_open(calls, files->path, NULL, &files->target);
	if (r == 0) {
		files->is_joined = true;
		snprintf(files->temp_name, sizeof files->temp_name, "%s", temp_name);
		r = open_hidden(files);
	}
	if (r == 0) {
		files->undo_entry = undo_adopt_name(calls->undo, files->target.directory.fd,
						    temp_name, UNDO_RMDIR, &files->own_undo_entry);
		r = files->undo_entry ? 0 : -EMFILE;
	}
	if (r < 0) {
		part_files_close(files, true);
		return fail(
			r,
			"%s: cannot open %s of another rank in its directory: %m; all ranks must "
			"see the same directory",
			path, temp_name);
	}
	*ret_files = files;
	return 0;
}

const char *part_files_temp_name(const struct part_files *files)
{
	return files->temp_name;
}

int part_files_open_outputs(const struct part_files *files, bool is_shared,
			    struct output **ret_outputs)
{
	int r = 0;

	for (uint32_t i = 0; i <= files->n && r == 0; i++)
		r = output_open_part(&files->directory, files->paths[i], is_shared && i < files->n,
				     NULL, &ret_outputs[i]);
	return r;
}

int part_files_join_output(const struct part_files *files, uint32_t i, const char *name,
			   struct output **ret_output)
{
	return output_open_part(&files->directory, files->paths[i], true, name, ret_output);
}

const char *part_files_name(const struct part_files *files, uint32_t i)
{
	return strrchr(files->paths[i], '/') + 1;
}

static void release_temp_name(struct part_files *files)
{
	if (files->undo_entry)
		undo_remove(files->calls->undo, files->undo_entry);
	files->undo_entry = NULL;
	files->temp_name[0] = '\0';
}

/* --- commit --- */

/* Use the attributes of the old file of that name, or else those of the first old file. */
static int copy_file_attributes(struct part_files *files, uint32_t i, struct lost_attributes *lost)
{
	const char *name = part_files_name(files, i), *old_name = files->old_files[0].name;
	struct lost_attributes file_lost = { false, false };
	struct file file, old_file;
	int r;

	for (size_t j = 0; j < files->n_old_files; j++)
		if (strcmp(files->old_files[j].name, name) == 0)
			old_name = name;
	r = attributes_open(files->calls, files->target.old_file.fd, old_name, &old_file);
	if (r < 0)
		return r;
	r = file_open(files->calls, files->directory.fd, name, O_RDONLY | O_NOFOLLOW, 0, &file);
	if (r == 0) {
		r = attributes_copy(&old_file, &file, &file_lost);
		file_close(&file);
	}
	file_close(&old_file);
	lost->acl |= file_lost.acl;
	lost->xattrs |= file_lost.xattrs;
	return r;
}

static int copy_attributes(struct part_files *files)
{
	struct lost_attributes lost = { false, false };
	int r = files->target.had_file ?
			attributes_copy(&files->target.old_file, &files->directory, &lost) :
			0;

	for (uint32_t i = 0; i <= files->n && files->n_old_files > 0 && r == 0; i++)
		r = copy_file_attributes(files, i, &lost);
	attributes_warn_lost(files->path, &lost);
	return r;
}

static int rename_in_parent(const struct part_files *files, const char *name, const char *new_name)
{
	const int parent = files->target.directory.fd;

	return files->calls->renameat(parent, name, parent, new_name) < 0 ? -errno : 0;
}

/* Rename the hidden directory. The kernel replaces an old directory only if it is empty. */
static int rename_hidden(struct part_files *files)
{
	const int r = rename_in_parent(files, files->temp_name, files->target.name);

	if (r == 0)
		release_temp_name(files);
	return r;
}

static int replace_by_two_renames(struct part_files *files)
{
	char backup_name[TEMP_NAME_SIZE];
	int r, undo_result;

	orphans_make_temp_name(NULL, backup_name);
	r = rename_in_parent(files, files->target.name, backup_name);
	if (r < 0)
		return r;
	r = rename_hidden(files);
	if (r == 0) {
		strcpy(files->temp_name, backup_name);
		return 0;
	}
	undo_result = rename_in_parent(files, backup_name, files->target.name);
	return undo_result < 0 ?
		       fail(undo_result,
			    "%s: cannot be restored: %m; it is now %s in the same directory",
			    files->path, backup_name) :
		       r;
}

/* Afterwards temp_name is the name of the old directory. */
static int exchange(struct part_files *files)
{
	const int parent = files->target.directory.fd;

	if (files->calls->renameat2(parent, files->temp_name, parent, files->target.name,
				    RENAME_EXCHANGE) == 0)
		return 0;
	return errno == EINVAL || errno == ENOSYS ? replace_by_two_renames(files) : -errno;
}

static int publish(struct part_files *files)
{
	const int r = check_target(files);

	if (r < 0)
		return r;
	orphans_lock(&files->target.old_file); /* it will have a temporary name for a while */
	return files->n_old_files > 0 ? exchange(files) : rename_hidden(files);
}

static void remove_old_directory(struct part_files *files)
{
	const int parent = files->target.directory.fd;
	int r = 0;

	for (size_t i = 0; i < files->n_old_files && r == 0; i++)
		r = file_remove(files->calls, files->target.old_file.fd, files->old_files[i].name,
				0);
	if (r == 0)
		r = file_remove(files->calls, parent, files->temp_name, AT_REMOVEDIR);
	if (r < 0)
		warn("%s: the older directory, now %s, cannot be removed: %s", files->path,
		     files->temp_name, strerror(-r));
	release_temp_name(files);
}

static int commit_files(struct part_files *files, struct output **outputs, bool is_durable)
{
	int r = check_target(files);

	for (uint32_t i = 0; i <= files->n && r == 0; i++) {
		r = output_commit(outputs[i], OUTPUT_UNSYNCED);
		outputs[i] = NULL;
	}
	if (r == 0)
		r = copy_attributes(files);
	if (r == 0 && is_durable)
		r = file_sync(&files->directory);
	return r == 0 ? publish(files) : r;
}

int part_files_commit(struct part_files *files, struct output **outputs, bool is_durable)
{
	const bool is_first = undo_commit_begin(files->calls->undo);
	int r = commit_files(files, outputs, is_durable);

	for (uint32_t i = 0; i <= files->n; i++) {
		output_abort(outputs[i]);
		outputs[i] = NULL;
	}
	if (r < 0) {
		fail(r, "%s: cannot be replaced: %m", files->path);
		if (is_first)
			undo_commit_rollback(files->calls->undo);
		return r;
	}
	if (is_durable && (r = atomic_target_sync_name(&files->target)) < 0)
		fail(r, "%s: is complete, but its name may not be on stable storage: %m",
		     files->path);
	if (files->temp_name[0])
		remove_old_directory(files);
	return r;
}

/*
 * A rank that has joined removes only files with temporary names: when the others have their names,
 * the directory may have its own.
 */
static int remove_temp_file(const struct file *directory, const char *name, void *context)
{
	(void)context;
	return orphans_is_temp_name(name) ? file_remove(directory->calls, directory->fd, name, 0) :
					    0;
}

static void discard(struct part_files *files)
{
	int r;

	if (files->directory.fd >= 0 && files->is_joined)
		directory_for_each(&files->directory, remove_temp_file, NULL);
	for (uint32_t i = 0; i <= files->n && files->directory.fd >= 0 && !files->is_joined; i++)
		file_remove(files->calls, files->directory.fd, part_files_name(files, i), 0);
	/* This fails if a file could not be removed. */
	r = file_remove(files->calls, files->target.directory.fd, files->temp_name, AT_REMOVEDIR);
	if (r < 0 && !files->is_joined)
		warn("%s: the unfinished directory %s beside it cannot be removed: %s", files->path,
		     files->temp_name, strerror(-r));
}

void part_files_close(struct part_files *files, bool is_complete)
{
	if (!files)
		return;
	if (files->temp_name[0] && !is_complete)
		discard(files);
	release_temp_name(files);
	file_close(&files->directory);
	atomic_target_close(&files->target);
	for (size_t i = 0; i < files->n_old_files; i++)
		free(files->old_files[i].name);
	free(files->old_files);
	for (uint32_t i = 0; files->paths && i <= files->n; i++)
		free(files->paths[i]);
	free(files->paths);
	free(files->path);
	free(files);
}
