/*
 * engine - what every part of one sort shares, and how it is opened
 *
 * sort.c opens the inputs, then the engine opens the rest: back end, plan, temporary space and
 * chunk buffers. What is opened must fit: when a device has less memory than it said (others use
 * it, too), a smaller plan is made, and in the end, if the user left the choice to gsort, another
 * back end.
 *
 * Everything is set before the first thread starts and only read afterwards (what it points to has
 * locks of its own).
 */
#pragma once

#include "io/input/input.h"
#include "io/store/compression.h"
#include "io/store/spill.h"
#include "src/base/stats.h"
#include "src/cli/options.h"
#include "src/plan/plan.h"
#include "src/plan/temporary_space.h"

struct engine {
	/* Given */
	const struct io_engine *io;
	const struct layout *layout; /* engine_open() may make it `references` */
	bool unique;                 /* -u */
	uint64_t limit;      /* of the records of any run and of the result; UINT64_MAX: none */
	struct input *input; /* all inputs as one stream */
	struct checkpoint *checkpoint; /* NULL: none; else runs outlive the process */
	uint64_t first_record;         /* of the input: those before are in runs already */
	struct stats *stats;           /* may be NULL */

	/* Opened by engine_open() */
	const struct backend *backend;
	struct device *device;
	struct device_info info;
	/* If the records stay where they are mapped: what refers to them, and where they are. */
	struct layout references;
	struct slice sources[BACKEND_MOST_SOURCES]; /* n_sources */
	uint32_t n_sources;
	struct plan_request request;
	struct plan plan;
	struct spill *spill;             /* not with --explain */
	struct compression *compression; /* of what is spilled; NULL: none */
	struct temporary_space space;
	struct chunk_pool *pool;       /* only to sort: not with -m or --explain */
	struct window_memory *windows; /* of one merge after the other */
};

/*
 * Open what is not given. ordered_output: as in plan_request. Returns 0, or a negative errno after
 * a message; engine_close() is due in both cases.
 */
int engine_open(struct engine *engine, const struct options *options, bool ordered_output);

/* Close what engine_open() opened; no run may be left. A zeroed engine is fine. */
void engine_close(struct engine *engine);

/* CPU threads to use: --parallel, or all that this process may use. */
unsigned engine_n_threads(const struct options *options);

/* Those of them that compress the output: a quarter of the memory has room for them, or it is 1. */
unsigned engine_n_compressors(const struct options *options);
