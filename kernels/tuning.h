/*
 * tuning - the geometry of the kernels, apart from the algorithm
 *
 * A tile is what one block of threads holds in shared memory and turns into one sorted piece:
 * N_THREADS threads with ITEMS elements each. ITEMS is odd, so that threads that store ITEMS
 * neighbours each hit 32 different banks.
 *
 * The figures behind the values are in docs/benchmarks.md. A variant for `gsort-bench-kernels` is
 * built by defining GSORT_TILE_4 and its siblings as "threads, items, blocks per multiprocessor".
 */
#pragma once

#ifndef GSORT_TILE_4
#define GSORT_TILE_4 256, 31, 3
#endif
#ifndef GSORT_TILE_8
#define GSORT_TILE_8 256, 31, 2
#endif
#ifndef GSORT_TILE_16
#define GSORT_TILE_16 256, 17, 2
#endif

/* Runs that one merge pass turns into one: a power of two, at most 16 (see splitters.cu). */
#ifndef GSORT_FAN_IN_LOG2
#define GSORT_FAN_IN_LOG2 4
#endif

/* Threads and records of each in the kernels that only stream: encode, decode, unique. */
#ifndef GSORT_STREAM
#define GSORT_STREAM 256, 8
#endif
