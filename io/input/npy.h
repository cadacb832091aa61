/*
 * npy - the header of a .npy file of numpy: where its numbers are, and how gsort would sort them
 *
 *	\x93NUMPY, version 1.0, 118, {'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }
 *
 * The size, of the text that follows, has 16 bits, or 32 from version 2 on, and is little-endian;
 * blanks make the whole a multiple of 64 bytes. `descr` is a type of numpy, or a list of the fields
 * of a structure, each with a type:
 *
 *	'<f8'						-t f64
 *	'>i4'						-t i32be
 *	[('id', '<u8'), ('time', '<i8')]		-R 16 -k 0:u64 -k 8:i64
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct npy {
	uint64_t header_nbytes; /* before the first number */
	uint64_t item_nbytes;   /* of a number or structure; 0: not understood */
	bool has_objects;       /* of Python, which are not in the file as they are */
	unsigned n_dimensions;  /* 0: not understood, or a single number */
	/* The options that sort it; "" if gsort has no such types, or there are too many. */
	char options[256];
};

/* Do these n bytes, the first of a file, begin such a header? Then *ret_npy is what it says. */
bool npy_parse(const unsigned char *bytes, size_t n, struct npy *ret_npy);
