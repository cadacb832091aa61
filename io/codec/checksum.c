/*
 * checksum - checksum of stored bytes (see checksum.h)
 */
#include "io/codec/checksum.h"

#include <xxhash.h>

uint64_t checksum64(const void *data, size_t nbytes)
{
	return XXH3_64bits(data, nbytes);
}
