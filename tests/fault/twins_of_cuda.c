/*
 * twins_of_cuda - the calls of CUDA's runtime, each past a fault point (see points.h)
 *
 * What is under them is CUDA's runtime, or the one that runs the kernels on the CPU
 * (tests/kernels/runtime_on_cpu/).
 *
 * An error is what CUDA makes of it. It is also the last error of the thread, until
 * cudaGetLastError() has told it: whoever does not ask after a failing call finds the error at the
 * next launch, which asks. What waits has waited when it fails. What is given back is given back
 * when that fails, for the program under test lives on; but gsort has to try.
 */
#include <errno.h>

#include "src/device/cuda/cuda_device.h"
#include "tests/fault/points.h"
#include "tests/fault/trap.h"

static _Thread_local cudaError_t last_error;

/* The shape is SHAPE_CUDA; called by the thread that calls gsort's main(). */
void points_set_device(enum device_shape shape)
{
	(void)shape;
	last_error = cudaSuccess;
}

static cudaError_t injected(enum point point)
{
	switch (point_pass(point)) {
	case EFFECT_FAIL:
		return last_error = (cudaError_t)errno;
	case EFFECT_DIE:
		if (launch_trap)
			launch_trap();
		return cudaSuccess; /* whoever asks next will hear of it */
	default:
		return cudaSuccess;
	}
}

#define DECLARE(name, parameters)                                                                  \
	cudaError_t __real_##name parameters;                                                      \
	cudaError_t __wrap_##name parameters

/* It fails, and does nothing. */
#define TWIN_OF_CUDA(point, name, parameters, arguments)                                           \
	DECLARE(name, parameters);                                                                 \
	cudaError_t __wrap_##name parameters                                                       \
	{                                                                                          \
		const cudaError_t error = injected(point);                                         \
                                                                                                   \
		return error ? error : __real_##name arguments;                                    \
	}

/* The same of what gives something. */
#define TWIN_THAT_GIVES(point, name, parameters, arguments)                                        \
	DECLARE(name, parameters);                                                                 \
	cudaError_t __wrap_##name parameters                                                       \
	{                                                                                          \
		cudaError_t error = injected(point);                                               \
                                                                                                   \
		if (!error)                                                                        \
			error = __real_##name arguments;                                           \
		points_gave(THING_OF_DEVICE, error == cudaSuccess);                                \
		return error;                                                                      \
	}

/* What it is to do it has done when it fails; it has taken n_taken back. */
#define TWIN_IN_ANY_CASE(point, n_taken, name, parameters, arguments)                              \
	DECLARE(name, parameters);                                                                 \
	cudaError_t __wrap_##name parameters                                                       \
	{                                                                                          \
		const cudaError_t real = __real_##name arguments, error = injected(point);         \
                                                                                                   \
		points_gave(THING_OF_DEVICE, -(n_taken));                                          \
		return error ? error : real;                                                       \
	}

/* clang-format off */
TWIN_OF_CUDA(POINT_DEVICE_OPEN, cudaGetDeviceCount, (int *ret_n), (ret_n))
TWIN_OF_CUDA(POINT_DEVICE_OPEN, cudaGetDeviceProperties,
	(struct cudaDeviceProp * ret_properties, int gpu), (ret_properties, gpu))
TWIN_OF_CUDA(POINT_DEVICE_OPEN, cudaMemGetInfo, (size_t * ret_free, size_t *ret_total),
	(ret_free, ret_total))
TWIN_OF_CUDA(POINT_DEVICE_CODE, cudaFuncGetAttributes,
	(struct cudaFuncAttributes * attributes, const void *kernel), (attributes, kernel))
TWIN_OF_CUDA(POINT_DEVICE_USE, cudaSetDevice, (int gpu), (gpu))

TWIN_OF_CUDA(POINT_DEVICE_PEER, cudaDeviceCanAccessPeer, (int *ret_can, int gpu, int other),
	(ret_can, gpu, other))
TWIN_OF_CUDA(POINT_DEVICE_PEER, cudaDeviceEnablePeerAccess, (int other, unsigned flags),
	(other, flags))
TWIN_OF_CUDA(POINT_DEVICE_PEER, cudaMemcpy,
	(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind),
	(to, from, nbytes, kind))

