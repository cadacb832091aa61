/*
 * command_files - the files of a run of gsort, each in one role (see command_files.h)
 */
#include "src/options/command_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/output/orphans.h"
#include "io/output/part_files.h"
#include "src/base/diagnostics.h"
#include "src/checkpoint/checkpoint_dir.h"
#include "src/options/file_conflicts.h"

/* Files whose names are made: the roles outlive these, but what may be said is said before. */
struct made_names {
	char *names[CHECKPOINT_N_FILES + PART_FILES_MOST + 1];
	size_t n;
};

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int find_directory(const char *path, struct place *ret_place)
{
	const size_t n = (size_t)(last_name(path) - path);
	char *way = n ? strndup(path, n) : strdup(".");
	const int r = way ? place_of_path(way, ret_place) : -ENOMEM;

	free(way);
	return r;
}

/* Are both in one directory? */
static int are_beside(const char *a, const char *b, bool *ret_are)
{
	struct place of_a = { 0 }, of_b = { 0 };
	int r = find_directory(a, &of_a);

	if (r == 0)
		r = find_directory(b, &of_b);
	*ret_are = r == 0 && place_is_same(&of_a, &of_b);
	place_free(&of_a);
	place_free(&of_b);
	return r;
}

/* Who has no list takes files for parts by their names, also of numbers that there are none of. */
static int check_is_no_part(const char *output, const char *name, const char *path, const char *end,
			    const char *advice)
{
	bool is_part;
	const int r = are_beside(output, end, &is_part);

	if (r < 0)
		return fail(r, "%s: %m", path);
	if (!is_part || !part_files_could_have(last_name(output), last_name(end)))
		return 0;
	return fail(-EINVAL, "%s '%s' has the name of a part file of '%s'; %s", name, path, output,
		    advice);
}

/*
 * By names of this kind gsort knows what it has not finished: of this run, where the output is
 * made, or what a checkpoint goes on with, of whatever run.
 */
static int check_is_no_hidden_file(const char *output, const char *name, const char *path,
				   const char *end)
{
	if (!file_is_unique_name(last_name(end)) && !leftovers_is_name(last_name(end)))
		return 0;
	return fail(-EINVAL,
		    "%s '%s' is called as %s%s%s would be until it is finished; let it go to "
		    "another file",
		    name, path, output ? "'" : "the output", output ? output : "",
		    output ? "'" : "");
}

/* A new file of that path has no name that another one is made with, or for. */
static int check_name(const struct options *options, const char *name, const char *path)
{
	const char *output = options->output_path;
	char *end;
	int r;

	if (!path)
		return 0;
	r = place_follow_links(path, &end);
	if (r < 0)
		return fail(r, "%s: %m", path);
	r = check_is_no_hidden_file(path == output ? NULL : output, name, path, end);
	if (r == 0 && options->n_part_files && path != output)
		r = check_is_no_part(output, name, path, end, "let it go to another file");
	free(end);
	return r;
}

/* What is read must not go with older parts, nor be taken for what is left of some. */
static int check_source(const struct options *options, const char *name, const char *path)
{
	char *end;
	int r;

	if (!options->n_part_files || !path || strcmp(path, "-") == 0)
		return 0;
	r = place_follow_links(path, &end);
	if (r < 0)
		return fail(r, "%s: %m", path);
	r = check_is_no_part(options->output_path, name, path, end,
			     "let the output have another name");
	free(end);
	return r;
}

static bool is_path(const struct run_files *files, size_t input)
{
	return !files->given_inputs || files->given_inputs[input].kind == GIVEN_PATH;
}

/* The inputs, behind all that is written; and where their names are from. */
static int check_sources(struct roles *roles, const struct run_files *files)
{
	const struct options *options = files->options;
	int r = check_source(options, "--files0-from", options->files0_path);

	for (size_t i = 0; i < options->n_inputs && r == 0; i++) {
		if (!is_path(files, i))
			continue;
		r = roles_check_input(roles, options->inputs[i]);
		if (r == 0)
			r = check_source(options, "input", options->inputs[i]);
	}
	return r;
}

static int add_parts(struct roles *roles, const struct options *options, struct made_names *made)
{
	const uint32_t n = options->n_part_files;
	int r = 0;

	for (uint32_t i = 0; i <= n && r == 0; i++) {
		r = part_files_make_path(options->output_path, n, i, &made->names[made->n]);
		if (r == 0)
			r = roles_add_path(roles, ROLE_PART, "--split", made->names[made->n++]);
	}
	return r;
}

static int add_output(struct roles *roles, const struct run_files *files, struct made_names *made)
{
	const struct options *options = files->options;
	const bool is_check = options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET;
	int r = check_name(options, "-o", options->output_path);

	if (r == 0)
		r = options->n_part_files ?
			    add_parts(roles, options, made) :
			    roles_add_path(roles, ROLE_OUTPUT, "-o", options->output_path);
	if (r < 0 || is_check)
		return r;
	if (options->explain ? !files->has_streams : options->output_path || files->output_is_given)
		return r;
	return roles_add_stream(roles, options->explain ? ROLE_TEXT : ROLE_OUTPUT, STDOUT_FILENO);
}

static int add_report(struct roles *roles, const struct options *options, const char *name,
		      const char *path)
{
	const int r = roles_add_path(roles, ROLE_REPORT, name, path);

	return r < 0 ? r : check_name(options, name, path);
}

