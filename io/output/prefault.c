/*
 * prefault - the page cache of files, made ready before there is anything to write (see
 * prefault.h)
 *
 * The whole pieces of all files are numbered, one file behind the other, as writers will come to
 * them.
 */
#include "io/output/prefault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "src/base/interval_search.h"
#include "src/base/thread.h"

enum { MOST_THREADS = 8 };

struct early_pages {
	uint64_t n_pieces;          /* whole ones of what will be reserved */
	uint64_t n_writers, n_each; /* and of each writer, but for the last ones */

	atomic_uint_least64_t n_claimed; /* in the order in which they are made ready */
	atomic_bool is_stopped;

	unsigned n_threads;
	pthread_t threads[MOST_THREADS];

	uint32_t n_users; /* that have not stopped it */
	uint32_t n_files;
	struct place {
		struct early_file is;
		uint64_t begin;       /* number of its first piece, */
		uint64_t first_piece; /* which is this one of the file */
	} places[];
};

/* Which piece is the i-th: the first of each writer, then the second of each. False: none. */
static bool find_piece(const struct early_pages *early, uint64_t i, uint64_t *ret_piece)
{
	*ret_piece = i % early->n_writers * early->n_each + i / early->n_writers;
	return *ret_piece < early->n_pieces;
}

/* The last place that begins at or before the piece: those of none are before it. */
static const struct place *find_place(const struct early_pages *early, uint64_t piece)
{
	return &early->places[begins_find(early->places, sizeof *early->places,
					  offsetof(struct place, begin), early->n_files, piece)];
}

static bool make_ready(const struct early_pages *early, uint64_t piece)
{
	const struct place *place = find_place(early, piece);
	const uint64_t offset = (place->first_piece + piece - place->begin) * MAPPED_PIECE_NBYTES;
	const uint64_t base = place->is.reservation->base;
	struct mapping mapping;

	if (!reservation_reach(place->is.reservation, offset - base,
			       offset - base + MAPPED_PIECE_NBYTES) ||
	    mapping_open_to_write(place->is.file, offset, MAPPED_PIECE_NBYTES, &mapping) < 0)
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

static void add_file(struct early_pages *early, struct early_file file)
{
	const uint64_t base = file.reservation->base, end = base + file.reservation->total_nbytes;
	const uint64_t first_piece = (base + MAPPED_PIECE_NBYTES - 1) / MAPPED_PIECE_NBYTES;

	early->places[early->n_files++] = (struct place){ file, early->n_pieces, first_piece };
	if (end / MAPPED_PIECE_NBYTES > first_piece)
		early->n_pieces += end / MAPPED_PIECE_NBYTES - first_piece;
}

int early_pages_start(const struct early_file *files, uint32_t n, uint32_t n_writers,
		      unsigned n_threads, struct early_pages **ret_early)
{
	struct early_pages *early = calloc(1, sizeof *early + n * sizeof *early->places);
	int r = 0;

	if (!early)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		add_file(early, files[i]);
	early->n_users = n;
	early->n_writers = n_writers;
	early->n_each = (early->n_pieces + n_writers - 1) / n_writers;
	while (r == 0 && early->n_threads < n_threads && early->n_threads < MOST_THREADS) {
		r = thread_start(make_pages_ready, early, 0, &early->threads[early->n_threads]);
		early->n_threads += r == 0;
	}
	if (early->n_threads == 0) {
		free(early);
		return r;
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
	if (--early->n_users == 0)
		free(early);
}
