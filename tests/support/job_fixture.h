/*
 * job_fixture - a job to merge with, runs made of numbers, and a sink that remembers
 *
 * For test programs of the job, one per program. Data is given as numbers, which are the codes
 * of the records; what has been put in is known, so that check_output() can say what must come out.
 */
#pragma once

#include <pthread.h>

#include "io/spill/run_file.h"
#include "src/merge/merge.h"
#include "src/merge/partitions.h"
#include "src/merge/window_buffer_cache.h"
#include "src/plan/job.h"
#include "src/run/run_list.h"
#include "tests/support/io_fixture.h"
#include "tests/support/separate_memory_backend.h"
#include "tests/support/unit_test.h"

/* The least memory there is a plan for makes the most windows. */
enum { FIXTURE_MEMORY_NBYTES = 1 << 20, FIXTURE_BLOCK_NBYTES = 4096 };

extern struct job job;
extern struct layout layout;
extern struct run_list fixture_run_list;

/* All records that went in, as codes. */
extern encoded_key_t *fixture_keys;
extern size_t fixture_n_keys, fixture_keys_capacity;

/* The CPU back end, but as if its memory were not the host's: that of separate_memory_backend. */
extern struct backend fixture_separate_backend;

/* Of a job that starts; resident runs are with each in turn. With FIXTURE_UNIFIED_MEMORY there is
 * one. */
enum { FIXTURE_MAX_DEVICES = 4 };
extern uint32_t fixture_n_devices;

/* FIXTURE_PACKING_MEMORY: apart, and what is spilled is packed there. */
enum fixture_memory { FIXTURE_UNIFIED_MEMORY, FIXTURE_SEPARATE_MEMORY, FIXTURE_PACKING_MEMORY };

/* Plan for an input of input_nbytes, as if -S and --device-memory were the least possible. */
void job_plan(uint64_t input_nbytes, uint32_t n_input_runs);

/* A job for records of `type` (ascending), without an input; many small blocks and windows. */
void job_start(const char *type, bool unique, enum fixture_memory memory);

void job_stop(void);

int compare_encoded_keys(const void *a, const void *b);

/* The digest of the records of some codes. */
struct digest digest_encoded_keys(const encoded_key_t *keys, size_t n);

void fixture_add_keys(const encoded_key_t *keys, size_t n);

/* The codes as elements, or as records; for free(). */
void *fixture_make_items(const encoded_key_t *keys, size_t n, bool as_elements);

struct fixture_resident {
	uint32_t device_index;
	void *elements;
	size_t nbytes;
};

struct run *make_resident_run(const encoded_key_t *keys, size_t n);

/* In blocks of block_n_items. */
struct run *make_spilled_run_in_blocks(const encoded_key_t *keys, size_t n, uint32_t block_n_items);

enum tier { TIER_RESIDENT, TIER_SPILLED };

/*
 * Sort the codes (in place) and add them to the store as a run; without duplicates if -u, as all
 * runs are that gsort makes.
 */
void add_run(enum tier tier, encoded_key_t *keys, size_t n);

/* A sink for records that remembers them, and fails as told. */
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

/* For windows: the least that works; and in how many ranges the last merge was made. */
extern uint64_t fixture_windows_nbytes;
extern uint32_t fixture_n_partitions;

/* Merge the store into `output`, in the ranges of the plan if memory has room for them. */
int merge_fixture_runs(struct recorded_output *output, struct merge_result *ret_result);

/* Merge the store: out comes what went in, sorted, and without equals if -u. `dropped`: so far. */
void check_merged_output(struct digest dropped, uint64_t *ret_n_windows);

/* Numbers without a pattern, the same for the same seed. */
uint64_t scramble(uint64_t i, uint64_t seed);
