/*
 * file_roles - each file of a run in one role, unless nothing is written in it
 *
 * A run, of a tool as well, reads inputs and the list of their names, and writes an output,
 * reports, what it keeps in a checkpoint's directory, and text to the standard streams. A file in
 * two of these roles, of which one writes, would be read as something else than it was, or be
 * replaced by something else than it should be, and nobody would be told. And a pipe that is read
 * twice would have nothing left the second time, or nobody who writes, so that it is waited for. So
 * before anything is written all files are found (io/file/path_identity.h, so that neither links
 * nor other spellings hide one), and two that are one are refused. What may be:
 *
 * - an input is the output: it is replaced when the sort is done (sort.c sees to that);
 * - a file is several inputs;
 * - two texts go to one stream;
 * - a device of characters, such as a terminal or /dev/null: it holds nothing;
 * - the two directions of a socket.
 *
 * The program that is running is in a role from the beginning: nothing may be written to its file.
 *
 * Where standard error is itself one of the files, a message would be written over it: there, the
 * status says all.
 */
#pragma once

#include "io/file/path_identity.h"
#include "io/input/input.h"

enum file_role_kind {
	ROLE_INPUT,
	ROLE_NAME_LIST, /* of the inputs' names */
	ROLE_OUTPUT,
	ROLE_PART_FILES, /* the directory of several, which is replaced */
	ROLE_REPORT,
	ROLE_CHECKPOINT, /* in a checkpoint's directory */
	ROLE_MESSAGES,   /* for a person, on a standard stream */
};

/* A file in its role. The strings must outlive it. */
struct file_role {
	enum file_role_kind kind;
	const char *name; /* what messages call it: "--trace", "standard output" */
	const char *path; /* NULL: */
	int fd;           /* the one that is open there */
};

/* Zeroed, there are none yet. */
struct file_roles {
	size_t n, capacity;
	struct file_role *roles; /* n */
	struct path_identity *identities;
};

/*
 * Add the role; not ROLE_INPUT. Returns 0, or a negative errno after a message: -EINVAL if the file
 * has another role, which the message names with both files.
 */
int file_roles_add(struct file_roles *roles, const struct file_role *role);

/*
 * The input of that path ("-": standard input) must be nothing that is in the roles, and be there.
 * As above; inputs may share a file, but no pipe. The path must outlive the roles.
 */
int file_roles_check_input(struct file_roles *roles, const char *path);

/* A file of that path; NULL: nothing is added. As above. */
int file_roles_add_path(struct file_roles *roles, enum file_role_kind kind, const char *name,
			const char *path);

/* Where inputs' names come from: --files0-from ("-": standard input); NULL: nowhere. As above. */
int file_roles_add_list(struct file_roles *roles, const char *path);

/* A standard stream (1 or 2) that something is written to. */
int file_roles_add_stream(struct file_roles *roles, enum file_role_kind kind, int fd);

void file_roles_free(struct file_roles *roles);

/*
 * The inputs are open: a part manifest (io/input/part_inputs.h) is more files than its name says.
 * Does that standard stream lead to one of them? And may none: 0, or a negative errno after a
 * message, or in silence where that would be written over it.
 */
bool file_roles_stream_is_input(const struct input *input, int fd);
int file_roles_check_streams(const struct input *input);
