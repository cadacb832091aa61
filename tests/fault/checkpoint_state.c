/*
 * checkpoint_state - what an interrupted sort has left (see checkpoint_state.h)
 */
#include "tests/fault/checkpoint_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fault/expected_outputs.h"
#include "tests/fault/part_files_check.h"

/* The hidden name of an output under construction; "" if there is none. */
static void find_hidden(char name[static 256])
{
	char known[512];

	snprintf(known, sizeof known, "%s . .. output stdout stderr tmp reports state %s",
		 input_names, parts_names);
	count_names(".", known, name);
}

bool kept_anything(void)
{
	return access("state", F_OK) == 0;
}

bool kept_is_there(void)
{
	return access("state/gsort-manifest", F_OK) == 0;
}

void kept_read(struct kept *ret_kept)
{
	ret_kept->manifest = read_file("state/gsort-manifest");
	ret_kept->runs = read_file("state/gsort-runs");
	find_hidden(ret_kept->output_name);
	if (*ret_kept->output_name)
		ret_kept->output = read_file(ret_kept->output_name);
}

void kept_write(const struct kept *kept)
{
	must(mkdir("state", 0700 | S_ISVTX) == 0, "state"); /* as gsort does */
	write_file("state/gsort-manifest", kept->manifest.data, kept->manifest.nbytes);
	write_file("state/gsort-runs", kept->runs.data, kept->runs.nbytes);
	if (*kept->output_name)
		write_file(kept->output_name, kept->output.data, kept->output.nbytes);
}

void kept_free(struct kept *kept)
{
	free(kept->manifest.data);
	free(kept->runs.data);
	free(kept->output.data);
}

static void remove_file(const char *path)
{
	must(unlink(path) == 0 || errno == ENOENT, path);
}

void kept_remove(void)
{
	char name[256];

	remove_file("state/gsort-manifest");
	remove_file("state/gsort-runs");
	must(rmdir("state") == 0 || errno == ENOENT, "state");
	find_hidden(name);
	if (*name)
		remove_file(name);
}