TWIN_THAT_GIVES(POINT_DEVICE_ALLOCATION, cudaMalloc, (void **ret_memory, size_t nbytes),
	(ret_memory, nbytes))
TWIN_THAT_GIVES(POINT_DEVICE_ALLOCATION, cudaHostRegister,
	(void *memory, size_t nbytes, unsigned flags), (memory, nbytes, flags))
TWIN_IN_ANY_CASE(POINT_DEVICE_RELEASE, memory != NULL, cudaFree, (void *memory), (memory))
TWIN_IN_ANY_CASE(POINT_DEVICE_RELEASE, 1, cudaHostUnregister, (void *memory), (memory))

TWIN_OF_CUDA(POINT_DEVICE_LANE, cudaDeviceGetStreamPriorityRange, (int *ret_least, int *ret_most),
	(ret_least, ret_most))
TWIN_THAT_GIVES(POINT_DEVICE_LANE, cudaStreamCreateWithPriority,
	(cudaStream_t * ret_stream, unsigned flags, int priority), (ret_stream, flags, priority))
TWIN_IN_ANY_CASE(POINT_DEVICE_RELEASE, 1, cudaStreamDestroy, (cudaStream_t stream), (stream))
TWIN_IN_ANY_CASE(POINT_DEVICE_WAIT, 0, cudaStreamSynchronize, (cudaStream_t stream), (stream))

TWIN_THAT_GIVES(POINT_DEVICE_LANE, cudaEventCreate, (cudaEvent_t * ret_event), (ret_event))
TWIN_THAT_GIVES(POINT_DEVICE_LANE, cudaEventCreateWithFlags,
	(cudaEvent_t * ret_event, unsigned flags), (ret_event, flags))
TWIN_IN_ANY_CASE(POINT_DEVICE_RELEASE, 1, cudaEventDestroy, (cudaEvent_t event), (event))
TWIN_OF_CUDA(POINT_DEVICE_EVENT, cudaEventRecord, (cudaEvent_t event, cudaStream_t stream),
	(event, stream))
TWIN_OF_CUDA(POINT_DEVICE_EVENT, cudaStreamWaitEvent,
	(cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags))
TWIN_IN_ANY_CASE(POINT_DEVICE_WAIT, 0, cudaEventSynchronize, (cudaEvent_t event), (event))
TWIN_OF_CUDA(POINT_DEVICE_CLOCK, cudaEventElapsedTime,
	(float *ret_ms, cudaEvent_t begin, cudaEvent_t end), (ret_ms, begin, end))

TWIN_OF_CUDA(POINT_DEVICE_COPY, cudaPointerGetAttributes,
	(struct cudaPointerAttributes * ret_attributes, const void *memory),
	(ret_attributes, memory))
TWIN_OF_CUDA(POINT_DEVICE_COPY, cudaMemcpyAsync,
	(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind, cudaStream_t stream),
	(to, from, nbytes, kind, stream))
TWIN_OF_CUDA(POINT_DEVICE_COPY, cudaMemsetAsync,
	(void *to, int byte, size_t nbytes, cudaStream_t stream), (to, byte, nbytes, stream))
/* clang-format on */

/* What a launch_* of kernels/ asks for when it has launched, and src/ when a call has failed. */
DECLARE(cudaGetLastError, (void));
cudaError_t __wrap_cudaGetLastError(void)
{
	const cudaError_t real = __real_cudaGetLastError();
	cudaError_t error = last_error ? last_error : real;

	if (!error)
		error = injected(POINT_DEVICE_LAUNCH);
	last_error = cudaSuccess;
	return error;
}

/* It also makes the contexts, which keep descriptors. */
unsigned points_n_devices(const char **ret_why)
{
	int n = 0;
	cudaError_t error = __real_cudaGetDeviceCount(&n);

	for (int i = n - 1; i >= 0 && error == cudaSuccess; i--) {
		error = __real_cudaSetDevice(i);
		if (error == cudaSuccess)
			error = __real_cudaFree(NULL);
	}
	*ret_why = error == cudaSuccess ? "there is none" : cudaGetErrorString(error);
	return error == cudaSuccess ? (unsigned)n : 0;
}
