/*
 * gsort-gen - write test data, the same bytes for the same arguments on every machine
 *
 * The data set is cut into blocks; threads claim them in order, make them and write them at their
 * offsets. A pipe makes the threads take turns in writing, not in making (see io/output.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "io/output.h"
#include "src/memory_limit.h"
#include "src/size.h"
#include "src/status.h"
#include "tools/gen.h"
#include "tools/tool.h"

/* A block stays in a core's second-level cache from making to writing. */
enum { BLOCK_NBYTES = 512 << 10, MAX_THREADS = 64 };

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

/* What the threads share. */
struct job {
	struct gen gen;
	struct output *output;
	uint64_t block_records;
	_Atomic uint64_t next_block;
	_Atomic int error;
};

/* Returns 1, or 0 when nothing is left to do, or a negative errno after a message. */
static int write_next_block(struct job *job, void *buffer)
{
	const uint64_t record_nbytes = job->gen.layout.record_nbytes;
	const uint64_t first = atomic_fetch_add(&job->next_block, 1) * job->block_records;
	uint64_t n;
	int r;

	if (first >= job->gen.n_records || atomic_load(&job->error))
		return 0;
	n = job->gen.n_records - first;
	if (n > job->block_records)
		n = job->block_records;
	gen_fill(&job->gen, first, n, buffer);
	r = output_write_at(job->output, first * record_nbytes, buffer, n * record_nbytes);
	return r < 0 ? r : 1;
}

static void *work(void *arg)
{
	struct job *job = arg;
	void *buffer = malloc(BLOCK_NBYTES);
	int r = buffer ? 1 : fail(-ENOMEM, "no memory for a block: %m");

	while (r > 0)
		r = write_next_block(job, buffer);
	if (r < 0) {
		atomic_store(&job->error, r);
		output_cancel(job->output);
	}
	free(buffer);
	return NULL;
}

/* The calling thread works too; threads that cannot be had are done without. */
static int write_all(struct job *job)
{
	const uint64_t n_blocks = job->gen.n_records / job->block_records + 1;
	const unsigned n_processors = cpus_available("");
	pthread_t threads[MAX_THREADS];
	unsigned n_started = 0;

	while (n_started < MAX_THREADS && n_started + 1 < n_processors &&
	       n_started + 1 < n_blocks &&
	       pthread_create(&threads[n_started], NULL, work, job) == 0)
		n_started++;
	work(job);
	while (n_started)
		pthread_join(threads[--n_started], NULL);
	return atomic_load(&job->error);
}

static int generate(const struct gen_options *options)
{
	struct job job = { 0 };
	struct layout layout;
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
	gen_make(&layout, (enum gen_dist)options->dist, n_records, options->seed, &job.gen);
	job.block_records = BLOCK_NBYTES / layout.record_nbytes;
	r = output_open(&io_engine_plain, options->output_path, n_records * layout.record_nbytes,
			&job.output);
	if (r < 0)
		return r;
	r = write_all(&job);
	if (r < 0) {
		output_abort(job.output);
		return r;
	}
	return output_commit(job.output, OUTPUT_UNSYNCED);
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
