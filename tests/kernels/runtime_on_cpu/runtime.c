/*
 * runtime - just enough of CUDA's runtime to run the CUDA back end on the CPU (see
 * cuda_runtime_api.h)
 *
 * Streams and events are allocations of their own, and looked at whenever they are named: what is
 * used after it was destroyed, or never destroyed, is seen by AddressSanitizer. None comes from
 * malloc(), which in tests/fault/ can fail on purpose.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/runtime_on_cpu/cuda_runtime_api.h"

enum { ALIGNMENT_NBYTES = 256 };

struct CUstream_st {
	int is_open;
};

struct CUevent_st {
	int is_open;
};

/* --- Errors --- */

static const struct error {
	cudaError_t error;
	const char *name, *text;
} errors[] = {
#define ERROR(name, text)                                                                          \
	{                                                                                          \
		name, #name, text                                                                  \
	}
	ERROR(cudaSuccess, "no error"),
	ERROR(cudaErrorMemoryAllocation, "out of memory"),
	ERROR(cudaErrorInitializationError, "initialization error"),
	ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient"),
	ERROR(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
	ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
	ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
	ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
	ERROR(cudaErrorNoKernelImageForDevice,
	      "no kernel image is available for execution on the device"),
	ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
	ERROR(cudaErrorUnsupportedPtxVersion,
	      "the provided PTX was compiled with an unsupported toolchain."),
	ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
	ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
	ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
	ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
#undef ERROR
};

static const struct error *find_error(cudaError_t error)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].error == error)
			return &errors[i];
	abort();
}

const char *cudaGetErrorName(cudaError_t error)
{
	return find_error(error)->name;
}

const char *cudaGetErrorString(cudaError_t error)
{
	return find_error(error)->text;
}

/* Launches do not fail here. */
cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

/* --- The device --- */

cudaError_t cudaGetDeviceCount(int *ret_n)
{
	*ret_n = 1;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	(void)device;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret_properties, int device)
{
	(void)device;
	strcpy(ret_properties->name, "kernels on the CPU");
	ret_properties->major = 9;
	ret_properties->minor = 0;
	return cudaSuccess;
}

/* Whoever includes the kernels has filled it in (cuda_on_cpu.h). */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel)
{
	(void)attributes, (void)kernel;
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *ret_free_nbytes, size_t *ret_total_nbytes)
{
	*ret_free_nbytes = *ret_total_nbytes = (size_t)1 << 30;
	return cudaSuccess;
}

/* --- Memory --- */

static cudaError_t allocate(void **ret_memory, size_t nbytes)
{
	return posix_memalign(ret_memory, ALIGNMENT_NBYTES, nbytes ? nbytes : 1) == 0 ?
		       cudaSuccess :
		       cudaErrorMemoryAllocation;
}

cudaError_t cudaMalloc(void **ret_memory, size_t nbytes)
{
	return allocate(ret_memory, nbytes);
}

cudaError_t cudaFree(void *memory)
{
	free(memory);
	return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t nbytes, unsigned flags)
{
	(void)memory, (void)nbytes, (void)flags;
	return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
	(void)memory;
	return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *ret_attributes,
				     const void *memory)
{
	(void)memory;
	ret_attributes->type = cudaMemoryTypeDevice;
	return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind,
			    cudaStream_t stream)
{
	(void)kind, (void)stream;
	memmove(to, from, nbytes);
	return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t nbytes, cudaStream_t stream)
{
	(void)stream;
	memset(to, byte, nbytes);
	return cudaSuccess;
}

/* --- Streams and events --- */

static cudaError_t all_open(int is_open, int and_this)
{
	return is_open && and_this ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
	*ret_least = *ret_greatest = 0;
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret_stream, unsigned flags, int priority)
{
	void *stream;
	const cudaError_t error = allocate(&stream, sizeof **ret_stream);

	(void)flags, (void)priority;
	if (error)
		return error;
	*ret_stream = stream;
	(*ret_stream)->is_open = 1;
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	const cudaError_t error = all_open(stream->is_open, 1);

	free(stream);
	return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return all_open(stream->is_open, 1);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	(void)flags;
	return all_open(stream->is_open, event->is_open);
}

static cudaError_t open_event(cudaEvent_t *ret_event)
{
	void *event;
	const cudaError_t error = allocate(&event, sizeof **ret_event);

	if (error)
		return error;
	*ret_event = event;
	(*ret_event)->is_open = 1;
	return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *ret_event)
{
	return open_event(ret_event);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned flags)
{
	(void)flags;
	return open_event(ret_event);
}

/* Stream 0 is always there. */
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return all_open(event->is_open, !stream || stream->is_open);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return all_open(event->is_open, 1);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	const cudaError_t error = all_open(event->is_open, 1);

	free(event);
	return error;
}

cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t begin, cudaEvent_t end)
{
	*ret_ms = 0;
	return all_open(begin->is_open, end->is_open);
}
