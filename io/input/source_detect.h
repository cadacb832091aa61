/*
 * source_detect - is a source records, compressed, or something else? (format_detect.h)
 *
 * Regular files, and the content of those that are compressed with an index, are looked at when
 * they are examined; streams when they are started, since their first bytes have to be read for it.
 * These are kept, and are what is read first. Of a format with a header its size is noted.
 */
#pragma once

#include "io/input/source.h"

/* The first bytes of what a stream contributes, which have been read already. */
struct source_head {
	size_t begin, end; /* of those that have not been given out */
	unsigned char bytes[FORMAT_HEAD_NBYTES];
};

/*
 * A regular file, which is open, from its base on. Returns 1 if it is compressed, 0 if it is
 * records, or a negative errno after a message: of what could not be read, or -EINVAL.
 */
int source_detect_file(const struct source_table *table, struct source *source);

/* The content of a regular file that is compressed. 0, or as above. */
int source_detect_content(const struct source_table *table, struct source *source);

/*
 * A stream of which the head has just been read, as it is stored, or its content. As
 * source_detect_file().
 */
int source_detect_head(const struct source_table *table, struct source *source,
		       const struct source_head *head, bool is_decompressed);
