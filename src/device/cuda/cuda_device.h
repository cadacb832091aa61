/*
 * cuda_device - a GPU, its memory, and its error codes
 *
 * For the CUDA back end only (backend_cuda.c). CUDA's error codes are translated to negative
 * errnos here, with their message; only a lack of memory is left to the caller, who can plan
 * smaller.
 */
#pragma once

#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "src/device/device.h"

struct cuda_device {
	struct device handle;
	int gpu;
	int numa_node; /* that it is near (src/base/numa.h) */
	char name[128];
	uint64_t memory_nbytes; /* that may be used */
	struct stats *stats;    /* may be NULL */
	cudaEvent_t origin;     /* passed at origin_ns on the host's clock */
	uint64_t origin_ns;
	unsigned stats_device; /* as backend_config says */
	atomic_uint n_queues;  /* opened so far: tracks of the timeline */
};

static inline struct cuda_device *cuda_device(struct device *device)
{
	return (struct cuda_device *)device;
}

/*
 * A cudaError_t as a negative errno, after a message that says `what`, and of several GPUs on which
 * one: the thread's, or that of `device`; -ENOMEM without one. What can be cleared is cleared; an
 * error that sticks comes again.
 */
int cuda_status(int code, const char *what);
int cuda_device_status(const struct cuda_device *device, int code, const char *what);

/*
 * What need not succeed: giving back, since on a context that an error sticks to nothing can be
 * given back, and what is for statistics only. Without a message, and so that the next launch does
 * not take the error for its own.
 */
void cuda_ignore_error(int code);

/* Make it the calling thread's device. */
int cuda_device_set_current(const struct cuda_device *device);

/* Members of struct backend. */
int cuda_device_probe(const char **ret_reason);
unsigned cuda_device_count(void);
void cuda_device_get_uuid(unsigned number, unsigned char ret_uuid[BACKEND_UUID_NBYTES]);
int cuda_device_open(const struct backend_config *config, struct device **ret_device);
void cuda_device_close(struct device *device);
void cuda_device_get_info(const struct device *device, struct device_info *ret_info);
int cuda_device_alloc(struct device *device, enum memory_kind kind, size_t nbytes,
		      void **ret_memory);
void cuda_device_free(struct device *device, enum memory_kind kind, void *memory, size_t nbytes);
/* In cuda_peer.c. */
bool cuda_device_can_access(struct device *device, struct device *peer);
void cuda_device_discard(struct device *device, void *memory, size_t nbytes);

/* Pinned memory of the host. NULL is fine to free. */
int cuda_pinned_alloc(int node, size_t nbytes, void **ret_memory);
void cuda_pinned_free(void *memory, size_t nbytes);
