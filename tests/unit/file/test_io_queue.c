/*
 * test_io_queue - every engine does the same with the same requests, whatever the kernel does
 */
#include "io/file/io_queue.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/support/io_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { PIECE = 3000, N_PIECES = 200, N = PIECE * N_PIECES };

static unsigned char data[N], back[N];

static int refuse_ring(unsigned n_entries, struct io_uring *ring)
{
	(void)n_entries, (void)ring;
	return -EPERM;
}

/* The kernel's own, and all that can stand in for it. */
static const struct {
	const struct syscalls *calls;
	enum io_queue_kind kind;
	unsigned depth;
} subjects[] = {
	{ &syscalls_plain, IO_QUEUE_URING, 1 },   { &syscalls_plain, IO_QUEUE_URING, 7 },
	{ &syscalls_plain, IO_QUEUE_THREADS, 1 }, { &syscalls_plain, IO_QUEUE_THREADS, 5 },
	{ &faulty_calls, IO_QUEUE_THREADS, 3 },
};

enum { N_SUBJECTS = sizeof subjects / sizeof subjects[0] };

static struct io_queue *open_queue(size_t subject)
{
	struct io_queue *queue;

	assert_int_equal(io_queue_open(subjects[subject].calls, subjects[subject].kind,
				       subjects[subject].depth, &queue),
			 0);
	return queue;
}

static struct file open_file(size_t subject)
{
	struct file file;

	assert_int_equal(file_open(subjects[subject].calls, AT_FDCWD, path_of("f"),
				   O_RDWR | O_CREAT | O_TRUNC, 0600, &file),
			 0);
	return file;
}

/* The pieces of a buffer, the last ones first. */
static void make_requests(struct io_request *requests, const struct file *file, bool is_write,
			  unsigned char *buffer)
{
	for (size_t i = 0; i < N_PIECES; i++)
		requests[N_PIECES - 1 - i] = (struct io_request){ .file = file,
								  .is_write = is_write,
								  .offset = i * PIECE,
								  .buffer = buffer + i * PIECE,
								  .nbytes = PIECE };
}

static void assert_all_succeed(struct io_queue *queue, struct io_request *requests)
{
	for (size_t i = 0; i < N_PIECES; i++)
		assert_int_equal(io_queue_wait(queue, &requests[i]), 0);
}

static void every_engine_moves_the_same_bytes(void **state)
{
	static struct io_request requests[N_PIECES];

	(void)state;
	faults.most_nbytes = 1234;
	faults.interrupt_every = 3;
	for (size_t i = 0; i < N_SUBJECTS; i++) {
		struct io_queue *queue = open_queue(i);
		struct file file = open_file(i);

		make_requests(requests, &file, true, data);
		io_queue_submit(queue, requests, N_PIECES);
		assert_all_succeed(queue, requests);
		assert_true(file_holds(path_of("f"), data, N));
		memset(back, 0, N);
		make_requests(requests, &file, false, back);
		for (size_t j = 0; j < N_PIECES; j++)
			io_queue_submit(queue, &requests[j], 1);
		assert_all_succeed(queue, requests);
		assert_memory_equal(back, data, N);
		io_queue_close(queue);
		file_close(&file);
	}
}

static void end_of_file_is_told_apart_by_every_engine(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SUBJECTS; i++) {
		struct io_queue *queue = open_queue(i);
		struct file file = open_file(i);
		struct io_request across = {
			.file = &file, .offset = PIECE / 2, .buffer = back, .nbytes = PIECE
		};
		struct io_request behind = {
			.file = &file, .offset = PIECE, .buffer = back, .nbytes = 1
		};

		assert_int_equal(file_write_at(&file, 0, data, PIECE), 0);
		io_queue_submit(queue, &across, 1);
		io_queue_submit(queue, &behind, 1);
		assert_int_equal(io_queue_wait(queue, &behind), -ENODATA);
		assert_int_equal(io_queue_wait(queue, &across), -ENODATA);
		io_queue_close(queue);
		file_close(&file);
	}
}

static void full_disk_fails_the_request_and_no_other(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SUBJECTS; i++) {
		struct io_queue *queue = open_queue(i);
		struct file file = open_file(i), full = { .calls = subjects[i].calls };
		struct io_request requests[2];

		full.fd = open("/dev/full", O_WRONLY);
		requests[0] = (struct io_request){ &full, true, 0, data, PIECE, 0, 0, 0, NULL };
		requests[1] = (struct io_request){ &file, true, 0, data, PIECE, 0, 0, 0, NULL };
		io_queue_submit(queue, requests, 2);
		assert_int_equal(io_queue_wait(queue, &requests[0]), -ENOSPC);
		assert_int_equal(io_queue_wait(queue, &requests[1]), 0);
		assert_true(file_holds(path_of("f"), data, PIECE));
		io_queue_close(queue);
		file_close(&file);
		file_close(&full);
	}
}

