/*
 * target - which file an output goes to, and how (see target.h)
 */
#include "io/output/target.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "io/file/path_identity.h"
#include "src/base/diagnostics.h"

/*
 * A duplicate of what is open: it can be closed, which reports what the file system kept back.
 */
static int duplicate_target_fd(struct target *target, const char *name, int fd,
			       struct stat *ret_status)
{
	const int mode = fcntl(fd, F_GETFL);
	int r;

	target->name = name;
	if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
		return fail(-EBADF, "%s: was not given to be written to: %m", name);
	target->file.fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (target->file.fd < 0 || fstat(target->file.fd, ret_status) < 0)
		return fail(-errno, "%s: %m", name);
	r = file_clear_o_direct(&target->file, &target->was_direct);
	return r < 0 ? fail(r, "%s: is open with O_DIRECT, and cannot be had without: %m", name) :
		       0;
}

/* What the process was given. What an exec would close is not from who started us, but ours. */
static int open_inherited_fd(struct target *target, const char *name, int fd,
			     struct stat *ret_status)
{
	const int flags = fcntl(fd, F_GETFD);

	target->name = name;
	if (flags < 0 || flags & FD_CLOEXEC)
		return fail(-EBADF, "%s: was not given to be written to: %m", name);
	return duplicate_target_fd(target, name, fd, ret_status);
}

/* Writes go where the descriptor stands: others may share it. */
static int open_inherited_text(struct target *target, const char *path, int fd,
			       struct stat *ret_status)
{
	target->is_ordered = true;
	return open_inherited_fd(target, path, fd, ret_status);
}

/* Where what is open stands, if that is known, records go there. */
static int set_base_offset(struct target *target, const struct stat *status)
{
	const char *name = target->name;
	const int fd = target->file.fd;
	off_t base;

	if (isatty(fd))
		return fail(-ENOTTY,
			    "%s is a terminal, which is no place for binary records; name a file "
			    "with -o",
			    name);
	/* With O_APPEND the kernel ignores offsets. */
	base = S_ISREG(status->st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
	target->is_ordered = base < 0 || fcntl(fd, F_GETFL) & O_APPEND;
	target->base = base < 0           ? 0 :
		       target->is_ordered ? (uint64_t)status->st_size :
					    (uint64_t)base;
	return 0;
}

static int open_inherited_records(struct target *target, const char *path, int fd,
				  struct stat *ret_status)
{
	const char *name = fd == STDOUT_FILENO ? "standard output" : path;
	const int r = open_inherited_fd(target, name, fd, ret_status);

	return r < 0 ? r : set_base_offset(target, ret_status);
}

static int open_in_place(struct target *target, const char *path)
{
	const int r = file_open(target->file.calls, AT_FDCWD, path, O_WRONLY, 0, &target->file);

	target->is_ordered = true;
	return r < 0 ? fail(r, "%s: cannot open: %m", path) : 0;
}

/* A rename would replace a file that we may not write. */
static int check_access(const char *path)
{
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)
		return 0;
	if (errno == EPERM) /* and not EACCES: nobody may */
		return fail(-EPERM,
			    "%s: is immutable (chattr +i), so that no complete file can take its "
			    "place; chattr -i frees it",
			    path);
	return fail(-errno, "%s: %m: it is there, and may not be written to", path);
}

/* old: NULL: there is none. */
static int start_atomic_file(struct target *target, const char *path, const struct stat *old,
			     const struct target_params *params)
{
	const struct syscalls *calls = target->file.calls;
	const struct atomic_file_params atomic_params = { .directory = params->directory,
							  .is_shared = params->kind ==
								       TARGET_SHARED,
							  .is_silent = params->is_silent,
							  .owner = params->owner };

	if (params->kind == TARGET_SHARED_EXISTING)
		return atomic_file_open_shared(calls, params->directory, path, old, params->name,
					       &target->file, &target->atomic_file);
	return atomic_file_create(calls, path, old, &atomic_params, &target->file,
				  &target->atomic_file);
}

static int open_path(struct target *target, const char *path, const struct target_params *params,
		     struct stat *ret_status)
{
	const bool exists = !params->directory && stat(path, ret_status) == 0;
	int r;

	target->name = path;
	if (!exists && !params->directory && errno != ENOENT)
		return fail(-errno, "%s: %m", path);
	if (!exists && !params->directory && *path && path[strlen(path) - 1] == '/')
		return fail(-EISDIR,
			    "%s: is the name of a directory, as it ends in a slash, and not of a "
			    "file",
			    path);
	if (!exists) {
		memset(ret_status, 0, sizeof *ret_status);
		return start_atomic_file(target, path, NULL, params);
	}
	if (S_ISDIR(ret_status->st_mode))
		return fail(-EISDIR, "%s: %m", path);
	if (!S_ISREG(
		    ret_status->st_mode)) /* a pipe that is opened, and left, ends for its reader */
		return params->kind != TARGET_PRIVATE ? 0 : open_in_place(target, path);
	r = check_access(path);
	if (r < 0)
		return r;
	return start_atomic_file(target, path, ret_status, params);
}

static bool is_null_device(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && status->st_rdev == makedev(1, 3);
}

static void describe_target(struct target *target, const struct stat *status)
{
	target->is_null = target->is_ordered && is_null_device(status);
	target->is_regular = target->atomic_file || S_ISREG(status->st_mode);
	target->old_end =
		S_ISREG(status->st_mode) && !target->atomic_file ? (uint64_t)status->st_size : 0;
	target->ends_at_base = target->atomic_file || target->base == (uint64_t)status->st_size;
	target->has_file_id = S_ISREG(status->st_mode) || S_ISBLK(status->st_mode);
	target->file_id = file_id_from_stat(status);
}

int target_open(const struct syscalls *calls, const char *path, const struct target_params *params,
		struct target *ret_target)
{
	const int fd = params->directory ? -1 : path ? path_to_descriptor(path) : STDOUT_FILENO;
	struct target *target = ret_target;
	struct stat status;
	int r;

	*target = (struct target){ .file = { .calls = calls, .fd = -1 } };
	if (fd >= 0)
		r = open_inherited_records(target, path, fd, &status);
	else
		r = open_path(target, path, params, &status);
	if (r == 0)
		describe_target(target, &status);
	return r;
}

int target_open_endpoint(const struct syscalls *calls, const char *name, struct endpoint endpoint,
			 struct target *ret_target)
{
	struct target *target = ret_target;
	struct stat status;
	int r;

	*target = (struct target){ .name = name, .file = { .calls = calls, .fd = -1 } };
	if (endpoint.kind == ENDPOINT_RENDEZVOUS) {
		target->rendezvous = endpoint.rendezvous;
		target->is_ordered = true;
		return 0;
	}
	r = duplicate_target_fd(target, name, endpoint.fd, &status);
	if (r == 0)
		r = set_base_offset(target, &status);
	if (r == 0)
		describe_target(target, &status);
	return r;
}

int target_close(struct target *target)
{
	if (target->was_direct)
		file_restore_o_direct(&target->file);
	target->was_direct = false;
	return file_close(&target->file);
}

int target_open_text(const struct syscalls *calls, const char *path, struct target *ret_target)
{
	static const struct target_params private_params = { .kind = TARGET_PRIVATE };
	const int fd = path_to_descriptor(path);
	struct stat status;
	int r;

	*ret_target = (struct target){ .file = { .calls = calls, .fd = -1 } };
	if (fd >= 0)
		r = open_inherited_text(ret_target, path, fd, &status);
	else
		r = open_path(ret_target, path, &private_params, &status);
	if (r == 0)
		describe_target(ret_target, &status);
	return r;
}
