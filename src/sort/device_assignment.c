/*
 * device_assignment - which of a machine's devices are one rank's (see device_assignment.h)
 *
 * Numbers of devices say little: of two processes that have a GPU each, both may call it 0. So
 * ranks compare what the devices themselves say that they are.
 */
#include "src/sort/device_assignment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "src/base/diagnostics.h"
#include "src/device/device.h"
#include "src/comm/comm.h"

/* The same of those that see the same: the back end, and its devices in their order. */
static int hash_visible_devices(const struct backend *backend, uint64_t *ret_identity)
{
	const unsigned n = backend->get_uuid ? backend_n_devices(backend) : 0;
	const size_t name_nbytes = strlen(backend->name);
	const size_t nbytes = name_nbytes + (size_t)n * BACKEND_UUID_NBYTES;
	unsigned char *visible = calloc(1, nbytes + 1);

	if (!visible)
		return fail(-ENOMEM, "no memory for the names of %u devices", n);
	memcpy(visible, backend->name, name_nbytes);
	for (unsigned i = 0; i < n; i++)
		backend->get_uuid(i, visible + name_nbytes + (size_t)i * BACKEND_UUID_NBYTES);
	*ret_identity = checksum64(visible, nbytes);
	free(visible);
	return 0;
}

/* Among the ranks of this machine that see the same; identities NULL: all do. */
static struct device_assignment assign_among(const struct comm *comm, const uint64_t *identities)
{
	const unsigned own = comm_rank(comm);
	struct device_assignment assignment = { 0 };

	for (unsigned i = 0; i < comm_size(comm); i++) {
		if ((identities && identities[i] != identities[own]) ||
		    strcmp(comm_host(comm, i), comm_host(comm, own)) != 0)
			continue;
		assignment.index += i < own;
		assignment.n_sharing++;
	}
	return assignment;
}

int device_assignment_find(struct comm *comm, const struct backend *backend,
			   struct device_assignment *ret_assignment)
{
	const unsigned n = comm_size(comm);
	uint64_t *identities = calloc(n, sizeof *identities);
	uint64_t own_identity = 0;
	int r = identities ? hash_visible_devices(backend, &own_identity) :
			     fail(-ENOMEM, "no memory for the devices of %u ranks", n);

	if (r == 0)
		r = comm_allgather(comm, &own_identity, sizeof own_identity, identities);
	if (r == 0)
		*ret_assignment = assign_among(comm, identities);
	free(identities);
	return r;
}

struct device_assignment device_assignment_predict(const struct comm *comm)
{
	return assign_among(comm, NULL);
}

int device_assignment_report(struct comm *comm, const char *name,
			     void (*report)(void *context, const char *text), void *context)
{
	enum { NAME_NBYTES = sizeof((struct device_info *)0)->name };
	const unsigned n = comm_size(comm);
	char own_name[NAME_NBYTES] = "", text[NAME_NBYTES + COMM_HOST_NBYTES + 32];
	char(*names)[NAME_NBYTES] = calloc(n, sizeof *names);
	int r;

	snprintf(own_name, sizeof own_name, "%s", name);
	r = names ? comm_allgather(comm, own_name, sizeof own_name, names) :
		    fail(-ENOMEM, "no memory for the devices of %u ranks", n);
	for (unsigned i = 0; i < n && r == 0 && report && comm_rank(comm) == 0; i++) {
		snprintf(text, sizeof text, "rank %u, on %s: %s", i, comm_host(comm, i), names[i]);
		report(context, text);
	}
	free(names);
	return r;
}
