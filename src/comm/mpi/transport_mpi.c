/*
 * transport_mpi.c - MPI as a transport (see transport.h)
 *
 * Uses only messages of bytes between two ranks, sent and received by one thread. Nothing waits
 * inside MPI, where waiting spins. MPI's collectives, derived types, one-sided communication and
 * file I/O are not used. MPI delivers messages once, whole and in order, but need not notice that a
 * rank has died (src/comm/watchdog.h).
 */
#include "src/comm/transport.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"

/* A request in progress has the same index in each array. */
struct mpi_transport {
	struct transport transport;
	MPI_Comm comm;
	int n, capacity;
	MPI_Request *mpi_requests;
	struct transport_request **requests;
	/* Indices of completed requests that poll() has not all returned yet. */
	int n_done, next_done;
	int *completed;
	MPI_Status *statuses;
};

static int fail_mpi(int code, const char *action)
{
	char text[MPI_MAX_ERROR_STRING] = "";
	int n;

	MPI_Error_string(code, text, &n);
	return fail(-EIO, "MPI cannot %s: %s", action, text);
}

static struct mpi_transport *mpi_of(struct transport *transport)
{
	return (struct mpi_transport *)transport;
}

static int grow(void *array, size_t size, int capacity)
{
	void **array_pointer = array;
	void *grown = reallocarray(*array_pointer, (size_t)capacity, size);

	if (!grown)
		return -ENOMEM;
	*array_pointer = grown;
	return 0;
}

/* Make room for another request. */
static int reserve_request(struct mpi_transport *mpi)
{
	const int capacity = mpi->capacity ? mpi->capacity * 2 : 64;

	if (mpi->n < mpi->capacity)
		return 0;
	if (grow(&mpi->mpi_requests, sizeof *mpi->mpi_requests, capacity) < 0 ||
	    grow(&mpi->requests, sizeof(void *), capacity) < 0 ||
	    grow(&mpi->completed, sizeof *mpi->completed, capacity) < 0 ||
	    grow(&mpi->statuses, sizeof *mpi->statuses, capacity) < 0)
		return fail(-ENOMEM, "no memory for %d messages of MPI", capacity);
	mpi->capacity = capacity;
	return 0;
}

static int mpi_send(struct transport *transport, int to, int tag, const void *data, size_t nbytes,
		    struct transport_request *request)
{
	struct mpi_transport *mpi = mpi_of(transport);
	int r = reserve_request(mpi), code;

	if (r < 0)
		return r;
	code = MPI_Isend(data, (int)nbytes, MPI_BYTE, to, tag, mpi->comm,
			 &mpi->mpi_requests[mpi->n]);
	if (code != MPI_SUCCESS)
		return fail_mpi(code, "send a message");
	mpi->requests[mpi->n++] = request;
	return 0;
}

static int mpi_receive(struct transport *transport, int from, int tag, void *data, size_t capacity,
		       struct transport_request *request)
{
	struct mpi_transport *mpi = mpi_of(transport);
	int r = reserve_request(mpi), code;

	if (r < 0)
		return r;
	code = MPI_Irecv(data, (int)capacity, MPI_BYTE,
			 from == TRANSPORT_ANY_RANK ? MPI_ANY_SOURCE : from, tag, mpi->comm,
			 &mpi->mpi_requests[mpi->n]);
	if (code != MPI_SUCCESS)
		return fail_mpi(code, "receive a message");
	mpi->requests[mpi->n++] = request;
	return 0;
}

/* Remove the requests that poll() has returned. */
static void compact_requests(struct mpi_transport *mpi)
{
	int n = 0;

	for (int i = 0; i < mpi->n; i++)
		if (mpi->requests[i]) {
			mpi->mpi_requests[n] = mpi->mpi_requests[i];
			mpi->requests[n++] = mpi->requests[i];
		}
	mpi->n = n;
	mpi->n_done = mpi->next_done = 0;
}

/* Accept an error of a single request. The caller of poll() handles a message that is too long. */
static int accept_error(struct mpi_transport *mpi, int i)
{
	const int code = mpi->statuses[i].MPI_ERROR;
	int error_class = MPI_SUCCESS;

	if (code != MPI_SUCCESS)
		MPI_Error_class(code, &error_class);
	if (error_class == MPI_ERR_TRUNCATE)
		mpi->requests[mpi->completed[i]]->is_truncated = true;
	return error_class == MPI_SUCCESS || error_class == MPI_ERR_TRUNCATE ||
			       error_class == MPI_ERR_PENDING ?
		       0 :
		       fail_mpi(code, "carry a message");
}

