/*
 * sort_array - sort an array that is larger than the memory limit of the sort
 *
 * usage: sort_array COUNT
 *
 * Sorts COUNT random doubles (default: 1000000) with 4 MiB of memory and reads them back into the
 * same array.
 */
#include <gsort.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(struct gsort *sort, const char *what)
{
	fprintf(stderr, "sort_array: %s: %s\n", what, gsort_message(sort));
	gsort_close(sort);
	return 1;
}

static int sort_doubles(double *numbers, size_t n)
{
	const size_t nbytes = n * sizeof *numbers;
	struct gsort *sort;
	size_t n_received;

	if (gsort_open(&sort) < 0)
		return 1;
	if (gsort_set_type(sort, "double") < 0 || gsort_set_memory(sort, 4 << 20) < 0)
		return fail(sort, "options");
	if (gsort_put(sort, numbers, nbytes) < 0 || gsort_finish(sort) < 0)
		return fail(sort, "put");
	/* Read the end of the stream: the sort is verified only then. */
	if (gsort_get(sort, numbers, nbytes, &n_received) < 0 || n_received != nbytes)
		return fail(sort, "get");
	if (gsort_get(sort, &(char){ 0 }, 1, &n_received) < 0 || n_received != 0)
		return fail(sort, "the end");
	gsort_close(sort);
	return 0;
}

int main(int argc, char **argv)
{
	const size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
	double *numbers = malloc(n * sizeof *numbers);
	uint64_t random = 1;

	if (!numbers)
		return 1;
	for (size_t i = 0; i < n; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		numbers[i] = (double)(int64_t)random / 1e9;
	}
	if (sort_doubles(numbers, n) != 0)
		return 1;
	for (size_t i = 1; i < n; i++)
		if (numbers[i] < numbers[i - 1])
			return 1;
	printf("%zu numbers from %.3f to %.3f\n", n, n ? numbers[0] : 0, n ? numbers[n - 1] : 0);
	free(numbers);
	return 0;
}
