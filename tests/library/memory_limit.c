/*
 * memory_limit - gsort_put() and gsort_get() use at most the memory limit and 32 MiB
 *
 * Sorts 128 MiB in 24 MiB. This is a separate program, because the system counts memory by process.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "include/gsort.h"

enum { LIMIT_MIB = 24, OVERHEAD_MIB = 32, DATA_MIB = 128, N_BLOCK_NUMBERS = 4096 };

static uint64_t block[N_BLOCK_NUMBERS];

static void check(const struct gsort *sort, int r)
{
	if (r == 0)
		return;
	puts(gsort_message(sort));
	exit(1);
}

static uint64_t put_all(struct gsort *sort)
{
	uint64_t random = 1, sum = 0;

	for (size_t i = 0; i < (size_t)DATA_MIB * (1 << 20) / sizeof block; i++) {
		for (size_t j = 0; j < N_BLOCK_NUMBERS; j++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			block[j] = random;
			sum += random;
		}
		check(sort, gsort_put(sort, block, sizeof block));
	}
	check(sort, gsort_finish(sort));
	return sum;
}

static uint64_t get_all(struct gsort *sort, uint64_t *ret_n)
{
	uint64_t last = 0, sum = 0, n = 0;
	size_t n_received;

	do {
		check(sort, gsort_get(sort, block, sizeof block, &n_received));
		for (size_t j = 0; j < n_received / sizeof *block; j++) {
			if (block[j] < last)
				exit(1);
			last = block[j];
			sum += last;
		}
		n += n_received / sizeof *block;
	} while (n_received > 0);
	*ret_n = n;
	return sum;
}

int main(void)
{
	struct rusage usage;
	struct gsort *sort;
	uint64_t sum, n;

	if (gsort_open(&sort) < 0)
		return 1;
	check(sort, gsort_set_type(sort, "u64"));
	check(sort, gsort_set_memory(sort, (uint64_t)LIMIT_MIB << 20));
	sum = put_all(sort);
	if (get_all(sort, &n) != sum || n != (uint64_t)DATA_MIB * (1 << 20) / 8)
		return 1;
	gsort_close(sort);
	getrusage(RUSAGE_SELF, &usage);
	printf("%ld KiB\n", usage.ru_maxrss);
	return usage.ru_maxrss > (LIMIT_MIB + OVERHEAD_MIB) * 1024;
}
