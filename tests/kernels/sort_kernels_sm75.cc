/*
 * sort_kernels_sm75 - the kernels that sort, as they are compiled for compute capability 7.5
 *
 * Tiles of 16 bytes have another shape there, so the host has to launch them in another way: one
 * that takes the wrong one leaves elements out, or gives a block less memory than it uses.
 */
#define GSORT_TILE_4 64, 5, 1
#define GSORT_TILE_8 64, 5, 1
#define GSORT_TILE_16 128, 7, 1
#define GSORT_TILE_16_IN_64K 64, 3, 1
#define GSORT_FAN_IN_LOG2 3
#define GSORT_SPLIT 64, 8

#define EMULATED_ARCHITECTURE 75
#include "tests/kernels/cuda_on_cpu.h"

#include "kernels/architecture.cu"

#include "kernels/sort/tile_sort.cu"

#include "kernels/sort/tile_cuts.cu"

#include "kernels/sort/merge_pass.cu"

#include "kernels/sort/sort.cu"

#include "kernels/sort/merge.cu"
