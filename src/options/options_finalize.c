/*
 * options_finalize - what options mean together (see options_finalize.h)
 *
 * Pairs that are refused whatever their values are rows of a table in options.c; here are the
 * rules that ask for more than whether an option was given.
 */
#include "src/options/options_finalize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file/path_identity.h"
#include "src/base/diagnostics.h"

int options_add_temp_dir(struct options *options, const char *path)
{
	const char **dirs =
		reallocarray(options->temp_dirs, options->n_temp_dirs + 1, sizeof *dirs);

	if (!dirs)
		return fail(-ENOMEM, "%s: %m", path);
	options->temp_dirs = dirs;
	dirs[options->n_temp_dirs++] = path;
	return 0;
}

static int check_inputs(const struct options *options)
{
	size_t n_stdin = 0;

	if (options->n_inputs > 1 && options->mode == MODE_CHECK)
		return fail(-EINVAL, "-c, --check: one file at a time: '%s' is one too many",
			    options->inputs[1]);
	if (options->n_inputs > 1 && options->mode == MODE_CHECK_QUIET)
		return fail(-EINVAL, "-C: one file at a time: '%s' is one too many",
			    options->inputs[1]);
	for (size_t i = 0; i < options->n_inputs; i++)
		n_stdin += !strcmp(options->inputs[i], "-");
	if (n_stdin > 1)
		return fail(-EINVAL, "'-', standard input, can be read only once, not %zu times",
			    n_stdin);
	return 0;
}

/* What is written in the place of records, and what cannot stand beside it. */
static int check_output_format(const struct options *options)
{
	const struct {
		const char *option;
		bool is_given;
	} restrictions[] = { { "--limit", options->limit != SORT_SPEC_UNLIMITED },
			     { "--count", options->count },
			     { "--keys-only", options->keys_only },
			     { "--argsort", options->argsort } };

	if (options->n_shards && options->mode != MODE_MERGE)
		return fail(-EINVAL, "--shard needs -m, --merge");
	if (options->split_at_keys && !options->n_part_files)
		return fail(-EINVAL, "--split-by needs --split");
	if (options->format == FORMAT_NPY && options->skip_nbytes)
		return fail(-EINVAL,
			    "--skip-bytes and --format=npy cannot be used together: the header of "
			    "a file of numpy says itself how long it is");
	if (options->count && !options->unique)
		return fail(-EINVAL,
			    "--count needs -u, --unique: it counts the records that are equal");
	for (size_t i = 0; i < sizeof restrictions / sizeof restrictions[0]; i++)
		if (restrictions[i].is_given && options->partial == PARTIAL_KEEP)
			return fail(-EINVAL,
				    "--partial=keep and %s cannot be used together: the output "
				    "has no place for a part of a record",
				    restrictions[i].option);
	return 0;
}

/* An output that is called x.zst is one. */
static void detect_zstd_suffix(struct options *options)
{
	const char *path = options->output_path;
	const size_t n = path ? strlen(path) : 0;

	if (!options->zstd_level && n > 4 && !strcmp(path + n - 4, ".zst"))
		options->zstd_level = DEFAULT_ZSTD_LEVEL;
}

/* By whatever name: what the caller has open is written from where it stands. */
static void normalise_standard_output(struct options *options)
{
	if (options->output_path && path_to_descriptor(options->output_path) == STDOUT_FILENO)
		options->output_path = NULL;
}

/* What the caller has open as the output, for messages; NULL: the output has a name of its own. */
static const char *open_output_label(const struct options *options)
{
	const char *path = options->output_path;

	if (!path)
		return options->output_label ? options->output_label : "standard output";
	return path_to_descriptor(path) >= 0 ? path : NULL;
}

static int check_output_is_file(const struct options *options)
{
	const char *label = open_output_label(options);

	if (options->verify && label)
		return fail(-EINVAL,
			    "--verify needs -o with the name of a file: %s cannot be read "
			    "back",
			    label);
	if (options->checkpoint_path && label)
		return fail(-EINVAL,
			    "--checkpoint needs -o with the name of a file: %s cannot be "
			    "taken up again",
			    label);
	if (options->n_part_files && label)
		return fail(-EINVAL, "--split needs -o with the name of a directory, not %s",
			    label);
	if (options->fsync && label)
		return fail(-EINVAL, "--fsync needs -o with the name of a file: %s is the caller's",
			    label);
	return 0;
}

static bool has_rates(const struct options *options)
{
	for (enum rank_resource link = 0; link < N_RANK_RESOURCES; link++)
		if (options->rank_rates.per_s[link])
			return true;
	return false;
}

static bool has_gpu_choice(const struct options *options)
{
	return options->n_gpus || options->all_gpus;
}

int options_finalize(struct options *options, const char *temp_dir)
{
	int r;

	r = record_options_finalize(&options->record);
	if (r < 0)
		return r;
	detect_zstd_suffix(options);
	normalise_standard_output(options);
	r = check_inputs(options);
	if (r < 0)
		return r;
	if (has_gpu_choice(options) && options->backend == BACKEND_CPU)
		return fail(-EINVAL,
			    "--gpus and --backend=cpu cannot be used together: the CPU back end "
			    "uses no GPU");
	if (options->assumed_nbytes && !options->explain)
		return fail(-EINVAL, "--assume-size needs --explain: a sort takes what comes");
	if (has_rates(options) && !options->explain)
		return fail(-EINVAL,
			    "--assume-rates needs --explain: a sort takes what time it takes");
	if (options->n_ranks && !options->explain)
		return fail(-EINVAL, "--ranks needs --explain: ranks that sort are those that MPI "
				     "has started");
	if (has_gpu_choice(options)) /* who does that does not mean: or else the CPU */
		options->backend = BACKEND_CUDA;
	r = check_output_format(options);
	if (r < 0)
		return r;
	r = check_output_is_file(options);
	if (r < 0 || options->n_temp_dirs)
		return r;
	return options_add_temp_dir(options,
				    options->checkpoint_path ? options->checkpoint_path : temp_dir);
}
