/*
 * fault_kinds.c - faults of system calls and of back ends (see fault_kinds.h)
 */
#include "tests/fault/fault_kinds.h"

#include <errno.h>
#include <string.h>

/* The number of times in a row that a signal interrupts a call. */
enum { N_INTERRUPTS = 9 };

#define INTERRUPTED(point) FAULT_KIND(point, EFFECT_FAIL, EINTR, N_INTERRUPTS, EXPECT_SUCCESS)

#define TRANSFER(point, error)                                                                     \
	ONCE_AND_FOREVER(point, error), INTERRUPTED(point),                                        \
		FAULT_KIND(point, EFFECT_FAIL, EAGAIN, 1, EXPECT_SUCCESS),                         \
		FAULT_KIND(point, EFFECT_SHORT, 0, 1, EXPECT_SUCCESS),                             \
		FAULT_KIND(point, EFFECT_SHORT, 0, FAULT_FOREVER, EXPECT_SUCCESS),                 \
		FAULT_KIND(point, EFFECT_EOF, 0, 1, EXPECT_EITHER),                                \
		FAULT_KIND(point, EFFECT_EOF, 0, FAULT_FOREVER, EXPECT_EITHER)

/* A changed byte of a temporary file. */
#define CORRUPTED(p, e, expected_, position_)                                                      \
	{                                                                                          \
		.point = p, .effect = e, .n_times = 1, .expected_outcome = expected_,              \
		.byte_position = position_                                                         \
	}

#define CORRUPTED_ANYWHERE(point, effect, expected_outcome)                                        \
	CORRUPTED(point, effect, expected_outcome, BYTE_FIRST),                                    \
		CORRUPTED(point, effect, expected_outcome, BYTE_LAST),                             \
		CORRUPTED(point, effect, expected_outcome, BYTE_RANDOM)

