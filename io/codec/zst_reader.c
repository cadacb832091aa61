/*
 * zst_reader - the content of a .zst file with an index (see zst.h)
 *
 * Cached frames are in slots. A slot is assigned to a frame under the lock, and loaded without it
 * by the thread that asked first. Other threads that need the frame wait. A slot cannot be
 * reassigned while threads load it or copy from it.
 */
#include "io/codec/zst.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include <zstd.h>

#include "src/base/diagnostics.h"
#include "src/base/thread.h"

/* As many as a file has readers: each shares an edge with the next one. */
enum { MAX_FRAME_SLOTS = 8 };

#define NO_FRAME SIZE_MAX

/* The slot with the lowest age is reassigned first. Higher ages are times of the last use. */
enum { AGE_CONSUMED, AGE_NEW, AGE_FIRST_USE };

struct frame_slot {
	size_t frame; /* or NO_FRAME */
	unsigned char *content;
	bool is_loading;
	unsigned n_users;
	size_t n_consumed; /* bytes of the content that were returned */
	uint64_t age;
};

struct zst_reader {
	/* Constant. */
	const char *name;
	struct zst_index index;
	uint64_t base;
	struct codec_pool *codec_pool;
	size_t slot_nbytes;
	size_t n_slots; /* changed only before the first read */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a slot was loaded or released */
	/* Protected by the lock. */
	uint64_t use_clock; /* counts uses of slots */
	struct frame_slot slots[MAX_FRAME_SLOTS];
};

int zst_reader_open(const char *name, struct zst_index index, uint64_t base,
		    struct codec_pool *codec_pool, struct zst_reader **ret_reader)
{
	struct zst_reader *reader = calloc(1, sizeof *reader);

	if (!reader) {
		zst_index_free(&index);
		return fail(-ENOMEM, "%s: decompression: %m", name);
	}
	reader->name = name;
	reader->index = index;
	reader->base = base;
	reader->codec_pool = codec_pool;
	reader->slot_nbytes = zst_index_max_content_nbytes(&index);
	reader->use_clock = AGE_FIRST_USE;
	reader->n_slots = MAX_FRAME_SLOTS;
	for (size_t i = 0; i < MAX_FRAME_SLOTS; i++)
		reader->slots[i] = (struct frame_slot){ .frame = NO_FRAME, .age = AGE_NEW };
	pthread_mutex_init(&reader->lock, NULL);
	pthread_cond_init(&reader->changed, NULL);
	*ret_reader = reader;
	return 0;
}

void zst_reader_set_frame_cache(struct zst_reader *reader, size_t n_frames)
{
	reader->n_slots = n_frames < 1               ? 1 :
			  n_frames < MAX_FRAME_SLOTS ? n_frames :
						       MAX_FRAME_SLOTS;
}

struct zst_reader_memory zst_reader_memory(const struct zst_reader *reader)
{
	return (struct zst_reader_memory){
		.frame_nbytes = reader->slot_nbytes,
		.index_nbytes = zst_index_memory_nbytes(&reader->index),
		.cache_nbytes = reader->n_slots * reader->slot_nbytes,
		.thread_nbytes =
			zst_index_max_stored_nbytes(&reader->index) + codec_decoder_nbytes(),
	};
}

void zst_reader_close(struct zst_reader *reader)
{
	if (!reader)
		return;
	for (size_t i = 0; i < MAX_FRAME_SLOTS; i++)
		free(reader->slots[i].content);
	zst_index_free(&reader->index);
	pthread_cond_destroy(&reader->changed);
	pthread_mutex_destroy(&reader->lock);
	free(reader);
}

static int fail_frame(const struct zst_reader *reader, size_t i, int r, const char *reason)
{
	return fail(r, "%s: frame %zu of %zu (%zu bytes at %" PRIu64 ") %s", reader->name, i,
		    reader->index.n, zst_index_stored_nbytes(&reader->index, i),
		    reader->base + reader->index.frames[i].stored, reason);
}

/*
 * Check that the stored bytes are one frame, with as much content as the index says, if its header
 * has a size. The decoder would accept several frames, and ignore skippable ones.
 */
static bool frame_matches_index(const struct zst_reader *reader, size_t i, const void *stored)
{
	const size_t stored_nbytes = zst_index_stored_nbytes(&reader->index, i);
	const unsigned long long declared_nbytes = ZSTD_getFrameContentSize(stored, stored_nbytes);

	return (declared_nbytes == zst_index_content_nbytes(&reader->index, i) ||
		declared_nbytes == ZSTD_CONTENTSIZE_UNKNOWN) &&
	       ZSTD_findFrameCompressedSize(stored, stored_nbytes) == stored_nbytes;
}

static int decode_stored_frame(struct zst_reader *reader, size_t i, struct codec_context *context,
			       const void *stored, void *content)
{
	const size_t nbytes = zst_index_content_nbytes(&reader->index, i);
	const struct codec_items items = { .items = content, .n = nbytes, .item_nbytes = 1 };
	int r;

	if (!frame_matches_index(reader, i, stored))
		return fail_frame(reader, i, -EBADMSG,
				  "does not match the index of the file: one of them is damaged");
	r = codecs[CODEC_ZSTD].decode(context, stored, zst_index_stored_nbytes(&reader->index, i),
				      &items);
	if (r == 0 && reader->index.checksums &&
	    (uint32_t)XXH64(content, nbytes, 0) != reader->index.checksums[i])
		return fail_frame(reader, i, -EBADMSG,
				  "does not match the index of the file: their checksums differ");
	if (r == -EBADMSG)
		return fail_frame(reader, i, r, "is damaged");
	return r < 0 ? fail(r, "%s: decompression: %m", reader->name) : 0;
}

