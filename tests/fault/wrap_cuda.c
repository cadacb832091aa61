/*
 * wrap_cuda.c - doubles of the calls of CUDA's runtime, with fault points (see fault_points.h)
 *
 * They call CUDA's runtime, or the one that runs kernels on the CPU (tests/kernels/cuda_emulation).
 *
 * Errors behave as in CUDA. An error is also the last error of the thread, until
 * cudaGetLastError() returns it: code that does not check a failing call finds the error at the
 * next launch, which calls that function. A wait fails after waiting. A release fails after
 * releasing, because the process lives on; but gsort must call it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "src/device/cuda/cuda_device.h"
#include "tests/fault/fault_points.h"
#include "tests/fault/trap_kernel.h"

static _Thread_local cudaError_t last_error;

/* --- The device of a call --- */

enum { NO_CUDA_DEVICE = -1, MAX_CUDA_OBJECTS = 1 << 14 };

/* Streams, events and memory, with their device. */
static struct cuda_object {
	const void *handle;
	int device;
} objects[MAX_CUDA_OBJECTS];
static size_t n_objects;
static pthread_mutex_t objects_lock = PTHREAD_MUTEX_INITIALIZER;

/* Return the device of the calling thread. */
static int current_device(void)
{
	int device = NO_CUDA_DEVICE;

	return cudaGetDevice(&device) == cudaSuccess ? device : NO_CUDA_DEVICE;
}

static void add_object(const void *handle)
{
	pthread_mutex_lock(&objects_lock);
	if (n_objects == MAX_CUDA_OBJECTS)
		abort();
	objects[n_objects++] = (struct cuda_object){ handle, current_device() };
	pthread_mutex_unlock(&objects_lock);
}

static void remove_object(const void *handle)
{
	pthread_mutex_lock(&objects_lock);
	for (size_t i = 0; i < n_objects; i++)
		if (objects[i].handle == handle) {
			objects[i] = objects[--n_objects];
			break;
		}
	pthread_mutex_unlock(&objects_lock);
}

/* Return the device of an object. For unknown ones, such as stream 0, it is the thread's device. */
static int object_device(const void *handle)
{
	int device = NO_CUDA_DEVICE;

	pthread_mutex_lock(&objects_lock);
	for (size_t i = 0; i < n_objects && device == NO_CUDA_DEVICE; i++)
		if (objects[i].handle == handle)
			device = objects[i].device;
	pthread_mutex_unlock(&objects_lock);
	return device == NO_CUDA_DEVICE ? current_device() : device;
}

/* --- The calls --- */

/* Only TEST_DEVICE_CUDA. Called by the thread that calls gsort's main(). */
void fault_points_set_device(enum test_device_kind kind)
{
	(void)kind;
	last_error = cudaSuccess;
}

static cudaError_t inject_error(enum fault_point point, int device)
{
	switch (fault_point_pass_on_device(point, device)) {
	case EFFECT_FAIL:
		return last_error = (cudaError_t)errno;
	case EFFECT_TRAP_DEVICE:
		if (launch_trap)
			launch_trap();
		return cudaSuccess; /* the next call returns the error */
	default:
		return cudaSuccess;
	}
}

#define DECLARE_WRAPPER(name, parameters)                                                          \
	cudaError_t __real_##name parameters;                                                      \
	cudaError_t __wrap_##name parameters

/* Define a double that does nothing if it fails. device: of the call. */
#define WRAP_CUDA_CALL(point, device, name, parameters, arguments)                                 \
	DECLARE_WRAPPER(name, parameters);                                                         \
	cudaError_t __wrap_##name parameters                                                       \
	{                                                                                          \
		const cudaError_t error = inject_error(point, device);                             \
                                                                                                   \
		return error ? error : __real_##name arguments;                                    \
	}

/* Define the double of a function that creates an object. */
#define WRAP_CUDA_CREATE(point, handle, name, parameters, arguments)                               \
	DECLARE_WRAPPER(name, parameters);                                                         \
	cudaError_t __wrap_##name parameters                                                       \
	{                                                                                          \
		cudaError_t error = inject_error(point, current_device());                         \
                                                                                                   \
		if (!error)                                                                        \
			error = __real_##name arguments;                                           \
		fault_points_count_resource(RESOURCE_DEVICE_OBJECT, error == cudaSuccess);         \
		if (!error)                                                                        \
			add_object(handle);                                                        \
		return error;                                                                      \
	}

/* Define a double that always calls the real function, which frees n_taken objects. */
#define WRAP_CUDA_ALWAYS_CALLED(point, n_taken, handle, name, parameters, arguments)               \
	DECLARE_WRAPPER(name, parameters);                                                         \
	cudaError_t __wrap_##name parameters                                                       \
	{                                                                                          \
		const int device = object_device(handle);                                          \
		cudaError_t real, error;                                                           \
                                                                                                   \
		if (n_taken)                                                                       \
			remove_object(handle);                                                     \
		real = __real_##name arguments;                                                    \
		error = inject_error(point, device);                                               \
		fault_points_count_resource(RESOURCE_DEVICE_OBJECT, -(n_taken));                   \
		return error ? error : real;                                                       \
	}

/* clang-format off */
WRAP_CUDA_CALL(POINT_DEVICE_OPEN, NO_CUDA_DEVICE, cudaGetDeviceCount, (int *ret_n), (ret_n))
WRAP_CUDA_CALL(POINT_DEVICE_OPEN, gpu, cudaGetDeviceProperties,
	(struct cudaDeviceProp * ret_properties, int gpu), (ret_properties, gpu))