const struct fault_kind fault_kinds[] = {
	ONCE_AND_FOREVER(POINT_OPEN, EMFILE),
	INTERRUPTED(POINT_OPEN),
	ONCE_AND_FOREVER(POINT_CLOSE, EIO),
	ONCE_AND_FOREVER(POINT_STAT, EIO),
	TRANSFER(POINT_READ, EIO),
	TRANSFER(POINT_READ_BACK, EIO),
	TRANSFER(POINT_READ_TEMP, EIO),
	TRANSFER(POINT_READ_MANIFEST, EIO),
	TRANSFER(POINT_WRITE, ENOSPC),
	TRANSFER(POINT_WRITE_TEMP, ENOSPC),
	TRANSFER(POINT_WRITE_MANIFEST, ENOSPC),
	FAULT_KIND(POINT_WRITE, EFFECT_FAIL, EIO, 1, EXPECT_FAILURE),
	FAULT_KIND(POINT_WRITE, EFFECT_LOSE_WRITE, 0, 1, EXPECT_FAILURE),
	FAULT_KIND(POINT_WRITE, EFFECT_ALTER_WRITE, 0, 1, EXPECT_FAILURE),
	FAULT_KIND(POINT_WRITE_TEMP, EFFECT_FAIL, EIO, 1, EXPECT_EITHER),
	CORRUPTED_ANYWHERE(POINT_READ_TEMP, EFFECT_CORRUPT, EXPECT_FAILURE),
	CORRUPTED_ANYWHERE(POINT_READ_TEMP, EFFECT_TRUNCATE, EXPECT_FAILURE),
	/* The first record of a block is also checked with the block before it. */
	CORRUPTED(POINT_READ_BACK, EFFECT_CORRUPT, EXPECT_FAILURE, BYTE_LAST),
	CORRUPTED_ANYWHERE(POINT_READ_BACK, EFFECT_TRUNCATE, EXPECT_FAILURE),
	/* A damaged end of a manifest looks like that of a killed process. */
	CORRUPTED_ANYWHERE(POINT_READ_MANIFEST, EFFECT_CORRUPT, EXPECT_EITHER),
	CORRUPTED_ANYWHERE(POINT_READ_MANIFEST, EFFECT_TRUNCATE, EXPECT_EITHER),
	/* A sort that succeeds does not read its manifest. */
	FAULT_KIND(POINT_WRITE_MANIFEST, EFFECT_LOSE_WRITE, 0, 1, EXPECT_SUCCESS),
	FAULT_KIND(POINT_WRITE_MANIFEST, EFFECT_ALTER_WRITE, 0, 1, EXPECT_SUCCESS),
	FAULT_KIND(POINT_WRITE_TEMP, EFFECT_LOSE_WRITE, 0, 1, EXPECT_FAILURE),
	FAULT_KIND(POINT_WRITE_TEMP, EFFECT_ALTER_WRITE, 0, 1, EXPECT_FAILURE),
	FAULT_KIND(POINT_WRITE_TEMP, EFFECT_ALTER_WRITE, 0, FAULT_FOREVER, EXPECT_FAILURE),
	ONCE_AND_FOREVER(POINT_PREALLOCATE, ENOSPC),
	INTERRUPTED(POINT_PREALLOCATE),
	FAULT_KIND(POINT_PREALLOCATE, EFFECT_FAIL, EOPNOTSUPP, FAULT_FOREVER, EXPECT_SUCCESS),
	FAULT_KIND(POINT_PUNCH, EFFECT_FAIL, EOPNOTSUPP, FAULT_FOREVER, EXPECT_SUCCESS),
	FAULT_KIND(POINT_PUNCH, EFFECT_FAIL, EIO, 1, EXPECT_SUCCESS),
	INTERRUPTED(POINT_PUNCH),
	ONCE_AND_FOREVER(POINT_TRUNCATE, EIO),
	ONCE_AND_FOREVER(POINT_SYNC, EIO),
	INTERRUPTED(POINT_SYNC),
	ONCE_AND_FOREVER(POINT_LINK, EIO),
	ONCE_AND_FOREVER(POINT_RENAME, EACCES),
	ONCE_AND_FOREVER(POINT_PERMISSIONS, EIO),
	/* Files are removed after the output is complete. */
	FAULT_KIND(POINT_UNLINK, EFFECT_FAIL, EROFS, 1, EXPECT_SUCCESS),
	FAULT_KIND(POINT_UNLINK, EFFECT_FAIL, EROFS, FAULT_FOREVER, EXPECT_SUCCESS),
	ONCE_AND_FOREVER(POINT_MKDIR, EACCES),
	/* A file that cannot be locked may belong to another process. */
	FAULT_KIND(POINT_LOCK, EFFECT_FAIL, ENOLCK, 1, EXPECT_FAILURE),
	ONCE_AND_FOREVER(POINT_STREAM, ENOSPC),
	ONCE_AND_FOREVER(POINT_EVENTFD, EMFILE),
	ONCE_AND_FOREVER(POINT_ALLOCATION, ENOMEM),
	ONCE_AND_FOREVER(POINT_THREAD, EAGAIN),
	ONCE_AND_FOREVER(POINT_DEVICE_OPEN, ENOMEM),
	ONCE_AND_FOREVER(POINT_DEVICE_OPEN, ENODEV),
	ONCE_AND_FOREVER(POINT_DEVICE_ALLOCATION, ENOMEM),
	ONCE_AND_FOREVER(POINT_DEVICE_QUEUE, EIO),
	ONCE_AND_FOREVER(POINT_DEVICE_COPY, EIO),
	ONCE_AND_FOREVER(POINT_DEVICE_SORT, EIO),
	ONCE_AND_FOREVER(POINT_DEVICE_CUT, EIO),
	ONCE_AND_FOREVER(POINT_DEVICE_MERGE, EIO),
	ONCE_AND_FOREVER(POINT_DEVICE_WAIT, EIO),
};
const size_t n_fault_kinds = sizeof fault_kinds / sizeof *fault_kinds;

bool fault_kind_is_possible(const struct fault_kind *kind)
{
	(void)kind;
	return true;
}

bool fault_kind_is_device_loss(const struct fault_kind *kind)
{
	return kind->point >= POINT_FIRST_DEVICE_CALL && kind->n_times == FAULT_FOREVER;
}

const char *fault_kind_name(const struct fault_kind *kind)
{
	static const char *const names[] = {
		[EFFECT_SHORT] = "half transferred",   [EFFECT_EOF] = "nothing transferred",
		[EFFECT_LOSE_WRITE] = "silently lost", [EFFECT_ALTER_WRITE] = "silently altered",
		[EFFECT_CORRUPT] = "corrupted",        [EFFECT_TRUNCATE] = "truncated",
	};

	return kind->effect == EFFECT_FAIL ? strerror(kind->error) : names[kind->effect];
}

const char *fault_kind_expected_message(const struct fault_kind *kind)
{
	if (kind->point == POINT_READ_TEMP && kind->effect >= EFFECT_CORRUPT)
		return ": block "; /* the message has its number and offset */
	if (kind->effect != EFFECT_FAIL)
		return NULL;
	if (kind->point == POINT_DEVICE_OPEN)
		return "GPU";
	return kind->error == ENOMEM ? "memory" :
	       kind->error == ENOSPC ? "space" :
				       strerror(kind->error);
}
