/*
 * test_io_queue - requests are complete, whatever the system calls do
 */
#include "io/file/io_queue.h"

#include <pthread.h>

#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

enum {
	QUEUE_REQUEST_NBYTES = 3000,
	N_QUEUE_REQUESTS = 200,
	N = QUEUE_REQUEST_NBYTES * N_QUEUE_REQUESTS
};

static unsigned char data[N], back[N];

/* Plain calls, and short and interrupted ones. */
static const struct syscalls *const subjects[] = { &syscalls_plain, &faulty_calls };

enum { N_SUBJECTS = sizeof subjects / sizeof subjects[0] };

static struct io_queue *open_queue(void)
{
	struct io_queue *queue;

	assert_int_equal(io_queue_open(&queue), 0);
	return queue;
}

static struct file open_file(size_t subject)
{
	struct file file;

	assert_int_equal(file_open(subjects[subject], AT_FDCWD, fixture_path("f"),
				   O_RDWR | O_CREAT | O_TRUNC, 0600, &file),
			 0);
	return file;
}

/* Requests for the pieces of a buffer, the last ones first. */
static void make_requests(struct io_request *requests, const struct file *file, bool is_write,
			  unsigned char *buffer)
{
	for (size_t i = 0; i < N_QUEUE_REQUESTS; i++)
		requests[N_QUEUE_REQUESTS - 1 - i] =
			(struct io_request){ .file = file,
					     .is_write = is_write,
					     .offset = i * QUEUE_REQUEST_NBYTES,
					     .buffer = buffer + i * QUEUE_REQUEST_NBYTES,
					     .nbytes = QUEUE_REQUEST_NBYTES };
}

static void assert_all_succeed(struct io_queue *queue, struct io_request *requests)
{
	for (size_t i = 0; i < N_QUEUE_REQUESTS; i++)
		assert_int_equal(io_queue_wait(queue, &requests[i]), 0);
}

DIRECTORY_TEST(all_bytes_are_moved)
{
	static struct io_request requests[N_QUEUE_REQUESTS];

	faults.max_transfer_nbytes = 1234;
	faults.interrupt_every = 3;
	for (size_t i = 0; i < N_SUBJECTS; i++) {
		struct io_queue *queue = open_queue();
		struct file file = open_file(i);

		make_requests(requests, &file, true, data);
		io_queue_submit(queue, requests, N_QUEUE_REQUESTS);
		assert_all_succeed(queue, requests);
		assert_true(file_contains(fixture_path("f"), data, N));
		memset(back, 0, N);
		make_requests(requests, &file, false, back);
		for (size_t j = 0; j < N_QUEUE_REQUESTS; j++)
			io_queue_submit(queue, &requests[j], 1);
		assert_all_succeed(queue, requests);
		assert_memory_equal(back, data, N);
		io_queue_close(queue);
		file_close(&file);
	}
}

DIRECTORY_TEST(end_of_file_is_an_error_of_its_own)
{
	for (size_t i = 0; i < N_SUBJECTS; i++) {
		struct io_queue *queue = open_queue();
		struct file file = open_file(i);
		struct io_request across = { .file = &file,
					     .offset = QUEUE_REQUEST_NBYTES / 2,
					     .buffer = back,
					     .nbytes = QUEUE_REQUEST_NBYTES };
		struct io_request behind = {
			.file = &file, .offset = QUEUE_REQUEST_NBYTES, .buffer = back, .nbytes = 1
		};

		assert_int_equal(file_write_at(&file, 0, data, QUEUE_REQUEST_NBYTES), 0);
		io_queue_submit(queue, &across, 1);
		io_queue_submit(queue, &behind, 1);
		assert_int_equal(io_queue_wait(queue, &behind), -ENODATA);
		assert_int_equal(io_queue_wait(queue, &across), -ENODATA);
		io_queue_close(queue);
		file_close(&file);
	}
}

