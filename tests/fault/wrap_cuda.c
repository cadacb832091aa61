/*
 * wrap_cuda - the calls of CUDA's runtime, each past a fault point (see fault_points.h)
 *
 * What is under them is CUDA's runtime, or the one that runs the kernels on the CPU
 * (tests/kernels/cuda_emulation/).
 *
 * An error is what CUDA makes of it. It is also the last error of the thread, until
 * cudaGetLastError() has told it: whoever does not ask after a failing call finds the error at the
 * next launch, which asks. What waits has waited when it fails. What is given back is given back
 * when that fails, for the program under test lives on; but gsort has to try.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/device/cuda/cuda_device.h"
#include "tests/fault/fault_points.h"
#include "tests/fault/trap_kernel.h"

static _Thread_local cudaError_t last_error;

/* --- Which device a call is made on --- */

enum { NO_DEVICE = -1, MOST_GIVEN = 1 << 14 };

/* What a device gave: streams, events, memory. */
static struct given {
	const void *thing;
	int device;
} given[MOST_GIVEN];
static size_t n_given;
static pthread_mutex_t given_lock = PTHREAD_MUTEX_INITIALIZER;

/* That of the calling thread. */
static int here(void)
{
	int device = NO_DEVICE;

	return cudaGetDevice(&device) == cudaSuccess ? device : NO_DEVICE;
}

static void note_given(const void *thing)
{
	pthread_mutex_lock(&given_lock);
	if (n_given == MOST_GIVEN)
		abort();
	given[n_given++] = (struct given){ thing, here() };
	pthread_mutex_unlock(&given_lock);
}

static void forget_given(const void *thing)
{
	pthread_mutex_lock(&given_lock);
	for (size_t i = 0; i < n_given; i++)
		if (given[i].thing == thing) {
			given[i] = given[--n_given];
			break;
		}
	pthread_mutex_unlock(&given_lock);
}

/* Of what was not given, as stream 0, it is the thread's. */
static int device_of(const void *thing)
{
	int device = NO_DEVICE;

	pthread_mutex_lock(&given_lock);
	for (size_t i = 0; i < n_given && device == NO_DEVICE; i++)
		if (given[i].thing == thing)
			device = given[i].device;
	pthread_mutex_unlock(&given_lock);
	return device == NO_DEVICE ? here() : device;
}

/* --- The calls --- */

/* The shape is SHAPE_CUDA; called by the thread that calls gsort's main(). */
void points_set_device(enum device_shape shape)
{
	(void)shape;
	last_error = cudaSuccess;
}

