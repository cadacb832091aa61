/*
 * check_file_roles - the files of a run of gsort, each in one role (see check_file_roles.h)
 */
#include "src/options/check_file_roles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "io/output/orphans.h"
#include "src/base/diagnostics.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/options/file_roles.h"

/* Files whose names are made: the roles outlive these, but what may be said is said before. */
struct generated_names {
	char *names[CHECKPOINT_N_FILES];
	size_t n;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int resolve_directory(const char *path, struct path_identity *ret_identity)
{
	const size_t n = (size_t)(base_name(path) - path);
	char *directory_path = n ? strndup(path, n) : strdup(".");
	const int r = directory_path ? path_identity_resolve(directory_path, ret_identity) :
				       -ENOMEM;

	free(directory_path);
	return r;
}

/* What is written or read beside the output is in no directory that takes the place of another. */
static int check_outside_output(const char *output, const char *name, const char *path,
				const char *target, const char *advice)
{
	struct path_identity directory = { 0 }, parent = { 0 };
	bool is_inside;
	int r = path_identity_resolve(output, &directory);

	if (r == 0)
		r = resolve_directory(target, &parent);
	is_inside = r == 0 && path_identity_equal(&directory, &parent);
	path_identity_free(&directory);
	path_identity_free(&parent);
	if (r < 0)
		return fail(r, "%s: %m", path);
	return is_inside ?
		       fail(-EINVAL, "%s '%s' is in the directory '%s', which is the output; %s",
			    name, path, output, advice) :
		       0;
}

/* Names of this kind are those of files that gsort has not finished. */
static int check_temp_file_name(const char *output, const char *name, const char *path,
				const char *target)
{
	if (!file_is_unique_name(base_name(target)) && !orphans_is_temp_name(base_name(target)))
		return 0;
	return fail(-EINVAL,
		    "%s '%s' is called as %s%s%s would be until it is finished; let it go to "
		    "another file",
		    name, path, output ? "'" : "the output", output ? output : "",
		    output ? "'" : "");
}

/* A new file of that path has no name that another one is made with, or for. */
static int check_new_file_name(const struct options *options, const char *name, const char *path)
{
	const char *output = options->output_path;
	char *target;
	int r;

	if (!path)
		return 0;
	r = path_follow_links(path, &target);
	if (r < 0)
		return fail(r, "%s: %m", path);
	r = check_temp_file_name(path == output ? NULL : output, name, path, target);
	if (r == 0 && options->n_part_files && path != output)
		r = check_outside_output(output, name, path, target,
					 "let it go to another directory");
	free(target);
	return r;
}

/* What is read must not go with older part files. */
static int check_source_name(const struct options *options, const char *name, const char *path)
{
	char *target;
	int r;

	if (!options->n_part_files || !path || strcmp(path, "-") == 0)
		return 0;
	r = path_follow_links(path, &target);
	if (r < 0)
		return fail(r, "%s: %m", path);
	r = check_outside_output(options->output_path, name, path, target,
				 "let the output have another name");
	free(target);
	return r;
}

static bool is_path(const struct command_files *files, size_t input)
{
	return !files->input_endpoints || files->input_endpoints[input].kind == ENDPOINT_PATH;
}

/* The inputs, behind all that is written; and where their names are from. */
static int check_sources(struct file_roles *roles, const struct command_files *files)
{
	const struct options *options = files->options;
	int r = check_source_name(options, "--files0-from", options->files0_path);

	for (size_t i = 0; i < options->n_inputs && r == 0; i++) {
		if (!is_path(files, i))
			continue;
		r = file_roles_check_input(roles, options->inputs[i]);
		if (r == 0)
			r = check_source_name(options, "input", options->inputs[i]);
	}
	return r;
}

static int add_output(struct file_roles *roles, const struct command_files *files)
{
	const struct options *options = files->options;
	const bool is_check = options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET;
	int r = check_new_file_name(options, "-o", options->output_path);

	if (r == 0)
		r = file_roles_add_path(roles,
					options->n_part_files ? ROLE_PART_FILES : ROLE_OUTPUT, "-o",
					options->output_path);
	if (r < 0 || is_check)
		return r;
	if (options->explain ? !files->uses_standard_streams :
			       options->output_path || files->has_output_endpoint)
		return r;
	return file_roles_add_stream(roles, options->explain ? ROLE_MESSAGES : ROLE_OUTPUT,
				     STDOUT_FILENO);
}

static int add_report(struct file_roles *roles, const struct options *options, const char *name,
		      const char *path)
{
	const int r = file_roles_add_path(roles, ROLE_REPORT, name, path);

	return r < 0 ? r : check_new_file_name(options, name, path);
}

/* Does that path ("-": a stream) lead to the file? */
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

/*
 * A directory that gsort has made goes with the checkpoint, before the reports get their names.
 * (One that is still to be made is not there when they are opened.)
 */
static int check_outside_checkpoint(const struct path_identity *directory, const char *name,
				    const char *path, const char *checkpoint_path)
{
	struct path_identity parent = { 0 };
	char *target;
	bool is_in_directory;
	int r;

	if (!path)
		return 0;
	r = path_follow_links(path, &target);
	if (r < 0)
		return fail(r, "%s: %m", path);
	is_in_directory = resolve_directory(target, &parent) == 0 &&
			  path_identity_equal(&parent, directory);
	path_identity_free(&parent);
	free(target);
	return !is_in_directory ? 0 :
				  fail(-EINVAL,
				       "%s '%s' is in '%s', which " GSORT_PROGRAM
				       " made for --checkpoint, and "
				       "removes; let it go to another directory",
				       name, path, checkpoint_path);
}

static int check_reports_outside(const struct options *options,
				 const struct path_identity *directory)
{
	const char *checkpoint_path = options->checkpoint_path;
	int r = check_outside_checkpoint(directory, "--stats-json", options->stats_json_path,
					 checkpoint_path);

	if (r == 0)
		r = check_outside_checkpoint(directory, "--trace", options->trace_path,
					     checkpoint_path);
	return r < 0 ? r :
		       check_outside_checkpoint(directory, "--report", options->report_path,
						checkpoint_path);
}

static int check_checkpoint_dir(const struct options *options,
				const struct path_identity *directory)
{
	const char *path = options->checkpoint_path;
	struct stat status;

	if (is_same_file(options->output_path, directory))
		return fail(-EINVAL,
			    "-o '%s' and --checkpoint '%s' are the same; let one of them have "
			    "another name",
			    options->output_path, path);
	if (stat(path, &status) < 0)
		return 0;
	if (!S_ISDIR(status.st_mode))
		return fail(-ENOTDIR,
			    "--checkpoint '%s': is no directory, in which a checkpoint is kept",
			    path);
	return checkpoint_dir_is_created(&status) ? check_reports_outside(options, directory) : 0;
}

/* What is, or is to be made, the directory of a checkpoint is no file. */
static int check_checkpoint_path(const struct options *options)
{
	struct path_identity directory;
	int r;

	if (!options->checkpoint_path ||
	    path_identity_resolve(options->checkpoint_path, &directory) < 0)
		return 0;
	r = check_source_name(options, "--checkpoint", options->checkpoint_path);
	if (r == 0)
		r = check_checkpoint_dir(options, &directory);
	path_identity_free(&directory);
	return r;
}

static int add_checkpoint_files(struct file_roles *roles, const char *directory,
				struct generated_names *generated)
{
	int r = 0;

