/*
 * bench_put_get - the speed of gsort_put() and gsort_get(), compared with files
 *
 * usage: put_and_get DIRECTORY MIB LIMIT
 *
 * Sorts MIB of random numbers of 64 bits within LIMIT, for example 256M, five times in turn: from a
 * file to a file, and with gsort_put() and gsort_get(). Prints the seconds of each.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "include/gsort.h"

enum { BLOCK_N_NUMBERS = 1 << 17, N_ROUNDS = 5 };

static uint64_t block[BLOCK_N_NUMBERS];

static void check(const struct gsort *sort, int r)
{
	if (r == 0)
		return;
	puts(gsort_message(sort));
	exit(1);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void fill(void)
{
	uint64_t random = 1;

	for (size_t i = 0; i < BLOCK_N_NUMBERS; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		block[i] = random;
	}
}

/* Change the numbers, in negligible time. */
static void change_block(void)
{
	for (size_t i = 0; i < BLOCK_N_NUMBERS; i++)
		block[i] += UINT64_C(0x9e3779b97f4a7c15);
}

static struct gsort *open_sort(const char *directory, const char *limit)
{
	struct gsort *sort;

	if (gsort_open(&sort) < 0)
		exit(1);
	check(sort, gsort_set_type(sort, "u64"));
	check(sort, gsort_set(sort, "buffer-size", limit));
	check(sort, gsort_add_temporary_directory(sort, directory));
	return sort;
}

static void write_file(const char *path, uint64_t n_blocks)
{
	FILE *file = fopen(path, "w");

	for (uint64_t i = 0; i < n_blocks; i++) {
		change_block();
		if (!file || fwrite(block, sizeof block, 1, file) != 1)
			exit(1);
	}
	fclose(file);
}

static double sort_file(struct gsort *sort, const char *in, const char *out)
{
	const double begin = seconds();

	check(sort, gsort_add_input_path(sort, in));
	check(sort, gsort_set_output_path(sort, out));
	check(sort, gsort_run(sort));
	gsort_close(sort);
	return seconds() - begin;
}

static double put_and_get(struct gsort *sort, uint64_t n_blocks)
{
	const double begin = seconds();
	size_t n_received;

	fill();
	for (uint64_t i = 0; i < n_blocks; i++) {
		change_block();
		check(sort, gsort_put(sort, block, sizeof block));
	}
	check(sort, gsort_finish(sort));
	do
		check(sort, gsort_get(sort, block, sizeof block, &n_received));
	while (n_received > 0);
	gsort_close(sort);
	return seconds() - begin;
}

int main(int argc, char **argv)
{
	char in[4096], out[4096];
	uint64_t n_blocks;

	if (argc != 4) {
		fprintf(stderr, "usage: put_and_get DIRECTORY MIB LIMIT\n");
		return 2;
	}
	n_blocks = strtoull(argv[2], NULL, 10) * (1 << 20) / sizeof block;
	snprintf(in, sizeof in, "%s/put_and_get.in", argv[1]);
	snprintf(out, sizeof out, "%s/put_and_get.out", argv[1]);
	fill();
	write_file(in, n_blocks);
	for (int i = 0; i < N_ROUNDS; i++) {
		printf("file to file %.2f s, ", sort_file(open_sort(argv[1], argv[3]), in, out));
		remove(out);
		printf("put and got %.2f s\n", put_and_get(open_sort(argv[1], argv[3]), n_blocks));
	}
	remove(in);
	return 0;
}
