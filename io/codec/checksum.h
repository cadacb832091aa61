/*
 * checksum.h - checksum of stored bytes: XXH3 of the xxHash library, 64 bits
 *
 * It protects temporary files against errors of disks, controllers and memory, not against forgery.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

static inline uint64_t checksum64(const void *data, size_t nbytes)
{
	return XXH3_64bits(data, nbytes);
}
