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
static int identify_seen(const struct backend *backend, uint64_t *ret_identity)
{
	const unsigned n = backend->identify ? backend_n_devices(backend) : 0;
	const size_t name_nbytes = strlen(backend->name);
	const size_t nbytes = name_nbytes + (size_t)n * BACKEND_IDENTITY_NBYTES;
	unsigned char *seen = calloc(1, nbytes + 1);

	if (!seen)
		return fail(-ENOMEM, "no memory for the names of %u devices", n);
	memcpy(seen, backend->name, name_nbytes);
	for (unsigned i = 0; i < n; i++)
		backend->identify(i, seen + name_nbytes + (size_t)i * BACKEND_IDENTITY_NBYTES);
	*ret_identity = checksum64(seen, nbytes);
	free(seen);
	return 0;
}

/* Among the ranks of this machine that see the same; identities NULL: all do. */
static struct device_share place_among(const struct ranks *ranks, const uint64_t *identities)
{
	const unsigned own = ranks_rank(ranks);
	struct device_share share = { 0 };

	for (unsigned i = 0; i < ranks_size(ranks); i++) {
		if ((identities && identities[i] != identities[own]) ||
		    strcmp(ranks_host(ranks, i), ranks_host(ranks, own)) != 0)
			continue;
		share.place += i < own;
		share.n++;
	}
	return share;
}

int device_share_find(struct ranks *ranks, const struct backend *backend,
		      struct device_share *ret_share)
{
	const unsigned n = ranks_size(ranks);
	uint64_t *identities = calloc(n, sizeof *identities);
	uint64_t own = 0;
	int r = identities ? identify_seen(backend, &own) :
			     fail(-ENOMEM, "no memory for the devices of %u ranks", n);

	if (r == 0)
		r = ranks_gather_all(ranks, &own, sizeof own, identities);
	if (r == 0)
		*ret_share = place_among(ranks, identities);
	free(identities);
	return r;
}

struct device_share device_share_expect(const struct ranks *ranks)
{
	return place_among(ranks, NULL);
}

int device_share_tell(struct ranks *ranks, const char *name,
		      void (*hear)(void *context, const char *text), void *context)
{
	enum { NAME_NBYTES = sizeof((struct device_info *)0)->name };
	const unsigned n = ranks_size(ranks);
	char own[NAME_NBYTES] = "", text[NAME_NBYTES + RANKS_HOST_NBYTES + 32];
	char(*names)[NAME_NBYTES] = calloc(n, sizeof *names);
	int r;

	snprintf(own, sizeof own, "%s", name);
	r = names ? ranks_gather_all(ranks, own, sizeof own, names) :
		    fail(-ENOMEM, "no memory for the devices of %u ranks", n);
	for (unsigned i = 0; i < n && r == 0 && hear && ranks_rank(ranks) == 0; i++) {
		snprintf(text, sizeof text, "rank %u, on %s: %s", i, ranks_host(ranks, i),
			 names[i]);
		hear(context, text);
	}
	free(names);
	return r;
}
