/*
 * path_identity - which file a path names, existing or not
 *
 * An existing file is identified by device and inode, so links and other spellings of its path make
 * no difference. A missing file is identified by its nearest existing directory and the path from
 * there: "./o" and "o" are equal before either exists. Errors are not reported.
 */
#pragma once

#include "io/file/file.h"

struct path_identity {
	bool exists;
	mode_t mode;             /* of the file, if it exists */
	struct file_id identity; /* of the file, or of the nearest directory that exists */
	/* Of a missing file: the path from that directory, "a/b", without dots. Else NULL. */
	char *missing_path;
};

/*
 * Identify the file that the path names. Returns 0 and an identity to path_identity_free(), or a
 * negative errno.
 */
int path_identity_resolve(const char *path, struct path_identity *ret_identity);

/*
 * Identify an open file. The result needs no path_identity_free(). Returns 0 or a negative errno.
 */
int path_identity_from_fd(int fd, struct path_identity *ret_identity);

/* Return whether two paths name the same file. */
bool path_identity_equal(const struct path_identity *a, const struct path_identity *b);

/* Free an identity; all zeros are allowed. */
void path_identity_free(struct path_identity *identity);

/*
 * Resolve all symbolic links of the last component. The target need not exist. Returns 0 and a path
 * to free(), -ELOOP or -ENOMEM.
 */
int path_follow_links(const char *path, char **ret_path);

/*
 * Return the descriptor of this process that the path stands for, itself or through links: 1 for
 * /dev/stdout, 3 for /dev/fd/3. -1: none.
 */
int path_to_descriptor(const char *path);
