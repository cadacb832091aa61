/*
 * calibrate - how fast the machine can do what each stage does (see calibrate.h)
 *
 * Files are read and written as the sort does it, in parts and by its threads; what is written has
 * no name and is given back. What the back end does is measured by calibrate_device.c.
 */
#include "src/cost/calibrate.h"

#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/cost/calibrate_device.h"
#include "src/plan/cache_policy.h"

enum {
	N_PARTS = 64, /* of a file, */
	LEAST_PART_NBYTES = 4 << 10,
	MOST_PART_NBYTES = 4 << 20,
	MOST_THREADS = 16,
	LEAST_TRIAL_NBYTES = 1 << 20,
	PIPE_NBYTES = 256 << 10,
	GROWTH = 4,       /* from one measurement to the next */
	BUDGET_PART = 10, /* of a sort's time, after it */
};

/* What takes less is over before anybody asks what held it up. */
static const uint64_t least_phase_ns = UINT64_C(1000000000);

/* What is measured, for whom, and by when. */
struct survey {
	const struct job *job;
	const struct sort_spec *spec;
	const struct link_request *request;
	uint64_t end_ns;
	struct link_rates *rates;
};

/* Work that threads share: parts, taken one by one, until the time is over. */
struct parts {
	int (*work)(struct parts *parts, uint32_t part);
	uint64_t part_nbytes;
	uint64_t end_ns;
	uint32_t n;
	_Atomic uint32_t next, n_done;
	_Atomic int error;

	struct input *input;
	bool is_second; /* reading: other parts than the first time, which are in the cache now */
	struct spill *spill;
	struct spill_extent extents[N_PARTS];
	char *data; /* part_nbytes each */
};

static void do_parts(void *context)
{
	struct parts *parts = context;
	uint32_t part;

	while (clock_now_ns() < parts->end_ns && (part = parts->next++) < parts->n) {
		const int r = parts->work(parts, part);

		if (r < 0)
			parts->error = r;
		parts->n_done++;
	}
}

/* Bytes per second of n parts, or of those done in time, by n_threads; 0 if one failed. */
static double time_parts(struct parts *parts, uint32_t n, uint32_t n_threads,
			 int (*work)(struct parts *parts, uint32_t part))
{
	const uint64_t begin_ns = clock_now_ns();

	parts->work = work;
	parts->n = n;
	parts->next = 0;
	parts->n_done = 0;
	crew_share(n_threads < MOST_THREADS ? n_threads : MOST_THREADS, do_parts, parts);
	if (parts->error)
		return 0;
	return (double)(parts->n_done * parts->part_nbytes) /
	       ((double)(clock_now_ns() - begin_ns) * 1e-9);
}

static char *part_data(const struct parts *parts, uint32_t part)
{
	return parts->data + part * parts->part_nbytes;
}

/* Parts spread over the input: in the cache or not, as they are. */
static int read_part(struct parts *parts, uint32_t part)
{
	const uint64_t room = input_total_nbytes(parts->input) - parts->part_nbytes;
	const uint64_t step = room / parts->n;

	return input_read_at(parts->input, step * part + (parts->is_second ? step / 2 : 0),
			     part_data(parts, part), parts->part_nbytes);
}

static int write_part(struct parts *parts, uint32_t part)
{
	return spill_write(parts->spill, part_data(parts, part), parts->part_nbytes,
			   &parts->extents[part]);
}

static int read_back(struct parts *parts, uint32_t part)
{
	return spill_read(parts->spill, parts->extents[part], part_data(parts, part));
}

/* Parts of so many bytes in all, to be done by end_ns; without memory. */
static struct parts parts_of(uint64_t nbytes, uint64_t end_ns)
{
	struct parts parts = { .part_nbytes = nbytes / N_PARTS, .end_ns = end_ns };

	if (parts.part_nbytes > MOST_PART_NBYTES)
		parts.part_nbytes = MOST_PART_NBYTES;
	parts.part_nbytes -= parts.part_nbytes % LEAST_PART_NBYTES;
	return parts;
}

