/*
 * path_identity - which file a path leads to, whether it is there or not
 *
 * A file that is there is known by device and inode, so neither links nor other spellings hide it.
 * One that is not there yet is known by the nearest directory that is, and by the way from there to
 * it: "./o" and "o" are the same place before either exists.
 *
 * Nothing here prints.
 */
#pragma once

#include "io/file/file.h"

struct path_identity {
	bool exists;
	mode_t mode;             /* of the file, if it does */
	struct file_id identity; /* of the file; else of the nearest directory that exists */
	char *missing_path;      /* NULL; else the way from there, "a/b", without dots */
};

/* Where does the path lead? Returns 0 and a place to path_identity_free(), or a negative errno. */
int path_identity_resolve(const char *path, struct path_identity *ret_identity);

/* The file that is open there. Needs no path_identity_free(). 0, or a negative errno. */
int path_identity_from_fd(int fd, struct path_identity *ret_identity);

bool path_identity_equal(const struct path_identity *a, const struct path_identity *b);

/* A zeroed place is fine. */
void path_identity_free(struct path_identity *identity);

/*
 * The name at the end of all symbolic links, which need not exist. Returns 0 and a path to free(),
 * -ELOOP or -ENOMEM.
 */
int path_follow_links(const char *path, char **ret_path);

/*
 * The descriptor of this process that the path stands for, itself or through links: 1 of
 * /dev/stdout, 3 of /dev/fd/3. -1: none, or only the end of the path is an open file.
 */
int path_to_descriptor(const char *path);
