/*
 * run_file_fixture.h - spilled runs of known items, raw or compressed
 */
#pragma once

#include "io/spill/run_file.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

/* Windows of 100 items of 8 bytes in blocks of 30: 30 + 30 + 30 + 10. */
enum { WINDOW_N_ITEMS = 100, BLOCK_N_ITEMS = 30, WINDOW_N_BLOCKS = 4 };

extern struct spill *spill;
extern struct compression *compression; /* NULL: raw */

int start_with_memory(void **state, uint64_t memory_nbytes);

int start(void **state);

int start_compressing(void **state, const char *mode);

int start_delta(void **state);

int start_zstd(void **state);

int finish(void **state);

struct run_file *open_run(void);

/* The items of window w are w * 1000, w * 1000 + 1, ... */
int write_window(struct run_file *run, uint64_t window);

struct run_file *make_finished_run(uint64_t n_windows);

void assert_blocks_read(struct run_file *run, uint64_t first, uint64_t n);

uint64_t run_stored_nbytes(const struct run_file *run);
