/*
 * mmap_writer - a file that is written through mappings (see mmap_writer.h)
 */
#include "io/file/mmap_writer.h"

#include <errno.h>

void mapped_pieces_init(struct mapped_pieces *pieces)
{
	*pieces = (struct mapped_pieces){ 0 };
	pthread_mutex_init(&pieces->lock, NULL);
}

void mapped_pieces_destroy(struct mapped_pieces *pieces)
{
	for (int i = 0; i < MAPPED_PIECES_MOST; i++)
		mapping_close(&pieces->all[i].mapping);
	pthread_mutex_destroy(&pieces->lock);
}

/* Under the lock: the piece at `offset`, or NULL. */
static struct mapped_piece *find(struct mapped_pieces *pieces, uint64_t offset)
{
	for (int i = 0; i < MAPPED_PIECES_MOST; i++)
		if (pieces->all[i].mapping.bytes && pieces->all[i].offset == offset)
			return &pieces->all[i];
	return NULL;
}

/*
 * Under the lock: room for another one, or NULL. Where none is free, the one goes that nobody is at
 * and of which the most is written; what is missing will be mapped again.
 */
static struct mapped_piece *make_room(struct mapped_pieces *pieces)
{
	struct mapped_piece *fullest = NULL;

	for (int i = 0; i < MAPPED_PIECES_MOST; i++) {
		struct mapped_piece *piece = &pieces->all[i];

		if (!piece->mapping.bytes)
			return piece;
		if (piece->n_users == 0 && (!fullest || piece->n_written > fullest->n_written))
			fullest = piece;
	}
	if (fullest)
		mapping_close(&fullest->mapping);
	return fullest;
}

/* Take part in the piece at `offset`. */
static int enter(struct mapped_pieces *pieces, const struct file *file, uint64_t offset,
		 struct mapped_piece **ret_piece)
{
	struct mapped_piece *piece;
	int r = 0;

	pthread_mutex_lock(&pieces->lock);
	piece = find(pieces, offset);
	if (!piece) {
		piece = make_room(pieces);
		r = piece ? 0 : -EMFILE;
		if (r == 0) {
			*piece = (struct mapped_piece){ .offset = offset };
			r = mapping_open_to_write(file, offset, MAPPED_PIECE_NBYTES,
						  &piece->mapping);
		}
	}
	if (r == 0)
		piece->n_users++;
	pthread_mutex_unlock(&pieces->lock);
	*ret_piece = piece;
	return r;
}

/*
 * Done with it. A whole piece, or one that is damaged, is let go by its last user; the system is
 * asked to outside of the lock.
 */
static void leave(struct mapped_pieces *pieces, struct mapped_piece *piece, size_t nbytes)
{
	struct mapping done = { 0 };

	pthread_mutex_lock(&pieces->lock);
	piece->n_written += nbytes;
	if (--piece->n_users == 0 &&
	    (piece->n_written >= MAPPED_PIECE_NBYTES || mapping_is_damaged(&piece->mapping))) {
		done = piece->mapping;
		piece->mapping = (struct mapping){ 0 };
	}
	pthread_mutex_unlock(&pieces->lock);
	mapping_close(&done);
}

static int write_part(struct mapped_pieces *pieces, const struct file *file, uint64_t offset,
		      const void *data, size_t nbytes)
{
	const size_t within = offset % MAPPED_PIECE_NBYTES;
	struct mapped_piece *piece;
	int r = enter(pieces, file, offset - within, &piece);

	if (r < 0)
		return r;
	r = mapping_write(&piece->mapping, within, data, nbytes);
	leave(pieces, piece, nbytes);
	return r;
}

int mapped_pieces_write_at(struct mapped_pieces *pieces, const struct file *file, uint64_t offset,
			   const void *data, size_t nbytes)
{
	const char *bytes = data;
	int r = 0;

	while (r == 0 && nbytes > 0) {
		const size_t n_left = MAPPED_PIECE_NBYTES - offset % MAPPED_PIECE_NBYTES;
		const size_t n = nbytes < n_left ? nbytes : n_left;

		r = write_part(pieces, file, offset, bytes, n);
		offset += n;
		bytes += n;
		nbytes -= n;
	}
	return r;
}
