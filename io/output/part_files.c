/*
 * part_files - a directory of part files and their manifest, which appears at once (see
 * part_files.h)
 *
 * The target is a target_snapshot like that of a single file: its path must lead to the same
 * directory in the end, and the directory must not have gained or lost a file. The files in it are
 * noted besides, since a write to one of them changes nothing about the directory.
 *
 * From the first name on that a file gets in the hidden directory, no handled signal ends the
 * process (commit_point.h). So a handler finds no files in it but those of hidden names, which it
 * knows (unlink_on_abort.h).
 */
#include "io/output/part_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file/file_change.h"
#include "io/input/part_manifest.h"
#include "io/output/commit_point.h"
#include "io/output/file_attributes.h"
#include "io/output/target_snapshot.h"
#include "io/output/unlink_on_abort.h"
#include "src/base/diagnostics.h"

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

/* A file of the old directory, as it was when the directory was looked at. */
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

	struct target_snapshot target;
	struct old_file *old_files; /* n_old_files */
	size_t n_old_files;

	struct file directory;                      /* the hidden one */
	bool is_joined;                             /* another rank has created it */
	struct temp_name *temp_slot, own_temp_slot; /* temp_slot NULL: the name is not registered */
	char temp_name[TEMP_NAME_SIZE]; /* "": it has its final name, and nothing is left */
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

static int alloc_paths(struct part_files *files, const char *path, const char *extension)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	files->path = strndup(path, length);
	files->paths = calloc(files->n + UINT64_C(1), sizeof *files->paths);
	for (uint32_t i = 0; files->path && files->paths && i <= files->n; i++)
		if (!(files->paths[i] = part_path(files, i, extension)))
			return fail(-ENOMEM, "%s: no memory for the names of part files", path);
	return files->path && files->paths ?
		       0 :
		       fail(-ENOMEM, "%s: no memory for the names of part files", path);
}

static int create_part_files(const struct syscalls *calls, const char *path, uint32_t n,
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
	return alloc_paths(files, path, extension);
}

/* --- entries of a directory --- */

typedef int entry_fn(struct part_files *files, const char *name, const void *context);

/* Call entry() for each, until it fails. 0, or its errno, or another without a message. */
static int for_each_entry(struct part_files *files, const struct file *directory, entry_fn *entry,
			  const void *context)
{
	const struct dirent *found;
	struct file readable;
	DIR *stream;
	int r = file_open(files->calls, directory->fd, ".", O_RDONLY | O_DIRECTORY, 0, &readable);

	if (r < 0)
		return r;
	stream = fdopendir(readable.fd);
	if (!stream) {
		r = -errno;
		file_close(&readable);
		return r;
	}
	while (r == 0 && (errno = 0, found = readdir(stream)))
		if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
			r = entry(files, found->d_name, context);
	if (r == 0)
		r = -errno;
	closedir(stream);
	return r;
}

/* --- the old directory --- */

static int fail_foreign(const struct part_files *files, const char *name)
{
	return fail(-EEXIST,
		    "%s: has %s in it, which no part manifest names: rename the "
		    "directory, or let the output have another name",
		    files->path, name);
}

/* The part file of that name; NULL: the manifest lists none, or not as gsort names them. */
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

static int note_old_file(struct part_files *files, const char *name, const void *context)
{
	const bool is_manifest = strcmp(name, PART_MANIFEST_NAME) == 0;
	const struct part_manifest *manifest = context;
	const struct manifest_part *part = is_manifest ? NULL : find_listed_part(manifest, name);
	struct old_file *old_file = &files->old_files[files->n_old_files];
	struct stat status;

	if ((!is_manifest && !part) || files->n_old_files > manifest->n_parts)
		return fail_foreign(files, name);
	if (fstatat(files->target.old_file.fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode))
		return fail_foreign(files, name);
	if (part && part->nbytes != (uint64_t)status.st_size)
		return fail(-EEXIST,
			    "%s: %s in it has %jd bytes, and not %" PRIu64
			    ", as its part manifest says: rename the directory, or let the output "
			    "have another name",
			    files->path, name, (intmax_t)status.st_size, part->nbytes);
	*old_file = (struct old_file){ strdup(name), file_id_from_stat(&status),
				       file_state_from_stat(&status) };
	if (!old_file->name)
		return -ENOMEM;
	files->n_old_files++;
	return 0;
}

