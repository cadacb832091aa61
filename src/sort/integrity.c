/*
 * integrity - was written what was read? (see integrity.h)
 */
#include "src/sort/integrity.h"

#include <errno.h>
#include <inttypes.h>

#include "src/base/diagnostics.h"

/* Records that were left in their files, and looked at twice, may not have been the same. */
static int fail_changed(const struct job *job)
{
	const char *path;
	uint64_t record;

	input_path_at(job->input, 0, &path, &record);
	return fail(-EBUSY, "%s%s: changed while it was sorted; the output was not written", path,
		    job->n_sources > 1 ? ", or another input" : "");
}

int integrity_check(const struct integrity *integrity, const struct job *job)
{
	const struct record_totals *totals = &integrity->totals;
	const struct digest accounted = record_totals_accounted(*totals);

	if (layout_is_indirect(job->layout) &&
	    (integrity->result.n_disorders || !record_totals_are_balanced(*totals)))
		return fail_changed(job);
	if (integrity->result.n_disorders)
		return fail(-EIO,
			    "internal error: %" PRIu64 " records of the result are out of order; "
			    "the output was not written",
			    integrity->result.n_disorders);
	if (!record_totals_are_balanced(*totals))
		return fail(-EIO,
			    "internal error: read %" PRIu64 " records (checksum %016" PRIx64 "), "
			    "but wrote %" PRIu64 " (%016" PRIx64 "); the output was not written",
			    totals->read.n_records, totals->read.sum, accounted.n_records,
			    accounted.sum);
	if (job->layout->projection.has_count && job->limit == UINT64_MAX &&
	    integrity->result.n_counted != totals->read.n_records)
		return fail(-EIO,
			    "internal error: read %" PRIu64 " records, but counted %" PRIu64
			    "; the output was not written",
			    totals->read.n_records, integrity->result.n_counted);
	return 0;
}

int integrity_fail_verify(const char *name)
{
	return fail(-EIO,
		    "%s: what was read back is not what was written; it does not become the output",
		    name);
}

int integrity_fail_read_back(int r, const char *name)
{
	return r == -ESPIPE ? fail(r, "--verify: %s cannot be read back", name) : r;
}

int integrity_verify(const struct integrity *integrity, const struct job *job,
		     verify_read_fn *read_at, void *context, const char *name)
{
	const struct verify_options options = {
		.layout = job->layout,
		.strict = job->unique,
		.n_threads = job->plan.n_queues,
		.stats = job->stats,
		.cancellation = job->cancellation,
	};
	const uint64_t nbytes = integrity->result.n_items * job->layout->output_nbytes;
	struct verify_result result;
	int r;

	stats_begin_phase(job->stats, PHASE_VERIFY, nbytes);
	r = verify_output(read_at, context, nbytes, &options, &result);
	if (r < 0)
		return integrity_fail_read_back(r, name);
	if (result.first_disorder || !digest_equal(result.digest, integrity->totals.written) ||
	    (job->layout->projection.has_count && result.counts_sum != integrity->result.n_counted))
		return integrity_fail_verify(name);
	return 0;
}
