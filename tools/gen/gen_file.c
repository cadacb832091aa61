/*
 * gen_file - a data set into a file (see gen_file.h)
 *
 * The data set is cut into blocks; threads claim them in order, make them and write them at their
 * offsets. A pipe makes the threads take turns in writing, not in making (see io/output/output.h).
 */
#include "tools/gen/gen_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "io/output/output.h"
#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"
#include "tools/cli/tool_main.h"

/* A block stays in a core's second-level cache from making to writing. */
enum { BLOCK_NBYTES = 512 << 10 };

/* What the threads share. */
struct gen_job {
	const struct data_set *set;
	struct output *output;
	uint64_t block_records;
	_Atomic uint64_t next_block;
	_Atomic int error;
};

/* Returns 1, or 0 when nothing is left to do, or a negative errno after a message. */
static int write_next_block(struct gen_job *job, void *buffer)
{
	const uint64_t record_nbytes = job->set->record_nbytes;
	const uint64_t first = atomic_fetch_add(&job->next_block, 1) * job->block_records;
	uint64_t n;
	int r;

	if (first >= job->set->n_records || atomic_load(&job->error))
		return 0;
	n = job->set->n_records - first;
	if (n > job->block_records)
		n = job->block_records;
	data_set_fill(job->set, first, n, buffer);
	r = output_write_at(job->output, first * record_nbytes, buffer, n * record_nbytes);
	return r < 0 ? r : 1;
}

static void generate_blocks(void *context)
{
	struct gen_job *job = context;
	void *buffer = malloc(BLOCK_NBYTES);
	int r = buffer ? 1 : fail(-ENOMEM, "no memory for a block: %m");

	while (r > 0)
		r = write_next_block(job, buffer);
	if (r < 0) {
		atomic_store(&job->error, r);
		output_cancel(job->output);
	}
	free(buffer);
}

static int generate_all_blocks(struct gen_job *job, unsigned n_threads)
{
	const uint64_t n_blocks = job->set->n_records / job->block_records + 1;

	threads_run(n_threads < n_blocks ? n_threads : (uint32_t)n_blocks, generate_blocks, job);
	return atomic_load(&job->error);
}

int gen_write_file(const struct data_set *data_set, const char *path, unsigned n_threads)
{
	struct gen_job job = { .set = data_set,
			       .block_records = BLOCK_NBYTES / data_set->record_nbytes };
	int r;

	r = output_open(tool_syscalls(), path, data_set->n_records * data_set->record_nbytes,
			&job.output);
	if (r < 0)
		return r;
	r = generate_all_blocks(&job, n_threads);
	if (r < 0) {
		output_abort(job.output);
		return r;
	}
	return output_commit(job.output, OUTPUT_UNSYNCED);
}
