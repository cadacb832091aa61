/*
 * cuda_device - a GPU, its memory, and its error codes
 *
 * Internal to the CUDA back end (backend_cuda.c). CUDA error codes become negative errnos here,
 * with a message. Only lack of memory has no message, because the caller can plan smaller.
 */
#pragma once

#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "src/device/device.h"

struct cuda_device {
	struct device handle;
	int gpu;
	int numa_node; /* nearest NUMA node (src/base/thread.h) */
	char name[128];
	uint64_t memory_nbytes; /* usable memory */
	struct stats *stats;    /* may be NULL */
	cudaEvent_t origin;     /* recorded at origin_ns on the host's clock */
	uint64_t origin_ns;
	unsigned stats_device; /* see backend_config */
	atomic_uint n_queues;  /* queues opened so far: tracks of the timeline */
};

static inline struct cuda_device *cuda_device(struct device *device)
{
	return (struct cuda_device *)device;
}

/*
 * Convert a cudaError_t to 0 or a negative errno, after a message that contains `what`. With
 * several GPUs the message names the current GPU of the thread, or that of `device`. -ENOMEM has no
 * message. Clears the error; a sticky error cannot be cleared, and later calls return it again.
 */
int cuda_status(int code, const char *what);
int cuda_device_status(const struct cuda_device *device, int code, const char *what);

/*
 * Ignore an error of a call that need not succeed, for example of freeing memory, which is
 * impossible after a sticky error. Clears the error, so that the next launch does not report it.
 */
void cuda_ignore_error(int code);

/* Make the device the current one of the calling thread. */
int cuda_device_set_current(const struct cuda_device *device);

/* Functions of struct backend; see backend.h. */
int cuda_device_probe(const char **ret_reason);
unsigned cuda_device_count(void);
void cuda_device_get_uuid(unsigned number, unsigned char ret_uuid[BACKEND_UUID_NBYTES]);
int cuda_device_open(const struct backend_config *config, struct device **ret_device);
void cuda_device_close(struct device *device);
void cuda_device_get_info(const struct device *device, struct device_info *ret_info);
int cuda_device_alloc(struct device *device, enum memory_kind kind, size_t nbytes,
		      void **ret_memory);
void cuda_device_free(struct device *device, enum memory_kind kind, void *memory, size_t nbytes);
void cuda_device_discard(struct device *device, void *memory, size_t nbytes);
bool cuda_device_can_access(struct device *device, struct device *peer); /* cuda_peer.c */

/*
 * Allocate and free pinned host memory, preferably on a NUMA node (or NUMA_NODE_ANY). Returns 0,
 * -ENOMEM without a message, or another negative errno after a message. cuda_pinned_free() ignores
 * NULL.
 */
int cuda_pinned_alloc(int node, size_t nbytes, void **ret_memory);
void cuda_pinned_free(void *memory, size_t nbytes);
