/*
 * output_fixture.c - outputs that threads write known bytes to (see output_fixture.h)
 */
#include "tests/support/output_fixture.h"

unsigned char output_bytes[N];

int fill_output_bytes(void **state)
{
	(void)state;
	fill_pattern(output_bytes, sizeof output_bytes, 1);
	return 0;
}

struct output *open_output(const char *path, uint64_t expected_nbytes)
{
	struct output *output;

	assert_int_equal(output_open(&faulty_calls, path, expected_nbytes, &output), 0);
	return output;
}

void *write_strided(void *arg)
{
	struct output_writer *writer = arg;

	for (uint64_t offset = writer->first * OUTPUT_WRITE_NBYTES; offset < N && writer->r == 0;
	     offset += writer->stride * OUTPUT_WRITE_NBYTES) {
		usleep((unsigned)(offset * 7919 % 300)); /* mix the order of threads */
		writer->r = output_write_at(writer->output, offset, output_bytes + offset,
					    OUTPUT_WRITE_NBYTES);
	}
	return NULL;
}

int write_with_threads(struct output *output)
{
	struct output_writer writers[4];
	int r = 0;

	for (unsigned i = 0; i < 4; i++) {
		writers[i] = (struct output_writer){ .output = output, .first = i, .stride = 4 };
		assert_int_equal(thread_start(write_strided, &writers[i], 0, &writers[i].thread),
				 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(writers[i].thread, NULL);
		r = writers[i].r < r ? writers[i].r : r;
	}
	return r;
}

mode_t get_permissions(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_mode & 07777;
}
