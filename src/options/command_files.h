/*
 * command_files - the files of a run of gsort, each in one role
 *
 * Inputs, their list, the output or its parts, reports, a checkpoint's files and the standard
 * streams get their roles (file_conflicts.h). Nor may a new file have a name that gsort makes another one
 * with, or finds again what it has not finished by.
 */
#pragma once

#include "io/file/endpoint.h"
#include "io/input/input.h"
#include "src/options/options.h"

/* What a run is of, beside its options. */
struct run_files {
	const struct options *options;
	const struct given *given_inputs; /* in the place of inputs, or not; NULL: none is */
	bool output_is_given;             /* so that its path, if there is one, is none */
	bool has_streams;                 /* the standard streams have texts of the program */
};

/*
 * Before anything is opened or written. 0, or a negative errno after a message, or in silence where
 * that would be written over one of them.
 */
int run_files_check(const struct run_files *files);

/*
 * The inputs are open, and may be more files than their names say (roles_is_listed_stream()):
 * neither a report may be one of them nor what text goes to. As above.
 */
int run_files_check_opened(const struct run_files *files, const struct input *input);
