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

int account_check(const struct account *account, const struct job *job)
{
	const struct ledger *ledger = &account->ledger;
	const struct digest gone = ledger_gone(*ledger);

	if (layout_refers(job->layout) &&
	    (account->result.n_disorders || !ledger_balances(*ledger)))
		return fail_changed(job);
	if (account->result.n_disorders)
		return fail(-EIO,
			    "internal error: %" PRIu64 " records of the result are out of order; "
			    "the output was not written",
			    account->result.n_disorders);
	if (!ledger_balances(*ledger))
		return fail(-EIO,
			    "internal error: read %" PRIu64 " records (checksum %016" PRIx64 "), "
			    "but wrote %" PRIu64 " (%016" PRIx64 "); the output was not written",
			    ledger->read.n_records, ledger->read.sum, gone.n_records, gone.sum);
	if (job->layout->intake.has_count && job->limit == UINT64_MAX &&
	    account->result.n_counted != ledger->read.n_records)
		return fail(-EIO,
			    "internal error: read %" PRIu64 " records, but counted %" PRIu64
			    "; the output was not written",
			    ledger->read.n_records, account->result.n_counted);
	return 0;
}

int account_fail_verify(const char *name)
{
	return fail(-EIO,
		    "%s: what was read back is not what was written; it does not become the output",
		    name);
}

int account_verify(const struct account *account, const struct job *job, verify_read_fn *read_at,
		   void *context, const char *name)
{
	const struct verify_options options = {
		.layout = job->layout,
		.strict = job->unique,
		.n_threads = job->plan.n_lanes,
		.stats = job->stats,
		.cancellation = job->cancellation,
	};
	const uint64_t nbytes = account->result.n_items * job->layout->output_nbytes;
	struct verify_result found;
	int r;

	stats_begin_phase(job->stats, PHASE_CHECK, nbytes);
	r = verify_written(read_at, context, nbytes, &options, &found);
	if (r == -ESPIPE)
		return fail_hint(r, HINT_ABOUT_VERIFYING, 0, "%s cannot be read back", name);
	if (r < 0)
		return r;
	if (found.first_disorder || !digest_equal(found.digest, account->ledger.written) ||
	    (job->layout->intake.has_count && found.n_counted != account->result.n_counted))
		return account_fail_verify(name);
	return 0;
}
