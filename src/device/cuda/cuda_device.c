/*
 * cuda_device - a GPU, its memory, and its error codes (see cuda_device.h)
 */
#include "src/device/cuda/cuda_device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "config.h"
#include "kernels/kernels.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"

enum {
	N_QUEUES = 2, /* chunks sorted at a time: one is sorted while another is uploaded */
	CHUNK_NBYTES = 512 << 20,
	WINDOW_NBYTES = 8 << 20, /* all windows in flight stay in the host's last-level cache */
};

/* gpu: named in the message if there are several GPUs; -1: unknown. */
static int report_status(int gpu, int code, const char *what)
{
	char name[32] = "GPU";

	if (code == cudaSuccess)
		return 0;
	cudaGetLastError(); /* clear the error */
	if (code == cudaErrorMemoryAllocation)
		return -ENOMEM;
	if (gpu > 0 || (gpu == 0 && cuda_device_count() > 1))
		snprintf(name, sizeof name, "GPU %d", gpu);
	return fail(-EIO, "%s: %s: %s", name, what, cudaGetErrorString((cudaError_t)code));
}

int cuda_status(int code, const char *what)
{
	int gpu = -1;

	if (code != cudaSuccess)
		cuda_ignore_error(cudaGetDevice(&gpu));
	return report_status(gpu, code, what);
}

int cuda_device_status(const struct cuda_device *device, int code, const char *what)
{
	return report_status(device->gpu, code, what);
}

void cuda_ignore_error(int code)
{
	if (code != cudaSuccess)
		cudaGetLastError();
}

int cuda_device_set_current(const struct cuda_device *device)
{
	return cuda_device_status(device, cudaSetDevice(device->gpu), "cannot be used");
}

int cuda_device_probe(const char **ret_reason)
{
	int n = 0;
	const cudaError_t code = cudaGetDeviceCount(&n);

	if (code == cudaSuccess && n > 0)
		return 0;
	cudaGetLastError();
	*ret_reason = code == cudaSuccess ? "no device" : cudaGetErrorString(code);
	return -ENODEV;
}

unsigned cuda_device_count(void)
{
	int n = 0;

	cuda_ignore_error(cudaGetDeviceCount(&n));
	return n > 0 ? (unsigned)n : 0;
}

void cuda_device_get_uuid(unsigned number, unsigned char ret_uuid[BACKEND_UUID_NBYTES])
{
	struct cudaDeviceProp properties = { 0 };

	cuda_ignore_error(cudaGetDeviceProperties(&properties, (int)number));
	_Static_assert(sizeof properties.uuid == BACKEND_UUID_NBYTES, "it is copied whole");
	memcpy(ret_uuid, &properties.uuid, sizeof properties.uuid);
}

static uint64_t usable_nbytes(size_t nbytes)
{
	return nbytes - nbytes / 10;
}

/*
 * Set the usable memory: the part of the free memory of this open device, but not more than its
 * part of the whole memory. The latter counts for other processes, which may not have allocated
 * theirs.
 */
static int set_memory_limit(struct cuda_device *device, const struct backend_config *config)
{
	const unsigned n_sharers = config->n_sharers ? config->n_sharers : 1;
	uint64_t limit_nbytes = config->device_memory_nbytes;
	size_t free_nbytes, total_nbytes;
	uint64_t share_nbytes;
	int r = cuda_status(cudaMemGetInfo(&free_nbytes, &total_nbytes), "querying its memory");

	if (r < 0)
		return r;
	device->memory_nbytes = usable_nbytes(free_nbytes) / n_sharers;
	share_nbytes = usable_nbytes(total_nbytes) / (n_sharers + config->n_other_sharers);
	if (limit_nbytes == 0 || share_nbytes < limit_nbytes)
		limit_nbytes = share_nbytes;
	if (limit_nbytes < device->memory_nbytes)
		device->memory_nbytes = limit_nbytes;
	return 0;
}

static bool is_missing_code(int code)
{
	switch (code) {
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorInvalidDeviceFunction:
	case cudaErrorInvalidKernelImage:
	case cudaErrorUnsupportedPtxVersion: /* the driver is too old for the compiled code */
		return true;
	default:
		return false;
	}
}

/* Check that the program has code for this GPU. */
static int check_code(const struct cuda_device *device, const struct cudaDeviceProp *properties)
{
	int architecture;
	const int code = kernels_architecture(&architecture);

	if (!is_missing_code(code))
		return cuda_device_status(device, code, "loading its code");
	cudaGetLastError();
	return fail(-ENODEV,
		    "GPU: %s has compute capability %d.%d, for which this " GSORT_PROGRAM
		    " has no code (%s); build with -Dgpu_arch=%d or -Dgpu_arch=all",
		    device->name, properties->major, properties->minor,
		    cudaGetErrorString((cudaError_t)code),
		    10 * properties->major + properties->minor);
}

