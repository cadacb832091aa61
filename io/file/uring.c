/*
 * uring - what an engine has for rings, of liburing (see uring.h)
 */
#include "config.h"

#if HAVE_URING

#include "io/file/uring.h"

#include <liburing.h>

int uring_init(unsigned n_entries, struct io_uring *ring)
{
	return io_uring_queue_init(n_entries, ring, 0);
}

int uring_submit(struct io_uring *ring)
{
	return io_uring_submit(ring);
}

int uring_take(struct io_uring *ring, bool waits, void **ret_owner, int *ret_moved)
{
	struct io_uring_cqe *cqe;
	const int r = waits ? io_uring_wait_cqe(ring, &cqe) : io_uring_peek_cqe(ring, &cqe);

	if (r < 0)
		return r;
	*ret_owner = io_uring_cqe_get_data(cqe);
	*ret_moved = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return 0;
}

#endif
