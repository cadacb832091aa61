/*
 * sort_output_internal - what the files of its implementation share
 *
 *	sort_output.c		its life
 *	sort_output_files.c		what of it is in which file
 *	sort_output_ranks.c		files that several ranks write to
 *	sort_output_stripe_owners.c		and where one ends and the next begins
 */
#pragma once

#include "src/sort/sort_output.h"

/* Of all that is open: writes that wait must return; and how it was written. */
void sort_output_cancel(struct sort_output *out);
void sort_output_add_io_stats(struct sort_output *out);

/* The end of the names of part files, such as ".npy"; "": none. */
const char *sort_output_part_extension(const struct sort_spec *spec,
				       const struct output_header *header);

/* Before sort_output_begin(): of so many records equal parts will be made, each of a size known
 * then. */
void sort_output_set_part_sizes(struct sort_output *out, uint64_t n_records);

/*
 * Of several ranks: open what all of them write to. The first rank begins the files; the others
 * join the only one, or are told the names of several, of which each then joins those that records
 * of [begin, end) go to. nbytes: of all, as of output_open(). The same returns.
 */
int sort_output_open_shared(struct sort_output *out, const struct output_header *header,
			    uint64_t nbytes);
int sort_output_open_shared_parts(struct sort_output *out);

/*
 * Before anything is written to the file, by this rank: it will have nbytes. Their space is
 * reserved, if that can be done while others write to it. The same returns: a file may not be so
 * large.
 */
int sort_output_set_shared_size(struct sort_output *out, uint32_t i, uint64_t nbytes);

/*
 * Of what is written at `offset` of a file, *ret_kept bytes at the front are another rank's to
 * write, and are kept for it; and, when all has been written, pass them on. Every rank calls the
 * second. The same returns.
 */
int sort_output_keep_foreign(struct sort_output *out, uint32_t i, uint64_t offset, const void *data,
			     size_t nbytes, size_t *ret_n_foreign);
int sort_output_exchange_foreign(struct sort_output *out);

/* So is a part of a file that is `owner`'s. The same returns. */
int sort_output_keep_for_rank(struct sort_output *out, uint32_t i, unsigned owner, uint64_t offset,
			      const void *data, size_t nbytes);

/* Of the file, where what this rank writes itself begins, and where its records end. */
uint64_t sort_output_local_begin(const struct sort_output *out, uint32_t i);
uint64_t sort_output_local_end(const struct sort_output *out, uint32_t i);

bool sort_output_is_single_host(const struct comm *comm);

/* It has its place, and what is in front of the records; once. Any thread. The same returns. */
int sort_output_begin_file(struct sort_output *out, uint32_t i);

/* How many records of the file are this rank's, or of one process, all of them. */
uint64_t sort_output_count_local(const struct sort_output *out, const struct output_file *file);

/*
 * Several ranks compress the files: prepare for that, once it is known who writes what; begin one,
 * when its first record comes; and take what has come of another rank. The same returns.
 */
int sort_output_open_zst(struct sort_output *out);
void sort_output_close_zst(struct sort_output *out);
int sort_output_begin_zst(struct sort_output *out, uint32_t i);
int sort_output_accept_foreign(struct sort_output *out, uint32_t i, uint64_t offset,
			       const void *data, size_t nbytes);

/*
 * All own content of it is there (may_be_none: or there is none): it waits, compressed, for the
 * others. When all have merged, and edges have been passed, every rank calls the second: then the
 * files are complete. fixture_n_keys: records of all of them. The same returns.
 */
int sort_output_end_zst(struct sort_output *out, uint32_t i, bool may_be_empty);
int sort_output_sync_zst(struct sort_output *out, uint64_t n_total);
