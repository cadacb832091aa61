/*
 * checksum - 64 bits over stored bytes: XXH3 of the xxHash library
 *
 * It guards temporary files against what disks, controllers and memory do, not against a forger.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t checksum64(const void *data, size_t nbytes);
