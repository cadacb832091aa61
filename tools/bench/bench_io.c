/*
 * bench_io.c - how fast the disk and the page cache of a directory are, without sorting
 *
 * A lower bound for an external sort: it reads its input, writes it, reads that, and writes it
 * again ("copy twice"). All cases use io_queue.h, as gsort does. They differ in the operation, in
 * the use of the page cache, and in the number of requests in flight.
 *
 * Files have no names and vanish with the program. All data is synced before each case, so that no
 * case pays for the previous one. A cached case ends when the data is in the page cache, as a sort
 * does.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#include "io/file/io_queue.h"
#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/base/clock.h"
#include "tools/bench/bench.h"

enum { MAX_QUEUE_DEPTH = 32 };

enum io_operation { IO_OP_READ, IO_OP_WRITE, IO_OP_COPY, IO_OP_COPY_TWICE };

/* The state of the input, and how files are accessed. */
enum bench_io_mode {
	BENCH_IO_CACHED, /* through the page cache; the input is in it */
	BENCH_IO_COLD,   /* through the page cache; the input is not in it */
	BENCH_IO_DIRECT, /* with O_DIRECT */
};

static const struct io_case {
	enum io_operation operation;
	enum bench_io_mode mode;
	bool preallocates; /* space of output files */
	unsigned depth;
} cases[] = {
	{ IO_OP_READ, BENCH_IO_CACHED, false, 1 },
	{ IO_OP_READ, BENCH_IO_CACHED, false, 2 },
	{ IO_OP_READ, BENCH_IO_CACHED, false, 4 },
	{ IO_OP_READ, BENCH_IO_CACHED, false, 8 },
	{ IO_OP_READ, BENCH_IO_COLD, false, 1 },
	{ IO_OP_READ, BENCH_IO_COLD, false, 2 },
	{ IO_OP_READ, BENCH_IO_COLD, false, 4 },
	{ IO_OP_READ, BENCH_IO_COLD, false, 8 },
	{ IO_OP_READ, BENCH_IO_DIRECT, false, 1 },
	{ IO_OP_READ, BENCH_IO_DIRECT, false, 4 },
	{ IO_OP_READ, BENCH_IO_DIRECT, false, 8 },
	{ IO_OP_READ, BENCH_IO_DIRECT, false, 16 },
	{ IO_OP_WRITE, BENCH_IO_CACHED, false, 1 },
	{ IO_OP_WRITE, BENCH_IO_CACHED, false, 2 },
	{ IO_OP_WRITE, BENCH_IO_CACHED, false, 4 },
	{ IO_OP_WRITE, BENCH_IO_CACHED, true, 1 },
	{ IO_OP_WRITE, BENCH_IO_CACHED, true, 2 },
	{ IO_OP_WRITE, BENCH_IO_CACHED, true, 4 },
	{ IO_OP_WRITE, BENCH_IO_DIRECT, true, 1 },
	{ IO_OP_WRITE, BENCH_IO_DIRECT, true, 4 },
	{ IO_OP_WRITE, BENCH_IO_DIRECT, true, 8 },
	{ IO_OP_WRITE, BENCH_IO_DIRECT, true, 16 },
	{ IO_OP_COPY, BENCH_IO_CACHED, true, 2 },
	{ IO_OP_COPY, BENCH_IO_COLD, true, 4 },
	{ IO_OP_COPY, BENCH_IO_DIRECT, true, 8 },
	{ IO_OP_COPY_TWICE, BENCH_IO_CACHED, true, 2 },
	{ IO_OP_COPY_TWICE, BENCH_IO_COLD, true, 4 },
	{ IO_OP_COPY_TWICE, BENCH_IO_DIRECT, true, 8 },
};

enum { N_CASES = sizeof cases / sizeof cases[0] };

static const char *const operation_names[] = {
	[IO_OP_READ] = "read",
	[IO_OP_WRITE] = "write",
	[IO_OP_COPY] = "copy",
	[IO_OP_COPY_TWICE] = "copy twice",
};

static const char *const mode_names[] = {
	[BENCH_IO_CACHED] = "cached",
	[BENCH_IO_COLD] = "cold",
	[BENCH_IO_DIRECT] = "direct",
};

struct io_options {
	struct bench_common_options common;
	uint64_t request_nbytes; /* of a transfer */
	const char *only;        /* one operation; NULL: all */
};

struct case_times {
	unsigned n;
	uint64_t ns[BENCH_MAX_REPEATS];
};

