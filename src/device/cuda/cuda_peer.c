/*
 * cuda_peer - whether a GPU can read the memory of another
 *
 * CUDA must allow it, and a copy and a kernel must read the right bytes: on some machines with PCIe
 * switches and an IOMMU, such reads succeed and return wrong bytes. So both are tested, once for
 * each pair of devices. A failed test is no error: such memory is copied through the host.
 *
 * A merge then reads the other GPU's runs once, tile by tile, over the link between the GPUs.
 * Copying them to the memory of each window was slower: a window of 8 MiB from 32 runs consists of
 * pieces so short that starting the copies took longer than everything else
 * (docs/performance-log.md).
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "src/device/cuda/cuda_device.h"

enum { TEST_NBYTES = 1 << 20 };

/* The source and the destination of a test. */
struct peer_access_test {
	int source_gpu, destination_gpu;
	unsigned char *sent_bytes, *received_bytes; /* host */
	void *source, *destination;                 /* on the GPUs */
};

/*
 * Fill the buffer so that no byte is 0 or equals its neighbours or its value for another seed.
 */
static void fill_test_bytes(unsigned char *bytes, unsigned seed)
{
	for (size_t i = 0; i < TEST_NBYTES; i++)
		bytes[i] = (unsigned char)(1 + (i + i / 255 + seed) % 255);
}

static cudaError_t alloc_test_memory(struct peer_access_test *test)
{
	cudaError_t code = cudaSetDevice(test->source_gpu);

	if (code == cudaSuccess)
		code = cudaMalloc(&test->source, TEST_NBYTES);
	if (code == cudaSuccess)
		code = cudaSetDevice(test->destination_gpu);
	if (code == cudaSuccess)
		code = cudaMalloc(&test->destination, TEST_NBYTES);
	return code;
}

/* Read the key of each element, which is the element if they have the same size. */
static cudaError_t read_by_kernel(const struct peer_access_test *test)
{
	return (cudaError_t)launch_sample(test->source, TEST_NBYTES / sizeof(struct kernel_key), 1,
					  sizeof(struct kernel_key), test->destination, NULL);
}

static cudaError_t read_by_copy(const struct peer_access_test *test)
{
	return cudaMemcpy(test->destination, test->source, TEST_NBYTES, cudaMemcpyDefault);
}

/* Send bytes from the host to one GPU, to the other GPU, and back to the host. */
static bool round_trip_matches(const struct peer_access_test *test, unsigned seed,
			       cudaError_t (*read)(const struct peer_access_test *))
{
	cudaError_t code, sync_code;

	fill_test_bytes(test->sent_bytes, seed);
	code = cudaMemcpy(test->source, test->sent_bytes, TEST_NBYTES, cudaMemcpyHostToDevice);
	if (code == cudaSuccess)
		code = read(test);
	/*
	 * A transfer between GPUs may still be running when its memory is freed, even if it was
	 * reported to have failed.
	 */
	sync_code = cudaStreamSynchronize(NULL);
	if (code == cudaSuccess)
		code = sync_code;
	if (code == cudaSuccess)
		code = cudaMemcpy(test->received_bytes, test->destination, TEST_NBYTES,
				  cudaMemcpyDeviceToHost);
	cuda_ignore_error(code);
	return code == cudaSuccess &&
	       memcmp(test->sent_bytes, test->received_bytes, TEST_NBYTES) == 0;
}

static bool test_peer_access(struct peer_access_test *test)
{
	cudaError_t code;

	test->sent_bytes = malloc(TEST_NBYTES);
	test->received_bytes = malloc(TEST_NBYTES);
	if (!test->sent_bytes || !test->received_bytes)
		return false;
	code = alloc_test_memory(test);
	cuda_ignore_error(code);
	return code == cudaSuccess && round_trip_matches(test, 0, read_by_copy) &&
	       round_trip_matches(test, 1, read_by_kernel);
}

static void free_test(struct peer_access_test *test)
{
	if (test->source)
		cuda_ignore_error(cudaFree(test->source));
	if (test->destination)
		cuda_ignore_error(cudaFree(test->destination));
	free(test->sent_bytes);
	free(test->received_bytes);
}

/* Enable peer access. Another sort of this process may have enabled it already. */
static bool enable_peer_access(int gpu, int peer)
{
	int is_possible = 0;
	cudaError_t code = cudaDeviceCanAccessPeer(&is_possible, gpu, peer);

	if (code == cudaSuccess && !is_possible)
		return false;
	if (code == cudaSuccess)
		code = cudaSetDevice(gpu);
	if (code == cudaSuccess)
		code = cudaDeviceEnablePeerAccess(peer, 0);
	cuda_ignore_error(code);
	return code == cudaSuccess || code == cudaErrorPeerAccessAlreadyEnabled;
}

bool cuda_device_can_access(struct device *device, struct device *peer)
{
	struct peer_access_test test = { .source_gpu = cuda_device(peer)->gpu,
					 .destination_gpu = cuda_device(device)->gpu };
	bool can_access;

	if (test.source_gpu == test.destination_gpu)
		return true;
	can_access = enable_peer_access(test.destination_gpu, test.source_gpu) &&
		     test_peer_access(&test);
	free_test(&test);
	return can_access;
}
