/*
 * top_k - print the K largest numbers of a stream of any length
 *
 * usage: top_k K < STREAM
 *
 * STREAM consists of unsigned 64-bit numbers in the byte order of the machine. Prints the K
 * largest, the largest first. The limit of the sort discards records that cannot be among the first
 * K.
 */
#include <gsort.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(struct gsort *sort)
{
	fprintf(stderr, "top_k: %s\n", gsort_message(sort));
	gsort_close(sort);
	return 1;
}

static int put_stream(struct gsort *sort, FILE *stream)
{
	static uint64_t buffer[8192];
	size_t n;
	int r = 0;

	while (r == 0 && (n = fread(buffer, 1, sizeof buffer, stream)) > 0)
		r = gsort_put(sort, buffer, n);
	return r < 0 ? r : gsort_finish(sort);
}

int main(int argc, char **argv)
{
	const uint64_t k = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	struct gsort *sort;
	uint64_t number;
	size_t n_received;
	int r;

	if (gsort_open(&sort) < 0)
		return 1;
	if (gsort_set_type(sort, "u64") < 0 || gsort_set_descending(sort) < 0 ||
	    gsort_set_limit(sort, k) < 0 || put_stream(sort, stdin) < 0)
		return fail(sort);
	while ((r = gsort_get(sort, &number, sizeof number, &n_received)) == 0 && n_received > 0)
		printf("%" PRIu64 "\n", number);
	if (r < 0)
		return fail(sort);
	gsort_close(sort);
	return 0;
}
