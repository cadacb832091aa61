/*
 * line_ranks.c - a sort of lines by several ranks (see line_sort_internal.h)
 *
 * Each rank reads a share of the input, the lines that begin in a part of its text, and stores
 * sorted chunks of them as runs. Then the ranks agree on splitters, and each cuts its runs there.
 * Each rank merges one partition, the segments between two splitters, and writes it at its place:
 *
 *	rank 0   share 0 -> [ run 0 |   run 1   ]	the runs are cut at the splitter
 *	rank 1   share 1 -> [   run 0   | run 1 ]
 *	                     ^ partition of rank 0
 *
 * Segments are read from the ranks that have stored them (src/exchange/exchange.h). To that module
 * a run of lines is a run of records of one byte.
 *
 * A splitter is a line of a run. Lines that equal it are before the cut in all runs up to that one,
 * in the order of ranks and runs, and after it in later runs. With -u all of them are before it. So
 * equal lines keep the order of the input, and can be divided among ranks.
 *
 * The splitters are chosen from samples. Each rank takes lines at equal distances from each sorted
 * chunk, and all ranks get all samples (regular sampling, Shi and Schaeffer, 1992). Every sample
 * weighs the bytes that it stands for. Long lines are truncated: a splitter need not be a line of
 * the input.
 *
 * line_output.c writes the partitions.
 */
#include "src/lines/line_sort.h"
#include "src/lines/line_sort_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/comm/peer_memory.h"
#include "src/exchange/exchange.h"
#include "src/sort/distributed_sort.h"

enum {
	/* Samples of a rank, and of all ranks. With many ranks each takes fewer. */
	MIN_SAMPLES = 64,
	MAX_SAMPLES = 4096,
	ALL_SAMPLES = 1 << 16,
	MAX_SAMPLE_NBYTES = 4096, /* of a line */
	/* The text of these samples. */
	MIN_SAMPLE_TEXT_NBYTES = 4 * MAX_SAMPLE_NBYTES,
	MAX_SAMPLE_TEXT_NBYTES = 1 << 20,
	ALL_SAMPLE_TEXT_NBYTES = 4 << 20,
};

/* A line of a sorted chunk, which stands for `weight` bytes of lines around it. */
struct line_sample {
	uint64_t weight;
	uint64_t offset; /* in the text of the samples */
	uint32_t nbytes, run;
};

/* A sample of any rank. */
struct line_splitter {
	struct line_sort *sort; /* for qsort() */
	struct line_view line;
	uint64_t weight;
	unsigned rank;
	uint32_t run;
};

struct line_ranks {
	struct comm *comm;
	unsigned rank, n;
	bool has_share; /* false: there are fewer bytes than ranks */

	/* Samples of the own lines. Threads that write a run add to them: `lock` guards them. */
	pthread_mutex_t lock;
	struct line_sample *samples; /* n_samples of max_samples */
	unsigned char *sample_text;
	size_t n_samples, max_samples, sample_text_nbytes, max_sample_text_nbytes;
	uint64_t stride; /* from one sample of a chunk to the next */

	/* Of the run that is sampled. */
	uint32_t run;
	uint64_t distance;         /* from one sample to the next, in bytes of the run */
	uint64_t unsampled_nbytes; /* that the next sample stands for as well */

	/* Between the partitions of the ranks: n - 1; none if there are no lines. */
	struct line_splitter *splitters;
	size_t n_splitters;
	void *splitter_text;

	/* The runs that this rank stored. sort->runs holds the segments that it merges. */
	struct run_list own_runs;
	uint64_t *cuts;
	struct peer_memory *peer_memory;
	struct remote_runs *remote;
};

/* --- Opening --- */

int line_ranks_open_local(const struct line_sort_params *params, struct line_sort *ret_sort)
{
	const char *path;
	int r = distributed_check_spec(&params->spec);

	if (r == 0)
		r = line_sort_open(params, NULL, ret_sort);
	if (r < 0)
		return r;
	if (ret_sort->input->part_inputs && params->n_header_lines)
		return fail(-EINVAL, "--header: several ranks cannot read part files with headers");
	path = ret_sort->input->unsized_path;
	return path ? distributed_refuse_input(path) : 0;
}