/*
 * To be read by so many threads: as long as they can be, since the kernel reads ahead behind each
 * of them, which may be many times as much as a short one has.
 */
static struct parts reads_of(uint64_t nbytes, uint32_t n_readers, uint64_t end_ns)
{
	struct parts parts = parts_of(nbytes / n_readers * N_PARTS, end_ns);
	const uint64_t n = parts.part_nbytes ? nbytes / parts.part_nbytes : 0;

	parts.n = n < N_PARTS ? (uint32_t)n : N_PARTS;
	return parts;
}

/* Parts with memory, or without if there is none. */
static struct parts parts_open(uint64_t nbytes, uint64_t end_ns)
{
	struct parts parts = parts_of(nbytes, end_ns);

	if (parts.part_nbytes)
		parts.data = aligned_alloc(SPILL_ALIGN_NBYTES, N_PARTS * parts.part_nbytes);
	if (parts.data)
		memset(parts.data, 1, N_PARTS * parts.part_nbytes);
	return parts;
}

/* Takes the rate if there is one. */
static bool note_rate(const struct survey *survey, enum stage stage, double rate)
{
	if (rate > 0)
		survey->rates->rates[stage] = rate;
	return rate > 0;
}

/* Of the input, the part that goes to memory which nothing has touched yet. */
static double fresh_part(const struct plan *plan)
{
	const uint64_t n = plan->expected_nbytes / plan->record_nbytes;
	const double room = (double)plan->n_chunks * (double)plan->chunk_records;

	return plan->n_chunks && room < (double)n ? room / (double)n : 1;
}

static double combine(double fresh, double warm, double part)
{
	return fresh > 0 && warm > 0 ? 1 / (part / fresh + (1 - part) / warm) : 0;
}

/*
 * Reading to memory as chunks have it. The first time its pages have to be had from the system,
 * which takes longer than to copy.
 */
static double time_reading(const struct survey *survey, uint64_t nbytes,
			   double (*time)(struct parts *parts, uint32_t n_threads))
{
	const struct job *job = survey->job;
	struct parts parts = reads_of(nbytes, job->plan.n_readers, survey->end_ns);
	const size_t room = parts.n * parts.part_nbytes;
	double fresh, warm = 0;
	void *memory;

	parts.input = job->input;
	if (room == 0 || device_alloc(job_device(job), MEMORY_HOST, room, &memory) < 0)
		return 0;
	parts.data = memory;
	fresh = time(&parts, job->plan.n_readers);
	parts.is_second = true;
	if (fresh > 0)
		warm = time(&parts, job->plan.n_readers);
	device_release(job_device(job), MEMORY_HOST, memory, room);
	return combine(fresh, warm, fresh_part(&job->plan));
}

static double time_input(struct parts *parts, uint32_t n_threads)
{
	if (input_total_nbytes(parts->input) < 2 * parts->part_nbytes)
		return 0;
	return time_parts(parts, parts->n, n_threads, read_part);
}

/* Somebody who writes to a pipe as fast as it takes it. */
struct producer {
	struct file file;
	uint64_t nbytes;
	const struct parts *parts;
};

static void *produce(void *argument)
{
	static const char data[PIPE_NBYTES];
	struct producer *producer = argument;
	sigset_t before;
	int r = 0;

	/* That nobody reads any more is an error then, and no end of the process. */
	thread_hold_signals(&before);
	while (producer->nbytes && r == 0 && clock_now_ns() < producer->parts->end_ns) {
		const size_t n = producer->nbytes < sizeof data ? producer->nbytes : sizeof data;

		r = file_write_next(&producer->file, data, n);
		producer->nbytes -= n;
	}
	file_close(&producer->file);
	return NULL;
}

