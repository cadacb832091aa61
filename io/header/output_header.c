/*
 * output_header - what stands in front of the records of an output (see output_header.h)
 */
#include "io/header/output_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void header_set_count(struct header *header, uint64_t n_records)
{
	char digits[24];
	unsigned char *at = header->bytes + header->count_at;
	size_t n, n_behind;

	if (!header->behind)
		return;
	n = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n_records);
	n_behind = strlen(header->behind);
	memcpy(at, digits, n);
	memcpy(at + n, header->behind, n_behind);
	memset(at + n + n_behind, ' ', header->nbytes - header->count_at - n - n_behind - 1);
	header->bytes[header->nbytes - 1] = '\n';
}

void header_free(struct header *header)
{
	free(header->bytes);
	free(header->behind);
	*header = (struct header){ 0 };
}
