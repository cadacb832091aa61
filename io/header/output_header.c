/*
 * output_header - the header of an output (see output_header.h)
 */
#include "io/header/output_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void output_header_set_count(struct output_header *header, uint64_t n_records)
{
	char digits[24];
	unsigned char *dest = header->bytes + header->count_offset;
	size_t n, suffix_nbytes;

	if (!header->count_suffix)
		return;
	n = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n_records);
	suffix_nbytes = strlen(header->count_suffix);
	memcpy(dest, digits, n);
	memcpy(dest + n, header->count_suffix, suffix_nbytes);
	memset(dest + n + suffix_nbytes, ' ',
	       header->nbytes - header->count_offset - n - suffix_nbytes - 1);
	header->bytes[header->nbytes - 1] = '\n';
}

void output_header_free(struct output_header *header)
{
	free(header->bytes);
	free(header->count_suffix);
	*header = (struct output_header){ 0 };
}
