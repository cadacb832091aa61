/*
 * fault_kinds - of the system's calls, and of a back end's (see fault_kinds.h)
 */
#include "tests/fault/fault_kinds.h"

#include <errno.h>
#include <string.h>

/* A call that signals interrupt is interrupted so often in a row. */
enum { STORM = 9 };

#define INTERRUPTED(point) KIND(point, EFFECT_FAIL, EINTR, STORM, DEMAND_SUCCESS)

#define TRANSFER(point, error)                                                                     \
	ONCE_AND_FOR_GOOD(point, error), INTERRUPTED(point),                                       \
		KIND(point, EFFECT_FAIL, EAGAIN, 1, DEMAND_SUCCESS),                               \
		KIND(point, EFFECT_SHORT, 0, 1, DEMAND_SUCCESS),                                   \
		KIND(point, EFFECT_SHORT, 0, FOR_GOOD, DEMAND_SUCCESS),                            \
		KIND(point, EFFECT_END, 0, 1, DEMAND_EITHER),                                      \
		KIND(point, EFFECT_END, 0, FOR_GOOD, DEMAND_EITHER)

/* A byte of what is stored for a while. */
#define SPOILED(p, e, demand_, place_)                                                             \
	{                                                                                          \
		.point = p, .effect = e, .n_times = 1, .demand = demand_, .place = place_          \
	}

#define SPOILED_ANYWHERE(point, effect, demand)                                                    \
	SPOILED(point, effect, demand, AT_FIRST), SPOILED(point, effect, demand, AT_LAST),         \
		SPOILED(point, effect, demand, AT_RANDOM)

