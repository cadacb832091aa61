/*
 * fault_kinds_cuda - of the calls of CUDA's runtime (see fault_kinds.h)
 *
 * What sticks to a context sticks to all calls after it (fault_points.h). Errors that always do are tried
 * once as well: such a call must not be passed over because the next one goes well.
 */
#include <errno.h>

#include "src/device/cuda/cuda_device.h"
#include "tests/fault/fault_kinds.h"
#include "tests/fault/trap_kernel.h"

const struct kind kinds[] = {
	ONCE_AND_FOR_GOOD(POINT_DEVICE_OPEN, cudaErrorNoDevice),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_OPEN, cudaErrorInsufficientDriver),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_OPEN, cudaErrorDevicesUnavailable),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_CODE, cudaErrorNoKernelImageForDevice),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_CODE, cudaErrorUnsupportedPtxVersion),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_USE, cudaErrorDevicesUnavailable),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_ALLOCATION, cudaErrorMemoryAllocation),
	/* What cannot be reached goes by way of the host. */
	KIND(POINT_DEVICE_PEER, EFFECT_FAIL, cudaErrorPeerAccessUnsupported, 1, DEMAND_SUCCESS),
	KIND(POINT_DEVICE_PEER, EFFECT_FAIL, cudaErrorPeerAccessUnsupported, FOR_GOOD,
	     DEMAND_SUCCESS),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_LANE, cudaErrorMemoryAllocation),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_LANE, cudaErrorECCUncorrectable),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_EVENT, cudaErrorLaunchFailure),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_COPY, cudaErrorIllegalAddress),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_LAUNCH, cudaErrorLaunchFailure),
	KIND(POINT_DEVICE_LAUNCH, EFFECT_FAIL, cudaErrorLaunchOutOfResources, 1, DEMAND_EITHER),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_WAIT, cudaErrorIllegalAddress),
	KIND(POINT_DEVICE_WAIT, EFFECT_FAIL, cudaErrorECCUncorrectable, FOR_GOOD, DEMAND_EITHER),
	/* Only the statistics ask. */
	KIND(POINT_DEVICE_CLOCK, EFFECT_FAIL, cudaErrorLaunchFailure, 1, DEMAND_SUCCESS),
	KIND(POINT_DEVICE_RELEASE, EFFECT_FAIL, cudaErrorLaunchFailure, 1, DEMAND_EITHER),
	KIND(POINT_DEVICE_RELEASE, EFFECT_FAIL, cudaErrorECCUncorrectable, FOR_GOOD, DEMAND_EITHER),
	/* What the back end itself asks of the system. */
	ONCE_AND_FOR_GOOD(POINT_ALLOCATION, ENOMEM),
};
const size_t n_kinds = sizeof kinds / sizeof *kinds;

static bool is_of_cuda(const struct kind *kind)
{
	return kind->point >= POINT_DEVICE_OPEN;
}

/* CUDA's own runtime, which is linked to the program, allocates as gsort does. */
bool kind_can_be(const struct kind *kind)
{
	return is_of_cuda(kind) || !launch_trap;
}

bool kind_is_loss(const struct kind *kind)
{
	return kind->point >= POINT_FIRST_DEVICE_CALL && kind->point != POINT_DEVICE_CODE &&
	       kind->error != cudaErrorMemoryAllocation && kind->n_times == FOR_GOOD;
}

const char *kind_name(const struct kind *kind)
{
	if (kind->effect == EFFECT_DIE)
		return "it dies";
	return is_of_cuda(kind) ? cudaGetErrorName((cudaError_t)kind->error) :
				  strerrorname_np(kind->error);
}

const char *kind_reason(const struct kind *kind)
{
	if (kind->effect == EFFECT_DIE)
		return "GPU";
	return !is_of_cuda(kind) || kind->error == cudaErrorMemoryAllocation ?
		       "memory" :
		       cudaGetErrorString((cudaError_t)kind->error);
}
