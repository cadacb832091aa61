/*
 * cuda_peer - whether one GPU may copy from the memory of another
 *
 * It may if CUDA says so, and if bytes that are copied arrive: there are machines whose PCIe
 * switches and IOMMU let such copies pass and write something else. So it is tried, once for each
 * two devices. Whatever goes wrong with that is no failure: what cannot be copied straight goes by
 * way of the host.
 */
#include <stdlib.h>
#include <string.h>

#include "src/device/cuda/cuda_device.h"

enum { TRIED_NBYTES = 1 << 20 };

/* What is copied, and where to. */
struct trial {
	int from_gpu, to_gpu;
	unsigned char *sent, *received; /* host */
	void *from, *to;                /* on the GPUs */
};

/* No byte is as its neighbours are, and none is as it is in memory that was just cleared. */
static void make_bytes(unsigned char *bytes)
{
	for (size_t i = 0; i < TRIED_NBYTES; i++)
		bytes[i] = (unsigned char)(1 + (i + i / 255) % 255);
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

/* Host, the one GPU, the other, host. */
static cudaError_t copy(const struct trial *trial)
{
	cudaError_t code =
		cudaMemcpy(trial->from, trial->sent, TRIED_NBYTES, cudaMemcpyHostToDevice);

	if (code == cudaSuccess)
		code = cudaMemcpy(trial->to, trial->from, TRIED_NBYTES, cudaMemcpyDefault);
	if (code == cudaSuccess)
		code = cudaMemcpy(trial->received, trial->to, TRIED_NBYTES, cudaMemcpyDeviceToHost);
	return code;
}

static bool arrives(struct trial *trial)
{
	cudaError_t code;
	bool has_arrived;

	trial->sent = malloc(TRIED_NBYTES);
	trial->received = calloc(1, TRIED_NBYTES);
	if (!trial->sent || !trial->received)
		return false;
	make_bytes(trial->sent);
	code = open_memory(trial);
	if (code == cudaSuccess)
		code = copy(trial);
	has_arrived = code == cudaSuccess &&
		      memcmp(trial->sent, trial->received, TRIED_NBYTES) == 0;
	cuda_pass_over(code);
	return has_arrived;
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