const struct kind kinds[] = {
	ONCE_AND_FOR_GOOD(POINT_OPEN, EMFILE),
	INTERRUPTED(POINT_OPEN),
	ONCE_AND_FOR_GOOD(POINT_CLOSE, EIO),
	ONCE_AND_FOR_GOOD(POINT_EXAMINE, EIO),
	TRANSFER(POINT_READ, EIO),
	TRANSFER(POINT_READ_BACK, EIO),
	TRANSFER(POINT_READ_TEMPORARY, EIO),
	TRANSFER(POINT_READ_MANIFEST, EIO),
	TRANSFER(POINT_WRITE, ENOSPC),
	TRANSFER(POINT_WRITE_TEMPORARY, ENOSPC),
	TRANSFER(POINT_WRITE_MANIFEST, ENOSPC),
	KIND(POINT_WRITE, EFFECT_FAIL, EIO, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE, EFFECT_LOSE, 0, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE, EFFECT_ALTER, 0, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE_TEMPORARY, EFFECT_FAIL, EIO, 1, DEMAND_EITHER),
	SPOILED_ANYWHERE(POINT_READ_TEMPORARY, EFFECT_DAMAGE, DEMAND_FAILURE),
	SPOILED_ANYWHERE(POINT_READ_TEMPORARY, EFFECT_CUT, DEMAND_FAILURE),
	/* The first record of a piece has been checked with the piece before. */
	SPOILED(POINT_READ_BACK, EFFECT_DAMAGE, DEMAND_FAILURE, AT_LAST),
	SPOILED_ANYWHERE(POINT_READ_BACK, EFFECT_CUT, DEMAND_FAILURE),
	/* A manifest's end may be that of a process that was killed. */
	SPOILED_ANYWHERE(POINT_READ_MANIFEST, EFFECT_DAMAGE, DEMAND_EITHER),
	SPOILED_ANYWHERE(POINT_READ_MANIFEST, EFFECT_CUT, DEMAND_EITHER),
	/* Nobody reads it when the sort comes to its end. */
	KIND(POINT_WRITE_MANIFEST, EFFECT_LOSE, 0, 1, DEMAND_SUCCESS),
	KIND(POINT_WRITE_MANIFEST, EFFECT_ALTER, 0, 1, DEMAND_SUCCESS),
	KIND(POINT_WRITE_TEMPORARY, EFFECT_LOSE, 0, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE_TEMPORARY, EFFECT_ALTER, 0, 1, DEMAND_FAILURE),
	KIND(POINT_WRITE_TEMPORARY, EFFECT_ALTER, 0, FOR_GOOD, DEMAND_FAILURE),
	ONCE_AND_FOR_GOOD(POINT_PREALLOCATE, ENOSPC),
	INTERRUPTED(POINT_PREALLOCATE),
	KIND(POINT_PREALLOCATE, EFFECT_FAIL, EOPNOTSUPP, FOR_GOOD, DEMAND_SUCCESS),
	KIND(POINT_PUNCH, EFFECT_FAIL, EOPNOTSUPP, FOR_GOOD, DEMAND_SUCCESS),
	KIND(POINT_PUNCH, EFFECT_FAIL, EIO, 1, DEMAND_SUCCESS),
	INTERRUPTED(POINT_PUNCH),
	ONCE_AND_FOR_GOOD(POINT_TRUNCATE, EIO),
	ONCE_AND_FOR_GOOD(POINT_SYNC, EIO),
	INTERRUPTED(POINT_SYNC),
	ONCE_AND_FOR_GOOD(POINT_LINK, EIO),
	ONCE_AND_FOR_GOOD(POINT_RENAME, EACCES),
	ONCE_AND_FOR_GOOD(POINT_PERMISSIONS, EIO),
	/* The output is complete then. */
	KIND(POINT_REMOVE, EFFECT_FAIL, EROFS, 1, DEMAND_SUCCESS),
	KIND(POINT_REMOVE, EFFECT_FAIL, EROFS, FOR_GOOD, DEMAND_SUCCESS),
	ONCE_AND_FOR_GOOD(POINT_MAKE_DIRECTORY, EACCES),
	/* What is not locked may be somebody else's. */
	KIND(POINT_LOCK, EFFECT_FAIL, ENOLCK, 1, DEMAND_FAILURE),
	ONCE_AND_FOR_GOOD(POINT_STREAM, ENOSPC),
	ONCE_AND_FOR_GOOD(POINT_EVENT, EMFILE),
	ONCE_AND_FOR_GOOD(POINT_ALLOCATION, ENOMEM),
	ONCE_AND_FOR_GOOD(POINT_THREAD, EAGAIN),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_OPEN, ENOMEM),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_OPEN, ENODEV),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_ALLOCATION, ENOMEM),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_LANE, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_COPY, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_SORT, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_CUT, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_MERGE, EIO),
	ONCE_AND_FOR_GOOD(POINT_DEVICE_WAIT, EIO),
};
const size_t n_kinds = sizeof kinds / sizeof *kinds;

bool kind_can_be(const struct kind *kind)
{
	(void)kind;
	return true;
}

bool kind_is_loss(const struct kind *kind)
{
	return kind->point >= POINT_FIRST_DEVICE_CALL && kind->n_times == FOR_GOOD;
}

const char *kind_name(const struct kind *kind)
{
	static const char *const names[] = {
		[EFFECT_SHORT] = "half of it",     [EFFECT_END] = "nothing moved",
		[EFFECT_LOSE] = "lost in silence", [EFFECT_ALTER] = "altered in silence",
		[EFFECT_DAMAGE] = "damaged",       [EFFECT_CUT] = "cut",
	};

	return kind->effect == EFFECT_FAIL ? strerror(kind->error) : names[kind->effect];
}

const char *kind_reason(const struct kind *kind)
{
	if (kind->point == POINT_READ_TEMPORARY && kind->effect >= EFFECT_DAMAGE)
		return ": block "; /* of how many, and where */
	if (kind->effect != EFFECT_FAIL)
		return NULL;
	if (kind->point == POINT_DEVICE_OPEN)
		return "GPU";
	return kind->error == ENOMEM ? "memory" :
	       kind->error == ENOSPC ? "space" :
				       strerror(kind->error);
}
