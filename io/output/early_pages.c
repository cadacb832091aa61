/*
 * early_pages - the page cache of a file, made ready before there is anything to write (see
 * early_pages.h)
 */
#include "io/output/early_pages.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "src/base/thread.h"

enum { MOST_THREADS = 8 };

struct early_pages {
	const struct file *file;
	struct reservation *reservation;
	uint64_t first_piece, n_pieces; /* whole ones of what will be reserved */
	uint64_t n_writers, n_each;     /* and of each writer, but for the last ones */

	atomic_uint_least64_t n_claimed; /* in the order in which they are made ready */
	atomic_bool is_stopped;

	unsigned n_threads;
	pthread_t threads[MOST_THREADS];
};

/* Which piece is the i-th: the first of each writer, then the second of each. False: none. */
static bool find_piece(const struct early_pages *early, uint64_t i, uint64_t *ret_piece)
{
	*ret_piece = i % early->n_writers * early->n_each + i / early->n_writers;
	return *ret_piece < early->n_pieces;
}

static bool make_ready(const struct early_pages *early, uint64_t piece)
{
	const uint64_t offset = (early->first_piece + piece) * MAPPED_PIECE_NBYTES;
	const uint64_t base = early->reservation->base;
	struct mapping mapping;

	if (!reservation_reach(early->reservation, offset - base,
			       offset - base + MAPPED_PIECE_NBYTES) ||
	    mapping_open_to_write(early->file, offset, MAPPED_PIECE_NBYTES, &mapping) < 0)
		return false;
	mapping_populate(&mapping, 0, MAPPED_PIECE_NBYTES);
	mapping_close(&mapping);
	return true;
}

/* Where one cannot be had, the others need not be tried. */
static void *make_pages_ready(void *context)
{
	struct early_pages *early = context;
	const uint64_t n = early->n_writers * early->n_each;
	uint64_t i, piece;

	while (!atomic_load(&early->is_stopped) && (i = atomic_fetch_add(&early->n_claimed, 1)) < n)
		if (find_piece(early, i, &piece) && !make_ready(early, piece))
			atomic_store(&early->is_stopped, true);
	return NULL;
}

static void join(struct early_pages *early)
{
	while (early->n_threads > 0)
		pthread_join(early->threads[--early->n_threads], NULL);
}

int early_pages_start(const struct file *file, struct reservation *reservation, uint32_t n_writers,
		      unsigned n_threads, struct early_pages **ret_early)
{
	const uint64_t base = reservation->base, end = base + reservation->total_nbytes;
	struct early_pages *early = calloc(1, sizeof *early);
	int r = 0;

	if (!early)
		return -ENOMEM;
	early->file = file;
	early->reservation = reservation;
	early->first_piece = (base + MAPPED_PIECE_NBYTES - 1) / MAPPED_PIECE_NBYTES;
	if (end / MAPPED_PIECE_NBYTES > early->first_piece)
		early->n_pieces = end / MAPPED_PIECE_NBYTES - early->first_piece;
	early->n_writers = n_writers;
	early->n_each = (early->n_pieces + n_writers - 1) / n_writers;
	while (r == 0 && early->n_threads < n_threads && early->n_threads < MOST_THREADS) {
		r = thread_start(make_pages_ready, early, 0, &early->threads[early->n_threads]);
		early->n_threads += r == 0;
	}
	*ret_early = early;
	return 0;
}

void early_pages_wait(struct early_pages *early)
{
	join(early);
}

void early_pages_stop(struct early_pages *early)
{
	if (!early)
		return;
	atomic_store(&early->is_stopped, true);
	join(early);
	free(early);
}
