/*
 * open_devices.h - open the devices of a sort
 *
 * All devices belong to one back end. The user may list devices (--gpus); then each of them must
 * open. Otherwise as many are opened as pay for their start, and a device that cannot be opened is
 * skipped with a warning. Each of several ranks has its own devices.
 *
 * Ranks that see the same devices of a host divide them in order. Each gets a group of neighbouring
 * devices. If there are fewer devices than ranks, several ranks share one. A rank that is bound to
 * devices of its own (by Slurm, for example) sees no others and uses these.
 */
#pragma once

#include "src/plan/job.h"
#include "src/plan/sort_spec.h"
#include "src/device/backend.h"

struct comm;

/* The index of one of n_sharing ranks that share the devices. */
struct device_assignment {
	unsigned index, n_sharing;
};

#define DEVICE_ASSIGNMENT_EXCLUSIVE ((struct device_assignment){ .index = 0, .n_sharing = 1 })

/* Collective, whatever back end a rank has: find this rank's assignment. */
int device_assignment_find(struct comm *comm, const struct backend *backend,
			   struct device_assignment *ret_assignment);

/*
 * Assign devices among the ranks of this host with the same identity, without communication. NULL:
 * all see the same devices, as --explain predicts.
 */
struct device_assignment device_assignment_among(const struct comm *comm,
						 const uint64_t *identities);

/*
 * Collective: report the devices of every rank, by rank, on rank 0: "rank 1, on host: NVIDIA H200
 * (1)". `report` may be NULL.
 */
int device_assignment_report(struct comm *comm, const char *name,
			     void (*report)(void *context, const char *text), void *context);

struct open_devices_params {
	unsigned n_threads;    /* CPU threads */
	uint64_t input_nbytes; /* sorted by this process; or INPUT_SIZE_UNKNOWN */
	struct device_assignment assignment;
};

/*
 * Open the devices, and set job.devices and job.device_info. Returns -ENOMEM without a message if
 * no device has enough memory, or another negative errno if none, or not a listed one, can be
 * opened. Call close_devices() also after a failure.
 */
int open_devices(struct job *job, const struct backend *backend, const struct sort_spec *spec,
		 const struct open_devices_params *params);

/* No-op if no device is open. */
void close_devices(struct job *job);