/* All that comes; the rate of it. */
static double consume(struct parts *parts, const struct file *file)
{
	const uint64_t begin_ns = clock_now_ns();
	uint64_t done_nbytes = 0;
	size_t got = 1;

	for (uint32_t part = 0; part < parts->n && got > 0; part++) {
		if (file_read_next(file, part_data(parts, part), parts->part_nbytes, -1, &got) < 0)
			return 0;
		done_nbytes += got;
	}
	return (double)done_nbytes / ((double)(clock_now_ns() - begin_ns) * 1e-9);
}

static double time_pipe(struct parts *parts, uint32_t n_threads)
{
	struct file reading = { .calls = &syscalls_plain };
	struct producer producer = { .nbytes = parts->n * parts->part_nbytes, .parts = parts };
	pthread_t thread;
	double rate = 0;
	int fds[2];

	(void)n_threads; /* one after the other */
	if (pipe2(fds, O_CLOEXEC) < 0)
		return 0;
	reading.fd = fds[0];
	producer.file = (struct file){ .calls = &syscalls_plain, .fd = fds[1] };
	file_enlarge_pipe(&reading);
	if (thread_start(produce, &producer, 0, &thread) == 0) {
		rate = consume(parts, &reading);
		file_close(&reading);
		pthread_join(thread, NULL);
	} else {
		file_close(&reading);
		file_close(&producer.file);
	}
	return rate;
}

static bool measure_input(const struct survey *survey, uint64_t nbytes)
{
	const bool is_pipe = input_total_nbytes(survey->job->input) == INPUT_SIZE_UNKNOWN;

	return note_rate(survey, STAGE_READ,
			 time_reading(survey, nbytes, is_pipe ? time_pipe : time_input));
}

/* Is there room for some times of what is measured? */
static bool has_room(struct spill *spill, uint64_t nbytes)
{
	uint64_t free_nbytes;

	return spill_free_nbytes(spill, &free_nbytes) == 0 && free_nbytes / 4 >= nbytes;
}

/* Writing to new files in the directories, unless they are nearly full, and reading from there. */
static bool measure_directories(const struct survey *survey, const char *const *directories,
				size_t n, enum page_cache_use use, struct parts *parts,
				enum stage write, enum stage read)
{
	const struct job *job = survey->job;
	double rate = 0;

	if (!parts->data ||
	    spill_open(job->io, directories, n, SPILL_UNLIMITED, 0, &parts->spill) < 0)
		return false;
	page_cache_tell_spill(use, parts->spill);
	spill_allocate_late(parts->spill);
	if (has_room(parts->spill, N_PARTS * parts->part_nbytes))
		rate = time_parts(parts, N_PARTS, job->plan.n_writers, write_part);
	if (note_rate(survey, write, rate) && read != write)
		note_rate(survey, read, time_parts(parts, parts->n_done, 1, read_back));
	spill_close(parts->spill);
	return rate > 0;
}

static bool measure_temporary(const struct survey *survey, uint64_t nbytes)
{
	const struct job *job = survey->job;
	const struct sort_spec *spec = survey->spec;
	const uint64_t stored_nbytes =
		job->plan.input_nbytes == PLAN_SIZE_UNKNOWN ? 0 : job->plan.temporary_nbytes;
	struct parts parts;
	bool measured;

	if (job->plan.fits || !spec->temp_dirs)
		return false;
	parts = parts_open(nbytes, survey->end_ns);
	measured = measure_directories(survey, spec->temp_dirs, spec->n_temp_dirs,
				       page_cache_use(job, stored_nbytes), &parts, STAGE_SPILL,
				       STAGE_FETCH);
	free(parts.data);
	return measured;
}

static enum page_cache_use use_for_output(const struct job *job)
{
	const uint64_t nbytes = job->plan.input_nbytes;

	return page_cache_use(job, nbytes == PLAN_SIZE_UNKNOWN ? 0 : nbytes);
}

/* Where the output will lie; of a pipe nobody can say more than of a file here. */
static bool measure_output(const struct survey *survey, uint64_t nbytes)
{
	char *copy = strdup(survey->spec->output_path ? survey->spec->output_path : ".");
	const char *directory = copy ? dirname(copy) : NULL;
	struct parts parts;
	bool measured;

	if (!directory)
		return false;
	parts = parts_open(nbytes, survey->end_ns);
	measured = measure_directories(survey, &directory, 1, use_for_output(survey->job), &parts,
				       STAGE_WRITE, STAGE_WRITE);
	free(parts.data);
	free(copy);
	return measured;
}

