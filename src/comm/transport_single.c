/*
 * transport_single - a job of one process (see transport_single.h)
 */
#include "src/comm/transport_single.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/comm/transport.h"

/* Nobody is there to send anything: what a rank sends to itself no transport sees. */
static int no_send(struct transport *transport, int to, int tag, const void *data, size_t nbytes,
		   struct transport_request *request)
{
	(void)transport, (void)to, (void)tag, (void)data, (void)nbytes, (void)request;
	return fail(-EINVAL, "there is no other rank");
}

static int never_receive(struct transport *transport, int from, int tag, void *data,
			 size_t capacity, struct transport_request *request)
{
	(void)transport, (void)from, (void)tag, (void)data, (void)capacity, (void)request;
	return 0;
}

static int take_nothing(struct transport *transport, struct transport_request **ret_request)
{
	(void)transport;
	*ret_request = NULL;
	return 0;
}

static void end_nobody(struct transport *transport, int status)
{
	(void)transport, (void)status;
}

static int close_alone(struct transport *transport)
{
	free(transport);
	return 0;
}

static const struct transport_ops ops = {
	.name = "nothing",
	.send = no_send,
	.receive = never_receive,
	.take = take_nothing,
	.end_all = end_nobody,
	.close = close_alone,
};

int alone_open(void *argument, struct transport **ret_transport)
{
	struct transport *transport = malloc(sizeof *transport);

	(void)argument;
	if (!transport)
		return fail(-ENOMEM, "no memory for a rank");
	*transport = (struct transport){ .ops = &ops, .rank = 0, .size = 1 };
	*ret_transport = transport;
	return 0;
}

static const struct starter {
	const char *variable, *name, *remedy;
} starters[] = {
	{ "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun",
	  "start it with the mpirun of the MPI library that it was built with" },
	{ "PMI_SIZE", "an mpiexec with PMI",
	  "start it with the mpiexec of the MPI library that it was built with" },
	{ "SLURM_STEP_NUM_TASKS", "srun",
	  "give srun the --mpi= that this MPI library needs (srun --mpi=list names them), "
	  "or start it with mpirun" },
};

int alone_check(unsigned size, char *(*get)(const char *name))
{
	for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
		const char *text = get(starters[i].variable);
		const unsigned long n = text ? strtoul(text, NULL, 10) : 0;

		if (n > size)
			return fail(-EINVAL,
				    "%s has started %lu ranks (%s), but MPI sees %u of them: %s",
				    starters[i].name, n, starters[i].variable, size,
				    starters[i].remedy);
	}
	return 0;
}
