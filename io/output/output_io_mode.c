/*
 * output_io_mode - which way the bytes of an output go, and what is made ready for them (see
 * output.h)
 */
#include <stdlib.h>

#include "io/output/output_internal.h"

void output_use_adaptive_io(struct output *output)
{
	if (!output_is_ordered(output) && !output->target.is_null)
		file_writer_use_adaptive_io(&output->writer);
}

void output_use_writeback(struct output *output)
{
	output_stop_prefault(output);
	file_writer_bypass_cache(&output->writer);
}

void output_bypass_cache(struct output *output)
{
	output_stop_prefault(output);
	file_writer_bypass_cache(&output->writer);
	output_use_adaptive_io(output);
}

void output_set_n_writers(struct output *output, uint32_t n_writers)
{
	file_writer_set_n_writers(&output->writer, n_writers);
}

static bool can_prefault_output(const struct output *output)
{
	return output->preallocation.is_supported && !output->prefault;
}

void output_start_prefault(struct output *const *outputs, uint32_t n, uint32_t n_writers,
			   unsigned n_threads)
{
	struct prefault_file *files = calloc(n, sizeof *files);
	struct prefault *prefault;
	uint32_t n_files = 0;

	while (files && n_files < n && can_prefault_output(outputs[n_files])) {
		files[n_files] = (struct prefault_file){
			file_writer_mmap_file(&outputs[n_files]->writer),
			&outputs[n_files]->preallocation,
		};
		n_files++;
	}
	if (n_files == n && prefault_start(files, n, n_writers, n_threads, &prefault) == 0)
		for (uint32_t i = 0; i < n; i++) {
			outputs[i]->prefault = prefault;
			file_writer_set_prefaulted(&outputs[i]->writer, true);
		}
	free(files);
}

void output_stop_prefault(struct output *output)
{
	if (!output || !output->prefault)
		return;
	prefault_stop(output->prefault);
	output->prefault = NULL;
	file_writer_set_prefaulted(&output->writer, false);
}

struct file_writer_stats output_get_io_stats(const struct output *output)
{
	return file_writer_get_stats(&output->writer);
}

uint32_t output_direct_alignment(const struct output *output, uint64_t *ret_base)
{
	const uint32_t nbytes = file_writer_direct_alignment(&output->writer);

	if (nbytes)
		*ret_base = output->target.base;
	return nbytes;
}
