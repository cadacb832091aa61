/*
 * gsort-gen - write test data, the same bytes for the same arguments on every machine
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "src/memory_limit.h"
#include "src/size.h"
#include "src/status.h"
#include "tools/gen.h"
#include "tools/gen_file.h"
#include "tools/tool.h"

#define DEFAULT_N_RECORDS UINT64_C(1048576)

struct gen_options {
	struct key key;
	uint64_t n_records;
	uint64_t nbytes;
	int dist; /* enum gen_dist */
	uint64_t seed;
	const char *output_path;
};

enum row { ROW_RECORDS, ROW_BYTES };

static int take_bytes(const struct option_spec *spec, const char *argument, void *target)
{
	struct gen_options *options = target;
	char spelling[OPTION_SPELLING_NBYTES];

	return size_parse_option(option_spell(spec, spelling), argument, 1, &options->nbytes);
}

static int take_dist(const struct option_spec *spec, const char *argument, void *target)
{
	struct gen_options *options = target;
	char spelling[OPTION_SPELLING_NBYTES], names[GEN_DIST_NAMES_NBYTES];
	enum gen_dist dist;

	if (gen_parse_dist(argument, &dist) < 0)
		return fail(-EINVAL, "%s: unknown distribution '%s': use one of %s",
			    option_spell(spec, spelling), argument, gen_list_dists(names));
	options->dist = (int)dist;
	return 0;
}

static const struct option_spec specs[] = {
	[ROW_RECORDS] = { .name = "records",
			  .letter = 'n',
			  .argument = "COUNT",
			  .help = "number of records (default 1048576)",
			  .take = tool_take_number,
			  .offset = offsetof(struct gen_options, n_records) },
	[ROW_BYTES] = { .name = "bytes",
			.letter = 'b',
			.argument = "SIZE",
			.help = "as many whole records as fit SIZE bytes; suffixes K to E",
			.take = take_bytes },
	{ .name = "type",
	  .letter = 't',
	  .argument = "TYPE",
	  .help = "a record is one key of TYPE: u8 to u128, i8 to i128, f32, f64, each with le "
		  "(default) or be, or bN (default u64)",
	  .take = tool_take_type,
	  .offset = offsetof(struct gen_options, key) },
	{ .name = "dist",
	  .letter = 'd',
	  .argument = "DIST",
	  .help = "distribution (default random): random sorted reversed equal two zipf few nearly "
		  "sawtooth organ gaps nan",
	  .take = take_dist },
	{ .name = "seed",
	  .argument = "N",
	  .help = "another N, other data (default 1)",
	  .take = tool_take_number,
	  .offset = offsetof(struct gen_options, seed) },
	{ .name = "output",
	  .letter = 'o',
	  .argument = "FILE",
	  .help = "write to FILE, not to standard output",
	  .take = option_take_text,
	  .offset = offsetof(struct gen_options, output_path) },
	TOOL_ROW_HELP,
	TOOL_ROW_VERSION,
};

static const struct option_conflict conflicts[] = {
	{ ROW_RECORDS, ROW_BYTES, "each says how much to write" },
};

static const struct tool tool = {
	.name = "gsort-gen",
	.usage = "gsort-gen [OPTION]...\n"
		 "Write test data: the same bytes for the same options on every machine.\n",
	.options = { .specs = specs,
		     .n_specs = sizeof specs / sizeof specs[0],
		     .conflicts = conflicts,
		     .n_conflicts = sizeof conflicts / sizeof conflicts[0] },
};

static int generate(const struct gen_options *options)
{
	struct layout layout;
	struct gen gen;
	uint64_t n_records;
	int r;

	r = tool_make_layout(&options->key, &layout);
	if (r < 0)
		return r;
	n_records = options->nbytes == UINT64_MAX ? options->n_records :
						    options->nbytes / layout.record_nbytes;
	if (n_records > INT64_MAX / layout.record_nbytes)
		return fail(-EFBIG,
			    "%" PRIu64 " records of %" PRIu64
			    " bytes are more than a file can hold",
			    n_records, layout.record_nbytes);
	gen_make(&layout, (enum gen_dist)options->dist, n_records, options->seed, &gen);
	return gen_write_file(&gen, options->output_path, cpus_available(""));
}

int main(int argc, char **argv)
{
	struct gen_options options = {
		.n_records = DEFAULT_N_RECORDS,
		.nbytes = UINT64_MAX,
		.dist = GEN_RANDOM,
		.seed = 1,
		.key = { .nbytes = 8, .kind = KEY_UNSIGNED },
	};
	struct option_result given;
	int r = tool_parse(&tool, argc, argv, &options, &given);

	if (r == 0 && given.n_operands)
		r = fail(-EINVAL, "unexpected '%s': the output's name is given with -o",
			 given.operands[0]);
	if (r == 0)
		r = generate(&options);
	return r < 0 ? EXIT_TROUBLE : EXIT_SORTED;
}