/* Check that all ranks have the same options and see the same files. */
static int compare_specs(const struct line_sort_params *params)
{
	char *order = line_keys_format(params->keys);
	struct sort_spec spec = params->spec;
	int r = order ? 0 : fail(-ENOMEM, "no memory to describe the sort");

	spec.lines = order;
	if (r == 0)
		r = distributed_compare_specs(&spec);
	free(order);
	return r;
}

/* Return where the share of a rank begins. That of rank 0 is not empty, unless the text is. */
static uint64_t share_begin(const struct line_ranks *ranks, unsigned rank, uint64_t nbytes)
{
	return (uint64_t)(((__uint128_t)nbytes * rank + ranks->n - 1) / ranks->n);
}

static int begin_share(struct line_sort *sort)
{
	struct line_ranks *ranks = sort->ranks;
	struct job *job = &sort->job;
	const uint64_t nbytes = sort->input->total_nbytes;
	const uint64_t begin = share_begin(ranks, ranks->rank, nbytes);
	const uint64_t end = share_begin(ranks, ranks->rank + 1, nbytes);
	int r;

	ranks->stride = (end - begin) / (ranks->max_samples / 2) + 1;
	ranks->has_share = begin < end;
	/* A check compares the last line with the next one. */
	r = line_input_take_share(sort->input, begin, end, !sort->spec->output_path);
	job->has_end = true;
	job->first_record = sort->input->share.position;
	job->end_record = ranks->has_share ? u64_max(job->first_record, end) : job->first_record;
	return r;
}

static int open_ranks(struct line_sort *sort)
{
	struct comm *comm = sort->spec->comm;
	const unsigned n = comm_size(comm);
	struct line_ranks *ranks = calloc(1, sizeof *ranks);

	sort->ranks = ranks;
	if (!ranks)
		return fail(-ENOMEM, "no memory for %u ranks", n);
	ranks->comm = comm;
	ranks->rank = comm_rank(comm);
	ranks->n = n;
	pthread_mutex_init(&ranks->lock, NULL);
	ranks->max_sample_text_nbytes = u64_clamp(ALL_SAMPLE_TEXT_NBYTES / n,
						  MIN_SAMPLE_TEXT_NBYTES, MAX_SAMPLE_TEXT_NBYTES);
	ranks->max_samples = u64_clamp(ALL_SAMPLES / n, MIN_SAMPLES, MAX_SAMPLES);
	ranks->samples = calloc(ranks->max_samples, sizeof *ranks->samples);
	ranks->sample_text = malloc(ranks->max_sample_text_nbytes);
	if (!ranks->samples || !ranks->sample_text)
		return fail(-ENOMEM, "no memory for %u ranks", n);
	return begin_share(sort);
}

int line_ranks_open(const struct line_sort_params *params, struct line_checkpoint *checkpoint,
		    struct line_sort *ret_sort)
{
	const bool opens_first = comm_rank(params->spec.comm) == 0;
	int r = opens_first ? line_ranks_open_local(params, ret_sort) : 0;

	/* All ranks find the same errors. Rank 0 reports them. */
	r = distributed_broadcast_status(params->spec.comm, r);
	if (r == 0 && !opens_first)
		r = line_ranks_open_local(params, ret_sort);
	if (r == 0)
		r = compare_specs(params);
	if (r == 0 && params->spec.checkpoint_path) {
		r = line_checkpoint_open(params, checkpoint);
		if (r == 0)
			line_checkpoint_attach(checkpoint, ret_sort);
	}
	return r < 0 ? r : open_ranks(ret_sort);
}

/* --- Samples --- */

/* Drop every second sample. The others stand for twice as many lines. */
static void thin_samples(struct line_ranks *ranks)
{
	size_t n = 0, nbytes = 0;

	for (size_t i = 0; i < ranks->n_samples; i += 2) {
		struct line_sample sample = ranks->samples[i];

		if (i + 1 < ranks->n_samples)
			sample.weight += ranks->samples[i + 1].weight;
		memmove(ranks->sample_text + nbytes, ranks->sample_text + sample.offset,
			sample.nbytes);
		sample.offset = nbytes;
		nbytes += sample.nbytes;
		ranks->samples[n++] = sample;
	}
	ranks->n_samples = n;
	ranks->sample_text_nbytes = nbytes;
	ranks->stride *= 2;
}