	for (size_t i = 0; directory && i < CHECKPOINT_N_FILES && r == 0; i++) {
		char **name = &generated->names[generated->n];

		if (asprintf(name, "%s/%s", directory, checkpoint_file_names[i]) < 0)
			return fail(-ENOMEM, "%s: %m", directory);
		generated->n++;
		r = file_roles_add_path(roles, ROLE_CHECKPOINT, "--checkpoint's", *name);
	}
	return r;
}

/* Before anything else is found, and said: would saying it be to write over an input? */
static bool must_be_silent(const struct command_files *files)
{
	const struct options *options = files->options;
	struct path_identity stderr_identity;
	bool is_overwritten = false;

	if (!files->uses_standard_streams ||
	    path_identity_from_fd(STDERR_FILENO, &stderr_identity) < 0 ||
	    !S_ISREG(stderr_identity.mode))
		return false;
	for (size_t i = 0; i < options->n_inputs && !is_overwritten; i++)
		is_overwritten = is_path(files, i) &&
				 is_same_file(options->inputs[i], &stderr_identity);
	return is_overwritten || is_same_file(options->files0_path, &stderr_identity);
}

/* Return whether the records and the messages go to one pipe or file. */
static bool mixes_messages_with_data(const struct command_files *files)
{
	const struct options *options = files->options;
	struct path_identity output, messages;

	return files->uses_standard_streams && !options->explain && !options->output_path &&
	       !files->has_output_endpoint && options->mode != MODE_CHECK &&
	       options->mode != MODE_CHECK_QUIET &&
	       path_identity_from_fd(STDOUT_FILENO, &output) == 0 &&
	       path_identity_from_fd(STDERR_FILENO, &messages) == 0 &&
	       path_identity_equal(&output, &messages);
}

/*
 * Give standard error its role. A pipe may carry the records and an error, which ends them, but no
 * text of a sort that succeeds. In a file a message could be written over records.
 */
static int add_standard_error(struct file_roles *roles, const struct command_files *files)
{
	const struct options *options = files->options;
	struct stat status;

	if (!mixes_messages_with_data(files) || fstat(STDERR_FILENO, &status) < 0 ||
	    S_ISREG(status.st_mode) || options->stats || options->debug ||
	    options->progress == PROGRESS_OPTION_ALWAYS)
		return file_roles_add_stream(roles, ROLE_MESSAGES, STDERR_FILENO);
	return 0;
}

/* Check what is read, and standard error: where that is the output too, other errors come first. */
static int check_sources_and_messages(struct file_roles *roles, const struct command_files *files)
{
	const bool sources_first = mixes_messages_with_data(files);
	int r = sources_first ? check_sources(roles, files) : 0;

	if (r == 0 && files->uses_standard_streams)
		r = add_standard_error(roles, files);
	return r == 0 && !sources_first ? check_sources(roles, files) : r;
}

static int check_all_files(struct file_roles *roles, const struct command_files *files,
			   struct generated_names *generated)
{
	const struct options *options = files->options;
	int r = must_be_silent(files) ? -EINVAL : file_roles_add_list(roles, options->files0_path);

