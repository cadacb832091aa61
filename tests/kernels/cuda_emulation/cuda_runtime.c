/*
 * cuda_runtime.c - the part of CUDA's runtime that the CUDA back end needs, on the CPU (see
 * cuda_runtime_api.h)
 *
 * Streams and events are separate allocations, which each call with them reads. So AddressSanitizer
 * finds uses after destruction, and leaks. They are not allocated by malloc(), which fails on
 * purpose in tests/fault/.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/cuda_emulation/cuda_runtime_api.h"

enum { ALIGNMENT_NBYTES = 256 };

struct CUstream_st {
	int is_open, device;
};

struct CUevent_st {
	int is_open, device;
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
	ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
	ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
	ERROR(cudaErrorNoKernelImageForDevice,
	      "no kernel image is available for execution on the device"),
	ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
	ERROR(cudaErrorPeerAccessUnsupported,
	      "peer access is not supported between these two devices"),
	ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
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

/* Launches do not fail. */
cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

/* --- The devices --- */

enum { N_DEVICES = 2, NO_OWNER = -1 };

static _Thread_local int current;
static atomic_bool peers[N_DEVICES][N_DEVICES]; /* peers[a][b]: a may read the memory of b */

cudaError_t cudaGetDeviceCount(int *ret_n)
{
	*ret_n = N_DEVICES;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	if (device < 0 || device >= N_DEVICES)
		return cudaErrorInvalidDevice;
	current = device;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ret_device)
{
	*ret_device = current;
	return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *ret_can, int device, int other)
{
	*ret_can = device != other;
	return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned flags)
{
	(void)flags;
	if (other == current)
		return cudaErrorInvalidDevice;
	return atomic_exchange(&peers[current][other], true) ? cudaErrorPeerAccessAlreadyEnabled :
							       cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret_properties, int device)
{
	*ret_properties = (struct cudaDeviceProp){ .uuid.bytes = { (char)(1 + device) } };
	strcpy(ret_properties->name, "kernels on the CPU");
	ret_properties->major = 9;
	ret_properties->minor = 0;
	ret_properties->pciDomainID = 0xffff; /* none */
	ret_properties->pciBusID = ret_properties->pciDeviceID = 0;
	return cudaSuccess;
}

/* Attributes are set by the file that includes the kernels (cuda_on_cpu.h). */
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

enum { MAX_OWNED = 1 << 14 };

static struct owned {
	const char *begin, *end;
	int device;
} owned[MAX_OWNED];
static size_t n_owned;
static pthread_mutex_t owned_lock = PTHREAD_MUTEX_INITIALIZER;

static _Noreturn void report_misuse(const char *what)
{
	fprintf(stderr, "runtime on the CPU: %s\n", what);
	abort();
}

static void add_owned(const void *memory, size_t nbytes)
{
	pthread_mutex_lock(&owned_lock);
	if (n_owned == MAX_OWNED)
		report_misuse("so many allocations are not expected");
	owned[n_owned++] = (struct owned){ memory, (const char *)memory + nbytes, current };
	pthread_mutex_unlock(&owned_lock);
}

static void remove_owned(const void *memory)
{
	pthread_mutex_lock(&owned_lock);
	for (size_t i = 0; i < n_owned; i++)
		if (owned[i].begin == memory) {
			owned[i] = owned[--n_owned];
			break;
		}
	pthread_mutex_unlock(&owned_lock);
}

static int owner_of(const void *at)
{
	int owner = NO_OWNER;

	pthread_mutex_lock(&owned_lock);
	for (size_t i = 0; i < n_owned && owner == NO_OWNER; i++)
		if ((const char *)at >= owned[i].begin && (const char *)at < owned[i].end)
			owner = owned[i].device;
	pthread_mutex_unlock(&owned_lock);
	return owner;
}

static int device_of(cudaStream_t stream)
{
	return stream ? stream->device : current;
}

/* Return whether a device may read memory of `owner`, which may be none. */
static bool may_read(int device, int owner)
{
	return owner == NO_OWNER || owner == device || atomic_load(&peers[device][owner]);
}

/* Check each word of the arguments that could be an address. */
void runtime_note_launch(cudaStream_t stream, const void *argument, size_t nbytes)
{
	const char *word;

	if (device_of(stream) != current)
		report_misuse("a kernel is launched in a stream of another device");
	for (size_t i = 0; i + sizeof word <= nbytes; i += sizeof word) {
		int owner;

		memcpy(&word, (const char *)argument + i, sizeof word);
		owner = owner_of(word);
		if (!may_read(current, owner))
			report_misuse("a kernel is given memory of another device");
	}
}

/* Refuse copies between devices without peer access. (CUDA would copy through the host, slowly.) */
static void check_copy(int device, const void *to, const void *from)
{
	const int target = owner_of(to), source = owner_of(from);

	if (target != NO_OWNER && target != device)
		report_misuse("a device copies to memory of another");
	if (!may_read(device, source))
		report_misuse("a device copies from memory that it has no access to");
}

static cudaError_t allocate(void **ret_memory, size_t nbytes)
{
	return posix_memalign(ret_memory, ALIGNMENT_NBYTES, nbytes ? nbytes : 1) == 0 ?
		       cudaSuccess :
		       cudaErrorMemoryAllocation;
}

cudaError_t cudaMalloc(void **ret_memory, size_t nbytes)
{
	const cudaError_t error = allocate(ret_memory, nbytes);

	if (!error)
		add_owned(*ret_memory, nbytes);
	return error;
}

cudaError_t cudaFree(void *memory)
{
	if (memory)
		remove_owned(memory);
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
	(void)kind;
	check_copy(device_of(stream), to, from);
	memmove(to, from, nbytes);
	return cudaSuccess;
}

/* The device of a copy is that of the destination, or that of the thread. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind)
{
	const int target = owner_of(to), source = owner_of(from);

	(void)kind;
	check_copy(target != NO_OWNER ? target : source, to, from);
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
	**ret_stream = (struct CUstream_st){ 1, current };
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
	return stream ? all_open(stream->is_open, 1) : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	(void)flags;
	return all_open(stream->is_open, event->is_open);
}

static atomic_uint n_events_made;

unsigned runtime_n_events_made(void)
{
	return atomic_load(&n_events_made);
}

static cudaError_t open_event(cudaEvent_t *ret_event)
{
	void *event;
	const cudaError_t error = allocate(&event, sizeof **ret_event);

	if (error)
		return error;
	atomic_fetch_add(&n_events_made, 1);
	*ret_event = event;
	**ret_event = (struct CUevent_st){ 1, current };
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

/* Stream 0 always exists. */
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return all_open(event->is_open,
			(!stream || stream->is_open) && event->device == device_of(stream));
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
