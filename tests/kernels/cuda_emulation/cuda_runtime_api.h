/*
 * cuda_runtime_api.h - the part of CUDA's runtime that the CUDA back end needs, on the CPU
 *
 * Replaces the toolkit's header of the same name; cuda_runtime.c is the runtime. The kernels of
 * kernels_on_cpu.cc run when they are launched, so queued operations are complete at once. Streams
 * and events only exist, and device memory is host memory.
 *
 * There are two devices. A kernel ends the process if its stream belongs to another device than
 * that of the thread, or if an argument is an address in the memory of another device. So does a
 * copy from another device without peer access.
 *
 * The functions are linked, not inline, so that tests can wrap them, as with the toolkit
 * (tests/fault/wrap_cuda.c).
 */
#pragma once

#include <stddef.h>

/* The toolkit's numbers. */
typedef enum {
	cudaSuccess = 0,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInitializationError = 3,
	cudaErrorInsufficientDriver = 35,
	cudaErrorDevicesUnavailable = 46,
	cudaErrorInvalidDeviceFunction = 98,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorInvalidKernelImage = 200,
	cudaErrorNoKernelImageForDevice = 209,
	cudaErrorECCUncorrectable = 214,
	cudaErrorPeerAccessUnsupported = 217,
	cudaErrorUnsupportedPtxVersion = 222,
	cudaErrorInvalidResourceHandle = 400,
	cudaErrorIllegalAddress = 700,
	cudaErrorLaunchOutOfResources = 701,
	cudaErrorPeerAccessAlreadyEnabled = 704,
	cudaErrorLaunchFailure = 719,
} cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDefault };
enum { cudaMemoryTypeHost, cudaMemoryTypeDevice };
enum { cudaStreamNonBlocking, cudaEventDisableTiming, cudaHostRegisterPortable };

struct cudaPointerAttributes {
	int type;
};

typedef struct {
	char bytes[16];
} cudaUUID_t;

struct cudaDeviceProp {
	char name[256];
	cudaUUID_t uuid;
	int major, minor;
	int pciDomainID, pciBusID, pciDeviceID;
};

struct cudaFuncAttributes {
	int ptxVersion;
};

cudaError_t cudaGetLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

cudaError_t cudaGetDeviceCount(int *ret_n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *ret_device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret_properties, int device);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel);
cudaError_t cudaMemGetInfo(size_t *ret_free_nbytes, size_t *ret_total_nbytes);

cudaError_t cudaMalloc(void **ret_memory, size_t nbytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t nbytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *ret_attributes,
				     const void *memory);
cudaError_t cudaDeviceCanAccessPeer(int *ret_can, int device, int other);
cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned flags);
cudaError_t cudaMemcpy(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind,
			    cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t nbytes, cudaStream_t stream);

cudaError_t cudaDeviceGetStreamPriorityRange(int *ret_least, int *ret_greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *ret_stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);

cudaError_t cudaEventCreate(cudaEvent_t *ret_event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret_event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t begin, cudaEvent_t end);

/* --- What CUDA does not have --- */

/* A kernel with these bytes among its arguments is launched in the stream. */
void runtime_note_launch(cudaStream_t stream, const void *argument, size_t nbytes);

/* How many events there have been. */
unsigned runtime_n_events_made(void);
