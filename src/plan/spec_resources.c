/*
 * spec_resources.c - the memory and threads that a sort may use (see sort_spec.h)
 */
#include "io/codec/zst_writer.h"
#include "src/base/system_limits.h"
#include "src/plan/plan.h"
#include "src/plan/sort_spec.h"

uint64_t spec_memory_nbytes(const struct sort_spec *spec)
{
	const uint64_t physical_nbytes = memory_physical_nbytes();
	const uint64_t nbytes = spec->memory_nbytes ? spec->memory_nbytes :
						      memory_available_nbytes("") / 2;

	if (spec->n_assumed_ranks) /* on other machines */
		return nbytes;
	return nbytes < physical_nbytes ? nbytes : physical_nbytes;
}

unsigned spec_n_threads(const struct sort_spec *spec)
{
	const unsigned n = spec->n_threads ? spec->n_threads : cpus_available("");
	const uint64_t max_threads = plan_max_threads(spec_memory_nbytes(spec));

	return n < max_threads ? n : (unsigned)max_threads;
}

unsigned spec_n_compressors(const struct sort_spec *spec)
{
	const uint64_t nbytes = spec_memory_nbytes(spec) / 4;
	unsigned n = spec_n_threads(spec);

	while (n > 1 &&
	       (1 + (spec->n_part_files > 1)) * zst_writer_memory_nbytes(spec->zstd_level, n) >
		       nbytes)
		n--;
	return n;
}
