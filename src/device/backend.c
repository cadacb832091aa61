/*
 * backend - choose a back end (see backend.h)
 */
#include "src/device/backend.h"

#include <errno.h>

#include "config.h"
#include "src/base/diagnostics.h"

#if HAVE_CUDA
/*
 * Starting CUDA takes as long as one CPU thread needs for this much input. Below that, AUTO uses
 * the CPU. Measurements: docs/performance-log.md.
 */
static const uint64_t min_cuda_nbytes_per_thread = UINT64_C(128) << 20;

static int choose_cuda(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
		       const struct backend **ret_backend)
{
	const char *reason = "";

	if (choice == BACKEND_AUTO && input_nbytes / n_threads < min_cuda_nbytes_per_thread)
		return -ENODEV;
	if (backend_cuda.probe(&reason) < 0)
		return choice == BACKEND_AUTO ?
			       -ENODEV :
			       fail(-ENODEV, "--backend=cuda: no usable GPU: %s", reason);
	*ret_backend = &backend_cuda;
	return 0;
}
#else
static int choose_cuda(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
		       const struct backend **ret_backend)
{
	(void)input_nbytes, (void)n_threads, (void)ret_backend;
	return choice == BACKEND_AUTO ?
		       -ENODEV :
		       fail(-ENODEV, "--backend=cuda: no usable GPU: this " GSORT_PROGRAM
				     " was built without the CUDA back end");
}
#endif

int backend_choose(enum backend_choice choice, uint64_t input_nbytes, unsigned n_threads,
		   const struct backend **ret_backend)
{
	int r = -ENODEV;

	if (choice != BACKEND_CPU)
		r = choose_cuda(choice, input_nbytes, n_threads, ret_backend);
	if (r == 0 || choice == BACKEND_CUDA)
		return r;
	*ret_backend = &backend_cpu;
	return 0;
}