/* Ask MPI for requests that are done. */
static int poll_mpi_requests(struct mpi_transport *mpi)
{
	int n_done, code, r = 0;

	if (mpi->n_done > 0)
		compact_requests(mpi);
	code = MPI_Testsome(mpi->n, mpi->mpi_requests, &n_done, mpi->completed, mpi->statuses);
	if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
		return fail_mpi(code, "carry messages");
	for (int i = 0; code == MPI_ERR_IN_STATUS && i < n_done && r == 0; i++)
		r = accept_error(mpi, i);
	if (r < 0)
		return r;
	mpi->n_done = n_done == MPI_UNDEFINED ? 0 : n_done;
	return 0;
}

static int mpi_poll(struct transport *transport, struct transport_request **ret_request)
{
	struct mpi_transport *mpi = mpi_of(transport);
	int index, nbytes = 0, r = 0;

	if (mpi->next_done == mpi->n_done)
		r = poll_mpi_requests(mpi);
	if (r < 0)
		return r;
	*ret_request = NULL;
	if (mpi->next_done == mpi->n_done)
		return 0;
	index = mpi->completed[mpi->next_done];
	*ret_request = mpi->requests[index];
	mpi->requests[index] = NULL;
	/* MPI sets these for a receive only. */
	(*ret_request)->peer = mpi->statuses[mpi->next_done].MPI_SOURCE;
	MPI_Get_count(&mpi->statuses[mpi->next_done], MPI_BYTE, &nbytes);
	(*ret_request)->nbytes = nbytes < 0 ? 0 : (size_t)nbytes;
	mpi->next_done++;
	return 0;
}

/* MPI_Abort() prints a message, which a single process does not need. */
static void mpi_abort(struct transport *transport, int status)
{
	int is_main_thread = 0;

	if (transport->size > 1)
		MPI_Abort(mpi_of(transport)->comm, status);
	else if (MPI_Is_thread_main(&is_main_thread) == MPI_SUCCESS && is_main_thread)
		MPI_Finalize();
}

/* Requests that are still in progress are receives. */
static int mpi_close(struct transport *transport)
{
	struct mpi_transport *mpi = mpi_of(transport);
	int code = MPI_SUCCESS;

	compact_requests(mpi);
	for (int i = 0; i < mpi->n && code == MPI_SUCCESS; i++) {
		code = MPI_Cancel(&mpi->mpi_requests[i]);
		if (code == MPI_SUCCESS)
			code = MPI_Wait(&mpi->mpi_requests[i], MPI_STATUS_IGNORE);
	}
	if (code == MPI_SUCCESS)
		code = MPI_Comm_free(&mpi->comm);
	if (code == MPI_SUCCESS)
		code = MPI_Finalize();
	free(mpi->mpi_requests);
	free(mpi->requests);
	free(mpi->completed);
	free(mpi->statuses);
	free(mpi);
	return code == MPI_SUCCESS ? 0 : fail(-EIO, "MPI cannot be finalized");
}

static int open_comm(struct mpi_transport *mpi)
{
	int code = MPI_Comm_dup(MPI_COMM_WORLD, &mpi->comm);

	if (code == MPI_SUCCESS)
		code = MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
	/* Errors of MPI_Testsome() are raised on one of these communicators. */
	if (code == MPI_SUCCESS)
		code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_rank(mpi->comm, &mpi->transport.rank);
	if (code == MPI_SUCCESS)
		code = MPI_Comm_size(mpi->comm, &mpi->transport.size);
	return code == MPI_SUCCESS ? 0 : fail_mpi(code, "set up the communicator");
}

static const struct transport_ops ops = {
	.name = "MPI",
	.send = mpi_send,
	.receive = mpi_receive,
	.poll = mpi_poll,
	.abort_job = mpi_abort,
	.close = mpi_close,
};

int transport_mpi_open(void *argument, struct transport **ret_transport)
{
	struct mpi_transport *mpi = calloc(1, sizeof *mpi);
	int granted, r;

	(void)argument;
	if (!mpi)
		return fail(-ENOMEM, "no memory for MPI");
	mpi->transport.ops = &ops;
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &granted) != MPI_SUCCESS) {
		free(mpi);
		return fail(-EIO, "MPI cannot be started");
	}
	r = open_comm(mpi);
	if (r == 0 && granted < MPI_THREAD_FUNNELED)
		r = fail(-ENOTSUP, "this MPI library does not support MPI_THREAD_FUNNELED");
	if (r < 0) {
		MPI_Finalize();
		free(mpi);
		return r;
	}
	*ret_transport = &mpi->transport;
	return 0;
}