static int find_gpu_numa_node(const struct cudaDeviceProp *properties)
{
	char bus_id[32];

	snprintf(bus_id, sizeof bus_id, "%04x:%02x:%02x.0", properties->pciDomainID,
		 properties->pciBusID, properties->pciDeviceID);
	return numa_node_of_pci(NUMA_SYSFS, bus_id);
}

static int open_gpu(struct cuda_device *device, const struct backend_config *config)
{
	struct cudaDeviceProp properties;
	int r = cuda_device_set_current(device);

	if (r == 0)
		r = cuda_status(cudaGetDeviceProperties(&properties, device->gpu),
				"querying its properties");
	if (r < 0)
		return r;
	snprintf(device->name, sizeof device->name, "%.100s", properties.name);
	device->numa_node = find_gpu_numa_node(&properties);
	r = check_code(device, &properties);
	if (r == 0)
		r = set_memory_limit(device, config);
	if (r == 0)
		r = cuda_status(cudaEventCreate(&device->origin), "creating an event");
	if (r == 0)
		r = cuda_status(cudaEventRecord(device->origin, 0), "recording an event");
	if (r == 0)
		r = cuda_status(cudaEventSynchronize(device->origin), "waiting for an event");
	device->origin_ns = clock_now_ns();
	return r;
}

void cuda_device_close(struct device *handle)
{
	struct cuda_device *device = cuda_device(handle);

	if (!device)
		return;
	if (device->origin)
		cuda_ignore_error(cudaEventDestroy(device->origin));
	free(device);
}

int cuda_device_open(const struct backend_config *config, struct device **ret_device)
{
	struct cuda_device *device = calloc(1, sizeof *device);
	int r;

	if (!device)
		return -ENOMEM;
	device->gpu = (int)config->number;
	device->stats_device = config->stats_device;
	device->stats = config->stats;
	r = open_gpu(device, config);
	if (r < 0) {
		cuda_device_close(&device->handle);
		return r;
	}
	*ret_device = &device->handle;
	return 0;
}

void cuda_device_get_info(const struct device *handle, struct device_info *ret_info)
{
	const struct cuda_device *device = (const struct cuda_device *)handle;

	*ret_info = (struct device_info){
		.unified = false,
		.memory_nbytes = device->memory_nbytes,
		.numa_node = device->numa_node,
		.n_queues = N_QUEUES,
		.chunk_nbytes = CHUNK_NBYTES,
		.window_nbytes = WINDOW_NBYTES,
	};
	memcpy(ret_info->name, device->name, sizeof ret_info->name);
}

/*
 * Allocate huge pages on the host and register them for all devices. This is ten times faster than
 * cudaMallocHost(), which takes 0.1 s for 256 MiB (docs/performance-log.md).
 */
int cuda_pinned_alloc(int node, size_t nbytes, void **ret_memory)
{
	void *memory =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r;

	if (memory == MAP_FAILED)
		return -ENOMEM;
	madvise(memory, nbytes, MADV_HUGEPAGE);
	numa_prefer_node(memory, nbytes, node);
	r = cuda_status(cudaHostRegister(memory, nbytes, cudaHostRegisterPortable),
			"pinning memory");
	if (r < 0)
		munmap(memory, nbytes);
	else
		*ret_memory = memory;
	return r;
}

void cuda_pinned_free(void *memory, size_t nbytes)
{
	if (!memory)
		return;
	cuda_ignore_error(cudaHostUnregister(memory));
	munmap(memory, nbytes);
}

int cuda_device_alloc(struct device *device, enum memory_kind kind, size_t nbytes,
		      void **ret_memory)
{
	int r = cuda_device_set_current(cuda_device(device));

	if (r < 0)
		return r;
	if (kind == MEMORY_DEVICE)
		return cuda_status(cudaMalloc(ret_memory, nbytes), "allocation");
	return cuda_pinned_alloc(cuda_device(device)->numa_node, nbytes, ret_memory);
}

void cuda_device_free(struct device *device, enum memory_kind kind, void *memory, size_t nbytes)
{
	if (!memory)
		return;
	cuda_ignore_error(cudaSetDevice(cuda_device(device)->gpu));
	if (kind == MEMORY_DEVICE)
		cuda_ignore_error(cudaFree(memory));
	else
		cuda_pinned_free(memory, nbytes);
}

/* Memory of cudaMalloc() can only be freed as a whole. */
void cuda_device_discard(struct device *device, void *memory, size_t nbytes)
{
	(void)device, (void)memory, (void)nbytes;
}
