/*
 * manifest.c - an append-only file of records (see manifest.h)
 *
 * An incomplete record must be distinguished from a damaged one. A record is written with one call,
 * so a killed process leaves a prefix of it. A power failure may leave any of its pages unwritten,
 * as zeros. Both concern only records after the last sync, at the end of the file. So a record is
 * incomplete if
 *
 * - its header is valid, it reaches or exceeds the end of the file, and its payload is invalid
 * - or the rest of the file is zero, or a prefix of a header
 *
 * The header has its own checksum, because the length in it is needed before the payload is read.
 */
#include "src/checkpoint/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "io/file/file.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/base/thread_pool.h"

#define RECORD_HEADER_MAGIC UINT32_C(0x67736d72)

/* Preallocated for further records, so that complete runs can be recorded when the disk is full. */
static const uint64_t manifest_slack_nbytes = UINT64_C(16) << 10;

struct manifest_record_header {
	uint32_t magic;
	uint32_t type;
	uint64_t nbytes; /* of the payload, without padding */
	uint64_t payload_checksum;
	uint64_t checksum; /* XXH3 of the preceding members */
};

_Static_assert(sizeof(struct manifest_record_header) % MANIFEST_ALIGN_NBYTES == 0,
	       "payloads are aligned");

static uint64_t padded_nbytes(uint64_t nbytes)
{
	return round_up(nbytes, MANIFEST_ALIGN_NBYTES);
}

static uint64_t record_header_checksum(const struct manifest_record_header *header)
{
	return checksum64(header, offsetof(struct manifest_record_header, checksum));
}

static bool is_zero(const unsigned char *bytes, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		if (bytes[i])
			return false;
	return true;
}

/*
 * Parse the record at the beginning of nbytes. Returns its length, 0 if it is incomplete, or
 * -EBADMSG.
 */
static int64_t parse_record(const unsigned char *bytes, size_t nbytes,
			    struct manifest_record *ret_record)
{
	const unsigned char *payload = bytes + sizeof(struct manifest_record_header);
	const uint32_t magic = RECORD_HEADER_MAGIC;
	struct manifest_record_header header;
	uint64_t remaining;

	if (is_zero(bytes, nbytes))
		return 0;
	if (nbytes < sizeof header) /* may be the beginning of one */
		return memcmp(bytes, &magic, u64_min(nbytes, sizeof magic)) == 0 ? 0 : -EBADMSG;
	memcpy(&header, bytes, sizeof header);
	if (header.magic != RECORD_HEADER_MAGIC ||
	    header.checksum != record_header_checksum(&header))
		return -EBADMSG;
	remaining = nbytes - sizeof header;
	if (header.nbytes > remaining || padded_nbytes(header.nbytes) > remaining)
		return 0;
	if (checksum64(payload, header.nbytes) != header.payload_checksum ||
	    !is_zero(payload + header.nbytes, padded_nbytes(header.nbytes) - header.nbytes))
		return padded_nbytes(header.nbytes) == remaining ? 0 : -EBADMSG;
	*ret_record = (struct manifest_record){ header.type, payload, header.nbytes };
	return (int64_t)(sizeof header + padded_nbytes(header.nbytes));
}

int manifest_parse(const void *bytes, size_t nbytes, uint64_t offset, manifest_visitor *visit,
		   void *context, uint64_t *ret_end)
{
	struct manifest_record record;
	int64_t consumed;
	int r = 0;

	while ((consumed = parse_record((const unsigned char *)bytes + offset, nbytes - offset,
					&record)) > 0) {
		r = visit(context, &record);
		if (r < 0)
			break;
		offset += (uint64_t)consumed;
	}
	*ret_end = offset;
	return consumed < 0 ? -EBADMSG : r;
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
	bytes = aligned_alloc(MANIFEST_ALIGN_NBYTES, padded_nbytes(nbytes) + MANIFEST_ALIGN_NBYTES);
	if (!bytes)
		return fail(-ENOMEM, "%s: no memory for %" PRIu64 " bytes", manifest->path, nbytes);
	r = file_read_at(&manifest->file, 0, bytes, nbytes);
	if (r < 0)
		fail(r, "%s: read: %m", manifest->path);
	else
		r = manifest_parse(bytes, nbytes, manifest->begin, visit, context, &manifest->end);
	free(bytes);
	return r;
}

int manifest_truncate(const struct manifest *manifest)
{
	const int r = file_truncate(&manifest->file, manifest->end);

	return r < 0 ? fail(r, "%s: cannot truncate an incomplete record: %m", manifest->path) : 0;
}

