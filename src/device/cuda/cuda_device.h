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
 * Convert a cudaError_t to a negative errno, after a message that begins with `what`. With several
 * GPUs the message names the thread's current one, or `device`. -ENOMEM has no message. Errors that
 * can be cleared are cleared; a sticky one is returned again.
 */
int cuda_status(int code, const char *what);
int cuda_device_status(const struct cuda_device *device, int code, const char *what);

/*
 * Ignore an error of a call that need not succeed, such as freeing memory (impossible after a
 * sticky error) or statistics. Clears it, so that the next launch does not report it.
 */
void cuda_ignore_error(int code);

/* Make the device the current one of the calling thread. */
int cuda_device_set_current(const struct cuda_device *device);

/* Functions of struct backend. */
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

/* Pinned host memory. cuda_pinned_free() ignores NULL. */
int cuda_pinned_alloc(int node, size_t nbytes, void **ret_memory);
void cuda_pinned_free(void *memory, size_t nbytes);
