/*
 * codec - how the items of a block become the bytes that are stored (see codec.h)
 */
#include "io/codec.h"

#include <errno.h>
#include <string.h>

static int raw_encode(const void *items, size_t items_nbytes, const void **ret_stored,
		      size_t *ret_stored_nbytes)
{
	*ret_stored = items;
	*ret_stored_nbytes = items_nbytes;
	return 0;
}

static int raw_decode(const void *stored, size_t stored_nbytes, void *items, size_t items_nbytes)
{
	if (stored_nbytes != items_nbytes)
		return -EBADMSG;
	if (stored != items)
		memmove(items, stored, items_nbytes);
	return 0;
}

const struct codec codecs[N_CODECS] = {
	[CODEC_RAW] = { .name = "raw", .encode = raw_encode, .decode = raw_decode },
};