struct io_bench {
	const struct io_options *options;
	struct file input;
	unsigned char *memory; /* 2 * MAX_QUEUE_DEPTH requests */
	struct case_times times[N_CASES];
};

/* --- files --- */

static int make_unnamed_file(const struct io_bench *bench, struct file *ret_file)
{
	const int r = file_open(&syscalls_plain, AT_FDCWD, bench->options->common.dir,
				O_RDWR | O_TMPFILE, 0600, ret_file);

	return r < 0 ? fail(r, "%s: cannot create an unnamed file: %m",
			    bench->options->common.dir) :
		       0;
}

/* Fill the input with incompressible bytes. */
static int fill_input(struct io_bench *bench)
{
	uint64_t *words = (uint64_t *)bench->memory, x = 1;
	const uint64_t nbytes = bench->options->common.nbytes,
		       request_nbytes = bench->options->request_nbytes;
	int r = 0;

	for (uint64_t offset = 0; offset < nbytes && r == 0; offset += request_nbytes) {
		for (size_t i = 0; i < request_nbytes / sizeof *words; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			words[i] = x;
		}
		r = file_write_at(&bench->input, offset, words, request_nbytes);
	}
	return r < 0 ? fail(r, "%s: write: %m", bench->options->common.dir) : 0;
}

/* Sync the input, and load it into the page cache or evict it. */
static int prepare_input(struct io_bench *bench, enum bench_io_mode mode)
{
	const uint64_t request_nbytes = bench->options->request_nbytes;
	int r = syncfs(bench->input.fd) < 0 ? -errno : 0;

	if (mode != BENCH_IO_CACHED && r == 0)
		r = -posix_fadvise(bench->input.fd, 0, 0, POSIX_FADV_DONTNEED);
	for (uint64_t offset = 0;
	     mode == BENCH_IO_CACHED && offset < bench->options->common.nbytes && r == 0;
	     offset += request_nbytes)
		r = file_read_at(&bench->input, offset, bench->memory, request_nbytes);
	return r < 0 ? fail(r, "%s: cannot prepare the input: %m", bench->options->common.dir) : 0;
}

/* --- moving bytes --- */

/*
 * A copy from one file to another; one of them may be NULL. Both are open in the mode of the case.
 */
struct file_copy {
	const struct file *from, *to;
	struct io_queue *queue;
	unsigned n_slots;
	uint64_t n_requests;
	size_t request_nbytes;
	unsigned char *memory;
	struct io_request requests[2 * MAX_QUEUE_DEPTH];
};

static void copy_submit(struct file_copy *copy, uint64_t i, const struct file *file, bool is_write)
{
	const unsigned slot = (unsigned)(i % copy->n_slots);

	copy->requests[slot] = (struct io_request){
		.file = file,
		.is_write = is_write,
		.offset = i * copy->request_nbytes,
		.buffer = copy->memory + slot * copy->request_nbytes,
		.nbytes = copy->request_nbytes,
	};
	io_queue_submit(copy->queue, &copy->requests[slot], 1);
}

static int copy_wait(struct file_copy *copy, uint64_t i)
{
	return io_queue_wait(copy->queue, &copy->requests[i % copy->n_slots]);
}

/*
 * A request is submitted, turned from read to write n_slots / 2 requests later (if there are two
 * files), and awaited when its slot is needed again.
 */
static int copy_run(struct file_copy *copy)
{
	const uint64_t n = copy->n_requests;
	const uint64_t write_delay = copy->n_slots / (copy->from && copy->to ? 2 : 1);
	int r = 0, wait_result;

	for (uint64_t i = 0; i < n + copy->n_slots; i++) {
		if (i >= copy->n_slots && i - copy->n_slots < n) {
			wait_result = copy_wait(copy, i - copy->n_slots);
			r = r < 0 ? r : wait_result;
		}
		if (i < n)
			copy_submit(copy, i, copy->from ? copy->from : copy->to, !copy->from);
		if (copy->from && copy->to && i >= write_delay && i - write_delay < n) {
			wait_result = copy_wait(copy, i - write_delay);
			r = r < 0 ? r : wait_result;
			copy_submit(copy, i - write_delay, copy->to, true);
		}
	}
	return r;
}

