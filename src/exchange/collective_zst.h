/*
 * collective_zst - the frames of a file that several ranks compress together
 *
 *	frames      |     0     |     1     |     2     |     3     | 4 |
 *	ranks       000000000000000000111111111111111111111222222222222222
 *	compressed  000000000000000000000000111111111111111111111111222222
 *	file        [0][1 ][2][ 3 ][4][ index ]
 *
 * Each rank compresses the frames that begin in its range of the content, so they are those of one
 * process, byte for byte. What others have of the last of them comes when all have merged, in any
 * order. Where in the file a rank's frames begin is known when all have theirs: until then they are
 * kept in the temporary space, which is memory first. Then every rank is told the sizes of all
 * frames, and writes its own; the last one that has any writes the index behind them. Stripes of
 * the file (sort_output_stripe_owners.c) have one writer each, too: of one that several ranks have
 * bytes of, that whose bytes begin it.
 *
 * By one thread at a time, but for the sink. Functions that can fail return a negative errno after
 * a message.
 */
#pragma once

#include "io/codec/zst_writer.h"
#include "io/output/output.h"
#include "io/spill/spill.h"
#include "src/comm/comm.h"

struct collective_zst;

/* Both must outlive it. */
int collective_zst_open(struct comm *comm, struct spill *spill, struct collective_zst **ret_zst);
/* NULL is fine; nothing is given back of the spill. */
void collective_zst_close(struct collective_zst *zst);

/* Where own frames are to go. */
struct zst_sink collective_zst_sink(struct collective_zst *zst);

/*
 * Keep content of other ranks that is behind the own; and write it to the output, in its order. The
 * own ends at `end`, and from there on there must be all of it, once.
 */
int collective_zst_buffer_content(struct collective_zst *zst, uint64_t offset, const void *data,
				  size_t nbytes);
int collective_zst_flush_content(struct collective_zst *zst, uint64_t end, struct output *output);

/*
 * Every rank calls it, with the index of its frames, and gets that of all, to be freed. All of them
 * must have content_nbytes.
 */
int collective_zst_merge_index(struct collective_zst *zst, const struct zst_index *own_index,
			       uint64_t content_nbytes, struct zst_index *ret_index);

/* Bytes of the file, which one rank is to write. */
struct stripe_sink {
	uint64_t stripe_nbytes; /* never across the end of a stripe */
	void *context;
	int (*write)(void *context, unsigned owner, uint64_t offset, const void *data,
		     size_t nbytes);
};

/* After that: what this rank has of the file. *ret_nbytes: what all have. */
int collective_zst_write(struct collective_zst *zst, const struct zst_index *index,
			 const struct stripe_sink *sink, uint64_t *ret_nbytes);
