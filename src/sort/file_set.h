/*
 * file_set.h - the files of an output, from opening to commit
 *
 *	open -> (writes to outputs) -> complete -> commit   the file or directory has its name
 *	                                        \-> abort   nothing has happened
 *
 * An output is one file, or a directory of part files with a manifest. What is in them is up to the
 * client, and so is the order in which they are written.
 *
 * Several ranks may write to the files. Rank 0 creates each file under a temporary name and commits
 * it in the end. Part files are in a temporary directory, which rank 0 creates and renames. The
 * other ranks open the files by these names.
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
 * Rank 0 writes the header of each file, with all of its last page or frame.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/zst.h"
#include "io/input/part_manifest.h"
#include "io/output/part_files.h"
#include "src/plan/job.h"
#include "src/plan/sort_spec.h"

struct checkpoint;
struct collective_zst;
struct comm;
struct foreign_bytes;
struct spill;

/* A file that several ranks write. */
struct shared_file {
	uint64_t foreign_nbytes; /* written for other ranks, if it is not compressed */

	/* If it is compressed; otherwise zeroed. */
	struct collective_zst *zst;
	bool is_begun, is_compressing; /* has own frames; more content may come */
	struct zst_index index;        /* of the own frames, later of those of all ranks */
	uint64_t stored_nbytes;        /* written to the file by this rank */
};

/* What the other ranks must know to open a file, or the directory of part files. */
struct shared_name {
	char name[TEMP_NAME_SIZE];
	char preallocates; /* whether its file system can; a boolean */
};

/* A byte of one of the files. */
struct file_position {
	uint64_t file, offset;
};

/* A zeroed struct is closed. */
struct file_set {
	const struct sort_spec *spec;
	const struct syscalls *calls;
	uint32_t n;
	struct output **outputs;       /* n, and the manifest; NULL: not open in this process */
	struct part_files *part_files; /* NULL: a single file */
	bool replaces_input;           /* set by the client: the output has the name of an input */
	bool is_committed;

	/* Of several ranks; otherwise zeroed. */
	struct comm *comm;
	bool is_joined;                /* another rank has created the files and will commit them */
	struct shared_file *files;     /* n */
	struct shared_name *names;     /* of the n files, and of the directory */
	uint64_t stripe_nbytes;        /* of a file or, if it is compressed, of its content */
	bool is_compressed;            /* with the next three members */
	unsigned n_compressors;        /* threads */
	uint64_t stored_stripe_nbytes; /* of the compressed file */
	bool has_all_frames;           /* all ranks have compressed their frames */
	struct file_position *rank_begin; /* of the content of each rank; NULL: not known yet */
	uint64_t header_nbytes;           /* before the content of each file */
	pthread_mutex_t lock;
	struct foreign_bytes *foreign; /* with the lock: bytes that other ranks write */
};

/*
 * Open the file or the part files of a spec. With several ranks it is a collective: rank 0 creates
 * them, and the other ranks open the single file or the directory. extension: of part files.
 * expected_nbytes: of all files, or OUTPUT_SIZE_UNKNOWN. checkpoint: of the sort, whose orphans are
 * removed; or NULL. spec and calls must outlive the set. file_set_abort() and file_set_close() are
 * due, also after a failure.
 */
int file_set_open(const struct sort_spec *spec, const struct syscalls *calls, const char *extension,
		  uint64_t expected_nbytes, const struct checkpoint *checkpoint,
		  struct file_set *ret_set);

/* Open part file i, which rank 0 has created. Not a collective. */
int file_set_join_part(struct file_set *set, uint32_t i);

/* Before the first write: write the open files by this policy. */
void file_set_choose_io_mode(struct file_set *set, enum cache_policy policy);

/* Unblock waiting writes. */
void file_set_cancel(const struct file_set *set);

/* Add the statistics of the open files. */
void file_set_add_io_stats(const struct file_set *set, struct file_writer_stats *total);

/*
 * Collective, when all ranks have written: close the files on the ranks that have joined. Rank 0
 * completes and commits them after that.
 */
int file_set_close_joined(struct file_set *set);

/*
 * Complete the files, and write a manifest that lists the part files. The caller has set what the
 * manifest says about their content; names and sizes are added. manifest: NULL: a single file
 */
int file_set_complete(struct file_set *set, struct part_manifest *manifest);

/*
 * Give the file or the directory its name. checkpoint: notes that the sort is done before the file
 * replaces an input; or NULL.
 */
int file_set_commit(struct file_set *set, struct checkpoint *checkpoint);

/* Remove what is not committed. The older output stays. */
void file_set_abort(struct file_set *set);

/* Free the rest, with no transfer in progress. */
void file_set_close(struct file_set *set);

/* --- Stripes of several ranks --- */

/* Collective, before any rank writes: agree on stripe_nbytes. Rank 0 has opened the outputs. */
int file_set_agree_stripe(struct file_set *set);

/* After that: compress the files, each with n threads. Frames are stored in the spill. */
int file_set_compress(struct file_set *set, unsigned n, struct spill *spill);

/*
 * Before any rank writes: place the content of all ranks, in ascending order. That of a rank ends
 * where that of the next one begins. A rank without content begins where the next one does.
 */
typedef struct file_position locate_rank_fn(const void *context, unsigned rank);
int file_set_place_ranks(struct file_set *set, uint64_t header_nbytes, locate_rank_fn *locate_rank,
			 const void *context);

/*
 * Write to a file, as output_write_at(). Bytes that are in the stripe of another rank are kept. If
 * the ranks compress the files, the first write begins to compress the stripes of this rank.
 * Thread-safe.
 */
int file_set_write(struct file_set *set, uint32_t i, uint64_t offset, const void *data,
		   size_t nbytes);

/*
 * Collective, when all ranks have merged: send the kept bytes to the ranks that write them. Those
 * of compressed files wait for file_set_end_frames(). After that, file_set_record_remote_writes()
 * tells rank 0 that other ranks have written all of a file of nbytes but its own_nbytes of content.
 */
int file_set_exchange(struct file_set *set);
void file_set_record_remote_writes(struct file_set *set, uint32_t i, uint64_t own_nbytes,
				   uint64_t nbytes);

/*
 * Stop compressing a file, in which all own content is written, to free memory. may_be_empty: make
 * no frame if there is no content. Does nothing if no content was written.
 */
int file_set_end_frames(struct file_set *set, uint32_t i, bool may_be_empty);

/*
 * Collective, after the exchange: end the frames of all files, and write them. content_nbytes: of
 * each file. Rank 0 makes a frame for an empty file.
 */
int file_set_write_frames(struct file_set *set, const uint64_t *content_nbytes);

/* Return whether all ranks are on the same host. */
bool file_set_have_one_host(const struct file_set *set);

/* --- collective_zst.c: a compressed file, for file_set.c --- */

/* Open file i of the set. */
int collective_zst_open(struct file_set *set, uint32_t i, struct spill *spill,
			struct collective_zst **ret_zst);

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

/* Write the own frames, and the index if this rank has the last one. *ret_nbytes: of the file. */
int collective_zst_write(struct collective_zst *zst, uint64_t *ret_nbytes);

/*
 * For collective_zst.c: write bytes of the compressed file that belong to rank `owner`, all within
 * a stripe of stored_stripe_nbytes.
 */
int file_set_write_stored(struct file_set *set, uint32_t i, unsigned owner, uint64_t offset,
			  const void *data, size_t nbytes);
