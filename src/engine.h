/*
 * engine - what every part of one sort shares
 *
 * Made and closed by sort.c; everything in it is set before the first thread starts and only read
 * afterwards (what it points to has locks of its own).
 */
#pragma once

#include "io/input.h"
#include "io/spill.h"
#include "src/plan.h"
#include "src/stats.h"

struct engine {
	const struct io_engine *io;
	const struct backend *backend;
	struct device *device;
	struct device_info info;
	const struct layout *layout;
	bool unique; /* -u */
	struct plan_request request;
	struct plan plan;
	struct input *input;
	struct spill *spill;
	struct stats *stats; /* may be NULL */
};
