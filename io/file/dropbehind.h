/*
 * dropbehind - keeps what is read through the page cache from staying there, unless it was before
 *
 * For a file that is read in order, a little at a time, with what the kernel reads ahead. What it
 * has read ahead shows as cached, so one must look before it comes there: when a range of the file
 * is entered, the one after it is looked at. What was cold is forgotten while it is passed, always
 * from the beginning of its range on, since of a huge page the kernel forgets all or nothing.
 *
 * Reads in another order do no harm: then one looks again, and something may stay.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/file/file.h"

/* Zeroed at first; the caller's to lock. */
struct dropbehind {
	uint64_t begin, end; /* in the file; 0: none yet */
	bool is_uncached, next_is_uncached;
};

/* Something is about to be read at `offset` of a file that ends at file_end. */
void dropbehind_begin_read(struct dropbehind *dropbehind, const struct file *file,
			   uint64_t file_end, uint64_t offset);

/* [begin, end) has been read. */
void dropbehind_end_read(const struct dropbehind *dropbehind, const struct file *file,
			 uint64_t begin, uint64_t end);

/* There is no more to be read: zeroed again. */
void dropbehind_finish(struct dropbehind *dropbehind, const struct file *file);
