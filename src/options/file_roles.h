/*
 * file_roles.h - one role for each file of a command, and lists of file names
 *
 * A command reads inputs and a list of their names; it writes an output, reports, checkpoint files,
 * and text on the standard streams. A file with two roles, one of them written, would be damaged or
 * read while it changes. So all files are identified before anything is opened for writing
 * (io/file/path_identity.h: links and other spellings do not hide a file), and each new file is
 * compared with the files in the list:
 *
 *	file in both roles is	read, read	one written, one read	both written
 *	regular file		yes		input = output only	text on one stream only
 *	pipe			no		no			text on one stream only
 *	socket			no		yes (two directions)	text on one stream only
 *	character device	yes		yes			yes
 *
 * The output replaces an input only after the sort. The running program is never written.
 *
 * If standard error is itself a file of the command, messages about it would overwrite that file.
 * Then only the exit status reports the error.
 */
#pragma once

#include "io/file/path_identity.h"
#include "io/input/input.h"

enum file_role_kind {
	ROLE_INPUT,
	ROLE_NAME_LIST, /* --files0-from */
	ROLE_OUTPUT,
	ROLE_PART_FILES, /* a directory that is replaced */
	ROLE_REPORT,
	ROLE_CHECKPOINT, /* a file in the directory of --checkpoint */
	ROLE_MESSAGES,   /* text on a standard stream */
};

struct file_role {
	enum file_role_kind kind;
	const char *name; /* in messages: "--trace", "standard output" */
	const char *path; /* NULL: fd is open */
	int fd;
	struct path_identity identity;
};

/* A list of files. Zero-initialised. Names and paths must outlive it. */
struct file_roles {
	struct file_role *roles;
	size_t n, capacity;
};

/*
 * Add a file with this path; NULL is ignored. Returns 0 or a negative errno (reported): -EINVAL if
 * the file has another role.
 */
int file_roles_add_path(struct file_roles *roles, enum file_role_kind kind, const char *name,
			const char *path);

/* Add standard output or standard error, as file_roles_add_path() does. */
int file_roles_add_stream(struct file_roles *roles, enum file_role_kind kind, int fd);

/* Add the file of --files0-from ("-": standard input; NULL is ignored). */
int file_roles_add_list(struct file_roles *roles, const char *path);

/*
 * Check that an input ("-": standard input) exists and is not in the list. Pipes are added, since
 * they can be read only once.
 */
int file_roles_check_input(struct file_roles *roles, const char *path);

/*
 * Check that reports replace only empty files and older reports. If the FILE of a report is
 * forgotten, the next word of the command takes its place, which may be an input. Returns 0 or
 * -EINVAL (reported).
 */
int file_roles_check_reports(const struct file_roles *roles);

void file_roles_free(struct file_roles *roles);

/*
 * Check that standard error, and standard output if text is written there, are no part files of an
 * open input (io/input/part_inputs.h). Returns 0 or -EINVAL (reported, unless the message would
 * overwrite the file).
 */
int file_roles_check_streams(const struct input *input, bool writes_to_stdout);

/* --- lists of names that end with NULs, as "find -print0" writes them --- */

/*
 * Read the names in the list at `path` ("-": standard input) into *ret_paths, an array of *ret_n
 * names, at least one. The NUL after the last name is optional. The names point into *ret_text;
 * free() both. memory_nbytes: refuse more names than fit (input_check_names()); 0: no limit.
 *
 * Returns 0 or a negative errno (reported). Errors are a list that cannot be read or is empty, an
 * empty name, and the name "-" in a list from standard input.
 */
int files0_read(const char *path, uint64_t memory_nbytes, const char ***ret_paths, size_t *ret_n,
		char **ret_text);

/*
 * Require that a list of names ("-": standard input) is a regular file, which every rank can read.
 * A missing file is not refused here. Returns 0 or -EINVAL (reported).
 */
int files0_require_regular_file(const char *path);
