/*
 * test_input - files and pipes are one stream of whole records, each read once
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "src/base/thread.h"
#include "tests/support/input_fixture.h"
#include "tests/support/open_input.h"
#include "tests/support/unit_test.h"

/* Make a sparse file, which stays open. Its name goes to `path`. */
static int make_sparse(uint64_t nbytes, char path[static 32])
{
	const int fd = memfd_create("sparse", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, (off_t)nbytes), 0);
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

static void refuse_sum(const char *const *paths, size_t n)
{
	struct input *input;

	captured_messages_reset(true);
	assert_int_equal(input_open(&syscalls_plain, paths, n, 1, &input), -EFBIG);
	assert_non_null(strstr(captured_messages_error(), paths[n - 1]));
}

/* If the sum wrapped around, it would look like a valid size. */
DIRECTORY_TEST(sizes_that_sum_up_beyond_64_bits_are_refused)
{
	char large[32], one[32], ten[32];
	const int fds[] = { make_sparse(INT64_MAX, large), make_sparse(1, one),
			    make_sparse(10, ten) };
	const char *const and_one[] = { large, large, one }, *const and_ten[] = { large, large,
										  ten };
	struct input *input;

	assert_int_equal(input_open(&syscalls_plain, and_one, 2, 1, &input), 0);
	assert_int_equal(input_total_nbytes(input), UINT64_MAX - 1);
	input_close(input);
	refuse_sum(and_one, 3); /* the sum would mean an unknown size */
	refuse_sum(and_ten, 3);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static struct {
	struct input *input;
	atomic_uchar times_seen[N];
} shared;

static void *read_some(void *arg)
{
	unsigned char buffer[10 * INPUT_RECORD_NBYTES];
	uint64_t position;
	size_t n;

	do {
		if (input_read(shared.input, buffer, sizeof buffer, &position, &n) < 0)
			abort();
		for (size_t i = 0; i < n; i++) {
			atomic_fetch_add(&shared.times_seen[position + i], 1);
			if (buffer[i] != input_bytes[position + i])
				abort();
		}
	} while (n > 0);
	return arg;
}

static void assert_each_byte_read_once(const char *const *paths, size_t n)
{
	pthread_t threads[3];

	memset(&shared, 0, sizeof shared);
	shared.input = open_input(paths, n);
	for (int i = 0; i < 3; i++)
		assert_int_equal(thread_start(read_some, NULL, 0, &threads[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(shared.times_seen[i], 1);
	input_close(shared.input);
}

DIRECTORY_TEST(every_byte_goes_to_one_of_several_readers)
{
	const char *const files[] = { write_input_part("a", 0, 1500),
				      write_input_part("b", 1500, N - 1500) };
	const char *const with_pipe[] = { files[0], fixture_path("fifo") };
	struct pipe_feed f = { .fifo = with_pipe[1], .offset = 1500, .nbytes = N - 1500 };

	assert_each_byte_read_once(files, 2);
	assert_int_equal(mkfifo(with_pipe[1], 0600), 0);
	start_pipe_feed(&f);
	assert_each_byte_read_once(with_pipe, 2);
	pthread_join(f.thread, NULL);
}

/* A short read drops the rest of a packet, and packets end at any offset. */
DIRECTORY_TEST(packets_of_a_pipe_are_read_whole)
{
	static unsigned char bytes[60000], back[6000];
	const char *const paths[] = { "-" };
	struct input *input;
	uint64_t position;
	int ends[2];
	size_t n;

	fill_pattern(bytes, sizeof bytes, 3);
	assert_int_equal(pipe2(ends, O_DIRECT), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 1 << 18) >= 1 << 18);
	for (size_t at = 0; at < sizeof bytes; at += 1000)
		assert_int_equal(write(ends[1], bytes + at, 1000), 1000);
	close(ends[1]);
	replace_stdin(ends[0]);
	input = open_input(paths, 1);
	for (size_t at = 0; at < sizeof bytes; at += n) {
		assert_int_equal(input_read(input, back, 5001, &position, &n), 0);
		assert_int_equal(position, at);
		assert_int_equal(n, at + 5001 < sizeof bytes ? 5001 : sizeof bytes - at);
		assert_memory_equal(back, bytes + at, n);
	}
	input_close(input);
	restore_stdin();
}

DIRECTORY_TEST(stdin_with_o_direct_is_read_unaligned)
{
	const char *const paths[] = { "-" };
	const int fd = open(write_input_part("a", 0, N), O_RDONLY | O_DIRECT);
	struct input *input;

	if (fd < 0)
		skip();
	replace_stdin(fd);
	input = open_input(paths, 1);
	assert_stream(input, 30 * INPUT_RECORD_NBYTES, N);
	input_close(input);
	assert_true(fcntl(STDIN_FILENO, F_GETFL) & O_DIRECT); /* restored */
	restore_stdin();
}

/* A short read drops the rest of a message, which may have any length. */
DIRECTORY_TEST(socket_of_messages_is_refused)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	replace_stdin(ends[0]);
	assert_int_equal(assert_input_open_fails("-"), -ENOTSUP);
	assert_non_null(strstr(captured_messages_error(), "standard input: message sockets"));
	restore_stdin();
	close(ends[1]);
}

DIRECTORY_TEST(descriptor_that_only_names_a_file_is_refused)
{
	replace_stdin(open(write_input_part("a", 0, N), O_PATH));
	assert_int_equal(assert_input_open_fails("-"), -EBADF);
	restore_stdin();
}

DIRECTORY_TEST(positions_have_names)
{
	const char *const paths[] = { write_input_part("a", 0, 9), write_input_part("empty", 0, 0),
				      write_input_part("b", 0, 90) };
	const char *const with_pipe[] = { paths[0], "-", paths[2] };
	struct input *input = open_input(paths, 3);
	const char *path;
	unsigned char buffer[30];
	uint64_t record, position;
	size_t n;

	input_path_at(input, 6, &path, &record);
	assert_string_equal(path, paths[0]);
	assert_int_equal(record, 2);
	input_path_at(input, 9 + 30, &path, &record);
	assert_string_equal(path, paths[2]);
	assert_int_equal(record, 10);
	input_close(input);

	replace_stdin(open("/dev/zero", O_RDONLY));
	input = open_input(with_pipe, 3);
	assert_int_equal(input_total_nbytes(input), INPUT_SIZE_UNKNOWN);
	assert_int_equal(input_read(input, buffer, sizeof buffer, &position, &n), 0);
	input_path_at(input, 9 + 6, &path, &record);
	assert_string_equal(path, "standard input");
	assert_int_equal(record, 2);
	input_close(input);
	restore_stdin();
}

/* The limit on descriptors is so small that most files are closed and opened again. */
DIRECTORY_TEST(more_files_than_descriptors)
{
	static char names[40][256];
	struct rlimit before, few;
	const char *paths[40];
	struct input *input;

	for (size_t i = 0; i < 40; i++) {
		snprintf(names[i], sizeof names[i], "%s/%zu", fixture_directory, i);
		write_file(names[i], input_bytes + i * 75, 75);
		paths[i] = names[i];
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 12;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	input = open_input(paths, 40);
	assert_stream(input, 60, N);
	input_close(input);

	/* A file that replaces another one in the meantime is detected. */
	input = open_input(paths, 40);
	assert_int_equal(rename(paths[3], paths[39]), 0);
	assert_int_equal(assert_input_read_fails(input), -ENOENT);
	input_close(input);
	paths[3] = paths[0];
	captured_messages_reset(true);
	input = open_input(paths, 39);
	assert_int_equal(rename(write_input_part("other", 0, 75), paths[38]), 0);
	assert_int_equal(assert_input_read_fails(input), -EBUSY);
	assert_non_null(strstr(captured_messages_error(), paths[38]));
	input_close(input);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Files are read one after the other. */
DIRECTORY_TEST(more_files_behind_a_pipe_than_descriptors)
{
	enum { N_FILES = 40, PIPED = N - N_FILES * 60 };
	static char names[N_FILES][256];
	const char *paths[N_FILES + 1] = { "-" };
	struct pipe_feed f = { .nbytes = PIPED };
	struct rlimit before, few;
	struct input *input;

	for (size_t i = 0; i < N_FILES; i++) {
		snprintf(names[i], sizeof names[i], "%s/%zu", fixture_directory, i);
		write_file(names[i], input_bytes + PIPED + i * 60, 60);
		paths[i + 1] = names[i];
	}
	start_stdin_feed(&f);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 20;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	input = open_input(paths, N_FILES + 1);
	assert_stream(input, 60, N);
	input_close(input);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	end_stdin_feed(&f);
}

DIRECTORY_TEST(files_made_up_by_the_kernel_are_streams)
{
	const char *const paths[] = { "/proc/self/status" };
	struct input *input;
	unsigned char buffer[30];
	uint64_t position;
	size_t n;

	input = open_input(paths, 1);
	assert_int_equal(input_total_nbytes(input), INPUT_SIZE_UNKNOWN);
	assert_int_equal(input_read(input, buffer, sizeof buffer, &position, &n), 0);
	assert_int_equal(n, sizeof buffer);
	assert_memory_equal(buffer, "Name:", 5);
	input_close(input);
}

/* Untouched pages, for several reads of the pipe. */
enum { FRESH_NBYTES = 192 << 10 };
static unsigned char *fresh_memory;

static void map_fresh_memory(void)
{
	fresh_memory = mmap(NULL, FRESH_NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	assert_true(fresh_memory != MAP_FAILED);
	madvise(fresh_memory, FRESH_NBYTES, MADV_NOHUGEPAGE);
}

static unsigned n_fresh_reads; /* while the last page was not allocated */

static ssize_t counting_read(int fd, void *buffer, size_t nbytes)
{
	unsigned char residence;

	assert_int_equal(mincore(fresh_memory + FRESH_NBYTES - 4096, 1, &residence), 0);
	n_fresh_reads += !(residence & 1);
	return read(fd, buffer, nbytes);
}

DIRECTORY_TEST(memory_is_there_before_a_long_pipe_is_read)
{
	static char bytes[2 * FRESH_NBYTES];
	const char *const paths[] = { "-" };
	struct syscalls calls = faulty_calls;
	struct input *input;
	uint64_t position;
	int ends[2];
	size_t n;

	fill_pattern(bytes, sizeof bytes, 2);
	calls.read = counting_read;
	assert_int_equal(pipe(ends), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, sizeof bytes) >= (int)sizeof bytes);
	assert_int_equal(write(ends[1], bytes, sizeof bytes), sizeof bytes);
	close(ends[1]);
	replace_stdin(ends[0]);
	map_fresh_memory();
	assert_int_equal(input_open(&calls, paths, 1, INPUT_RECORD_NBYTES, &input), 0);
	for (unsigned i = 0; i < 2; i++) {
		n_fresh_reads = 0;
		assert_int_equal(input_read(input, fresh_memory, FRESH_NBYTES, &position, &n), 0);
		assert_int_equal(n, FRESH_NBYTES);
		assert_memory_equal(fresh_memory, bytes + position, n);
		/* The length is unknown until the first buffer is full. */
		assert_int_equal(n_fresh_reads > 0, i == 0);
		munmap(fresh_memory, FRESH_NBYTES);
		map_fresh_memory();
	}
	input_close(input);
	munmap(fresh_memory, FRESH_NBYTES);
	restore_stdin();
}

GROUP_FIXTURE(fill_input_bytes, NULL)
