/*
 * line_runs.c - spilled runs of lines (see line_sort_internal.h)
 */
#include "src/lines/line_sort.h"
#include "src/lines/line_sort_internal.h"

static int write_to_run(void *context, uint64_t offset, const void *bytes, size_t nbytes)
{
	/* A run of bytes has no keys in its index. */
	static const encoded_key_t no_keys[LINE_MAX_BUFFER_NBYTES / LINE_MIN_BLOCK_NBYTES + 1];
	const struct line_run_writer *writer = context;

	return run_file_write(writer->file, writer->nbytes + offset, bytes, nbytes, no_keys);
}

static int open_spill(struct line_sort *sort)
{
	const struct line_sort_params *params = sort->params;
	int r;

	if (sort->spill)
		return 0;
	r = spill_open(sort->calls, params->temp_directories, params->n_temp_directories,
		       params->temp_limit_nbytes, 0, &sort->spill);
	if (r == 0)
		r = compression_open(&params->compression, false, &sort->compression);
	return r;
}

int line_run_open(struct line_sort *sort, struct line_run_writer *ret_writer)
{
	int r = open_spill(sort);

	*ret_writer = (struct line_run_writer){ 0 };
	if (r == 0)
		r = run_file_open(sort->spill, sort->compression, 1, (uint32_t)sort->block_nbytes,
				  &ret_writer->file);
	return r;
}

int line_run_finish(const struct line_run_writer *writer, struct line_run *ret_run)
{
	const int r = run_file_finish(writer->file);

	*ret_run = (struct line_run){ .file = writer->file,
				      .nbytes = writer->nbytes,
				      .n_blocks = run_file_n_blocks(writer->file) };
	return r;
}

int line_run_write_block(struct line_sort *sort, struct line_run_writer *writer)
{
	const struct line_sink sink = { .write = write_to_run, .context = writer };
	struct digest digest;
	uint64_t nbytes;
	const int r = line_sort_write_block(sort, &sink, &nbytes, &digest);

	writer->nbytes += nbytes;
	return r;
}
