/*
 * architecture - the architecture of the device code that a device runs
 *
 * All kernels are compiled for the same list of architectures, so one kernel represents all.
 */
#include "kernels/device.cuh"
#include "kernels/kernels.h"

static __global__ void any_kernel()
{
}

int kernels_architecture(int *ret_architecture)
{
	cudaFuncAttributes attributes;
	const int r = (int)cudaFuncGetAttributes(&attributes, any_kernel);

	if (!r)
		*ret_architecture = attributes.ptxVersion;
	return r;
}
