/*
 * sort_check.c - check whether the inputs are sorted (see sort.h)
 *
 * Each of several ranks checks the same number of neighbouring records, and the first of them
 * against its predecessor, which it reads as well. So the ranks exchange only their results.
 */
#include "io/input/input.h"
#include "src/base/int_math.h"
#include "src/check/verify.h"
#include "src/comm/comm.h"
#include "src/sort/setup.h"
#include "src/sort/distributed_sort.h"
#include "src/sort/sort.h"

static void stop_reading(void *input)
{
	input_cancel(input);
}

/* Return this rank's part of the records. */
static struct verify_record_range local_records(const struct input_probe *probe)
{
	const struct comm *comm = probe->spec.comm;
	const uint64_t n = input_total_nbytes(probe->input) / probe->layout.record_nbytes;
	const unsigned rank = comm_rank(comm), n_ranks = comm_size(comm);

	return (struct verify_record_range){ equal_share_begin(n, rank, n_ranks),
					     equal_share_begin(n, rank + 1, n_ranks) };
}

/* Return the size to check, or 0 if it is unknown. */
static uint64_t count_nbytes(const struct input_probe *probe)
{
	const uint64_t nbytes = input_total_nbytes(probe->input);
	struct verify_record_range records;

	if (!probe->spec.comm)
		return nbytes == INPUT_SIZE_UNKNOWN ? 0 : nbytes;
	records = local_records(probe);
	return (records.end - records.begin) * probe->layout.record_nbytes;
}

static int check_record_order(const struct input_probe *probe, const struct verify_options *options,
			      struct verify_result *ret_result)
{
	return probe->spec.comm ?
		       verify_input_range(probe->input, local_records(probe), options, ret_result) :
		       verify_input(probe->input, options, ret_result);
}

/*
 * Examine compressed inputs and check their memory. *ret_n_threads: the threads that read and
 * check.
 */
static int plan_memory(const struct input_probe *probe, unsigned *ret_n_threads)
{
	const bool is_stream = input_total_nbytes(probe->input) == INPUT_SIZE_UNKNOWN;
	int r = is_stream ? input_probe_pipe(probe->input, true) : 0;

	if (r < 0)
		return r;
	setup_limit_input_memory(probe->input, &probe->spec);
	*ret_n_threads = is_stream ? 1 : spec_n_threads(&probe->spec);
	return input_check_reading_memory(probe->input, spec_memory_nbytes(&probe->spec),
					  VERIFY_THREAD_NBYTES, ret_n_threads);
}

static int run_check(const struct input_probe *probe, unsigned n_threads, struct stats *stats,
		     struct verify_result *ret_result)
{
	const struct verify_options options = {
		.layout = &probe->layout,
		.strict = probe->spec.unique,
		.stop_at_disorder = true,
		.n_threads = n_threads,
		.stats = stats,
		.cancellation = probe->spec.cancellation,
	};
	int r;

	stats_begin_phase(stats, PHASE_VERIFY, count_nbytes(probe));
	cancellation_set_wakeup(probe->spec.cancellation, stop_reading, probe->input);
	r = check_record_order(probe, &options, ret_result);
	if (r == 0 && !ret_result->first_disorder)
		stats_complete_phase(stats);
	cancellation_clear_wakeup(probe->spec.cancellation);
	return r;
}

static void fill_check_summary(const struct input_probe *probe, const struct verify_result *result,
			       struct sort_summary *ret_summary)
{
	const struct sort_spec *spec = &probe->spec;

	keys_format(spec->keys, spec->n_keys, spec->record_nbytes, ret_summary->type);
	ret_summary->record_nbytes = spec->record_nbytes;
	ret_summary->n_records_in = result->digest.n_records;
	ret_summary->input_nbytes = result->digest.n_records * spec->record_nbytes;
}

/* Combine the results of all ranks. */
static int combine_check_results(struct comm *comm, struct input *input,
				 struct verify_result *result)
{
	uint64_t first = result->first_disorder ? result->first_disorder : UINT64_MAX;
	int r = distributed_check_manifests(comm, input_part_inputs(input));

	if (r == 0)
		r = comm_allreduce_min(comm, &first, 1, 1);
	result->first_disorder = first == UINT64_MAX ? 0 : first;
	return r;
}

static int probe_inputs(const struct sort_spec *spec, const char *checker,
			struct input_probe *ret_probe)
{
	int r = spec_open_inputs(spec, checker, ret_probe);

	if (r == 0 && spec->comm)
		r = distributed_check_supported(spec, ret_probe->input);
	return r < 0 ? r : spec_finish_probe(spec, ret_probe);
}

/* Rank 0 probes the inputs first, so that an error of all ranks is reported once. */
static int probe_inputs_collectively(const struct sort_spec *spec, const char *checker,
				     struct input_probe *ret_probe)
{
	const bool is_first = comm_rank(spec->comm) == 0;
	int r = is_first ? probe_inputs(spec, checker, ret_probe) : 0;

	r = distributed_broadcast_status(spec->comm, r);
	if (r == 0 && !is_first)
		r = probe_inputs(spec, checker, ret_probe);
	return r < 0 ? r : distributed_compare_specs(&ret_probe->spec);
}

int sort_check(const struct sort_spec *spec, const char *checker,
	       const struct sort_observer *observer, struct stats *stats,
	       struct sort_summary *ret_summary, uint64_t *ret_disorder)
{
	struct verify_result result;
	struct input_probe probe = { 0 };
	unsigned n_threads = 1;
	int r = spec->comm ? probe_inputs_collectively(spec, checker, &probe) :
			     probe_inputs(spec, checker, &probe);

	if (r == 0 && observer->on_opened)
		r = observer->on_opened(observer->context, &probe.spec, &probe.layout, probe.input);
	if (r == 0)
		r = plan_memory(&probe, &n_threads);
	if (r == 0)
		r = run_check(&probe, n_threads, stats, &result);
	if (r == 0)
		r = input_check_state(probe.input);
	if (r == 0 && spec->comm)
		r = combine_check_results(spec->comm, probe.input, &result);
	if (r == 0) {
		fill_check_summary(&probe, &result, ret_summary);
		*ret_disorder = result.first_disorder;
	}
	spec_close_probe(&probe);
	return r;
}
