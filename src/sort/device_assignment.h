/*
 * device_assignment - which of a machine's devices are one rank's
 *
 * Ranks that see the same devices of a machine share them out, in their order: each has a group of
 * neighbouring ones, or, where there are fewer devices than ranks, one together with others. Who
 * was bound to devices of its own (by Slurm, say) sees no others, and has these.
 */
#pragma once

#include "src/device/backend.h"

struct comm;

/* The place, from 0, of one of n that share all devices. */
struct device_assignment {
	unsigned index, n_sharing;
};

#define DEVICE_ASSIGNMENT_EXCLUSIVE ((struct device_assignment){ .index = 0, .n_sharing = 1 })

/* Of so many devices, at least one, those of a place. */
struct device_group {
	unsigned begin, end;
};

static inline struct device_group device_assignment_group(unsigned index, unsigned n,
							  unsigned n_devices)
{
	const unsigned begin = (unsigned)((uint64_t)index * n_devices / n);
	const unsigned end = (unsigned)((uint64_t)(index + 1) * n_devices / n);

	return (struct device_group){ begin, end > begin ? end : begin + 1 };
}

/*
 * What is this rank's of the back end's devices? Every rank calls it, whichever back end it has.
 * Returns 0, or a negative errno after a message.
 */
int device_assignment_find(struct comm *comm, const struct backend *backend,
			   struct device_assignment *ret_assignment);

/*
 * The same without asking anybody, for who explains for all: ranks of a machine are taken to see
 * the same devices.
 */
struct device_assignment device_assignment_predict(const struct comm *comm);

/*
 * Every rank calls it, with what its devices are called; the first hears of all of them, by rank:
 * "rank 1, on host: NVIDIA H200 (1)". hear NULL: does not. As above.
 */
int device_assignment_report(struct comm *comm, const char *name,
			     void (*report)(void *context, const char *text), void *context);