WRAP_CUDA_CALL(POINT_DEVICE_OPEN, current_device(), cudaMemGetInfo,
	(size_t * ret_free, size_t *ret_total),
	(ret_free, ret_total))
WRAP_CUDA_CALL(POINT_DEVICE_KERNEL_IMAGE, current_device(), cudaFuncGetAttributes,
	(struct cudaFuncAttributes * attributes, const void *kernel), (attributes, kernel))
WRAP_CUDA_CALL(POINT_DEVICE_SELECT, gpu, cudaSetDevice, (int gpu), (gpu))

WRAP_CUDA_CALL(POINT_DEVICE_PEER, gpu, cudaDeviceCanAccessPeer, (int *ret_can, int gpu, int peer),
	(ret_can, gpu, peer))
WRAP_CUDA_CALL(POINT_DEVICE_PEER, current_device(), cudaDeviceEnablePeerAccess,
	(int peer, unsigned flags),
	(peer, flags))
WRAP_CUDA_CALL(POINT_DEVICE_PEER, current_device(), cudaMemcpy,
	(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind),
	(to, from, nbytes, kind))

WRAP_CUDA_CREATE(POINT_DEVICE_ALLOCATION, *ret_memory, cudaMalloc,
	(void **ret_memory, size_t nbytes), (ret_memory, nbytes))
WRAP_CUDA_CREATE(POINT_DEVICE_ALLOCATION, memory, cudaHostRegister,
	(void *memory, size_t nbytes, unsigned flags), (memory, nbytes, flags))
WRAP_CUDA_ALWAYS_CALLED(POINT_DEVICE_FREE, memory != NULL, memory, cudaFree,
	(void *memory), (memory))
WRAP_CUDA_ALWAYS_CALLED(POINT_DEVICE_FREE, 1, memory, cudaHostUnregister, (void *memory), (memory))

WRAP_CUDA_CALL(POINT_DEVICE_QUEUE, current_device(), cudaDeviceGetStreamPriorityRange,
	(int *ret_lowest, int *ret_highest), (ret_lowest, ret_highest))
WRAP_CUDA_CREATE(POINT_DEVICE_QUEUE, *ret_stream, cudaStreamCreateWithPriority,
	(cudaStream_t * ret_stream, unsigned flags, int priority), (ret_stream, flags, priority))
WRAP_CUDA_ALWAYS_CALLED(POINT_DEVICE_FREE, 1, stream, cudaStreamDestroy,
	(cudaStream_t stream), (stream))
WRAP_CUDA_ALWAYS_CALLED(POINT_DEVICE_WAIT, 0, stream, cudaStreamSynchronize,
	(cudaStream_t stream), (stream))

WRAP_CUDA_CREATE(POINT_DEVICE_QUEUE, *ret_event, cudaEventCreate,
	(cudaEvent_t * ret_event), (ret_event))
WRAP_CUDA_CREATE(POINT_DEVICE_QUEUE, *ret_event, cudaEventCreateWithFlags,
	(cudaEvent_t * ret_event, unsigned flags), (ret_event, flags))
WRAP_CUDA_ALWAYS_CALLED(POINT_DEVICE_FREE, 1, event, cudaEventDestroy, (cudaEvent_t event), (event))
WRAP_CUDA_CALL(POINT_DEVICE_EVENT, object_device(event), cudaEventRecord,
	(cudaEvent_t event, cudaStream_t stream), (event, stream))
WRAP_CUDA_CALL(POINT_DEVICE_EVENT, object_device(stream), cudaStreamWaitEvent,
	(cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags))
WRAP_CUDA_ALWAYS_CALLED(POINT_DEVICE_WAIT, 0, event, cudaEventSynchronize,
	(cudaEvent_t event), (event))
WRAP_CUDA_CALL(POINT_DEVICE_TIMING, object_device(end), cudaEventElapsedTime,
	(float *ret_ms, cudaEvent_t begin, cudaEvent_t end), (ret_ms, begin, end))

WRAP_CUDA_CALL(POINT_DEVICE_COPY, current_device(), cudaPointerGetAttributes,
	(struct cudaPointerAttributes * ret_attributes, const void *memory),
	(ret_attributes, memory))
WRAP_CUDA_CALL(POINT_DEVICE_COPY, object_device(stream), cudaMemcpyAsync,
	(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind, cudaStream_t stream),
	(to, from, nbytes, kind, stream))
WRAP_CUDA_CALL(POINT_DEVICE_COPY, object_device(stream), cudaMemsetAsync,
	(void *to, int byte, size_t nbytes, cudaStream_t stream), (to, byte, nbytes, stream))
/* clang-format on */

/* Called by each launch_*() of kernels/ after the launch, and by src/ after a failed call. */
DECLARE_WRAPPER(cudaGetLastError, (void));
cudaError_t __wrap_cudaGetLastError(void)
{
	const cudaError_t real_error = __real_cudaGetLastError();
	cudaError_t error = last_error ? last_error : real_error;

	if (!error)
		error = inject_error(POINT_DEVICE_LAUNCH, current_device());
	last_error = cudaSuccess;
	return error;
}

/* Also creates the contexts, which keep descriptors open. */
unsigned fault_points_n_devices(const char **ret_reason)
{
	int n = 0;
	cudaError_t error = __real_cudaGetDeviceCount(&n);

	for (int i = n - 1; i >= 0 && error == cudaSuccess; i--) {
		error = __real_cudaSetDevice(i);
		if (error == cudaSuccess)
			error = __real_cudaFree(NULL);
	}
	*ret_reason = error == cudaSuccess ? "none found" : cudaGetErrorString(error);
	return error == cudaSuccess ? (unsigned)n : 0;
}
