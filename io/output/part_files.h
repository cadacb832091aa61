/*
 * part_files.h - a directory of part files and their manifest, which appears at once
 *
 *	sorted/part-0000  sorted/part-0001  ...  sorted/manifest.json
 *
 *	open -> (an output for each file) -> commit     the directory has its name
 *	                                 \-> close      nothing has happened
 *
 * The files are written in a hidden directory beside the target (orphans.h), and a rename gives
 * that directory the target's name when all files are complete. So under the name there is the old
 * directory or the new one, whatever ends the process, and never a mixture.
 *
 *	target				at the end
 *	missing, or an empty directory	rename
 *	a directory of older part files	exchange both names, then remove the old directory
 *	anything else			refused when it is opened
 *
 * A directory of older part files has a manifest.json written by gsort, and apart from that only
 * files that the manifest lists, with the sizes that it says. A directory that has changed since it
 * was opened is kept. Where a file system cannot exchange names, the old directory is moved aside,
 * and moved back if the second rename fails; in between the name does not exist.
 *
 * With several ranks, the first one creates the directory and renames it. The others open it by its
 * temporary name and write to files that the first one has created.
 *
 * All functions report their errors.
 */
#pragma once

#include "io/output/output.h"

struct part_files;

/*
 * Create the hidden directory for n part files and a manifest. extension: of the part files, such
 * as ".npy", or "". owner: its orphans are removed (orphans.h). The path may end with a slash.
 * Fails if the target exists and may not be replaced.
 */
int part_files_open(const struct syscalls *calls, const char *path, uint32_t n,
		    const char *extension, const struct orphan_owner *owner,
		    struct part_files **ret_files);

/* Open the hidden directory that another rank has created. */
int part_files_open_existing(const struct syscalls *calls, const char *path, uint32_t n,
			     const char *extension, const char *temp_name,
			     struct part_files **ret_files);

const char *part_files_temp_name(const struct part_files *files);

/*
 * Open outputs for the n part files and the manifest. is_shared: other ranks join the part files.
 * After a failure some outputs may be set.
 */
int part_files_open_outputs(const struct part_files *files, bool is_shared,
			    struct output **ret_outputs);

/* Open part file i, which another rank has created: `name` is its output_shared_name(). */
int part_files_join_output(const struct part_files *files, uint32_t i, const char *name,
			   struct output **ret_output);

/* Return the future name of part file i, or of the manifest (i == n), without its directory. */
const char *part_files_name(const struct part_files *files, uint32_t i);

/* Identify the i-th file of the directory that will be replaced; false if it has fewer. */
bool part_files_old_file_id(const struct part_files *files, size_t i, struct file_id *ret_file_id);

/*
 * Give the n + 1 complete outputs (output_complete()) their names in the directory, and the
 * directory its name. Takes the outputs in any case and leaves NULL. A failure changes nothing,
 * with one exception: if is_durable, and only syncing the name fails, the directory is complete.
 */
int part_files_commit(struct part_files *files, struct output **outputs, bool is_durable);

/*
 * Free, and remove the hidden directory, unless it was committed or is_complete: the rank that has
 * created it will commit it. NULL is ignored.
 */
void part_files_close(struct part_files *files, bool is_complete);
