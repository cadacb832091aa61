/*
 * cuda_runtime_api - just enough of CUDA's runtime to run the CUDA back end on the CPU
 *
 * It stands in for the toolkit's header of the same name. With the kernels of kernels_on_cpu.cc,
 * which run when they are launched, everything has run when it is queued: streams and events are
 * nothing, and device memory is plain memory.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum { cudaSuccess, cudaErrorMemoryAllocation } cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

enum cudaMemcpyKind { cudaMemcpyDeviceToHost, cudaMemcpyDefault };
enum { cudaMemoryTypeHost, cudaMemoryTypeDevice };
enum { cudaStreamNonBlocking, cudaEventDisableTiming, cudaHostRegisterDefault };

struct cudaPointerAttributes {
	int type;
};

struct cudaDeviceProp {
	char name[256];
};

static inline const char *cudaGetErrorString(cudaError_t error)
{
	return error ? "out of memory" : "no error";
}

static inline cudaError_t cudaGetDeviceCount(int *n)
{
	*n = 1;
	return cudaSuccess;
}

static inline cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	(void)device;
	strcpy(properties->name, "kernels on the CPU");
	return cudaSuccess;
}

static inline cudaError_t cudaMemGetInfo(size_t *free_nbytes, size_t *total_nbytes)
{
	*free_nbytes = *total_nbytes = (size_t)1 << 30;
	return cudaSuccess;
}

static inline cudaError_t cudaMalloc(void *ret_memory, size_t nbytes)
{
	void *memory = aligned_alloc(256, (nbytes + 256) / 256 * 256);

	memcpy(ret_memory, &memory, sizeof memory);
	return memory ? cudaSuccess : cudaErrorMemoryAllocation;
}

static inline cudaError_t cudaFree(void *memory)
{
	free(memory);
	return cudaSuccess;
}

static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t nbytes,
					  enum cudaMemcpyKind kind, cudaStream_t stream)
{
	(void)kind, (void)stream;
	memmove(to, from, nbytes);
	return cudaSuccess;
}

static inline cudaError_t cudaMemsetAsync(void *to, int byte, size_t nbytes, cudaStream_t stream)
{
	(void)stream;
	memset(to, byte, nbytes);
	return cudaSuccess;
}

static inline cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
						   const void *memory)
{
	(void)memory;
	attributes->type = cudaMemoryTypeDevice;
	return cudaSuccess;
}

/* What has nothing to do here. */
#define NOTHING(name, ...)                                                                         \
	static inline cudaError_t name(__VA_ARGS__)                                                \
	{                                                                                          \
		return cudaSuccess;                                                                \
	}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING(cudaGetLastError, void)
NOTHING(cudaSetDevice, int device)
NOTHING(cudaHostRegister, void *memory, size_t nbytes, unsigned flags)
NOTHING(cudaHostUnregister, void *memory)
NOTHING(cudaDeviceGetStreamPriorityRange, int *least, int *greatest)
NOTHING(cudaStreamCreateWithPriority, cudaStream_t *stream, unsigned flags, int priority)
NOTHING(cudaStreamDestroy, cudaStream_t stream)
NOTHING(cudaStreamSynchronize, cudaStream_t stream)
NOTHING(cudaStreamWaitEvent, cudaStream_t stream, cudaEvent_t event, unsigned flags)
NOTHING(cudaEventCreate, cudaEvent_t *event)
NOTHING(cudaEventCreateWithFlags, cudaEvent_t *event, unsigned flags)
NOTHING(cudaEventRecord, cudaEvent_t event, cudaStream_t stream)
NOTHING(cudaEventSynchronize, cudaEvent_t event)
NOTHING(cudaEventDestroy, cudaEvent_t event)
NOTHING(cudaEventElapsedTime, float *ms, cudaEvent_t begin, cudaEvent_t end)
#pragma GCC diagnostic pop

#undef NOTHING
