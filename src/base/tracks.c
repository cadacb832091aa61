/*
 * tracks - where on a timeline a piece of work is shown (see tracks.h)
 */
#include "src/base/tracks.h"

#include <errno.h>
#include <stdlib.h>

struct track {
	struct track_owner owner;
	uint64_t end_ns; /* of what is on it */
};

struct tracks {
	struct track *by_role[N_TRACK_ROLES]; /* n[role]; grown as they are taken */
	uint32_t n[N_TRACK_ROLES];
};

/* What a device's clock is wrong by, compared with ours, when it has run for hours. */
enum { CLOCK_ERROR_NS = 1000000 };

static const struct {
	const char *name, *names;
} roles[N_TRACK_ROLES] = {
	[TRACK_PHASES] = { "phase", "phases" },
	[TRACK_PARTITIONS] = { "partition", "partitions" },
	[TRACK_READERS] = { "reader", "readers" },
	[TRACK_FETCHERS] = { "fetcher", "fetchers" },
	[TRACK_CPU_QUEUES] = { "CPU queue", "CPU queues" },
	[TRACK_DEVICE_QUEUES] = { "GPU queue", "GPU queues" },
	[TRACK_WRITERS] = { "writer", "writers" },
	[TRACK_CHECKERS] = { "verifier", "verifiers" },
};

int tracks_open(struct tracks **ret_tracks)
{
	struct tracks *tracks = calloc(1, sizeof *tracks);

	if (!tracks)
		return -ENOMEM;
	*ret_tracks = tracks;
	return 0;
}

void tracks_close(struct tracks *tracks)
{
	for (enum track_role role = 0; tracks && role < N_TRACK_ROLES; role++)
		free(tracks->by_role[role]);
	free(tracks);
}

/* By how much may a piece begin before the one before it has ended? */
static uint64_t tolerance_ns(enum track_role role)
{
	return role == TRACK_DEVICE_QUEUES ? CLOCK_ERROR_NS : 0;
}

/* The owner's own, if it is free; else the one that is free longest. NULL: none is. */
static struct track *find_free_track(struct tracks *tracks, enum track_role role,
				     struct track_owner owner, uint64_t begin_ns)
{
	struct track *best = NULL;

	for (uint32_t i = 0; i < tracks->n[role]; i++) {
		struct track *track = &tracks->by_role[role][i];

		if (track->owner.device != owner.device)
			continue;
		if (track->owner.id == owner.id && track->end_ns <= begin_ns + tolerance_ns(role))
			return track;
		if (track->end_ns <= begin_ns && (!best || track->end_ns < best->end_ns))
			best = track;
	}
	return best;
}

/* Another one; the last again if there cannot be more. NULL: there is no memory for any. */
static struct track *add_track(struct tracks *tracks, enum track_role role)
{
	const uint32_t n = tracks->n[role];
	struct track *grown = NULL;

	if (n < TRACKS_MAX)
		grown = reallocarray(tracks->by_role[role], n + 1, sizeof *grown);
	if (!grown)
		return n ? &tracks->by_role[role][n - 1] : NULL;
	grown[n] = (struct track){ 0 };
	tracks->by_role[role] = grown;
	tracks->n[role]++;
	return &grown[n];
}

uint32_t tracks_assign(struct tracks *tracks, enum track_role role, struct track_owner owner,
		       uint64_t *begin_ns, uint64_t end_ns)
{
	struct track *track = find_free_track(tracks, role, owner, *begin_ns);

	if (!track)
		track = add_track(tracks, role);
	if (!track)
		return 0;
	if (track->end_ns > *begin_ns)
		*begin_ns = track->end_ns < end_ns ? track->end_ns : end_ns;
	*track = (struct track){ owner, end_ns > track->end_ns ? end_ns : track->end_ns };
	return (uint32_t)(track - tracks->by_role[role]);
}

uint32_t tracks_count(const struct tracks *tracks, enum track_role role)
{
	return tracks->n[role];
}

const char *track_role_name(enum track_role role)
{
	return roles[role].name;
}

const char *track_role_names(enum track_role role)
{
	return roles[role].names;
}
