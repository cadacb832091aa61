/*
 * check_file_roles - the files of a run of gsort, each in one role
 *
 * Inputs, their list, the output or its parts, reports, a checkpoint's files and the standard
 * streams get their roles (file_roles.h). Nor may a new file have a name that gsort makes another
 * one with, or finds again what it has not finished by.
 */
#pragma once

#include "io/file/endpoint.h"
#include "io/input/input.h"
#include "src/options/options.h"

/* What a run is of, beside its options. */
struct command_files {
	const struct options *options;
	const struct endpoint *input_endpoints; /* in the place of inputs, or not; NULL: none is */
	bool has_output_endpoint;               /* so that its path, if there is one, is none */
	bool uses_standard_streams;             /* the standard streams have texts of the program */
};

/*
 * Before anything is opened or written. 0, or a negative errno after a message, or in silence where
 * that would be written over one of them.
 */
int command_files_check(const struct command_files *files);

/*
 * Return whether neither an option nor the inputs, which are open, say what a record is. Such
 * records are sorted as u64.
 */
bool command_files_are_untyped(const struct command_files *files, const struct input *input);

/*
 * The inputs are open, and may be more files than their names say (file_roles_stream_is_input()):
 * neither a report may be one of them nor what text goes to. Nor may the output replace an input of
 * unknown type. As above.
 */
int command_files_check_inputs(const struct command_files *files, const struct input *input);