static void add_sample(struct line_ranks *ranks, struct line_view line)
{
	const size_t nbytes = u64_min(line.nbytes, MAX_SAMPLE_NBYTES);

	while (ranks->n_samples == ranks->max_samples ||
	       nbytes > ranks->max_sample_text_nbytes - ranks->sample_text_nbytes)
		thin_samples(ranks);
	ranks->samples[ranks->n_samples++] =
		(struct line_sample){ .weight = ranks->distance + ranks->unsampled_nbytes,
				      .offset = ranks->sample_text_nbytes,
				      .nbytes = (uint32_t)nbytes,
				      .run = ranks->run };
	ranks->unsampled_nbytes = 0;
	if (nbytes)
		memcpy(ranks->sample_text + ranks->sample_text_nbytes, line.bytes, nbytes);
	ranks->sample_text_nbytes += nbytes;
}

void line_ranks_begin_samples(struct line_sort *sort, size_t run, uint64_t nbytes)
{
	struct line_ranks *ranks = sort->ranks;

	ranks->run = (uint32_t)run;
	ranks->distance = nbytes / u64_clamp(nbytes / ranks->stride, 1, ranks->max_samples);
}

/* Return the position of the first sample that is not before `offset` in the run. */
static uint64_t next_sample(const struct line_ranks *ranks, uint64_t offset)
{
	const uint64_t first = ranks->distance / 2;

	return offset <= first ?
		       first :
		       first + divide_up(offset - first, ranks->distance) * ranks->distance;
}

/*
 * Find a line at a byte of a part of a run: the one that holds it if it begins in the part, or else
 * the next one. Returns bytes NULL if there is none.
 */
static struct line_view find_line_at(const struct line_sort *sort, bool begins_line,
				     const unsigned char *begin, const unsigned char *end,
				     const unsigned char *byte)
{
	const unsigned char delimiter = sort->keys->delimiter;
	const unsigned char *before = memrchr(begin, delimiter, (size_t)(byte - begin));
	const unsigned char *line = before ? before + 1 : begin, *line_end;

	if (!before && !begins_line) {
		before = memchr(byte, delimiter, (size_t)(end - byte));
		if (!before || before + 1 == end)
			return (struct line_view){ 0 };
		line = before + 1;
	}
	line_end = memchr(line, delimiter, (size_t)(end - line));
	return (struct line_view){ line, (size_t)((line_end ? line_end : end) - line) };
}

void line_ranks_take_samples(struct line_sort *sort, uint64_t offset, const void *bytes,
			     size_t nbytes)
{
	struct line_ranks *ranks = sort->ranks;
	const unsigned char *begin = bytes, *end = begin + nbytes, *from = begin;
	bool begins_line = offset == 0; /* at `from` */

	for (uint64_t at = next_sample(ranks, offset); at < offset + nbytes;
	     at += ranks->distance) {
		const unsigned char *byte = begin + (at - offset);
		const struct line_view line =
			find_line_at(sort, begins_line, from, end, byte > from ? byte : from);

		if (line.bytes) {
			from = line.bytes;
			begins_line = true;
		}
		pthread_mutex_lock(&ranks->lock);
		if (line.bytes)
			add_sample(ranks, line);
		else
			ranks->unsampled_nbytes += ranks->distance;
		pthread_mutex_unlock(&ranks->lock);
	}
}

/* Take samples of a stored run. Reads only the blocks that have samples. */
static int sample_stored_run(struct line_sort *sort, size_t i)
{
	struct run *run = sort->runs.runs[i];
	unsigned char *text = line_block_text(sort->block);
	int r = 0;

	line_ranks_begin_samples(sort, i, run->n_items);
	for (uint64_t block = 0; block < run->n_blocks && r == 0; block++) {
		const uint64_t begin = run_block_start(run, block);
		const uint64_t end = run_block_start(run, block + 1);
		struct digest ignored = { 0 };

		if (next_sample(sort->ranks, begin) >= end)
			continue;
		r = run_read(run, block, 1, text, &ignored);
		if (r == 0)
			line_ranks_take_samples(sort, begin, text, end - begin);
	}
	return r;
}