/* Read and decode frame i. */
static int decode_frame(struct zst_reader *reader, const struct file *file, size_t i, void *content)
{
	const size_t stored_nbytes = zst_index_stored_nbytes(&reader->index, i);
	struct codec_context *context;
	void *stored;
	int r = codec_pool_acquire(reader->codec_pool, stored_nbytes, &context);

	if (r < 0)
		return fail(r, "%s: decompression: %m", reader->name);
	stored = codec_context_scratch(context);
	r = file_read_at(file, reader->base + reader->index.frames[i].stored, stored,
			 stored_nbytes);
	if (r == -ENODATA)
		fail_frame(reader, i, r, "is truncated: the file became shorter");
	else if (r < 0)
		fail_frame(reader, i, r, "cannot be read: %m");
	else
		r = decode_stored_frame(reader, i, context, stored, content);
	codec_pool_release(reader->codec_pool, context);
	return r;
}

/* --- slots (these functions require the lock) --- */

static struct frame_slot *find_slot(struct zst_reader *reader, size_t frame)
{
	for (size_t i = 0; i < reader->n_slots; i++)
		if (reader->slots[i].frame == frame)
			return &reader->slots[i];
	return NULL;
}

/* Find the slot to reassign; NULL: all are in use. */
static struct frame_slot *find_victim(struct zst_reader *reader)
{
	struct frame_slot *victim = NULL;

	for (size_t i = 0; i < reader->n_slots; i++) {
		struct frame_slot *slot = &reader->slots[i];

		if (slot->n_users == 0 && (!victim || slot->age < victim->age))
			victim = slot;
	}
	return victim;
}

/* Acquire the slot of a frame. *ret_must_load: the caller must load it. */
static struct frame_slot *acquire_slot(struct zst_reader *reader, size_t frame, bool *ret_must_load)
{
	struct frame_slot *slot;

	for (;;) {
		slot = find_slot(reader, frame);
		*ret_must_load = !slot;
		if (!slot)
			slot = find_victim(reader);
		if (slot && (*ret_must_load || !slot->is_loading))
			break;
		pthread_cond_wait(&reader->changed, &reader->lock);
	}
	if (*ret_must_load) {
		slot->frame = frame;
		slot->is_loading = true;
		slot->n_consumed = 0;
	}
	slot->n_users++;
	slot->age = ++reader->use_clock;
	return slot;
}

/*
 * Release a slot of which n_consumed bytes were used, with the result `r`. The memory of a consumed
 * frame is freed.
 */
static void release_slot(struct zst_reader *reader, struct frame_slot *slot, int r,
			 size_t n_consumed)
{
	slot->n_consumed += n_consumed;
	if (r < 0 || slot->n_consumed >= zst_index_content_nbytes(&reader->index, slot->frame))
		slot->age = AGE_CONSUMED;
	slot->n_users--;
	if (slot->age == AGE_CONSUMED && slot->n_users == 0) {
		free(slot->content);
		slot->content = NULL;
		slot->frame = NO_FRAME;
	}
	pthread_cond_broadcast(&reader->changed);
}

/* --- reading (without the lock) --- */

static int load_slot(struct zst_reader *reader, const struct file *file, struct frame_slot *slot,
		     size_t frame)
{
	int r;

	if (!slot->content)
		slot->content = malloc(reader->slot_nbytes);
	r = slot->content ? decode_frame(reader, file, frame, slot->content) :
			    fail(-ENOMEM, "%s: decompression: %m", reader->name);
	SCOPED_LOCK(&reader->lock);
	slot->is_loading = false;
	if (r < 0)
		slot->frame = NO_FRAME;
	pthread_cond_broadcast(&reader->changed);
	return r;
}

/* Copy nbytes at `offset` of the content of a frame. */
static int copy_from_slot(struct zst_reader *reader, const struct file *file, size_t frame,
			  size_t offset, void *buffer, size_t nbytes)
{
	struct frame_slot *slot;
	bool must_load;
	int r = 0;

	pthread_mutex_lock(&reader->lock);
	slot = acquire_slot(reader, frame, &must_load);
	pthread_mutex_unlock(&reader->lock);
	if (must_load)
		r = load_slot(reader, file, slot, frame);
	if (r == 0)
		memcpy(buffer, slot->content + offset, nbytes);
	pthread_mutex_lock(&reader->lock);
	release_slot(reader, slot, r, nbytes);
	pthread_mutex_unlock(&reader->lock);
	return r;
}

int zst_reader_read_at(struct zst_reader *reader, const struct file *file, uint64_t offset,
		       void *buffer, size_t nbytes)
{
	unsigned char *to = buffer;

	while (nbytes > 0) {
		const size_t frame = zst_index_find(&reader->index, offset);
		const size_t in_frame = (size_t)(offset - reader->index.frames[frame].content);
		const size_t content_nbytes = zst_index_content_nbytes(&reader->index, frame);
		const size_t remaining = content_nbytes - in_frame;
		const size_t n = nbytes < remaining ? nbytes : remaining;
		const int r = n == content_nbytes ?
				      decode_frame(reader, file, frame, to) :
				      copy_from_slot(reader, file, frame, in_frame, to, n);

		if (r < 0)
			return r;
		offset += n;
		to += n;
		nbytes -= n;
	}
	return 0;
}
