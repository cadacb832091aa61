/*
 * kernels_on_cpu - the kernels' own source as plain C++, with tiles small enough for threads of
 * the CPU
 *
 * Two warps, so that what is exchanged between warps is tested, and few items, so that a few
 * thousand elements take several passes.
 */
#define GSORT_TILE_4 64, 5, 1
#define GSORT_TILE_8 64, 5, 1
#define GSORT_TILE_16 64, 3, 1
#define GSORT_FAN_IN_LOG2 3
#define GSORT_STREAM 64, 2
#define GSORT_SPLIT 64, 8
#define GSORT_ROWS 64, 2048, 1
#define GSORT_NARROW 64, 1, 2
#define GSORT_DELTA 64, 2

#include "tests/kernels/cuda_on_cpu.h"

#include "kernels/tile_sort.cu"

#include "kernels/splitters.cu"

#include "kernels/merge_pass.cu"

#include "kernels/sort.cu"

#include "kernels/merge.cu"

#include "kernels/encode.cu"

#include "kernels/decode.cu"

#include "kernels/unique.cu"

#include "kernels/cut.cu"

#include "kernels/items.cu"

#include "kernels/intake.cu"

#include "kernels/index.cu"

#include "kernels/refine.cu"

#include "kernels/firsts.cu"

#include "kernels/gather.cu"

#include "kernels/pairs.cu"

#include "kernels/delta.cu"