static cudaError_t injected(enum point point, int device)
{
	switch (point_pass_on(point, device)) {
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

/* It fails, and does nothing. device: that it is made on. */
#define TWIN_OF_CUDA(point, device, name, parameters, arguments)                                   \
	DECLARE(name, parameters);                                                                 \
	cudaError_t __wrap_##name parameters                                                       \
	{                                                                                          \
		const cudaError_t error = injected(point, device);                                 \
                                                                                                   \
		return error ? error : __real_##name arguments;                                    \
	}

/* The same of what gives a thing. */
#define TWIN_THAT_GIVES(point, thing, name, parameters, arguments)                                 \
	DECLARE(name, parameters);                                                                 \
	cudaError_t __wrap_##name parameters                                                       \
	{                                                                                          \
		cudaError_t error = injected(point, here());                                       \
                                                                                                   \
		if (!error)                                                                        \
			error = __real_##name arguments;                                           \
		points_gave(THING_OF_DEVICE, error == cudaSuccess);                                \
		if (!error)                                                                        \
			note_given(thing);                                                         \
		return error;                                                                      \
	}

/* What it is to do with a thing it has done when it fails; it has taken n_taken back. */
#define TWIN_IN_ANY_CASE(point, n_taken, thing, name, parameters, arguments)                       \
	DECLARE(name, parameters);                                                                 \
	cudaError_t __wrap_##name parameters                                                       \
	{                                                                                          \
		const int device = device_of(thing);                                               \
		cudaError_t real, error;                                                           \
                                                                                                   \
		if (n_taken)                                                                       \
			forget_given(thing);                                                       \
		real = __real_##name arguments;                                                    \
		error = injected(point, device);                                                   \
		points_gave(THING_OF_DEVICE, -(n_taken));                                          \
		return error ? error : real;                                                       \
	}

/* clang-format off */
TWIN_OF_CUDA(POINT_DEVICE_OPEN, NO_DEVICE, cudaGetDeviceCount, (int *ret_n), (ret_n))
TWIN_OF_CUDA(POINT_DEVICE_OPEN, gpu, cudaGetDeviceProperties,
	(struct cudaDeviceProp * ret_properties, int gpu), (ret_properties, gpu))
TWIN_OF_CUDA(POINT_DEVICE_OPEN, here(), cudaMemGetInfo, (size_t * ret_free, size_t *ret_total),
	(ret_free, ret_total))
TWIN_OF_CUDA(POINT_DEVICE_CODE, here(), cudaFuncGetAttributes,
	(struct cudaFuncAttributes * attributes, const void *kernel), (attributes, kernel))
TWIN_OF_CUDA(POINT_DEVICE_USE, gpu, cudaSetDevice, (int gpu), (gpu))

TWIN_OF_CUDA(POINT_DEVICE_PEER, gpu, cudaDeviceCanAccessPeer, (int *ret_can, int gpu, int other),
	(ret_can, gpu, other))
TWIN_OF_CUDA(POINT_DEVICE_PEER, here(), cudaDeviceEnablePeerAccess, (int other, unsigned flags),
	(other, flags))
TWIN_OF_CUDA(POINT_DEVICE_PEER, here(), cudaMemcpy,
	(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind),
	(to, from, nbytes, kind))

TWIN_THAT_GIVES(POINT_DEVICE_ALLOCATION, *ret_memory, cudaMalloc,
	(void **ret_memory, size_t nbytes), (ret_memory, nbytes))
TWIN_THAT_GIVES(POINT_DEVICE_ALLOCATION, memory, cudaHostRegister,
	(void *memory, size_t nbytes, unsigned flags), (memory, nbytes, flags))
TWIN_IN_ANY_CASE(POINT_DEVICE_RELEASE, memory != NULL, memory, cudaFree, (void *memory), (memory))
TWIN_IN_ANY_CASE(POINT_DEVICE_RELEASE, 1, memory, cudaHostUnregister, (void *memory), (memory))

TWIN_OF_CUDA(POINT_DEVICE_LANE, here(), cudaDeviceGetStreamPriorityRange,
	(int *ret_least, int *ret_most), (ret_least, ret_most))
TWIN_THAT_GIVES(POINT_DEVICE_LANE, *ret_stream, cudaStreamCreateWithPriority,
	(cudaStream_t * ret_stream, unsigned flags, int priority), (ret_stream, flags, priority))
TWIN_IN_ANY_CASE(POINT_DEVICE_RELEASE, 1, stream, cudaStreamDestroy,
	(cudaStream_t stream), (stream))
TWIN_IN_ANY_CASE(POINT_DEVICE_WAIT, 0, stream, cudaStreamSynchronize,
	(cudaStream_t stream), (stream))

TWIN_THAT_GIVES(POINT_DEVICE_LANE, *ret_event, cudaEventCreate,
	(cudaEvent_t * ret_event), (ret_event))
TWIN_THAT_GIVES(POINT_DEVICE_LANE, *ret_event, cudaEventCreateWithFlags,
	(cudaEvent_t * ret_event, unsigned flags), (ret_event, flags))
TWIN_IN_ANY_CASE(POINT_DEVICE_RELEASE, 1, event, cudaEventDestroy, (cudaEvent_t event), (event))
TWIN_OF_CUDA(POINT_DEVICE_EVENT, device_of(event), cudaEventRecord,
	(cudaEvent_t event, cudaStream_t stream), (event, stream))
TWIN_OF_CUDA(POINT_DEVICE_EVENT, device_of(stream), cudaStreamWaitEvent,
	(cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags))
TWIN_IN_ANY_CASE(POINT_DEVICE_WAIT, 0, event, cudaEventSynchronize, (cudaEvent_t event), (event))
TWIN_OF_CUDA(POINT_DEVICE_CLOCK, device_of(end), cudaEventElapsedTime,
	(float *ret_ms, cudaEvent_t begin, cudaEvent_t end), (ret_ms, begin, end))

TWIN_OF_CUDA(POINT_DEVICE_COPY, here(), cudaPointerGetAttributes,
	(struct cudaPointerAttributes * ret_attributes, const void *memory),
	(ret_attributes, memory))
TWIN_OF_CUDA(POINT_DEVICE_COPY, device_of(stream), cudaMemcpyAsync,
	(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind, cudaStream_t stream),
	(to, from, nbytes, kind, stream))
TWIN_OF_CUDA(POINT_DEVICE_COPY, device_of(stream), cudaMemsetAsync,
	(void *to, int byte, size_t nbytes, cudaStream_t stream), (to, byte, nbytes, stream))
/* clang-format on */

/* What a launch_* of kernels/ asks for when it has launched, and src/ when a call has failed. */
DECLARE(cudaGetLastError, (void));
cudaError_t __wrap_cudaGetLastError(void)
{
	const cudaError_t real = __real_cudaGetLastError();
	cudaError_t error = last_error ? last_error : real;

	if (!error)
		error = injected(POINT_DEVICE_LAUNCH, here());
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
