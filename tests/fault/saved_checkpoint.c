/*
 * saved_checkpoint.c - the checkpoint of an interrupted sort (see saved_checkpoint.h)
 */
#include "tests/fault/saved_checkpoint.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool saved_checkpoint_dir_exists(void)
{
	return access("state", F_OK) == 0;
}

bool saved_checkpoint_is_resumable(void)
{
	return access("state/gsort-manifest", F_OK) == 0;
}

void saved_checkpoint_read(struct saved_checkpoint *ret_checkpoint)
{
	ret_checkpoint->manifest = read_file("state/gsort-manifest");
	ret_checkpoint->runs = read_file("state/gsort-runs");
}

void saved_checkpoint_write(const struct saved_checkpoint *checkpoint)
{
	require(mkdir("state", 0700 | S_ISVTX) == 0, "state"); /* as gsort does */
	write_file("state/gsort-manifest", checkpoint->manifest.data, checkpoint->manifest.nbytes);
	write_file("state/gsort-runs", checkpoint->runs.data, checkpoint->runs.nbytes);
}

void saved_checkpoint_free(struct saved_checkpoint *checkpoint)
{
	free(checkpoint->manifest.data);
	free(checkpoint->runs.data);
}

static void remove_file(const char *path)
{
	require(unlink(path) == 0 || errno == ENOENT, path);
}

void saved_checkpoint_remove(void)
{
	remove_file("state/gsort-manifest");
	remove_file("state/gsort-runs");
	require(rmdir("state") == 0 || errno == ENOENT, "state");
}
