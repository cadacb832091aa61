/*
 * kernels_on_cpu.cc - the kernels' own source as C++, with tiles small enough for the CPU
 *
 * A block has two warps, so that exchanges between warps are tested. It has few items, so that a
 * few thousand elements need several passes. A grid has few blocks, so that a block processes
 * several tiles.
 */
#define GSORT_MULTIPROCESSORS 2
#define GSORT_TILE_4 64, 5, 1
#define GSORT_SORT_TILE_4 64, 9, 1
#define GSORT_TILE_8 64, 5, 1
#define GSORT_TILE_16 64, 3, 1
#define GSORT_TILE_16_IN_64K 64, 5, 1
#define GSORT_FAN_IN_LOG2 3
#define GSORT_STREAM_PASS 64, 2
#define GSORT_SPLIT 64, 8
#define GSORT_ROWS 64, 2048, 1
#define GSORT_SHORT_ROWS 64, 1, 2
#define GSORT_DELTA 64, 2

#include "tests/kernels/cuda_on_cpu.h"

#include "kernels/architecture.cu"

#include "kernels/sort/tile_sort.cu"

#include "kernels/sort/tile_cuts.cu"

#include "kernels/sort/merge_pass.cu"

#include "kernels/sort/sort.cu"

#include "kernels/sort/merge.cu"

#include "kernels/keys/encode.cu"

#include "kernels/keys/decode.cu"

#include "kernels/keys/unique.cu"

#include "kernels/sort/cut_and_sample.cu"

#include "kernels/records/items.cu"

#include "kernels/records/project.cu"

#include "kernels/records/make_elements.cu"

#include "kernels/records/tie_break.cu"

#include "kernels/records/head_flags.cu"

#include "kernels/records/gather.cu"

#include "kernels/records/pairs.cu"

#include "kernels/lines/line_elements.cu"

#include "kernels/lines/gather_lines.cu"

#include "kernels/keys/delta.cu"
