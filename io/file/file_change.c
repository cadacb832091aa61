/*
 * file_change - whether a file still is what it was when it was looked at (see file_change.h)
 */
#include "io/file/file_change.h"

struct file_state file_state_from_stat(const struct stat *status)
{
	return (struct file_state){ .nbytes = (uint64_t)status->st_size,
				    .modified = status->st_mtim,
				    .changed = status->st_ctim,
				    .n_links = status->st_nlink,
				    .mode = status->st_mode,
				    .user = status->st_uid,
				    .group = status->st_gid };
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool has_same_links_and_mode(const struct file_state *a, const struct file_state *b)
{
	return a->n_links == b->n_links && a->mode == b->mode && a->user == b->user &&
	       a->group == b->group;
}

bool file_state_is_unchanged(const struct file_state *old_state, const struct file_state *new_state)
{
	return old_state->nbytes == new_state->nbytes &&
	       is_same_time(&old_state->modified, &new_state->modified) &&
	       (is_same_time(&old_state->changed, &new_state->changed) ||
		!has_same_links_and_mode(old_state, new_state));
}
