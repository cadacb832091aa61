/*
 * cuda_peer - whether one GPU may read the memory of another
 *
 * It may if CUDA says so, and if the bytes that a copy and a kernel get are those that are there:
 * there are machines whose PCIe switches and IOMMU let such reads pass and give something else. So
 * it is tried, once for each two devices. Whatever goes wrong with that is no failure: what cannot
 * be read goes by way of the host.
 *
 * A merge then reads the other's runs once, tile by tile, over the link between the GPUs. Copies of
 * them into each window's own memory were tried before: a window of 8 MiB from 32 runs is made of
 * pieces so short that the copies' starts took longer than all else (docs/benchmarks.md).
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "src/device/cuda/cuda_device.h"

enum { TRIED_NBYTES = 1 << 20 };

/* What is read, and where to. */
struct trial {
	int from_gpu, to_gpu;
	unsigned char *sent, *received; /* host */
	void *from, *to;                /* on the GPUs */
};

/* No byte is as its neighbours are, as after another seed, or as in memory just cleared. */
static void make_bytes(unsigned char *bytes, unsigned seed)
{
	for (size_t i = 0; i < TRIED_NBYTES; i++)
		bytes[i] = (unsigned char)(1 + (i + i / 255 + seed) % 255);
}

static cudaError_t open_memory(struct trial *trial)
{
	cudaError_t code = cudaSetDevice(trial->from_gpu);

	if (code == cudaSuccess)
		code = cudaMalloc(&trial->from, TRIED_NBYTES);
	if (code == cudaSuccess)
		code = cudaSetDevice(trial->to_gpu);
	if (code == cudaSuccess)
		code = cudaMalloc(&trial->to, TRIED_NBYTES);
	return code;
}

/* Of each element the key, which is the element where it is as wide. */
static cudaError_t read_by_kernel(const struct trial *trial)
{
	return (cudaError_t)launch_sample(trial->from, TRIED_NBYTES / sizeof(struct kernel_key), 1,
					  sizeof(struct kernel_key), trial->to, NULL);
}

static cudaError_t read_by_copy(const struct trial *trial)
{
	return cudaMemcpy(trial->to, trial->from, TRIED_NBYTES, cudaMemcpyDefault);
}

/* Host, the one GPU, the other, host. */
static bool comes_back(const struct trial *trial, unsigned seed,
		       cudaError_t (*read)(const struct trial *))
{
	cudaError_t code, waited;

	make_bytes(trial->sent, seed);
	code = cudaMemcpy(trial->from, trial->sent, TRIED_NBYTES, cudaMemcpyHostToDevice);
	if (code == cudaSuccess)
		code = read(trial);
	/*
	 * What goes from one GPU to another may still be under way when its end is freed, also if
	 * it was said to fail.
	 */
	waited = cudaStreamSynchronize(NULL);
	if (code == cudaSuccess)
		code = waited;
	if (code == cudaSuccess)
		code = cudaMemcpy(trial->received, trial->to, TRIED_NBYTES, cudaMemcpyDeviceToHost);
	cuda_pass_over(code);
	return code == cudaSuccess && memcmp(trial->sent, trial->received, TRIED_NBYTES) == 0;
}

static bool arrives(struct trial *trial)
{
	cudaError_t code;

	trial->sent = malloc(TRIED_NBYTES);
	trial->received = malloc(TRIED_NBYTES);
	if (!trial->sent || !trial->received)
		return false;
	code = open_memory(trial);
	cuda_pass_over(code);
	return code == cudaSuccess && comes_back(trial, 0, read_by_copy) &&
	       comes_back(trial, 1, read_by_kernel);
}

static void close_trial(struct trial *trial)
{
	if (trial->from)
		cuda_pass_over(cudaFree(trial->from));
	if (trial->to)
		cuda_pass_over(cudaFree(trial->to));
	free(trial->sent);
	free(trial->received);
}

/* Two sorts in one process may both have done it. */
static bool enable(int gpu, int other)
{
	int can = 0;
	cudaError_t code = cudaDeviceCanAccessPeer(&can, gpu, other);

	if (code == cudaSuccess && !can)
		return false;
	if (code == cudaSuccess)
		code = cudaSetDevice(gpu);
	if (code == cudaSuccess)
		code = cudaDeviceEnablePeerAccess(other, 0);
	cuda_pass_over(code);
	return code == cudaSuccess || code == cudaErrorPeerAccessAlreadyEnabled;
}

bool cuda_device_reaches(struct device *device, struct device *other)
{
	struct trial trial = { .from_gpu = cuda_device(other)->gpu,
			       .to_gpu = cuda_device(device)->gpu };
	bool reaches;

	if (trial.from_gpu == trial.to_gpu)
		return true;
	reaches = enable(trial.to_gpu, trial.from_gpu) && arrives(&trial);
	close_trial(&trial);
	return reaches;
}