static void refused_ring_is_replaced_by_threads(void **state)
{
	struct syscalls calls = syscalls_plain;
	struct io_queue *queue;

	(void)state;
	for (int refuses = 0; refuses < 2; refuses++) {
		calls.ring_init = refuses ? refuse_ring : NULL;
		assert_int_equal(io_queue_open(&calls, IO_QUEUE_URING, 4, &queue), 0);
		assert_string_equal(io_queue_engine_name(queue), "threads");
		io_queue_close(queue);
	}
}

static atomic_bool lacks_memory_once;

void *__real_calloc(size_t n, size_t nbytes);
void *__wrap_calloc(size_t n, size_t nbytes);
void *__wrap_calloc(size_t n, size_t nbytes)
{
	return atomic_exchange(&lacks_memory_once, false) ? NULL : __real_calloc(n, nbytes);
}

static void ring_without_memory_is_replaced_by_threads(void **state)
{
	struct io_queue *queue = NULL;

	(void)state;
	lacks_memory_once = true;
	assert_int_equal(io_queue_open(&syscalls_plain, IO_QUEUE_URING, 4, &queue), 0);
	assert_non_null(queue);
	assert_string_equal(io_queue_engine_name(queue), "threads");
	io_queue_close(queue);
}

/* --- A ring that misbehaves --- */

/* The plain engine, but from the nth call on, and so many times, one of these fails. */
static struct {
	unsigned first, n_times;
	int submit_error; /* of handing entries over */
	int moved;        /* what a completion says; HALF: that it was short */
	unsigned n_submits, n_completions, n_faults;
} ring_faults;

enum { HALF = 1, FOR_GOOD = 1 << 30 };

static bool is_ring_turn(unsigned n)
{
	const bool is_turn = n >= ring_faults.first && n - ring_faults.first < ring_faults.n_times;

	ring_faults.n_faults += is_turn;
	return is_turn;
}

static int faulty_ring_submit(struct io_uring *ring)
{
	return ring_faults.submit_error && is_ring_turn(++ring_faults.n_submits) ?
		       ring_faults.submit_error :
		       syscalls_plain.ring_submit(ring);
}

static int faulty_ring_take(struct io_uring *ring, bool waits, void **ret_owner, int *ret_moved)
{
	const int r = syscalls_plain.ring_take(ring, waits, ret_owner, ret_moved);

	if (r == 0 && ring_faults.moved && is_ring_turn(++ring_faults.n_completions))
		*ret_moved = ring_faults.moved == HALF ? (*ret_moved + 1) / 2 : ring_faults.moved;
	return r;
}

/*
 * Write and read all pieces through such a ring, and return how many requests failed, all with
 * `error`. Those that did not have moved their bytes.
 */
static unsigned move_all_by_ring(int error)
{
	static struct io_request requests[N_PIECES];
	struct syscalls calls = syscalls_plain;
	struct io_queue *queue;
	struct file file;
	unsigned n_failed = 0;

	calls.ring_submit = faulty_ring_submit;
	calls.ring_take = faulty_ring_take;
	ring_faults.n_submits = ring_faults.n_completions = ring_faults.n_faults = 0;
	assert_int_equal(io_queue_open(&calls, IO_QUEUE_URING, 7, &queue), 0);
	assert_int_equal(file_open(&calls, AT_FDCWD, path_of("f"), O_RDWR | O_CREAT | O_TRUNC, 0600,
				   &file),
			 0);
	memset(back, 0, N);
	for (int is_write = 1; is_write >= 0; is_write--) {
		make_requests(requests, &file, is_write, is_write ? data : back);
		io_queue_submit(queue, requests, N_PIECES);
		for (size_t i = 0; i < N_PIECES; i++) {
			const int r = io_queue_wait(queue, &requests[i]);

			if (r < 0)
				assert_int_equal(r, error);
			else if (!is_write)
				assert_memory_equal(requests[i].buffer, data + requests[i].offset,
						    PIECE);
			n_failed += r < 0;
		}
	}
	io_queue_close(queue);
	file_close(&file);
	return n_failed;
}

static bool has_ring(void)
{
	struct io_queue *queue = open_queue(0);
	const bool has = strcmp(io_queue_engine_name(queue), "io_uring") == 0;

	io_queue_close(queue);
	return has;
}

static int start_with_ring(void **state)
{
	memset(&ring_faults, 0, sizeof ring_faults);
	return fixture_start(state);
}