int line_ranks_resume(struct line_sort *sort)
{
	int r = 0;

	for (size_t i = 0; i < sort->runs.n && r == 0; i++)
		r = sample_stored_run(sort, i);
	return r < 0 ? r :
		       distributed_report_resumed(sort->ranks->comm, sort->runs.n,
						  sort->text_nbytes, sort->input->total_nbytes);
}

/* --- Splitters --- */

static int compare_splitters(const void *left, const void *right)
{
	const struct line_splitter *a = left, *b = right;
	const int order = line_sort_compare(a->sort, a->line, b->line);

	if (order)
		return order;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a->run > b->run) - (a->run < b->run);
}

/* The samples of all ranks, one rank after the other. */
struct all_samples {
	struct line_sample *samples;
	size_t *samples_nbytes, *text_nbytes; /* of each rank */
	struct line_splitter *candidates;     /* n: the samples as splitters */
	size_t n;
};

static int gather_samples(struct line_ranks *ranks, struct all_samples *all)
{
	void *samples = NULL, *text;
	size_t nbytes = LINE_SLACK_NBYTES;
	int r;

	all->samples_nbytes = calloc(2 * (size_t)ranks->n, sizeof *all->samples_nbytes);
	if (!all->samples_nbytes)
		return fail(-ENOMEM, "no memory for %u ranks", ranks->n);
	all->text_nbytes = all->samples_nbytes + ranks->n;
	r = comm_allgatherv(ranks->comm, ranks->samples, ranks->n_samples * sizeof *ranks->samples,
			    &samples, all->samples_nbytes);
	all->samples = samples;
	if (r == 0)
		r = comm_allgatherv(ranks->comm, ranks->sample_text, ranks->sample_text_nbytes,
				    &ranks->splitter_text, all->text_nbytes);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < ranks->n; i++)
		nbytes += all->text_nbytes[i];
	text = realloc(ranks->splitter_text, nbytes);
	if (!text)
		return fail(-ENOMEM, "no memory for samples of %zu bytes", nbytes);
	ranks->splitter_text = text;
	return 0;
}

/* Add the n samples of a rank, with the nbytes of their text. */
static int add_candidates(struct line_sort *sort, struct all_samples *all, unsigned rank,
			  const struct line_sample *samples, size_t n, const unsigned char *text)
{
	const size_t nbytes = all->text_nbytes[rank];

	for (size_t i = 0; i < n; i++) {
		if (samples[i].offset > nbytes || samples[i].nbytes > nbytes - samples[i].offset)
			return fail(-EPROTO,
				    "internal error: rank %u on %s sent invalid samples; the "
				    "output was not written",
				    rank, comm_host(sort->ranks->comm, rank));
		all->candidates[all->n++] = (struct line_splitter){
			.sort = sort,
			.line = { text + samples[i].offset, samples[i].nbytes },
			.weight = samples[i].weight,
			.rank = rank,
			.run = samples[i].run
		};
	}
	return 0;
}

static int sort_candidates(struct line_sort *sort, struct all_samples *all)
{
	const struct line_ranks *ranks = sort->ranks;
	const struct line_sample *samples = all->samples;
	const unsigned char *text = ranks->splitter_text;
	size_t n_all = 0;
	int r = 0;

	for (unsigned i = 0; i < ranks->n; i++)
		n_all += all->samples_nbytes[i] / sizeof *samples;
	all->candidates = calloc(n_all + 1, sizeof *all->candidates);
	if (!all->candidates)
		return fail(-ENOMEM, "no memory for %zu samples", n_all);
	for (unsigned i = 0; i < ranks->n && r == 0; i++) {
		const size_t n = all->samples_nbytes[i] / sizeof *samples;

		r = add_candidates(sort, all, i, samples, n, text);
		samples += n;
		text += all->text_nbytes[i];
	}
	if (r == 0)
		qsort(all->candidates, all->n, sizeof *all->candidates, compare_splitters);
	return r < 0 ? r : line_sort_check_scratch(sort);
}