static bool measure_device(const struct survey *survey, uint64_t nbytes)
{
	return device_rates_measure(survey->job, nbytes, survey->rates);
}

#define STAGE_BIT(STAGE) (1u << STAGE_##STAGE)

static const struct subject {
	uint32_t stages; /* any of which asks for it */
	bool (*measure)(const struct survey *survey, uint64_t nbytes);
} subjects[] = {
	{ STAGE_BIT(READ), measure_input },
	{ STAGE_BIT(SPILL) | STAGE_BIT(FETCH), measure_temporary },
	{ STAGE_BIT(WRITE), measure_output },
	{ STAGE_BIT(UPLOAD) | STAGE_BIT(ENCODE) | STAGE_BIT(SORT) | STAGE_BIT(MERGE) |
		  STAGE_BIT(DECODE) | STAGE_BIT(DOWNLOAD),
	  measure_device },
};

enum { N_SUBJECTS = sizeof subjects / sizeof subjects[0] };

static bool is_wanted(const struct subject *subject, const struct link_request *request)
{
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (request->wanted[stage] && subject->stages >> stage & 1)
			return true;
	return false;
}

/* With more and more bytes, as long as the next measurement can be expected to end in time. */
static void measure_growing(struct survey *survey, const struct subject *subject,
			    uint64_t budget_ns)
{
	const uint64_t most_nbytes = survey->request->nbytes;
	uint64_t begin_ns = clock_now_ns();
	uint64_t nbytes = most_nbytes < LEAST_TRIAL_NBYTES ? most_nbytes : LEAST_TRIAL_NBYTES;

	survey->end_ns = begin_ns + budget_ns;
	for (; nbytes <= most_nbytes; nbytes *= GROWTH) {
		const uint64_t last_ns = begin_ns;

		if (!subject->measure(survey, nbytes))
			return;
		begin_ns = clock_now_ns();
		if (begin_ns + (GROWTH + 1) * (begin_ns - last_ns) > survey->end_ns)
			return;
	}
}

uint64_t rates_trial_nbytes(const struct plan *plan)
{
	if (!plan->copies || plan->memory_nbytes < plan->device_nbytes)
		return plan->memory_nbytes / 4;
	return plan->device_nbytes / 4;
}

bool rates_request_after(const struct stats_totals *totals, uint64_t nbytes,
			 struct link_request *ret_request)
{
	struct link_request request = {
		.nbytes = nbytes,
		.budget_ns = totals->elapsed_ns / BUDGET_PART,
	};
	bool is_any_wanted = false;

	for (enum phase i = 0; i < N_PHASES; i++)
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			if (totals->phases[i].elapsed_ns >= least_phase_ns &&
			    totals->phases[i].stages[stage].nbytes > 0)
				request.wanted[stage] = is_any_wanted = true;
	*ret_request = request;
	return is_any_wanted;
}

void rates_measure(const struct job *job, const struct sort_spec *spec,
		   const struct link_request *request, struct link_rates *ret_rates)
{
	const uint64_t end_ns = clock_now_ns() + request->budget_ns;
	struct messages *before = messages_enter(NULL); /* what cannot be measured is no failure */
	struct survey survey = {
		.job = job,
		.spec = spec,
		.request = request,
		.rates = ret_rates,
	};

	*ret_rates = (struct link_rates){ 0 };
	for (size_t i = 0; i < N_SUBJECTS; i++) {
		const uint64_t now_ns = clock_now_ns();

		if (is_wanted(&subjects[i], request) && now_ns < end_ns)
			measure_growing(&survey, &subjects[i],
					(end_ns - now_ns) / (N_SUBJECTS - i));
	}
	messages_enter(before);
}
