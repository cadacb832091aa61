/*
 * job_fixture.h - a job for merges, runs of numbers, and a sink that records its input
 *
 * One per process. Data is given as encoded keys of the records. The fixture keeps all of them, so
 * check_merged_output() knows the expected output.
 */
#pragma once

#include <pthread.h>

#include "io/spill/run_file.h"
#include "src/merge/merge.h"
#include "src/merge/window.h"
#include "src/plan/job.h"
#include "src/run/run.h"
#include "tests/support/io_fixture.h"
#include "tests/support/separate_memory_backend.h"
#include "tests/support/unit_test.h"

/* The minimum memory of a plan gives the most windows. */
enum { FIXTURE_MEMORY_NBYTES = 1 << 20, FIXTURE_BLOCK_NBYTES = 4096 };

extern struct job job;
extern struct layout layout;
extern struct run_list fixture_run_list;

/* All input records, as encoded keys. */
extern encoded_key_t *fixture_keys;
extern size_t fixture_n_keys, fixture_keys_capacity;

/* separate_memory_backend, without unified memory. */
extern struct backend fixture_separate_backend;

/* The devices of the next job; resident runs go to each in turn. FIXTURE_UNIFIED_MEMORY has one. */
enum { FIXTURE_MAX_DEVICES = 4 };
extern uint32_t fixture_n_devices;

/* FIXTURE_PACKING_MEMORY: separate, and the device packs spilled blocks. */
enum fixture_memory { FIXTURE_UNIFIED_MEMORY, FIXTURE_SEPARATE_MEMORY, FIXTURE_PACKING_MEMORY };

/* Plan for an input of input_nbytes with the minimum -S and --device-memory. */
void job_plan(uint64_t input_nbytes, uint32_t n_input_runs);

/* Start a job for records of `type`, ascending, with many small blocks and windows. */
void job_start(const char *type, bool unique, enum fixture_memory memory);

void job_stop(void);

/* Return the digest of the records of some encoded keys. */
struct digest digest_encoded_keys(const encoded_key_t *keys, size_t n);

void fixture_add_keys(const encoded_key_t *keys, size_t n);

/* Make elements, or records, of encoded keys, for free(). */
void *fixture_make_items(const encoded_key_t *keys, size_t n, bool as_elements);

struct fixture_resident {
	uint32_t device_index;
	void *elements;
	size_t nbytes;
};

struct run *make_resident_run(const encoded_key_t *keys, size_t n);

/* Make a spilled run with blocks of block_n_items. */
struct run *make_spilled_run_in_blocks(const encoded_key_t *keys, size_t n, uint32_t block_n_items);

enum tier { TIER_RESIDENT, TIER_SPILLED };

/*
 * Sort the keys in place and add them to fixture_run_list as a run. With -u without duplicates, as
 * in all runs of gsort.
 */
void add_run(enum tier tier, encoded_key_t *keys, size_t n);

/* A sink that records its input and fails at a given window. */
struct recorded_output {
	pthread_mutex_t lock;
	char *records;
	size_t allocated_nbytes;
	uint64_t n_items, n_windows; /* written */
	uint64_t failing_window;     /* the window that cannot be written; UINT64_MAX: none */
	atomic_bool cancelled;
};

int recorded_output_write(void *context, const struct merged_window *merged);

void recorded_output_cancel(void *context);

/* The minimum memory of windows, and the number of partitions of the last merge. */
extern uint64_t fixture_windows_nbytes;
extern uint32_t fixture_n_partitions;

/* Merge the runs into `output`, in the partitions of the plan if they fit in memory. */
int merge_fixture_runs(struct recorded_output *output, struct merge_result *ret_result);

/*
 * Merge the runs and assert that the output is the input, sorted, with -u without duplicates.
 * `dropped` is the digest of the records dropped before.
 */
void check_merged_output(struct digest dropped, uint64_t *ret_n_windows);

/* Return the i-th pseudo-random number of a seed. */
uint64_t scramble(uint64_t i, uint64_t seed);