static int copy_file(struct io_bench *bench, const struct io_case *io_case, const struct file *from,
		     const struct file *to)
{
	const struct io_options *options = bench->options;
	const unsigned n_stages = from && to ? 2 : 1;
	struct file_copy copy = {
		.from = from,
		.to = to,
		.n_slots = n_stages * io_case->depth,
		.n_requests = options->common.nbytes / options->request_nbytes,
		.request_nbytes = options->request_nbytes,
		.memory = bench->memory,
	};
	int r = io_queue_open(n_stages * io_case->depth, &copy.queue);

	if (r < 0)
		return fail(r, "cannot open an I/O queue: %m");
	r = copy_run(&copy);
	io_queue_close(copy.queue);
	return r < 0 ? fail(r, "%s: %m", options->common.dir) : 0;
}

/* Open the file in a mode. Returns -EINVAL or -EOPNOTSUPP without a message if that is refused. */
static int open_in_mode(const struct file *file, enum bench_io_mode mode, struct file *ret_file)
{
	if (mode == BENCH_IO_DIRECT)
		return file_reopen(file, O_RDWR | O_DIRECT, ret_file);
	return file_reopen(file, O_RDWR, ret_file);
}

/* Write a new file from another one or, if `from` is NULL, from memory. */
static int write_new(struct io_bench *bench, const struct io_case *io_case, const struct file *from,
		     struct file *ret_file)
{
	struct file file;
	int r = make_unnamed_file(bench, &file);

	if (r < 0)
		return r;
	r = open_in_mode(&file, io_case->mode, ret_file);
	file_close(&file);
	if (r == 0 && io_case->preallocates)
		r = file_preallocate(ret_file, 0, bench->options->common.nbytes);
	return r < 0 ? r : copy_file(bench, io_case, from, ret_file);
}

static int run_operation(struct io_bench *bench, const struct io_case *io_case,
			 const struct file *input, struct file *written)
{
	int r;

	if (io_case->operation == IO_OP_READ)
		return copy_file(bench, io_case, input, NULL);
	r = write_new(bench, io_case, io_case->operation == IO_OP_WRITE ? NULL : input,
		      &written[0]);
	if (r == 0 && io_case->operation == IO_OP_COPY_TWICE)
		r = write_new(bench, io_case, &written[0], &written[1]);
	return r;
}

/* Returns 1 if the file system refuses direct I/O. */
static int run_case(struct io_bench *bench, unsigned id)
{
	const struct io_case *io_case = &cases[id];
	struct case_times *times = &bench->times[id];
	struct file input, written[2] = { { .fd = -1 }, { .fd = -1 } };
	uint64_t begin_ns;
	int r = open_in_mode(&bench->input, io_case->mode, &input);

	if (r == -EINVAL && io_case->mode == BENCH_IO_DIRECT)
		return 1;
	if (r < 0)
		return fail(r, "%s: cannot open: %m", bench->options->common.dir);
	r = prepare_input(bench, io_case->mode);
	begin_ns = clock_now_ns();
	if (r == 0)
		r = run_operation(bench, io_case, &input, written);
	times->ns[times->n++] = clock_now_ns() - begin_ns;
	/* Freeing space is not timed: it depends on how much of it was on the disk. */
	file_close(&written[0]);
	file_close(&written[1]);
	file_close(&input);
	return r;
}

static bool is_selected(const struct io_bench *bench, unsigned id)
{
	const char *only = bench->options->only;

	return !only || strcmp(only, operation_names[cases[id].operation]) == 0;
}

static int run_cases(struct io_bench *bench)
{
	int r = 0;

	for (unsigned round = 0; round < bench->options->common.n_repeats; round++)
		for (unsigned id = 0; id < N_CASES && r >= 0; id++)
			if (is_selected(bench, id))
				r = run_case(bench, id);
	return r < 0 ? r : 0;
}

/* --- results --- */

static double median_s(const struct case_times *times)
{
	uint64_t ns[BENCH_MAX_REPEATS];

	memcpy(ns, times->ns, sizeof ns);
	return bench_median_ns(ns, times->n) * 1e-9;
}

static void print_table(const struct io_bench *bench)
{
	printf("%-12s %-8s %-10s %6s %10s %8s\n", "", "", "reserved", "depth", "seconds", "MB/s");
	for (unsigned id = 0; id < N_CASES; id++) {
		const struct io_case *io_case = &cases[id];
		const struct case_times *times = &bench->times[id];

		if (!is_selected(bench, id))
			continue;
		printf("%-12s %-8s %-10s %6u ", operation_names[io_case->operation],
		       mode_names[io_case->mode], io_case->preallocates ? "yes" : "no",
		       io_case->depth);
		if (times->n)
			printf("%10.4f %8.0f\n", median_s(times),
			       (double)bench->options->common.nbytes * 1e-6 / median_s(times));
		else
			printf("%10s\n", "refused");
	}
}

