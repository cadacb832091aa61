/*
 * run_format - what a spilled run consists of
 *
 *	window 0           window 1          ...	as they were written, in any order
 *	[ b0 b1 b2 b3 b4 ] [ b5 b6 b7 b8 b9 ]		each one extent of the spill
 *
 * A run is a sorted sequence of items (elements or records of item_nbytes). It is stored in blocks
 * of a fixed number of items, except that a window's last block may be shorter. A block is encoded
 * on its own (codec.h), and found, checked and ordered by its entry in the index, which stays in
 * memory: the stored bytes are nothing but the blocks, without headers, so that a raw block is
 * written straight from where it was merged and read straight to where it is needed.
 */
#pragma once

#include <stdint.h>

#include "src/record/layout.h"

/* The index entry of a block: 64 bytes. */
struct run_block {
	encoded_key_t first_key;       /* of its first item */
	uint64_t first_item;    /* its place in the run, in items; valid after run_file_finish() */
	uint64_t offset;        /* of the stored bytes in the spill file */
	uint64_t checksum;      /* checksum64() of the stored bytes */
	uint64_t sequence;      /* the window it came from */
	uint32_t stored_nbytes;
	uint32_t n_items;
	uint32_t index_in_window;     /* its number within the window */
	uint16_t file;          /* of the spill */
	uint8_t codec;          /* enum codec_id */
	uint8_t discarded;      /* its space has been given back */
};

_Static_assert(sizeof(struct run_block) == 64, "the memory of an index is planned with this");