DIRECTORY_TEST(full_disk_fails_the_request_and_no_other)
{
	for (size_t i = 0; i < N_SUBJECTS; i++) {
		struct io_queue *queue = open_queue();
		struct file file = open_file(i), full = { .calls = subjects[i] };
		struct io_request requests[2];

		full.fd = open("/dev/full", O_WRONLY);
		requests[0] = (struct io_request){ &full, true, 0,   data, QUEUE_REQUEST_NBYTES,
						   0,     0,    NULL };
		requests[1] = (struct io_request){ &file, true, 0,   data, QUEUE_REQUEST_NBYTES,
						   0,     0,    NULL };
		io_queue_submit(queue, requests, 2);
		assert_int_equal(io_queue_wait(queue, &requests[0]), -ENOSPC);
		assert_int_equal(io_queue_wait(queue, &requests[1]), 0);
		assert_true(file_contains(fixture_path("f"), data, QUEUE_REQUEST_NBYTES));
		io_queue_close(queue);
		file_close(&file);
		file_close(&full);
	}
}

static atomic_bool lacks_threads;
static atomic_uint n_refused_threads;

int __real_thread_start(void *(*run)(void *argument), void *argument, size_t stack_nbytes,
			pthread_t *ret_thread);
int __wrap_thread_start(void *(*run)(void *argument), void *argument, size_t stack_nbytes,
			pthread_t *ret_thread);
int __wrap_thread_start(void *(*run)(void *argument), void *argument, size_t stack_nbytes,
			pthread_t *ret_thread)
{
	if (lacks_threads) {
		n_refused_threads++;
		return -EAGAIN;
	}
	return __real_thread_start(run, argument, stack_nbytes, ret_thread);
}

DIRECTORY_TEST(requests_complete_without_threads)
{
	static struct io_request requests[N_QUEUE_REQUESTS];
	struct io_queue *queue = open_queue();
	struct file file = open_file(0);

	lacks_threads = true;
	make_requests(requests, &file, true, data);
	io_queue_submit(queue, requests, N_QUEUE_REQUESTS);
	assert_all_succeed(queue, requests);
	assert_true(file_contains(fixture_path("f"), data, N));
	assert_true(n_refused_threads > 0);
	lacks_threads = false;
	io_queue_close(queue);
	file_close(&file);
}

/* A thread that writes and reads back its pieces; all threads share a queue. */
struct queue_user {
	struct io_queue *queue;
	const struct file *file;
	size_t first;
	int r;
};

enum { N_USERS = 4 };

static void *use_queue(void *argument)
{
	struct queue_user *user = argument;

	for (size_t i = user->first; i < N_QUEUE_REQUESTS && user->r == 0; i += N_USERS) {
		struct io_request request = { .file = user->file,
					      .is_write = true,
					      .offset = i * QUEUE_REQUEST_NBYTES,
					      .buffer = data + i * QUEUE_REQUEST_NBYTES,
					      .nbytes = QUEUE_REQUEST_NBYTES };

		io_queue_submit(user->queue, &request, 1);
		user->r = io_queue_wait(user->queue, &request);
		request.is_write = false;
		request.buffer = back + i * QUEUE_REQUEST_NBYTES;
		io_queue_submit(user->queue, &request, 1);
		if (user->r == 0)
			user->r = io_queue_wait(user->queue, &request);
		else
			io_queue_wait(user->queue, &request);
	}
	return NULL;
}

DIRECTORY_TEST(threads_share_a_queue)
{
	for (size_t i = 0; i < N_SUBJECTS; i++) {
		struct io_queue *queue = open_queue();
		struct file file = open_file(i);
		struct queue_user users[N_USERS];
		pthread_t threads[N_USERS];

		memset(back, 0, N);
		for (size_t j = 0; j < N_USERS; j++) {
			users[j] = (struct queue_user){ queue, &file, j, 0 };
			assert_int_equal(pthread_create(&threads[j], NULL, use_queue, &users[j]),
					 0);
		}
		for (size_t j = 0; j < N_USERS; j++) {
			pthread_join(threads[j], NULL);
			assert_int_equal(users[j].r, 0);
		}
		assert_memory_equal(back, data, N);
		io_queue_close(queue);
		file_close(&file);
	}
}

static int prepare(void **state)
{
	(void)state;
	fill_pattern(data, sizeof data, 1);
	return 0;
}

GROUP_FIXTURE(prepare, NULL)