static int refuse_entry(struct part_files *files, const char *name, const void *context)
{
	(void)context;
	return fail_foreign(files, name);
}

static int note_old_files(struct part_files *files)
{
	const struct file *directory = &files->target.old_file;
	struct part_manifest manifest = { 0 };
	struct file file;
	int r = file_open(files->calls, directory->fd, PART_MANIFEST_NAME,
			  O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &file);

	if (r == -ENOENT || r == -ELOOP) /* then it must be empty */
		return for_each_entry(files, directory, refuse_entry, NULL);
	if (r < 0)
		return r;
	r = part_manifest_read(&file, files->paths[files->n], &manifest);
	file_close(&file);
	if (r == 0 && !(files->old_files = calloc(manifest.n_parts + 1, sizeof *files->old_files)))
		r = -ENOMEM;
	if (r == 0)
		r = for_each_entry(files, directory, note_old_file, &manifest);
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
		return fail(-EINVAL, "%s: is no name that a new directory can have", files->path);
	if (exists && !S_ISDIR(status.st_mode))
		return fail(-ENOTDIR,
			    "%s: is there, and no directory of part files: rename it, or let the "
			    "output have another name",
			    files->path);
	r = target_snapshot_take(files->calls, files->path, exists ? &status : NULL,
				 &files->target);
	if (r == 0 && exists)
		r = note_old_files(files);
	return r < 0 && exists ? fail(r, "%s: cannot be replaced: %m", files->path) : r;
}

/* What has the target's name is what was there at first, or nothing. */
static int check_target(const struct part_files *files)
{
	const int r = target_snapshot_verify(&files->target);

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
			return fail(-EBUSY,
				    "%s: %s in it has changed since it was looked at, so it is not "
				    "replaced; sort when nobody writes to it",
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

/* What is in it is for nobody to see to whom the old directory may be closed. */
static int create_hidden(struct part_files *files, const struct orphan_owner *owner)
{
	const struct file *parent = &files->target.directory;
	const mode_t mode = files->target.had_file ? 0700 : 0777;
	int r;

	files->temp_slot = temp_names_reserve(files->calls->temp_names, parent->fd, owner, true,
					      &files->own_temp_slot);
	if (!files->temp_slot)
		return -EMFILE;
	r = files->calls->mkdirat(parent->fd, files->temp_slot->name, mode) < 0 ? -errno : 0;
	if (r == 0)
		strcpy(files->temp_name, files->temp_slot->name);
	temp_names_created(files->temp_slot);
	return r < 0 ? r : open_hidden(files);
}

int part_files_open(const struct syscalls *calls, const char *path, uint32_t n,
		    const char *extension, const struct orphan_owner *owner,
		    struct part_files **ret_files)
{
	struct part_files *files;
	int r = create_part_files(calls, path, n, extension, &files);

	if (r == 0)
		r = examine_target(files);
	if (r == 0) {
		orphans_remove(&files->target.directory, owner);
		r = create_hidden(files, owner);
	}
	if (r < 0) {
		part_files_close(files, false);
		return fail(r, "%s: cannot make a directory beside it to take its place: %m", path);
	}
	orphans_warn(&files->target.directory, files->path);
	*ret_files = files;
	return 0;
}

int part_files_open_existing(const struct syscalls *calls, const char *path, uint32_t n,
			     const char *extension, const char *temp_name,
			     struct part_files **ret_files)
{
	struct part_files *files;
	int r = create_part_files(calls, path, n, extension, &files);

	if (r == 0 && !orphans_is_temp_name(temp_name))
		r = -EPROTO;
	if (r == 0)
		r = target_snapshot_take(calls, files->path, NULL, &files->target);
	if (r == 0) {
		files->is_joined = true;
		snprintf(files->temp_name, sizeof files->temp_name, "%s", temp_name);
		r = open_hidden(files);
	}
	if (r == 0 &&
	    !(files->temp_slot = temp_names_adopt(calls->temp_names, files->target.directory.fd,
						  temp_name, true, &files->own_temp_slot)))
		r = -EMFILE;
	if (r < 0) {
		part_files_close(files, true);
		return fail(r,
			    "%s: %s beside it, which another rank has begun, cannot be opened "
			    "here: %m; all ranks must see the same directory",
			    path, temp_name);
	}
	*ret_files = files;
	return 0;
}

const char *part_files_temp_name(const struct part_files *files)
{
	return files->temp_name;
}

const struct file *part_files_directory(const struct part_files *files)
{
	return &files->directory;
}

const char *part_files_path(const struct part_files *files, uint32_t i)
{
	return files->paths[i];
}

const char *part_files_name(const struct part_files *files, uint32_t i)
{
	return strrchr(files->paths[i], '/') + 1;
}

static void release_temp_name(struct part_files *files)
{
	if (files->temp_slot)
		temp_names_release(files->temp_slot);
	files->temp_slot = NULL;
	files->temp_name[0] = '\0';
}

/* --- the end --- */

/* A new part file is no more open than the old one of its name, or the first of the old ones. */
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
	struct lost_attributes lost = { false, false }, files_lost = { false, false };
	int r = files->target.had_file ?
			attributes_copy(&files->target.old_file, &files->directory, &lost) :
			0;

	for (uint32_t i = 0; i <= files->n && files->n_old_files > 0 && r == 0; i++)
		r = copy_file_attributes(files, i, &files_lost);
	if (lost.acl || files_lost.acl)
		warn("%s: its access list cannot be kept: only its owner can use it now",
		     files->path);
	if (lost.xattrs || files_lost.xattrs)
		warn("%s: not all of its extended attributes can be kept", files->path);
	return r;
}

static int rename_in_parent(const struct part_files *files, const char *name, const char *new_name)
{
	const int parent = files->target.directory.fd;

	return files->calls->renameat(parent, name, parent, new_name) < 0 ? -errno : 0;
}

/* The old directory, which has nothing in it, is replaced by the kernel. */
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
	return undo_result < 0 ? fail(undo_result,
				      "%s: cannot be put back: %m; it is %s beside that name now",
				      files->path, backup_name) :
				 r;
}

