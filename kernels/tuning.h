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
#define GSORT_TILE_4 128, 33, 6
#endif
#ifndef GSORT_TILE_8
#define GSORT_TILE_8 128, 33, 4
#endif
#ifndef GSORT_TILE_16
#define GSORT_TILE_16 256, 19, 2
#endif

/* The same where blocks have 64 KiB of shared memory at most (device.cuh); not measured. */
#ifndef GSORT_TILE_16_IN_64K
#define GSORT_TILE_16_IN_64K 256, 11, 1
#endif

/* Runs that one merge pass turns into one: a power of two, at most 16 (see tile_cuts.cu). */
#ifndef GSORT_FAN_IN_LOG2
#define GSORT_FAN_IN_LOG2 4
#endif

/* Threads and records of each in the kernels that only stream: encode, decode, unique. */
#ifndef GSORT_STREAM_PASS
#define GSORT_STREAM_PASS 256, 4
#endif

/* Splitters: threads of a block, and boundaries that it cuts. */
#ifndef GSORT_SPLIT
#define GSORT_SPLIT 128, 32
#endif

/*
 * Index and gather: threads of a block, bytes of shared memory in which it stages items, and blocks
 * per multiprocessor.
 */
#ifndef GSORT_ROWS
#define GSORT_ROWS 128, 14336, 8
#endif

/*
 * Gathering short items: threads of a block, blocks per multiprocessor, and tiles that a warp takes
 * in a row.
 */
#ifndef GSORT_SHORT_ROWS
#define GSORT_SHORT_ROWS 128, 7, 4
#endif

/* Packed codes: threads of a block, and miniblocks that each of its warps has. */
#ifndef GSORT_DELTA
#define GSORT_DELTA 128, 4
#endif