static void short_completions_are_continued(void **state)
{
	(void)state;
	ring_faults.moved = HALF;
	for (unsigned first = 1; first < 10; first++) {
		ring_faults.first = first;
		ring_faults.n_times = 1;
		assert_int_equal(move_all_by_ring(0), 0);
		assert_int_equal(ring_faults.n_faults, 1);
	}
	ring_faults.n_times = 5 * N_PIECES;
	assert_int_equal(move_all_by_ring(0), 0);
}

static void put_off_completions_are_made_up_for(void **state)
{
	/* The last four: the ring knows no transfers, or not these. */
	static const int errors[] = { -EINTR,  -EAGAIN, -ECANCELED, -EINVAL,
				      -EACCES, -EPERM,  -EOPNOTSUPP };

	(void)state;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		for (unsigned first = 1; first < 10; first++) {
			ring_faults.moved = errors[i];
			ring_faults.first = first;
			ring_faults.n_times = first % 2 ? 1 : FOR_GOOD;
			assert_int_equal(move_all_by_ring(0), 0);
			assert_true(ring_faults.n_faults > 0);
		}
}

static void failed_completion_fails_its_request_and_no_other(void **state)
{
	(void)state;
	ring_faults.moved = -EIO;
	for (unsigned first = N_PIECES + 1; first < N_PIECES + 10; first++) {
		ring_faults.first = first;
		ring_faults.n_times = 3;
		assert_int_equal(move_all_by_ring(-EIO), 3);
	}
}

static void ring_that_takes_no_entries_is_done_without(void **state)
{
	static const int errors[] = { -EAGAIN, -EBUSY, -ENOMEM, -EBADF };

	(void)state;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		for (unsigned first = 1; first < 20; first++) {
			ring_faults.submit_error = errors[i];
			ring_faults.first = first;
			ring_faults.n_times = FOR_GOOD;
			assert_int_equal(move_all_by_ring(0), 0);
			assert_true(ring_faults.n_faults > 0);
		}
}

static void interrupted_submission_is_repeated(void **state)
{
	(void)state;
	ring_faults.submit_error = -EINTR;
	ring_faults.first = 2;
	ring_faults.n_times = 9;
	assert_int_equal(move_all_by_ring(0), 0);
	assert_int_equal(ring_faults.n_faults, 9);
	assert_true(ring_faults.n_submits > 20);
}

/* One of several threads that write their pieces and read them back, through one queue. */
struct user {
	struct io_queue *queue;
	const struct file *file;
	size_t first;
	int r;
};

enum { N_USERS = 4 };

static void *use_queue(void *argument)
{
	struct user *user = argument;

	for (size_t i = user->first; i < N_PIECES && user->r == 0; i += N_USERS) {
		struct io_request request = { .file = user->file,
					      .is_write = true,
					      .offset = i * PIECE,
					      .buffer = data + i * PIECE,
					      .nbytes = PIECE };

		io_queue_submit(user->queue, &request, 1);
		user->r = io_queue_wait(user->queue, &request);
		request.is_write = false;
		request.buffer = back + i * PIECE;
		io_queue_submit(user->queue, &request, 1);
		if (user->r == 0)
			user->r = io_queue_wait(user->queue, &request);
		else
			io_queue_wait(user->queue, &request);
	}
	return NULL;
}

static void threads_share_a_queue(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_SUBJECTS; i++) {
		struct io_queue *queue = open_queue(i);
		struct file file = open_file(i);
		struct user users[N_USERS];
		pthread_t threads[N_USERS];

		memset(back, 0, N);
		for (size_t j = 0; j < N_USERS; j++) {
			users[j] = (struct user){ queue, &file, j, 0 };
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

int main(void)
{
	int r;
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(every_engine_moves_the_same_bytes),
		FIXTURE(end_of_file_is_told_apart_by_every_engine),
		FIXTURE(full_disk_fails_the_request_and_no_other),
		FIXTURE(refused_ring_is_replaced_by_threads),
		FIXTURE(ring_without_memory_is_replaced_by_threads),
		FIXTURE(threads_share_a_queue),
	};
#define WITH_RING(name) cmocka_unit_test_setup_teardown(name, start_with_ring, fixture_finish)
	const struct CMUnitTest ring_tests[] = {
		WITH_RING(short_completions_are_continued),
		WITH_RING(put_off_completions_are_made_up_for),
		WITH_RING(failed_completion_fails_its_request_and_no_other),
		WITH_RING(ring_that_takes_no_entries_is_done_without),
		WITH_RING(interrupted_submission_is_repeated),
	};

	fill_pattern(data, sizeof data, 1);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	if (!has_ring())
		printf("no io_uring: a ring that misbehaves was skipped\n");
	else
		r += cmocka_run_group_tests(ring_tests, NULL, NULL);
	return r;
}
