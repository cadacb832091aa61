/*
 * tuning - launch geometry of the kernels
 *
 * A block of threads sorts or merges one tile in shared memory: N_THREADS threads with ITEMS
 * elements each. ITEMS is odd, so that threads that store ITEMS adjacent elements use 32 different
 * banks.
 *
 * docs/performance-log.md has the measurements behind these values. To build a variant for
 * `gsort-bench-kernels`, define GSORT_TILE_4 and the other macros as "threads, items, blocks per
 * multiprocessor".
 */
#pragma once

/*
 * The number of multiprocessors that grids of a fixed size are for: that of an H100. Blocks of such
 * a grid process many tiles each.
 */
#ifndef GSORT_MULTIPROCESSORS
#define GSORT_MULTIPROCESSORS 132
#endif

#ifndef GSORT_TILE_4
#define GSORT_TILE_4 128, 41, 6
#endif
#ifndef GSORT_TILE_8
#define GSORT_TILE_8 128, 35, 4
#endif
#ifndef GSORT_TILE_16
#define GSORT_TILE_16 256, 19, 2
#endif

/*
 * The tile sort has longer tiles for elements of 4 bytes. Each thread sorts more of them in
 * registers, and 2^30 elements take four merge passes instead of five.
 */
#ifndef GSORT_SORT_TILE_4
#define GSORT_SORT_TILE_4 256, 65, 3
#endif

/* Tiles for devices with at most 64 KiB of shared memory per block (device.cuh); not measured. */
#ifndef GSORT_TILE_16_IN_64K
#define GSORT_TILE_16_IN_64K 256, 11, 1
#endif

/* Fan-in of a merge pass: a power of two, at most 16 (see tile_cuts.cu). */
#ifndef GSORT_FAN_IN_LOG2
#define GSORT_FAN_IN_LOG2 4
#endif

/* Threads per block and records per thread of the streaming kernels: encode, decode, unique. */
#ifndef GSORT_STREAM_PASS
#define GSORT_STREAM_PASS 256, 4
#endif

/* Splitters: threads per block, and boundaries per block. */
#ifndef GSORT_SPLIT
#define GSORT_SPLIT 128, 32
#endif

/*
 * Projection and gather: threads per block, bytes of shared memory to stage items, and blocks per
 * multiprocessor.
 */
#ifndef GSORT_ROWS
#define GSORT_ROWS 128, 14336, 8
#endif

/*
 * Gather of short items: threads per block, blocks per multiprocessor, and consecutive tiles per
 * warp.
 */
#ifndef GSORT_SHORT_ROWS
#define GSORT_SHORT_ROWS 128, 7, 4
#endif

/* Packed elements: threads per block, and miniblocks per warp. */
#ifndef GSORT_DELTA
#define GSORT_DELTA 128, 4
#endif