int manifest_append(struct manifest *manifest, const struct manifest_record *record)
{
	struct manifest_record_header header = {
		.magic = RECORD_HEADER_MAGIC,
		.type = record->type,
		.nbytes = record->nbytes,
		.payload_checksum = checksum64(record->payload, record->nbytes),
	};
	const size_t nbytes = sizeof header + padded_nbytes(record->nbytes);
	char *bytes = calloc(1, nbytes);
	int r;

	if (!bytes)
		return fail(-ENOMEM, "%s: no memory for %zu bytes", manifest->path, nbytes);
	header.checksum = record_header_checksum(&header);
	memcpy(bytes, &header, sizeof header);
	memcpy(bytes + sizeof header, record->payload, record->nbytes);
	r = file_write_at(&manifest->file, manifest->end, bytes, nbytes);
	free(bytes);
	if (r < 0)
		return fail(r, "%s: write of %zu bytes at %" PRIu64 ": %m%s", manifest->path,
			    nbytes, manifest->end, size_limit_hint(r).text);
	manifest->end += nbytes;
	file_preallocate_keep_size(&manifest->file, manifest->end, manifest_slack_nbytes);
	return 0;
}

int manifest_sync(const struct manifest *manifest)
{
	const int r = file_sync(&manifest->file);

	return r < 0 ? fail(r, "%s: cannot sync: %m", manifest->path) : 0;
}

/* --- The sync thread --- */

struct sync_thread {
	/* Set at creation. */
	struct manifest *manifest;
	struct spill *spill;

	struct workers worker; /* one thread */
	/* Guarded by the lock. */
	struct sync_request *head, **tail; /* the next request is linked at *tail, which is NULL */
	int error;                         /* of the first request that failed */
};

static void complete_requests(struct sync_request *request, bool durable)
{
	while (request) {
		struct sync_request *next = request->next;

		if (request->on_complete)
			request->on_complete(request->context, durable);
		free(request->payload);
		free(request);
		request = next;
	}
}

/*
 * Write the records of all requests. The blocks of the runs are synced first, because a record
 * states that they are durable.
 */
static int write_requests(const struct sync_thread *sync_thread,
			  const struct sync_request *requests)
{
	int r = spill_sync(sync_thread->spill);

	for (const struct sync_request *request = requests; request && r == 0;
	     request = request->next)
		r = manifest_append(sync_thread->manifest,
				    &(struct manifest_record){ request->type, request->payload,
							       request->nbytes });
	return r < 0 ? r : manifest_sync(sync_thread->manifest);
}

/* Wait for requests and take all of them. Returns NULL if the thread must end. */
static struct sync_request *dequeue_requests(struct sync_thread *sync_thread)
{
	struct sync_request *requests;

	SCOPED_LOCK(&sync_thread->worker.lock);
	while (!sync_thread->head && !sync_thread->worker.closing)
		pthread_cond_wait(&sync_thread->worker.changed, &sync_thread->worker.lock);
	requests = sync_thread->head;
	sync_thread->head = NULL;
	sync_thread->tail = &sync_thread->head;
	return requests;
}

static void *sync_thread_main(void *argument)
{
	struct sync_thread *sync_thread = argument;
	struct sync_request *requests;

	while ((requests = dequeue_requests(sync_thread))) {
		const int r = sync_thread->error ? sync_thread->error :
						   write_requests(sync_thread, requests);

		complete_requests(requests, r == 0);
		pthread_mutex_lock(&sync_thread->worker.lock);
		sync_thread->error = r;
		pthread_mutex_unlock(&sync_thread->worker.lock);
	}
	return NULL;
}

int sync_thread_open(struct manifest *manifest, struct spill *spill,
		     struct sync_thread **ret_sync_thread)
{
	struct sync_thread *sync_thread = calloc(1, sizeof *sync_thread);
	int r;

	if (!sync_thread)
		return fail(-ENOMEM, "--checkpoint: no memory for the checkpoint thread: %m");
	sync_thread->manifest = manifest;
	sync_thread->spill = spill;
	sync_thread->tail = &sync_thread->head;
	workers_open(&sync_thread->worker);
	r = thread_group_start(&sync_thread->worker.threads, 1, sync_thread_main, sync_thread,
			       NULL);
	if (r < 0) {
		sync_thread_close(sync_thread, false);
		return fail(r, "--checkpoint: cannot start a thread: %m%s",
			    thread_format_limits(r).text);
	}
	*ret_sync_thread = sync_thread;
	return 0;
}

int sync_thread_add(struct sync_thread *sync_thread, struct sync_request *request)
{
	int r;

	request->next = NULL;
	pthread_mutex_lock(&sync_thread->worker.lock);
	r = sync_thread->error;
	if (r == 0) {
		*sync_thread->tail = request;
		sync_thread->tail = &request->next;
		pthread_cond_signal(&sync_thread->worker.changed);
	}
	pthread_mutex_unlock(&sync_thread->worker.lock);
	if (r < 0)
		complete_requests(request, false);
	return r;
}

int sync_thread_close(struct sync_thread *sync_thread, bool drain)
{
	struct sync_request *dropped = NULL;
	int r;

	if (!sync_thread)
		return 0;
	if (!drain) {
		pthread_mutex_lock(&sync_thread->worker.lock);
		dropped = sync_thread->head;
		sync_thread->head = NULL;
		sync_thread->tail = &sync_thread->head;
		pthread_mutex_unlock(&sync_thread->worker.lock);
	}
	complete_requests(dropped, false);
	workers_close(&sync_thread->worker);
	r = sync_thread->error;
	free(sync_thread);
	return r;
}
