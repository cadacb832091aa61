/*
 * transport_single - a job of one process (see transport_single.h)
 */
#include "src/comm/transport_single.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/comm/transport.h"

/* Nobody is there to send anything: what a rank sends to itself no transport sees. */
static int reject_send(struct transport *transport, int to, int tag, const void *data,
		       size_t nbytes, struct transport_request *request)
{
	(void)transport, (void)to, (void)tag, (void)data, (void)nbytes, (void)request;
	return fail(-EINVAL, "there is no other rank");
}

static int ignore_receive(struct transport *transport, int from, int tag, void *data,
			  size_t capacity, struct transport_request *request)
{
	(void)transport, (void)from, (void)tag, (void)data, (void)capacity, (void)request;
	return 0;
}

static int poll_no_request(struct transport *transport, struct transport_request **ret_request)
{
	(void)transport;
	*ret_request = NULL;
	return 0;
}

static void abort_no_ranks(struct transport *transport, int status)
{
	(void)transport, (void)status;
}

static int close_single(struct transport *transport)
{
	free(transport);
	return 0;
}

static const struct transport_ops ops = {
	.name = "nothing",
	.send = reject_send,
	.receive = ignore_receive,
	.poll = poll_no_request,
	.abort_job = abort_no_ranks,
	.close = close_single,
};

int transport_single_open(void *argument, struct transport **ret_transport)
{
	struct transport *transport = malloc(sizeof *transport);

	(void)argument;
	if (!transport)
		return fail(-ENOMEM, "no memory for a rank");
	*transport = (struct transport){ .ops = &ops, .rank = 0, .size = 1 };
	*ret_transport = transport;
	return 0;
}

static const struct launcher_variable {
	const char *variable, *name, *remedy;
} launcher_variables[] = {
	{ "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun",
	  "start it with the mpirun of the MPI library that it was built with" },
	{ "PMI_SIZE", "an mpiexec with PMI",
	  "start it with the mpiexec of the MPI library that it was built with" },
	{ "SLURM_STEP_NUM_TASKS", "srun",
	  "give srun the --mpi= that this MPI library needs (srun --mpi=list names them), "
	  "or start it with mpirun" },
};

int transport_single_check_launcher(unsigned size, char *(*get_env)(const char *name))
{
	for (size_t i = 0; i < sizeof launcher_variables / sizeof *launcher_variables; i++) {
		const char *text = get_env(launcher_variables[i].variable);
		const unsigned long n = text ? strtoul(text, NULL, 10) : 0;

		if (n > size)
			return fail(-EINVAL,
				    "%s has started %lu ranks (%s), but MPI sees %u of them: %s",
				    launcher_variables[i].name, n, launcher_variables[i].variable,
				    size, launcher_variables[i].remedy);
	}
	return 0;
}
