/*
 * command_files.h - the roles of all files of a gsort command
 *
 * Collects inputs, their list, the output or its part files, reports, checkpoint files and standard
 * streams, and gives each file one role (file_roles.h). New files must not have a name that gsort
 * uses for temp files.
 */
#pragma once

#include "src/options/options.h"

/*
 * Check all files before any file is opened for writing. uses_streams: the program writes messages
 * to standard error, and plans to standard output. Returns 0 or a negative errno (reported, unless
 * the message would overwrite a file of the command).
 */
int command_files_check(const struct options *options, bool uses_streams);

/*
 * Return whether records and messages of the program go to one pipe or file. Warnings and notices
 * would be among the records of a sort that succeeds.
 */
bool command_files_mix_messages(const struct options *options);

/*
 * Return whether neither an option nor the open inputs define the type. Such records are sorted as
 * u64.
 */
bool command_files_are_untyped(const struct options *options, const struct input *input);

/*
 * Check the part files of open inputs against reports and streams, and refuse an output that
 * replaces an input of unknown type. Returns 0 or a negative errno (reported).
 */
int command_files_check_inputs(const struct options *options, bool uses_streams,
			       const struct input *input);