/* Choose the splitters so that the partitions have about the same number of bytes. */
static int choose_splitters(struct line_ranks *ranks, const struct all_samples *all)
{
	uint64_t total = 0, before = 0;
	size_t next = 0;

	ranks->splitters = calloc(ranks->n, sizeof *ranks->splitters);
	if (!ranks->splitters)
		return fail(-ENOMEM, "no memory for %u ranks", ranks->n);
	for (size_t i = 0; i < all->n; i++)
		total += all->candidates[i].weight;
	for (unsigned i = 1; i < ranks->n && all->n > 0; i++) {
		const uint64_t target = (uint64_t)((__uint128_t)total * i / ranks->n);

		while (next + 1 < all->n && before + all->candidates[next].weight / 2 < target)
			before += all->candidates[next++].weight;
		ranks->splitters[ranks->n_splitters++] = all->candidates[next];
	}
	return 0;
}

/* Collective: all ranks choose the same splitters from the same samples. */
static int find_splitters(struct line_sort *sort)
{
	struct all_samples all = { 0 };
	int r = gather_samples(sort->ranks, &all);

	if (r == 0)
		r = sort_candidates(sort, &all);
	if (r == 0)
		r = choose_splitters(sort->ranks, &all);
	free(all.samples);
	free(all.samples_nbytes);
	free(all.candidates);
	return r;
}

/* --- Cuts --- */

/* Text of a run in memory, from the beginning of a block to that of block next_block. */
struct run_text {
	struct run *run;
	unsigned char *begin, *end;
	uint64_t next_block;
};

/* Read the next block. */
static int read_block(const struct line_sort *sort, struct run_text *text)
{
	const uint64_t nbytes = run_block_start(text->run, text->next_block + 1) -
				run_block_start(text->run, text->next_block);
	struct digest ignored = { 0 };
	int r;

	if (nbytes > sort->memory_nbytes - (size_t)(text->end - text->begin))
		return fail(-E2BIG, "internal error: a line does not fit in memory");
	r = run_read(text->run, text->next_block++, 1, text->end, &ignored);
	text->end += nbytes;
	return r;
}

/* Find the next delimiter from `from` on. *ret_found: NULL: the run has no more. */
static int find_delimiter(const struct line_sort *sort, struct run_text *text, unsigned char *from,
			  unsigned char **ret_found)
{
	int r = 0;

	for (;;) {
		*ret_found = memchr(from, sort->keys->delimiter, (size_t)(text->end - from));
		if (*ret_found || text->next_block == text->run->n_blocks)
			return 0;
		from = text->end;
		r = read_block(sort, text);
		if (r < 0)
			return r;
	}
}

/*
 * Read the first line that begins after the first delimiter of a block; of block 0, its first line.
 * *ret_line: bytes NULL: there is none.
 */
static int read_first_line(struct line_sort *sort, struct run *run, uint64_t block,
			   struct run_text *ret_text, struct line_view *ret_line)
{
	unsigned char *memory = line_block_text(sort->block), *line = memory, *end = NULL;
	int r = 0;

	*ret_text = (struct run_text){ run, memory, memory, block };
	*ret_line = (struct line_view){ 0 };
	if (block > 0) {
		r = find_delimiter(sort, ret_text, memory, &end);
		if (r < 0 || !end)
			return r;
		line = end + 1;
	}
	r = find_delimiter(sort, ret_text, line, &end);
	if (r == 0 && end)
		*ret_line = (struct line_view){ line, (size_t)(end - line) };
	return r;
}

/* Cut a run at a bound. *ret_cut: how many of its bytes come before. */
static int cut_run(struct line_sort *sort, struct run *run, struct line_view bound,
		   bool after_equals, uint64_t *ret_cut)
{
	uint64_t lo = 0, hi = run->n_blocks; /* the first lines of blocks before lo come before */
	unsigned char *end, *begin;
	struct run_text text;
	struct line_view line;
	int r;

	*ret_cut = 0;
	while (lo < hi) {
		const uint64_t i = lo + (hi - lo) / 2;
		int order = 1;

		r = read_first_line(sort, run, i, &text, &line);
		if (r < 0)
			return r;
		if (line.bytes)
			order = line_sort_compare(sort, line, bound);
		if (order < 0 || (order == 0 && after_equals))
			lo = i + 1;
		else
			hi = i;
	}
	if (lo == 0)
		return 0;
	/* The cut is between the first lines of two blocks. */
	r = read_first_line(sort, run, lo - 1, &text, &line);
	if (r == 0)
		r = find_delimiter(
			sort, &text,
			text.begin + (run_block_start(run, lo) - run_block_start(run, lo - 1)),
			&end);
	if (r < 0)
		return r;
	begin = (unsigned char *)line.bytes;
	end = line_sort_find_cut(sort, begin, end ? end + 1 : text.end, bound, after_equals);
	*ret_cut = run_block_start(run, lo - 1) + (uint64_t)(end - text.begin);
	return 0;
}

