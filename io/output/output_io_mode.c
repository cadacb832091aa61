/*
 * output_io_mode - which way the bytes of an output go, and what is made ready for them (see output.h)
 */
#include <stdlib.h>

#include "io/output/output_internal.h"

void output_try_both_ways(struct output *output)
{
	if (!output_is_ordered(output) && !output->target.is_null)
		file_writer_try_both_ways(&output->writer);
}

void output_write_behind(struct output *output)
{
	output_stop_readying(output);
	file_writer_pass_by_cache(&output->writer);
}

void output_pass_by_cache(struct output *output)
{
	output_stop_readying(output);
	file_writer_pass_by_cache(&output->writer);
	output_try_both_ways(output);
}

void output_divide(struct output *output, uint32_t n_writers)
{
	file_writer_divide(&output->writer, n_writers);
}

static bool can_be_made_ready(const struct output *output)
{
	return output->reservation.is_real && !output->early;
}

void output_make_ready(struct output *const *outputs, uint32_t n, uint32_t n_writers,
		       unsigned n_threads)
{
	struct early_file *files = calloc(n, sizeof *files);
	struct early_pages *early;
	uint32_t n_files = 0;

	while (files && n_files < n && can_be_made_ready(outputs[n_files])) {
		files[n_files] = (struct early_file){
			file_writer_to_map(&outputs[n_files]->writer),
			&outputs[n_files]->reservation,
		};
		n_files++;
	}
	if (n_files == n && early_pages_start(files, n, n_writers, n_threads, &early) == 0)
		for (uint32_t i = 0; i < n; i++) {
			outputs[i]->early = early;
			file_writer_expect_ready(&outputs[i]->writer, true);
		}
	free(files);
}

void output_stop_readying(struct output *output)
{
	if (!output || !output->early)
		return;
	early_pages_stop(output->early);
	output->early = NULL;
	file_writer_expect_ready(&output->writer, false);
}

struct file_writer_ways output_ways(const struct output *output)
{
	return file_writer_ways(&output->writer);
}

uint32_t output_alignment(const struct output *output, uint64_t *ret_base)
{
	const uint32_t nbytes = file_writer_alignment(&output->writer);

	if (nbytes)
		*ret_base = output->target.base;
	return nbytes;
}
