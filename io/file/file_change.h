/*
 * file_change - whether a file still is what it was when it was looked at
 *
 * Its size and the times of modification and of change say so: the former can be set back by any
 * program, the latter by none. But names and rights are changes, too, which harm nobody: where the
 * time of change is explained by these, it says nothing.
 *
 * What the times do not show: a store to a mapped file that has not come to the disk, and a second
 * change within a tick of the system's clock (some milliseconds).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_state {
	uint64_t nbytes;
	struct timespec modified, changed;
	/* What else moves the time of change. */
	nlink_t n_links;
	mode_t mode;
	uid_t user;
	gid_t group;
};

struct file_state file_state_from_stat(const struct stat *status);

/* Are the bytes of a file those that they were, as far as can be told? */
bool file_state_is_unchanged(const struct file_state *old_state,
			     const struct file_state *new_state);