/* From then on temp_name is that of the old directory. */
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
	orphans_lock(&files->target.old_file); /* until it is removed */
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
		warn("%s: the older directory, now %s beside it, cannot be removed: %s",
		     files->path, files->temp_name, strerror(-r));
	release_temp_name(files);
}

static int sync_parent(const struct part_files *files)
{
	struct file parent;
	int r = file_open(files->calls, files->target.directory.fd, ".", O_RDONLY | O_DIRECTORY, 0,
			  &parent);

	if (r < 0)
		return r;
	r = file_sync(&parent);
	file_close(&parent);
	return r;
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
	const bool is_first = commit_begin(files->calls->commit_point);
	int r = commit_files(files, outputs, is_durable);

	for (uint32_t i = 0; i <= files->n; i++) {
		output_abort(outputs[i]);
		outputs[i] = NULL;
	}
	if (r < 0) {
		fail(r, "%s: cannot be replaced: %m", files->path);
		if (is_first)
			commit_rollback(files->calls->commit_point);
		return r;
	}
	if (is_durable && (r = sync_parent(files)) < 0)
		fail(r, "%s: is complete, but its name may not be on stable storage: %m",
		     files->path);
	if (files->temp_name[0])
		remove_old_directory(files);
	return r;
}

/*
 * A rank that has joined leaves files with a final name: by then the directory may have its own.
 * Those of hidden names that it knows are gone, and the others are not known here.
 */
static int discard_hidden_file(struct part_files *files, const char *name, const void *context)
{
	(void)context;
	return orphans_is_temp_name(name) ?
		       file_remove(files->calls, files->directory.fd, name, 0) :
		       0;
}

static void discard(struct part_files *files)
{
	int r;

	if (files->directory.fd >= 0 && files->is_joined)
		for_each_entry(files, &files->directory, discard_hidden_file, NULL);
	for (uint32_t i = 0; i <= files->n && files->directory.fd >= 0 && !files->is_joined; i++)
		file_remove(files->calls, files->directory.fd, part_files_name(files, i), 0);
	/* What could not be removed keeps the directory. */
	r = file_remove(files->calls, files->target.directory.fd, files->temp_name, AT_REMOVEDIR);
	if (r < 0 && !files->is_joined)
		warn("%s: %s beside it is unfinished, and cannot be removed: %s", files->path,
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
	target_snapshot_close(&files->target);
	for (size_t i = 0; i < files->n_old_files; i++)
		free(files->old_files[i].name);
	free(files->old_files);
	for (uint32_t i = 0; files->paths && i <= files->n; i++)
		free(files->paths[i]);
	free(files->paths);
	free(files->path);
	free(files);
}
