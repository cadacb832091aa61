/*
 * backend - the choice of a back end (see backend.h)
 */
#include "src/backend.h"

#include <errno.h>

#include "config.h"
#include "src/status.h"

#if HAVE_CUDA
/*
 * Below this much input AUTO stays on the CPU: starting CUDA takes longer than the whole sort.
 * Evidence: docs/benchmarks.md, "crossover".
 */
static const uint64_t cuda_pays_from_nbytes = UINT64_C(256) << 20;

static int choose_cuda(enum backend_choice choice, uint64_t input_nbytes,
		       const struct backend **ret_backend)
{
	const char *why = "";

	if (choice == BACKEND_AUTO && input_nbytes < cuda_pays_from_nbytes)
		return -ENODEV;
	if (backend_cuda.probe(&why) < 0)
		return choice == BACKEND_AUTO ?
			       -ENODEV :
			       fail(-ENODEV, "--backend=cuda: no usable GPU: %s", why);
	*ret_backend = &backend_cuda;
	return 0;
}
#else
static int choose_cuda(enum backend_choice choice, uint64_t input_nbytes,
		       const struct backend **ret_backend)
{
	(void)input_nbytes, (void)ret_backend;
	return choice == BACKEND_AUTO ?
		       -ENODEV :
		       fail(-ENODEV,
			    "--backend=cuda: this gsort was built without the CUDA back end");
}
#endif

int backend_choose(enum backend_choice choice, uint64_t input_nbytes,
		   const struct backend **ret_backend)
{
	int r = choice == BACKEND_CPU ? -ENODEV : choose_cuda(choice, input_nbytes, ret_backend);

	if (r == 0)
		return 0;
	if (choice == BACKEND_CUDA)
		return r;
	*ret_backend = &backend_cpu;
	return 0;
}
