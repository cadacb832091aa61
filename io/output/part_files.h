/*
 * part_files - a directory of part files and their manifest, which appears at once
 *
 *	sorted/part-0000  sorted/part-0001  ...  sorted/manifest.json
 *
 *	open -> (an output for each file) -> commit     the directory has its name
 *	                                 \-> close      nothing has happened
 *
 * The files are written in a hidden directory beside the target (orphans.h), and a rename gives
 * that the target's name when all of them are complete. So there is the old directory or the new
 * one under the name, whatever ends the process, and never a mixture.
 *
 *	target is				at the end
 *	missing, or an empty directory	rename
 *	a directory of older part files	the two are exchanged, then the old one is removed
 *	anything else			refused when it is opened
 *
 * A directory of older part files has a manifest.json that gsort wrote, and nothing else but files
 * that the manifest lists, of the sizes that it says. What has changed since it was looked at
 * stays. Where a file system cannot exchange names, the old directory is moved aside, and back if
 * the second rename fails: for a moment there is nothing under the name.
 *
 * With ranks, the first one creates the directory and renames it; the others open it by its hidden
 * name and write to files that the first one has created.
 *
 * All functions print their message.
 */
#pragma once

#include "io/output/output.h"

struct part_files;

/*
 * Create the hidden directory for n part files and a manifest. extension: of the part files, such
 * as ".npy", or "". owner: as in atomic_file_params. The path may end with a slash. Returns 0, or a
 * negative errno if the target is no directory that may be replaced.
 */
int part_files_open(const struct syscalls *calls, const char *path, uint32_t n,
		    const char *extension, const struct orphan_owner *owner,
		    struct part_files **ret_files);

/* Open the hidden directory of that name, which another rank has created. */
int part_files_open_existing(const struct syscalls *calls, const char *path, uint32_t n,
			     const char *extension, const char *temp_name,
			     struct part_files **ret_files);

const char *part_files_temp_name(const struct part_files *files);

/* The hidden directory; open as long as the part files. */
const struct file *part_files_directory(const struct part_files *files);

/* The path that part file i will have, or the manifest for i == n; and its last component. */
const char *part_files_path(const struct part_files *files, uint32_t i);
const char *part_files_name(const struct part_files *files, uint32_t i);

/* Find the i-th file of the directory that is to be replaced; false if it has no more. */
bool part_files_old_file_id(const struct part_files *files, size_t i, struct file_id *ret_file_id);

/*
 * Give the n + 1 outputs, which are complete (output_complete()), their names in the directory, and
 * the directory its own. Takes the outputs in any case, leaving NULL. On failure everything is as
 * it was before; but if is_durable, and only syncing the name fails, a message says that all is
 * complete.
 */
int part_files_commit(struct part_files *files, struct output **outputs, bool is_durable);

/*
 * Free, and remove the hidden directory unless it was committed, or is_complete: the other rank,
 * which has created it, goes on. NULL is fine.
 */
void part_files_close(struct part_files *files, bool is_complete);
