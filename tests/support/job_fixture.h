/*
 * job_fixture - a job to merge with, runs made of numbers, and a sink that remembers
 *
 * For test programs of the job, one per program. Data is given as numbers, which are the codes
 * of the records; what has been put in is known, so that check_output() can say what must come out.
 */
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "io/spill/run_file.h"
#include "src/merge/merge.h"
#include "src/merge/partitions.h"
#include "src/merge/window_buffers.h"
#include "src/plan/job.h"
#include "src/run/run_list.h"
#include "tests/support/io_fixture.h"
#include "tests/support/separate_memory_backend.h"

#include <cmocka.h> /* last: it makes a macro of fail */

/* The least memory there is a plan for makes the most windows. */
enum { LEAST_MEMORY_NBYTES = 1 << 20, SMALL_BLOCK_NBYTES = 4096 };

extern struct job job;
extern struct layout layout;
extern struct run_store store;

/* All records that went in, as codes. */
extern code_t *all;
extern size_t n_all, n_all_allocated;

/* The CPU back end, but as if its memory were not the host's: that of backend_owning. */
extern struct backend backend_apart;

/* Of a job that starts; resident runs are with each in turn. With MEMORY_UNIFIED there is one. */
enum { MOST_WORKERS = 4 };
extern uint32_t fixture_n_workers;

/* MEMORY_PACKING: apart, and what is spilled is packed there. */
enum kind_of_memory { MEMORY_UNIFIED, MEMORY_APART, MEMORY_PACKING };

/* Plan for an input of input_nbytes, as if -S and --device-memory were the least possible. */
void job_plan(uint64_t input_nbytes, uint32_t n_input_runs);

/* A job for records of `type` (ascending), without an input; many small blocks and windows. */
void job_start(const char *type, bool unique, enum kind_of_memory memory);

void job_stop(void);

int compare_codes(const void *a, const void *b);

/* The digest of the records of some codes. */
struct digest digest_codes(const code_t *codes, size_t n);

void remember_input(const code_t *codes, size_t n);

/* The codes as elements, or as records; for free(). */
void *items_of(const code_t *codes, size_t n, bool elements);

struct resident {
	uint32_t worker;
	void *elements;
	size_t nbytes;
};

struct run *make_resident(const code_t *codes, size_t n);

/* In blocks of block_n_items. */
struct run *make_spilled_in_blocks(const code_t *codes, size_t n, uint32_t block_n_items);

enum tier { RESIDENT, SPILLED };

/*
 * Sort the codes (in place) and add them to the store as a run; without duplicates if -u, as all
 * runs are that gsort makes.
 */
void add_run(enum tier tier, code_t *codes, size_t n);

/* A sink for records that remembers them, and fails as told. */
struct output {
	pthread_mutex_t lock;
	char *records;
	size_t allocated_nbytes;
	uint64_t n_items, n_windows; /* written */
	uint64_t fails_at;           /* the window that cannot be written; UINT64_MAX: none */
	atomic_bool cancelled;
};

int write_output(void *context, const struct merged *merged);

void cancel_output(void *context);

/* For windows: the least that works; and in how many ranges the last merge was made. */
extern uint64_t fixture_windows_nbytes;
extern uint32_t fixture_n_ranges;

/* Merge the store into `output`, in the ranges of the plan if memory has room for them. */
int merge_store(struct output *output, struct merge_result *ret_result);

/* Merge the store: out comes what went in, sorted, and without equals if -u. `dropped`: so far. */
void check_output(struct digest dropped, uint64_t *ret_n_windows);

/* Numbers without a pattern, the same for the same seed. */
uint64_t scramble(uint64_t i, uint64_t seed);