/* Does that path ("-": a stream) lead to the file? */
static bool leads_to(const char *path, const struct place *place)
{
	struct place found;
	bool is_same;

	if (!path || (strcmp(path, "-") == 0 ? place_of_descriptor(STDIN_FILENO, &found) :
					       place_of_path(path, &found)) < 0)
		return false;
	is_same = place_is_same(&found, place);
	place_free(&found);
	return is_same;
}

/*
 * A directory that gsort has made goes with the checkpoint, before the reports get their names.
 * (One that is still to be made is not there when they are opened.)
 */
static int check_stays(const struct place *directory, const char *name, const char *path,
		       const char *checkpoint_path)
{
	struct place way = { 0 };
	char *end;
	bool is_inside;
	int r;

	if (!path)
		return 0;
	r = place_follow_links(path, &end);
	if (r < 0)
		return fail(r, "%s: %m", path);
	is_inside = find_directory(end, &way) == 0 && place_is_same(&way, directory);
	place_free(&way);
	free(end);
	return !is_inside ? 0 :
			    fail(-EINVAL,
				 "%s '%s' is in '%s', which gsort made for --checkpoint, and "
				 "removes; let it go to another directory",
				 name, path, checkpoint_path);
}

static int check_reports_stay(const struct options *options, const struct place *directory)
{
	const char *kept = options->checkpoint_path;
	int r = check_stays(directory, "--stats-json", options->stats_json_path, kept);

	if (r == 0)
		r = check_stays(directory, "--trace", options->trace_path, kept);
	return r < 0 ? r : check_stays(directory, "--report", options->report_path, kept);
}

static int check_directory(const struct options *options, const struct place *directory)
{
	const char *path = options->checkpoint_path;
	struct stat status;

	if (leads_to(options->output_path, directory))
		return fail(-EINVAL,
			    "-o '%s' and --checkpoint '%s' are the same: the one is a file, and "
			    "the other a directory",
			    options->output_path, path);
	if (stat(path, &status) < 0)
		return 0;
	if (!S_ISDIR(status.st_mode))
		return fail(-ENOTDIR,
			    "--checkpoint '%s': is no directory, in which a checkpoint is kept",
			    path);
	return checkpoint_files_made(&status) ? check_reports_stay(options, directory) : 0;
}

/* What is, or is to be made, the directory of a checkpoint is no file. */
static int check_kept(const struct options *options)
{
	struct place directory;
	int r;

	if (!options->checkpoint_path || place_of_path(options->checkpoint_path, &directory) < 0)
		return 0;
	r = check_directory(options, &directory);
	place_free(&directory);
	return r;
}

static int add_kept(struct roles *roles, const char *directory, struct made_names *made)
{
	int r = 0;

	for (size_t i = 0; directory && i < CHECKPOINT_N_FILES && r == 0; i++) {
		char **name = &made->names[made->n];

		if (asprintf(name, "%s/%s", directory, checkpoint_file_names[i]) < 0)
			return fail(-ENOMEM, "%s: %m", directory);
		made->n++;
		r = roles_add_path(roles, ROLE_KEPT, "--checkpoint's", *name);
	}
	return r;
}

/* Before anything else is found, and said: would saying it be to write over an input? */
static bool must_be_silent(const struct run_files *files)
{
	const struct options *options = files->options;
	struct place error;
	bool is_taken = false;

	if (!files->has_streams || place_of_descriptor(STDERR_FILENO, &error) < 0 ||
	    !S_ISREG(error.mode))
		return false;
	for (size_t i = 0; i < options->n_inputs && !is_taken; i++)
		is_taken = is_path(files, i) && leads_to(options->inputs[i], &error);
	return is_taken || leads_to(options->files0_path, &error);
}

static int check(struct roles *roles, const struct run_files *files, struct made_names *made)
{
	const struct options *options = files->options;
	int r = must_be_silent(files) ? -EINVAL : roles_add_list(roles, options->files0_path);

	if (r == 0)
		r = add_output(roles, files, made);
	if (r == 0)
		r = add_report(roles, options, "--stats-json", options->stats_json_path);
	if (r == 0)
		r = add_report(roles, options, "--trace", options->trace_path);
	if (r == 0)
		r = add_report(roles, options, "--report", options->report_path);
	if (r == 0)
		r = check_kept(options);
	if (r == 0)
		r = add_kept(roles, options->checkpoint_path, made);
	if (r == 0 && files->has_streams)
		r = roles_add_stream(roles, ROLE_TEXT, STDERR_FILENO);
	return r == 0 ? check_sources(roles, files) : r;
}

int run_files_check(const struct run_files *files)
{
	struct made_names *made = calloc(1, sizeof *made);
	struct roles roles = { 0 };
	const int r = made ? check(&roles, files, made) :
			     fail(-ENOMEM, "no memory for the names of files");

	roles_free(&roles);
	for (size_t i = 0; made && i < made->n; i++)
		free(made->names[i]);
	free(made);
	return r;
}

int run_files_check_opened(const struct run_files *files, const struct input *input)
{
	const struct options *options = files->options;
	const struct {
		const char *name, *path;
	} reports[] = { { "--stats-json", options->stats_json_path },
			{ "--trace", options->trace_path },
			{ "--report", options->report_path } };

	if (files->has_streams && roles_is_listed_stream(input, STDERR_FILENO))
		return -EINVAL; /* without a word */
	for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
		struct stat status;

		if (reports[i].path && stat(reports[i].path, &status) == 0 &&
		    input_has_listed_file(input, file_identity_of(&status)))
			return fail(-EINVAL, "%s '%s' is a part file of an input; use another file",
				    reports[i].name, reports[i].path);
	}
	return files->has_streams && options->explain ? roles_check_opened_streams(input) : 0;
}
