/*
 * fault_kinds_cuda.c - faults of the calls of CUDA's runtime (see fault_kinds.h)
 *
 * A sticky error of a context also fails all later calls (fault_points.h). Errors that are always
 * sticky in CUDA are injected once, too: a call must be checked even if the next one succeeds.
 */
#include <errno.h>

#include "src/device/cuda/cuda_device.h"
#include "tests/fault/fault_kinds.h"
#include "tests/fault/trap_kernel.h"

const struct fault_kind fault_kinds[] = {
	ONCE_AND_FOREVER(POINT_DEVICE_OPEN, cudaErrorNoDevice),
	ONCE_AND_FOREVER(POINT_DEVICE_OPEN, cudaErrorInsufficientDriver),
	ONCE_AND_FOREVER(POINT_DEVICE_OPEN, cudaErrorDevicesUnavailable),
	ONCE_AND_FOREVER(POINT_DEVICE_KERNEL_IMAGE, cudaErrorNoKernelImageForDevice),
	ONCE_AND_FOREVER(POINT_DEVICE_KERNEL_IMAGE, cudaErrorUnsupportedPtxVersion),
	ONCE_AND_FOREVER(POINT_DEVICE_SELECT, cudaErrorDevicesUnavailable),
	ONCE_AND_FOREVER(POINT_DEVICE_ALLOCATION, cudaErrorMemoryAllocation),
	/* Without peer access, copies go through host memory. */
	FAULT_KIND(POINT_DEVICE_PEER, EFFECT_FAIL, cudaErrorPeerAccessUnsupported, 1,
		   EXPECT_SUCCESS),
	FAULT_KIND(POINT_DEVICE_PEER, EFFECT_FAIL, cudaErrorPeerAccessUnsupported, FAULT_FOREVER,
		   EXPECT_SUCCESS),
	ONCE_AND_FOREVER(POINT_DEVICE_QUEUE, cudaErrorMemoryAllocation),
	ONCE_AND_FOREVER(POINT_DEVICE_QUEUE, cudaErrorECCUncorrectable),
	ONCE_AND_FOREVER(POINT_DEVICE_EVENT, cudaErrorLaunchFailure),
	ONCE_AND_FOREVER(POINT_DEVICE_COPY, cudaErrorIllegalAddress),
	ONCE_AND_FOREVER(POINT_DEVICE_LAUNCH, cudaErrorLaunchFailure),
	FAULT_KIND(POINT_DEVICE_LAUNCH, EFFECT_FAIL, cudaErrorLaunchOutOfResources, 1,
		   EXPECT_EITHER),
	ONCE_AND_FOREVER(POINT_DEVICE_WAIT, cudaErrorIllegalAddress),
	FAULT_KIND(POINT_DEVICE_WAIT, EFFECT_FAIL, cudaErrorECCUncorrectable, FAULT_FOREVER,
		   EXPECT_EITHER),
	/* Only statistics use the times. */
	FAULT_KIND(POINT_DEVICE_TIMING, EFFECT_FAIL, cudaErrorLaunchFailure, 1, EXPECT_SUCCESS),
	FAULT_KIND(POINT_DEVICE_FREE, EFFECT_FAIL, cudaErrorLaunchFailure, 1, EXPECT_EITHER),
	FAULT_KIND(POINT_DEVICE_FREE, EFFECT_FAIL, cudaErrorECCUncorrectable, FAULT_FOREVER,
		   EXPECT_EITHER),
	/* Allocations of host memory by the back end. */
	ONCE_AND_FOREVER(POINT_ALLOCATION, ENOMEM),
};
const size_t n_fault_kinds = sizeof fault_kinds / sizeof *fault_kinds;

static bool is_cuda_fault(const struct fault_kind *kind)
{
	return kind->point >= POINT_DEVICE_OPEN;
}

/*
 * CUDA's runtime is linked to the program, so its allocations cannot be distinguished from gsort's.
 */
bool fault_kind_is_possible(const struct fault_kind *kind)
{
	return is_cuda_fault(kind) || !launch_trap;
}

bool fault_kind_is_device_loss(const struct fault_kind *kind)
{
	return kind->point >= POINT_FIRST_DEVICE_CALL && kind->point != POINT_DEVICE_KERNEL_IMAGE &&
	       kind->error != cudaErrorMemoryAllocation && kind->n_times == FAULT_FOREVER;
}

const char *fault_kind_name(const struct fault_kind *kind)
{
	if (kind->effect == EFFECT_TRAP_DEVICE)
		return "context lost";
	return is_cuda_fault(kind) ? cudaGetErrorName((cudaError_t)kind->error) :
				     strerrorname_np(kind->error);
}

const char *fault_kind_expected_message(const struct fault_kind *kind)
{
	if (kind->effect == EFFECT_TRAP_DEVICE)
		return "GPU";
	return !is_cuda_fault(kind) || kind->error == cudaErrorMemoryAllocation ?
		       "memory" :
		       cudaGetErrorString((cudaError_t)kind->error);
}
