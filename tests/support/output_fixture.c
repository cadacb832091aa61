/*
 * output_fixture - outputs to which known bytes are written (see output_fixture.h)
 */
#include "tests/support/output_fixture.h"

unsigned char output_bytes[N];

struct output *open_output(const char *path, uint64_t expected_nbytes)
{
	struct output *output;

	assert_int_equal(output_open(&faulty_calls, path, expected_nbytes, &output), 0);
	return output;
}

void *write_pieces(void *arg)
{
	struct writer *w = arg;

	for (uint64_t at = w->first * PIECE; at < N && w->r == 0; at += w->n * PIECE) {
		usleep((unsigned)(at * 7919 % 300)); /* so that the turns are mixed */
		w->r = output_write_at(w->output, at, output_bytes + at, PIECE);
	}
	return NULL;
}

int write_by_threads(struct output *output)
{
	struct writer writers[4];
	int r = 0;

	for (unsigned i = 0; i < 4; i++) {
		writers[i] = (struct writer){ .output = output, .first = i, .n = 4 };
		assert_int_equal(thread_start(write_pieces, &writers[i], 0, &writers[i].thread), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(writers[i].thread, NULL);
		r = writers[i].r < r ? writers[i].r : r;
	}
	return r;
}

mode_t mode_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_mode & 07777;
}
