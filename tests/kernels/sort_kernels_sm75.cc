/*
 * sort_kernels_sm75.cc - the sort kernels as compiled for compute capability 7.5
 *
 * Tiles of 16-byte elements have another shape there, so the host must launch them differently. The
 * wrong launch leaves out elements, or gives a block too little memory.
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