/* Cut the own runs at all splitters; the cuts are as in remote_runs_open(). */
static int cut_runs(struct line_sort *sort)
{
	struct line_ranks *ranks = sort->ranks;
	const size_t n = ranks->own_runs.n;
	int r = 0;

	ranks->cuts = calloc((ranks->n + (size_t)1) * n + 1, sizeof *ranks->cuts);
	if (!ranks->cuts)
		return fail(-ENOMEM, "no memory for the segments of %zu runs", n);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct run *run = ranks->own_runs.runs[i];

		for (size_t j = 0; j < ranks->n_splitters && r == 0; j++) {
			const struct line_splitter *splitter = &ranks->splitters[j];
			const bool after_equals =
				sort->keys->unique || ranks->rank < splitter->rank ||
				(ranks->rank == splitter->rank && i <= splitter->run);

			r = cut_run(sort, run, splitter->line, after_equals,
				    &ranks->cuts[(j + 1) * n + i]);
		}
		ranks->cuts[ranks->n * n + i] = run->n_items;
	}
	return r < 0 ? r : line_sort_check_scratch(sort);
}

/* --- Exchange --- */

/* What a rank has read, as it is sent to all. */
struct share {
	uint64_t is_present, begin, end; /* positions in the text of all inputs */
	uint64_t longest_nbytes;         /* of its lines */
};

/* Check that each line of the input is in one share: a share begins where the last one ended. */
static int check_shares(const struct line_ranks *ranks, const struct share *shares)
{
	uint64_t end = 0;

	for (unsigned i = 0; i < ranks->n; i++) {
		if (shares[i].is_present && shares[i].begin != end)
			return fail(-EIO,
				    "internal error: lines of rank %u begin at byte %" PRIu64
				    ", not at %" PRIu64 "; the output was not written",
				    i, shares[i].begin, end);
		if (shares[i].is_present)
			end = shares[i].end;
	}
	return 0;
}

/* A merge must have room for the longest line of all ranks. */
static int gather_shares(struct line_sort *sort)
{
	const struct line_ranks *ranks = sort->ranks;
	const struct share own = { .is_present = ranks->has_share,
				   .begin = sort->job.first_record,
				   .end = sort->input->share.position,
				   .longest_nbytes = sort->longest_nbytes };
	struct share *shares = calloc(ranks->n, sizeof *shares);
	int r = shares ? comm_allgather(ranks->comm, &own, sizeof own, shares) :
			 fail(-ENOMEM, "no memory for %u ranks", ranks->n);

	for (unsigned i = 0; i < ranks->n && r == 0; i++)
		sort->longest_nbytes = u64_max(sort->longest_nbytes, shares[i].longest_nbytes);
	if (r == 0 && ranks->rank == 0)
		r = check_shares(ranks, shares);
	free(shares);
	r = distributed_broadcast_status(ranks->comm, r);
	return r < 0 ? r : line_runs_check_longest(sort);
}

int line_ranks_exchange_runs(struct line_sort *sort)
{
	struct line_ranks *ranks = sort->ranks;
	int r = line_runs_open_spill(sort); /* other ranks ask for what is in it */

	if (sort->checkpoint)
		checkpoint_freeze_runs(sort->checkpoint->checkpoint);
	ranks->own_runs = sort->runs;
	sort->runs = (struct run_list){ 0 };
	if (r == 0)
		r = gather_shares(sort);
	if (r == 0)
		r = find_splitters(sort);
	if (r == 0)
		r = cut_runs(sort);
	if (r == 0)
		r = peer_memory_open(ranks->comm, !sort->spec->disable_shared_memory,
				     &ranks->peer_memory);
	if (r == 0)
		r = remote_runs_open(ranks->comm, ranks->peer_memory, &sort->job, &ranks->own_runs,
				     ranks->cuts, &ranks->remote);
	return r < 0 ? r : remote_runs_append(ranks->remote, &sort->runs);
}