	if (r == 0)
		r = add_output(roles, files);
	if (r == 0)
		r = add_report(roles, options, "--stats-json", options->stats_json_path);
	if (r == 0)
		r = add_report(roles, options, "--trace", options->trace_path);
	if (r == 0)
		r = add_report(roles, options, "--report", options->report_path);
	if (r == 0)
		r = check_checkpoint_path(options);
	if (r == 0)
		r = add_checkpoint_files(roles, options->checkpoint_path, generated);
	return r == 0 ? check_sources_and_messages(roles, files) : r;
}

int command_files_check(const struct command_files *files)
{
	struct generated_names *generated = calloc(1, sizeof *generated);
	struct file_roles roles = { 0 };
	const int r = generated ? check_all_files(&roles, files, generated) :
				  fail(-ENOMEM, "no memory for the names of files");

	file_roles_free(&roles);
	for (size_t i = 0; generated && i < generated->n; i++)
		free(generated->names[i]);
	free(generated);
	return r;
}

/* Return whether an input is the file that the output replaces. */
static bool is_output(const struct command_files *files, size_t input,
		      const struct path_identity *output)
{
	struct path_identity identity;

	if (is_path(files, input))
		return is_same_file(files->options->inputs[input], output);
	return files->input_endpoints[input].kind == ENDPOINT_DESCRIPTOR &&
	       path_identity_from_fd(files->input_endpoints[input].fd, &identity) == 0 &&
	       path_identity_equal(&identity, output);
}

/* Refuse to replace raw records of an unknown type: sorted as another type they would be lost. */
static int check_untyped_output(const struct command_files *files)
{
	const struct options *options = files->options;
	struct path_identity output;
	size_t i = 0;

	if (!options->output_path || path_to_descriptor(options->output_path) >= 0 ||
	    path_identity_resolve(options->output_path, &output) < 0)
		return 0;
	while (i < options->n_inputs && !is_output(files, i, &output))
		i++;
	path_identity_free(&output);
	return i == options->n_inputs ?
		       0 :
		       fail(-EINVAL,
			    "-o '%s' is an input of unknown type; give its type or record size "
			    "(-t, -R, -k or --fields)",
			    options->output_path);
}

bool command_files_are_untyped(const struct command_files *files, const struct input *input)
{
	const struct schema *fields = input_fields(input);
	uint32_t n_keys;

	return files->options->record.spec_kind == RECORD_SPEC_NONE && !(fields && fields->n) &&
	       !input_keys(input, &n_keys);
}

int command_files_check_inputs(const struct command_files *files, const struct input *input)
{
	const struct options *options = files->options;
	const struct {
		const char *name, *path;
	} reports[] = { { "--stats-json", options->stats_json_path },
			{ "--trace", options->trace_path },
			{ "--report", options->report_path } };

	if (files->uses_standard_streams && file_roles_stream_is_input(input, STDERR_FILENO))
		return -EINVAL; /* without a word */
	for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
		struct stat status;

		if (reports[i].path && stat(reports[i].path, &status) == 0 &&
		    input_has_manifest_file(input, file_id_from_stat(&status)))
			return fail(-EINVAL, "%s '%s' is a part file of an input; use another file",
				    reports[i].name, reports[i].path);
	}
	if (command_files_are_untyped(files, input) && check_untyped_output(files) < 0)
		return -EINVAL;
	return files->uses_standard_streams && options->explain ? file_roles_check_streams(input) :
								  0;
}
