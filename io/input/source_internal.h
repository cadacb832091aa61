/*
 * source_internal - what the files of a source's implementation share
 *
 *	source.c		its descriptor, among those of all sources
 *	source_probe.c	what it contributes; of which format that is: source_detect.c
 *	source_read.c		reading anywhere
 *	source_stream.c		reading in order
 *	source_check.c		is it still what it was?
 */
#pragma once

#include "io/input/source_detect.h"

/* Where the file ends, as it was measured. */
uint64_t source_end(const struct source *source);

/* What the frame asks for that begins so, or what is usual; 0 of what is damaged or refused. */
uint64_t source_window_nbytes(const void *header, size_t nbytes);