static void print_json_case(const struct io_bench *bench, unsigned id, FILE *stream)
{
	const struct io_case *io_case = &cases[id];
	const struct case_times *times = &bench->times[id];

	fprintf(stream,
		"\n    {\"name\": \"%s\", \"way\": \"%s\", "
		"\"reserved\": %s, \"depth\": %u, \"seconds\": [",
		operation_names[io_case->operation], mode_names[io_case->mode],
		io_case->preallocates ? "true" : "false", io_case->depth);
	for (unsigned i = 0; i < times->n; i++)
		fprintf(stream, "%s%.6f", i ? ", " : "", (double)times->ns[i] * 1e-9);
	fprintf(stream, "]}");
}

static void print_json(const struct io_bench *bench, FILE *stream)
{
	fprintf(stream,
		"{\n  \"version\": \"%s\",\n  \"processors\": %u,\n  \"size_bytes\": %" PRIu64
		",\n  \"request_bytes\": %" PRIu64 ",\n  \"cases\": [",
		GSORT_VERSION, cpus_available(""), bench->options->common.nbytes,
		bench->options->request_nbytes);
	for (unsigned id = 0; id < N_CASES; id++) {
		fputs(id ? "," : "", stream);
		print_json_case(bench, id, stream);
	}
	fprintf(stream, "\n  ]\n}\n");
}

static int bench_directory(struct io_bench *bench)
{
	const size_t memory_nbytes = 2 * MAX_QUEUE_DEPTH * bench->options->request_nbytes;
	int r;

	bench->memory = mmap(NULL, memory_nbytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (bench->memory == MAP_FAILED)
		return fail(-errno, "no memory for %d requests: %m; use a smaller --request",
			    2 * MAX_QUEUE_DEPTH);
	r = make_unnamed_file(bench, &bench->input);
	if (r == 0)
		r = fill_input(bench);
	if (r == 0)
		r = run_cases(bench);
	file_close(&bench->input);
	munmap(bench->memory, memory_nbytes);
	if (r == 0)
		print_table(bench);
	return r;
}

static const struct option_spec specs[] = {
	BENCH_ROW_SIZE("size of the files (default 1G); needs three times as much space"),
	{ "request", 0, "SIZE", "size of a transfer (default 1M)", .parse = option_parse_size,
	  OPTION_MEMBER(struct io_options, request_nbytes) },
	{ "only", 0, "OPERATION", "one of: read, write, copy, 'copy twice' (default: all)",
	  .parse = option_parse_text, OPTION_MEMBER(struct io_options, only) },
	BENCH_ROW_DIR("directory to measure (default $TMPDIR, else /tmp)"),
	BENCH_ROW_REPEAT("number of rounds (default 3)"),
	BENCH_ROW_JSON,
	{ BUILTIN_OPTIONS_ROW_HELP },
	{ BUILTIN_OPTIONS_ROW_VERSION },
};

static const struct tool tool = {
	.name = "gsort-bench",
	.usage = "gsort-bench io [OPTION]...\n"
		 "Time reading and writing in a directory: cached, cold and direct.\n",
	.options = { .specs = specs, .n_specs = sizeof specs / sizeof specs[0] },
};

static bool is_operation_name(const char *name)
{
	for (size_t i = 0; i < sizeof operation_names / sizeof operation_names[0]; i++)
		if (strcmp(name, operation_names[i]) == 0)
			return true;
	return false;
}

static int check_options(struct io_options *options)
{
	if (options->only && !is_operation_name(options->only))
		return fail(-EINVAL, "--only: unknown operation '%s'", options->only);
	if (options->request_nbytes < 4096 || options->request_nbytes % 4096 != 0)
		return fail(-EINVAL, "--request: must be a multiple of 4 KiB");
	options->common.nbytes -= options->common.nbytes % options->request_nbytes;
	if (options->common.nbytes == 0)
		return fail(-EINVAL, "--size: must be at least one request of %" PRIu64 " bytes",
			    options->request_nbytes);
	return 0;
}

static int bench_and_print(void *options, FILE *json)
{
	static struct io_bench bench;
	int r = check_options(options);

	bench.options = options;
	if (r == 0)
		r = bench_directory(&bench);
	if (r == 0 && json)
		print_json(&bench, json);
	return r;
}

int bench_io(int argc, char **argv)
{
	struct io_options options = {
		.common = { .nbytes = UINT64_C(1) << 30, .n_repeats = 3 },
		.request_nbytes = 1 << 20,
	};

	return bench_run(&tool, argc, argv, &options.common, bench_and_print);
}
