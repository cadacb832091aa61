/*
 * timed_threads - the same work on several threads at once (see timed_threads.h)
 */
#include "tools/bench/timed_threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/cli/exit_status.h"

enum { HUGE_PAGE_NBYTES = 2 << 20 };

/* One thread. */
struct timed_thread {
	pthread_t thread;
	pthread_barrier_t *start;
	void (*run)(void *worker);
	void *context;
	uint64_t elapsed_ns;
};

static void *require_memory(void *memory)
{
	if (memory && memory != MAP_FAILED)
		return memory;
	fail(-1, "no memory for the benchmark");
	exit(EXIT_TROUBLE);
}

static uint64_t thread_time_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *timed_thread_main(void *argument)
{
	struct timed_thread *timed_thread = argument;
	uint64_t start_ns;

	pthread_barrier_wait(timed_thread->start);
	start_ns = thread_time_ns();
	timed_thread->run(timed_thread->context);
	timed_thread->elapsed_ns = thread_time_ns() - start_ns;
	return NULL;
}

uint64_t bench_threads_run(void (*run)(void *worker), void *contexts, size_t context_nbytes,
			   unsigned n)
{
	struct timed_thread *timed_threads = require_memory(calloc(n, sizeof *timed_threads));
	pthread_barrier_t start;
	uint64_t elapsed_ns = 0;

	pthread_barrier_init(&start, NULL, n);
	for (unsigned i = 0; i < n; i++) {
		timed_threads[i] =
			(struct timed_thread){ .start = &start,
					       .run = run,
					       .context = (char *)contexts + i * context_nbytes };
		if (thread_start(timed_thread_main, &timed_threads[i], 0,
				 &timed_threads[i].thread) != 0) {
			fail(-1, "cannot start a thread");
			exit(EXIT_TROUBLE);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(timed_threads[i].thread, NULL);
		if (elapsed_ns < timed_threads[i].elapsed_ns)
			elapsed_ns = timed_threads[i].elapsed_ns;
	}
	pthread_barrier_destroy(&start);
	free(timed_threads);
	return elapsed_ns;
}

void bench_threads_print(const struct bench_common_options *options, const char *label,
			 const char *unit, uint64_t n, double elapsed_ns)
{
	const double nbytes = (double)options->nbytes * options->n_threads;

	printf("%-34s %7.2f ns/%s %7.2f GB/s\n", label, elapsed_ns / (double)n, unit,
	       nbytes / elapsed_ns);
	fflush(stdout);
}

void *bench_map_memory(size_t nbytes)
{
	char *memory = require_memory(
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	if (nbytes >= HUGE_PAGE_NBYTES)
		madvise(memory, nbytes, MADV_HUGEPAGE);
	for (size_t offset = 0; offset < nbytes; offset += 4096)
		memory[offset] = 0;
	return memory;
}
