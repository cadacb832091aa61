/*
 * manifest - a file of records that only grows (see manifest.h)
 *
 * What is unfinished, and what is damaged? A record is written with one call, so what a kill leaves
 * is a beginning of it. A power cut may leave any of its pages unwritten, as zeros. Both only
 * concern the records behind the last sync, at the end of the file. So a record is unfinished if
 * its head says that it reaches the end of the file or beyond and it is not valid, or if from its
 * head on there is nothing but zeros, or a beginning of a head. The head has a checksum of its own:
 * its length is only believed if that is right.
 */
#include "src/checkpoint/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "io/file/size_limit.h"
#include "src/base/diagnostics.h"

#define HEAD_MAGIC UINT32_C(0x67736d72)

/* Kept for the next records: runs that fill the disk should be known of when they are complete. */
static const uint64_t room_nbytes = UINT64_C(16) << 10;

struct head {
	uint32_t magic;
	uint32_t type;
	uint64_t nbytes; /* of the payload, without padding */
	uint64_t payload_checksum;
	uint64_t checksum; /* of all before it */
};

_Static_assert(sizeof(struct head) % MANIFEST_ALIGN_NBYTES == 0, "payloads are aligned");

static uint64_t padded(uint64_t nbytes)
{
	return (nbytes + MANIFEST_ALIGN_NBYTES - 1) / MANIFEST_ALIGN_NBYTES * MANIFEST_ALIGN_NBYTES;
}

static uint64_t head_checksum(const struct head *head)
{
	return checksum64(head, offsetof(struct head, checksum));
}

static bool is_zero(const unsigned char *bytes, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		if (bytes[i])
			return false;
	return true;
}

/* May these few bytes be the beginning of a record? */
static bool begins_head(const unsigned char *bytes, size_t nbytes)
{
	const uint32_t magic = HEAD_MAGIC;

	return memcmp(bytes, &magic, nbytes < sizeof magic ? nbytes : sizeof magic) == 0;
}

static bool is_valid_head(const struct head *head)
{
	return head->magic == HEAD_MAGIC && head->checksum == head_checksum(head);
}

/*
 * The record in the nbytes left. Returns the bytes that it takes, 0 if it is unfinished, or
 * -EBADMSG.
 */
static int64_t take_record(const unsigned char *bytes, size_t nbytes,
			   struct manifest_record *ret_record)
{
	const unsigned char *payload = bytes + sizeof(struct head);
	struct head head;
	uint64_t left;

	if (is_zero(bytes, nbytes))
		return 0;
	if (nbytes < sizeof head)
		return begins_head(bytes, nbytes) ? 0 : -EBADMSG;
	memcpy(&head, bytes, sizeof head);
	if (!is_valid_head(&head))
		return -EBADMSG;
	left = nbytes - sizeof head;
	if (head.nbytes > left || padded(head.nbytes) > left)
		return 0;
	if (checksum64(payload, head.nbytes) != head.payload_checksum ||
	    !is_zero(payload + head.nbytes, padded(head.nbytes) - head.nbytes))
		return padded(head.nbytes) == left ? 0 : -EBADMSG;
	*ret_record = (struct manifest_record){ head.type, payload, head.nbytes };
	return (int64_t)(sizeof head + padded(head.nbytes));
}

/* The records from `offset` on. *ret_end: where the last complete one ends, also on failure. */
static int parse(const void *bytes, size_t nbytes, uint64_t offset, manifest_visitor *visit,
		 void *context, uint64_t *ret_end)
{
	struct manifest_record record;
	int64_t taken;
	int r = 0;

	while ((taken = take_record((const unsigned char *)bytes + offset, nbytes - offset,
				    &record)) > 0) {
		r = visit(context, &record);
		if (r < 0)
			break;
		offset += (uint64_t)taken;
	}
	*ret_end = offset;
	return taken < 0 ? -EBADMSG : r;
}

int manifest_parse(const void *bytes, size_t nbytes, manifest_visitor *visit, void *context,
		   uint64_t *ret_end)
{
	return parse(bytes, nbytes, 0, visit, context, ret_end);
}

int manifest_read(struct manifest *manifest, manifest_visitor *visit, void *context)
{
	uint64_t nbytes;
	void *bytes;
	int r = file_size(&manifest->file, &nbytes);

	if (r < 0)
		return fail(r, "%s: %m", manifest->path);
	manifest->end = manifest->begin;
	if (nbytes <= manifest->begin)
		return 0;
	bytes = aligned_alloc(MANIFEST_ALIGN_NBYTES, padded(nbytes) + MANIFEST_ALIGN_NBYTES);
	if (!bytes)
		return fail(-ENOMEM, "%s: no memory for %" PRIu64 " bytes", manifest->path, nbytes);
	r = file_read_at(&manifest->file, 0, bytes, nbytes);
	if (r < 0)
		fail(r, "%s: read: %m", manifest->path);
	else
		r = parse(bytes, nbytes, manifest->begin, visit, context, &manifest->end);
	free(bytes);
	return r;
}

int manifest_cut(const struct manifest *manifest)
{
	const int r = file_truncate(&manifest->file, manifest->end);

	return r < 0 ? fail(r, "%s: cannot cut off an unfinished record: %m", manifest->path) : 0;
}

int manifest_append(struct manifest *manifest, const struct manifest_record *record)
{
	struct head head = {
		.magic = HEAD_MAGIC,
		.type = record->type,
		.nbytes = record->nbytes,
		.payload_checksum = checksum64(record->payload, record->nbytes),
	};
	const size_t nbytes = sizeof head + padded(record->nbytes);
	char *bytes = calloc(1, nbytes);
	char advice[SIZE_LIMIT_NBYTES];
	int r;

	if (!bytes)
		return fail(-ENOMEM, "%s: no memory for %zu bytes", manifest->path, nbytes);
	head.checksum = head_checksum(&head);
	memcpy(bytes, &head, sizeof head);
	memcpy(bytes + sizeof head, record->payload, record->nbytes);
	r = file_write_at(&manifest->file, manifest->end, bytes, nbytes);
	free(bytes);
	if (r < 0)
		return fail(r, "%s: write of %zu bytes at %" PRIu64 ": %m%s", manifest->path,
			    nbytes, manifest->end, size_limit_advice(r, advice));
	manifest->end += nbytes;
	file_reserve_behind(&manifest->file, manifest->end, room_nbytes);
	return 0;
}

int manifest_sync(const struct manifest *manifest)
{
	const int r = file_sync(&manifest->file);

	return r < 0 ? fail(r, "%s: cannot bring it to stable storage: %m", manifest->path) : 0;
}
