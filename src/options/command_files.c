/*
 * command_files.c - the roles of all files of a gsort command (see command_files.h)
 */
#include "src/options/command_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/output/orphans.h"
#include "src/base/diagnostics.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/options/file_roles.h"

/* The list of files, and names that it points to. */
struct command_files {
	const struct options *options;
	bool uses_streams;
	struct file_roles roles;
	char *checkpoint_names[CHECKPOINT_N_FILES];
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Return 1 if the file at the end of the path's links is directly in the directory, 0 if not, or a
 * negative errno.
 */
static int is_in_directory(const char *path, const struct path_identity *directory)
{
	struct path_identity parent = { 0 };
	char *target = NULL, *parent_path;
	int r = path_follow_links(path, &target);

	if (r < 0)
		return r;
	parent_path = base_name(target) > target ?
			      strndup(target, (size_t)(base_name(target) - target)) :
			      strdup(".");
	r = parent_path ? path_identity_resolve(parent_path, &parent) : -ENOMEM;
	if (r == 0)
		r = path_identity_equal(&parent, directory);
	path_identity_free(&parent);
	free(parent_path);
	free(target);
	return r;
}

/* Refuse a file in the directory of --split, which is replaced as a whole. */
static int check_outside_split(const struct options *options, const char *name, const char *path,
			       const char *hint)
{
	struct path_identity directory = { 0 };
	int r;

	if (!options->spec.n_part_files || !path || strcmp(path, "-") == 0)
		return 0;
	r = path_identity_resolve(options_output_path(options), &directory);
	if (r == 0)
		r = is_in_directory(path, &directory);
	path_identity_free(&directory);
	if (r < 0)
		return fail(r, "%s: %m", path);
	return r ? fail(-EINVAL, "%s '%s' is in the output directory '%s'; %s", name, path,
			options_output_path(options), hint) :
		   0;
}

/* Refuse a name that gsort gives to unfinished files. */
static int check_temp_file_name(const char *name, const char *path)
{
	char *target = NULL;
	const int r = path_follow_links(path, &target);
	bool is_temp_name;

	if (r < 0)
		return fail(r, "%s: %m", path);
	is_temp_name = file_is_unique_name(base_name(target)) ||
		       orphans_is_temp_name(base_name(target));
	free(target);
	return is_temp_name ? fail(-EINVAL, "%s '%s' has the name of a temp file; use another file",
				   name, path) :
			      0;
}

static bool is_path(const struct options *options, size_t input)
{
	const struct endpoint *endpoints = options->spec.input_endpoints;

	return !endpoints || endpoints[input].kind == ENDPOINT_PATH;
}

static int check_sources(struct command_files *files)
{
	static const char hint[] = "use another name for the output";
	const struct options *options = files->options;
	int r = check_outside_split(options, "--files0-from", options->files0_path, hint);

	for (size_t i = 0; i < options->spec.n_inputs && r == 0; i++) {
		const char *path = options->spec.inputs[i];

		if (!is_path(options, i))
			continue;
		/* A missing file of lines, as GNU sort reports it; also without reports. */
		if (files->uses_streams && options->line_keys && strcmp(path, "-") != 0 &&
		    access(path, F_OK) < 0)
			return fail(-errno, "cannot read: %s: %m", *path ? path : "''");
		r = file_roles_check_input(&files->roles, path);
		if (r == 0)
			r = check_outside_split(options, "input", path, hint);
	}
	return r;
}

static int add_output(struct command_files *files)
{
	const struct options *options = files->options;
	const char *path = options_output_path(options);
	const bool has_endpoint = options->spec.output_endpoint.kind != ENDPOINT_PATH;
	int r = path ? check_temp_file_name("-o", path) : 0;

	if (r == 0)
		r = file_roles_add_path(&files->roles,
					options->spec.n_part_files ? ROLE_PART_FILES : ROLE_OUTPUT,
					"-o", path);
	if (r < 0 || options_is_check(options))
		return r;
	if (options->explain ? !files->uses_streams : path || has_endpoint)
		return r;
	return file_roles_add_stream(&files->roles, options->explain ? ROLE_MESSAGES : ROLE_OUTPUT,
				     STDOUT_FILENO);
}

static const char *const report_options[N_REPORTS] = {
	[REPORT_STATS_JSON] = "--stats-json",
	[REPORT_TRACE] = "--trace",
	[REPORT_HTML] = "--report",
};

static int add_reports(struct command_files *files)
{
	int r = 0;

	for (enum report_kind i = 0; i < N_REPORTS && r == 0; i++) {
		const char *path = files->options->report_paths[i];

		r = file_roles_add_path(&files->roles, ROLE_REPORT, report_options[i], path);
		if (r == 0 && path)
			r = check_temp_file_name(report_options[i], path);
		if (r == 0)
			r = check_outside_split(files->options, report_options[i], path,
						"use another directory");
	}
	return r;
}

/* Return whether a path ("-": standard input) leads to the file. */
static bool is_same_file(const char *path, const struct path_identity *other)
{
	struct path_identity identity;
	bool is_same;

	if (!path || (strcmp(path, "-") == 0 ? path_identity_from_fd(STDIN_FILENO, &identity) :
					       path_identity_resolve(path, &identity)) < 0)
		return false;
	is_same = path_identity_equal(&identity, other);
	path_identity_free(&identity);
	return is_same;
}

static int check_checkpoint_dir(const struct options *options,
				const struct path_identity *directory)
{
	const char *path = options->spec.checkpoint_path;
	struct stat status;
	int r = check_outside_split(options, "--checkpoint", path,
				    "use another name for the output");

	if (r < 0)
		return r;
	if (is_same_file(options_output_path(options), directory))
		return fail(-EINVAL,
			    "-o '%s' and --checkpoint '%s' are the same; use another name for one",
			    options_output_path(options), path);
	if (stat(path, &status) < 0)
		return 0;
	if (!S_ISDIR(status.st_mode))
		return fail(-ENOTDIR, "--checkpoint '%s': not a directory", path);
	/* A directory that gsort made is removed before reports appear. */
	for (enum report_kind i = 0; i < N_REPORTS && checkpoint_dir_is_created(&status); i++) {
		const char *report = options->report_paths[i];

		if (report && is_in_directory(report, directory) > 0)
			return fail(-EINVAL,
				    "%s '%s' is in the checkpoint directory '%s'; use another "
				    "directory",
				    report_options[i], report, path);
	}
	return 0;
}

static int add_checkpoint(struct command_files *files)
{
	const char *path = files->options->spec.checkpoint_path;
	struct path_identity directory;
	int r;

	if (!path)
		return 0;
	if (path_identity_resolve(path, &directory) == 0) {
		r = check_checkpoint_dir(files->options, &directory);
		path_identity_free(&directory);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < CHECKPOINT_N_FILES; i++) {
		char **name = &files->checkpoint_names[i];

		if (asprintf(name, "%s/%s", path, checkpoint_file_names[i]) < 0) {
			*name = NULL;
			return fail(-ENOMEM, "%s: %m", path);
		}
		r = file_roles_add_path(&files->roles, ROLE_CHECKPOINT, "--checkpoint's", *name);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Return whether any message would overwrite an input. */
static bool must_be_silent(const struct command_files *files)
{
	const struct options *options = files->options;
	struct path_identity stderr_identity;

	if (!files->uses_streams || path_identity_from_fd(STDERR_FILENO, &stderr_identity) < 0 ||
	    !S_ISREG(stderr_identity.mode))
		return false;
	for (size_t i = 0; i < options->spec.n_inputs; i++)
		if (is_path(options, i) && is_same_file(options->spec.inputs[i], &stderr_identity))
			return true;
	return is_same_file(options->files0_path, &stderr_identity);
}

bool command_files_mix_messages(const struct options *options)
{
	struct path_identity output, messages;

	return !options->explain && !options_output_path(options) &&
	       options->spec.output_endpoint.kind == ENDPOINT_PATH && !options_is_check(options) &&
	       path_identity_from_fd(STDOUT_FILENO, &output) == 0 &&
	       path_identity_from_fd(STDERR_FILENO, &messages) == 0 &&
	       path_identity_equal(&output, &messages) && !S_ISCHR(messages.mode);
}

/*
 * Check inputs and standard error. Errors of inputs come first where records and messages mix. A
 * pipe or file may carry records and then an error, which ends them, but no text of a sort that
 * succeeds.
 */
static int check_sources_and_messages(struct command_files *files)
{
	const struct options *options = files->options;
	const bool mixes = files->uses_streams && command_files_mix_messages(options);
	const bool writes_text = options->stats || options->debug ||
				 options->progress == PROGRESS_OPTION_ALWAYS;
	int r = mixes ? check_sources(files) : 0;

	if (r == 0 && files->uses_streams && (!mixes || writes_text))
		r = file_roles_add_stream(&files->roles, ROLE_MESSAGES, STDERR_FILENO);
	return r == 0 && !mixes ? check_sources(files) : r;
}

int command_files_check(const struct options *options, bool uses_streams)
{
	struct command_files files = { .options = options, .uses_streams = uses_streams };
	int r = must_be_silent(&files) ? -EINVAL :
					 file_roles_add_list(&files.roles, options->files0_path);

	if (r == 0)
		r = add_output(&files);
	if (r == 0)
		r = add_reports(&files);
	if (r == 0)
		r = add_checkpoint(&files);
	if (r == 0)
		r = check_sources_and_messages(&files);
	if (r == 0)
		r = file_roles_check_reports(&files.roles);
	file_roles_free(&files.roles);
	for (size_t i = 0; i < CHECKPOINT_N_FILES; i++)
		free(files.checkpoint_names[i]);
	return r;
}

bool command_files_are_untyped(const struct options *options, const struct input *input)
{
	const struct schema *fields = input_fields(input);
	uint32_t n_keys;

	return options->spec.record_spec == RECORD_SPEC_NONE && !(fields && fields->n) &&
	       !input_keys(input, &n_keys);
}

int command_files_check_inputs(const struct options *options, bool uses_streams,
			       const struct input *input)
{
	const char *output_path = options_output_path(options);
	struct stat status;

	if (uses_streams && file_roles_check_streams(input, options->explain) < 0)
		return -EINVAL;
	for (enum report_kind i = 0; i < N_REPORTS; i++) {
		const char *path = options->report_paths[i];

		if (path && stat(path, &status) == 0 &&
		    input_has_manifest_file(input, file_id_from_stat(&status)))
			return fail(-EINVAL, "%s '%s' is a part file of an input; use another file",
				    report_options[i], path);
	}
	/* Raw records of an unknown type would be lost if they were sorted as another type. */
	if (command_files_are_untyped(options, input) && output_path &&
	    path_to_descriptor(output_path) < 0 && stat(output_path, &status) == 0 &&
	    input_has_file(input, file_id_from_stat(&status)))
		return fail(-EINVAL,
			    "-o '%s' is an input of unknown type; give its type or record size "
			    "(-t, -R, -k or --fields)",
			    output_path);
	return 0;
}
