/*
 * collective_files.h - files that several ranks write
 *
 * Rank 0 creates each file under a temporary name and commits it in the end. Part files are in a
 * temporary directory, which rank 0 creates and renames. The other ranks open the files by these
 * names.
 *
 * A file is divided into stripes of equal length. Each stripe is written by one rank:
 *
 *	stripes      |           |           |           |
 *	partitions   0000000000000000011111111111112222222
 *	written by   000000000000000000000000111111111111222
 *
 * The writer of a stripe is the rank in whose partition it begins. If two hosts cache the same page
 * of a file, a host that changes part of it may write the whole page (NFS); two writers of a stripe
 * wait for each other (Lustre). So a rank keeps its bytes of the stripe in which its partition
 * begins, and sends them to the writer when all ranks have merged.
 *
 * If the ranks compress the files, a stripe of the content is a frame (collective_zst.c), and the
 * compressed file has stripes, too. A rank compresses one file after another. Its last frame of the
 * last file may contain bytes of later ranks. Then every rank learns the frames of each file.
 *
 * The client knows which bytes are in whose partition.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/zst.h"
#include "io/output/orphans.h"
#include "io/output/part_files.h"

struct collective_zst;
struct comm;
struct foreign_bytes;
struct spill;

struct collective_file {
	uint64_t foreign_nbytes; /* written for other ranks, if it is not compressed */

	/* If it is compressed; otherwise zeroed. */
	struct collective_zst *zst;
	struct zst_index index; /* of the own frames, later of those of all ranks */
	uint64_t stored_nbytes; /* written to the file by this rank */
};

/* What the other ranks must know to open a file, or the directory of part files. */
struct shared_name {
	char name[TEMP_NAME_SIZE];
	char preallocates; /* whether its file system can; a boolean */
};

/* A zeroed struct is closed. */
struct collective_files {
	struct comm *comm;
	struct output **outputs;       /* n; NULL: this rank does not write to the file */
	struct collective_file *files; /* n */
	struct shared_name *names;     /* of the n files, and of the directory */
	uint32_t n;
	uint64_t stripe_nbytes;        /* of a file or, if it is compressed, of its content */
	bool is_compressed;            /* with the next two members */
	uint64_t stored_stripe_nbytes; /* of the compressed file */
	bool has_all_frames;           /* all ranks have compressed their frames */
	pthread_mutex_t lock;
	struct foreign_bytes *foreign; /* with the lock: bytes that other ranks write */
};

/* Open the state of n files. outputs must outlive it. */
int collective_files_open(struct comm *comm, struct output **outputs, uint32_t n,
			  struct collective_files *ret_files);

/* After the outputs are aborted, with no transfer in progress. */
void collective_files_close(struct collective_files *files);

/*
 * Collective: let the other ranks open what rank 0 has created for `path`. That is the single file,
 * or the directory *part_files, which the other ranks get (NULL: the single file). extension: of
 * part files.
 */
int collective_files_share(struct collective_files *files, const struct syscalls *calls,
			   const char *path, const char *extension, struct part_files **part_files);

/* Open the shared part file i. Not a collective. */
int collective_files_join_part(struct collective_files *files, const struct part_files *part_files,
			       uint32_t i);

/* Collective, before any rank writes: agree on stripe_nbytes. Rank 0 has opened the outputs. */
int collective_files_agree_stripe(struct collective_files *files);

/* After that: compress the files. Frames are stored in the spill. */
int collective_files_compress(struct collective_files *files, struct spill *spill);

/* Keep bytes that rank `owner` writes. Thread-safe. */
int collective_files_keep(struct collective_files *files, unsigned owner, uint32_t i,
			  uint64_t offset, const void *data, size_t nbytes);

/* Return whether these bytes, which another rank has sent, are in a stripe of this rank. */
typedef bool is_own_stripe_fn(void *context, unsigned from, uint64_t i, uint64_t offset,
			      uint64_t nbytes);

/*
 * Collective, when all ranks have merged: send the kept bytes to the ranks that write them. Those
 * of compressed files wait for collective_files_end_frames().
 */
int collective_files_exchange(struct collective_files *files, is_own_stripe_fn *is_own,
			      void *context);

/*
 * Compress the content of a file from `begin` on, a multiple of the frame size, and stop when all
 * own content is written. content_end: where it ends, and the content of other ranks follows.
 * may_be_empty: make no frame if there is no content.
 */
int collective_files_begin_frames(struct collective_files *files, uint32_t i, int level,
				  unsigned n_threads, uint64_t begin);
int collective_files_end_frames(struct collective_files *files, uint32_t i, uint64_t content_end,
				bool may_be_empty);

/*
 * Collective, after the content of all ranks is compressed: write the frames. content_nbytes: of
 * each file.
 */
int collective_files_write_frames(struct collective_files *files, const uint64_t *content_nbytes);

/* Return whether all ranks are on the same host. */
bool collective_files_have_one_host(const struct collective_files *files);

/* --- collective_zst.c: a compressed file, for collective_files.c --- */

int collective_zst_open(struct comm *comm, struct spill *spill, struct collective_zst **ret_zst);

/* NULL is ignored. Does not free space of the spill. */
void collective_zst_close(struct collective_zst *zst);

/* Return a sink for the own frames, which are spilled. */
struct zst_sink collective_zst_sink(struct collective_zst *zst);

/* Keep content of other ranks that follows the own. */
int collective_zst_buffer_content(struct collective_zst *zst, uint64_t offset, const void *data,
				  size_t nbytes);

/* Write that content to the output, in order and without gaps. The own content ends at `end`. */
int collective_zst_flush_content(struct collective_zst *zst, uint64_t end, struct output *output);

/*
 * Collective: combine the indexes of all ranks, which must describe content_nbytes. Free
 * *ret_index with zst_index_free().
 */
int collective_zst_merge_index(struct collective_zst *zst, const struct zst_index *own_index,
			       uint64_t content_nbytes, struct zst_index *ret_index);

/* Writes bytes of the file that belong to rank `owner`. */
struct stripe_sink {
	uint64_t stripe_nbytes; /* no write crosses the end of a stripe */
	void *context;
	int (*write)(void *context, unsigned owner, uint64_t offset, const void *data,
		     size_t nbytes);
};

/* Write the own frames, and the index if this rank has the last one. *ret_nbytes: of the file. */
int collective_zst_write(struct collective_zst *zst, const struct zst_index *index,
			 const struct stripe_sink *sink, uint64_t *ret_nbytes);
