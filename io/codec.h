/*
 * codec - how the items of a block become the bytes that are stored, and back
 *
 * One table, looked up by name for the command line and by id for blocks: a codec's id is its index
 * in the table. A codec may store a block as it is, in which case nothing is copied in either
 * direction: encode points at the items themselves, and decode is given stored == items.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct codec {
	const char *name;
	/*
	 * The stored form of a block's items, valid as long as the items are. Returns 0 or a
	 * negative errno without a message.
	 */
	int (*encode)(const void *items, size_t items_nbytes, const void **ret_stored,
		      size_t *ret_stored_nbytes);
	/* Back to exactly items_nbytes. -EBADMSG without a message if `stored` cannot be that. */
	int (*decode)(const void *stored, size_t stored_nbytes, void *items, size_t items_nbytes);
};

enum codec_id { CODEC_RAW, N_CODECS };

extern const struct codec codecs[N_CODECS];