/* --- Checking --- */

/* What a rank has checked, as it is sent to all. */
struct checked_share {
	uint64_t n_lines;
	uint64_t disorder; /* number of the line from 1; 0: none */
};

int line_ranks_agree_disorder(const struct line_sort *sort, struct line_disorder *disorder)
{
	const struct line_ranks *ranks = sort->ranks;
	const uint64_t n_header_lines = sort->params->n_header_lines;
	const struct checked_share own = {
		.n_lines = sort->totals.read.n_records - sort->input->share.n_more_read,
		.disorder = disorder->number ? disorder->number - n_header_lines : 0
	};
	struct checked_share *shares = calloc(ranks->n, sizeof *shares);
	uint64_t n_before = n_header_lines;
	unsigned i = 0;
	int r = shares ? comm_allgather(ranks->comm, &own, sizeof own, shares) :
			 fail(-ENOMEM, "no memory for %u ranks", ranks->n);

	for (; i < ranks->n && r == 0 && !shares[i].disorder; i++)
		n_before += shares[i].n_lines;
	disorder->number = r == 0 && i < ranks->n ? n_before + shares[i].disorder : 0;
	if (i != ranks->rank) {
		free(disorder->line);
		disorder->line = NULL;
	}
	free(shares);
	return r == 0 && disorder->number == 0 ?
		       distributed_check_manifests(ranks->comm, sort->input->part_inputs) :
		       r;
}

int line_ranks_check_block(struct line_sort *sort)
{
	const struct line_ranks *ranks = sort->ranks;
	const struct line_view first = line_block_first(sort->block);
	const struct line_view last = line_block_last(sort->block);
	int lower = -1, upper = -1;

	if (!first.bytes || ranks->n_splitters == 0)
		return 0;
	if (ranks->rank > 0)
		lower = line_sort_compare(sort, ranks->splitters[ranks->rank - 1].line, first);
	if (ranks->rank + 1 < ranks->n)
		upper = line_sort_compare(sort, last, ranks->splitters[ranks->rank].line);
	if (lower < 0 || (lower == 0 && !sort->keys->unique))
		if (upper <= 0)
			return 0;
	return fail(-EIO, "internal error: lines are in the partition of another rank");
}

/* --- The end --- */

/* Check that the inputs have not changed. The lowest rank that sees a change reports it. */
static int check_inputs(const struct line_sort *sort)
{
	struct captured_error error = { 0 };
	struct message_capture *capture;
	int r = message_capture_begin(&capture), state;

	if (r < 0)
		return r;
	state = line_input_check_state(sort->input);
	message_capture_end(capture, &error);
	r = distributed_elect_reporter(sort->ranks->comm, state < 0);
	if (r > 0)
		r = fail(state, "%s", error.text ? error.text : "an input has changed");
	free(error.text);
	return r;
}

int line_ranks_finish(struct line_sort *sort)
{
	int r = remote_runs_finish(sort->ranks->remote);

	if (r == 0)
		r = line_output_finish_ranks(sort);
	if (r == 0)
		r = distributed_check_manifests(sort->ranks->comm, sort->input->part_inputs);
	return r < 0 ? r : check_inputs(sort);
}

void line_ranks_abandon(const struct line_sort *sort, int r)
{
	if (sort->ranks)
		peer_memory_revoke(sort->ranks->peer_memory);
	comm_fail(sort->spec->comm, r);
}

void line_ranks_close(struct line_sort *sort)
{
	struct line_ranks *ranks = sort->ranks;

	if (!ranks)
		return;
	remote_runs_close(ranks->remote);
	peer_memory_close(ranks->peer_memory);
	run_list_free(&ranks->own_runs);
	pthread_mutex_destroy(&ranks->lock);
	free(ranks->cuts);
	free(ranks->samples);
	free(ranks->sample_text);
	free(ranks->splitters);
	free(ranks->splitter_text);
	free(ranks);
}
