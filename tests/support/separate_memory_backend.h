/*
 * separate_memory_backend - the CPU back end as devices whose memories must not be mixed
 *
 * Memory, lanes and marks belong to the device that gave them. What works on another device's
 * memory, as no GPU could, ends the process with a message; so does a mark that is set in a lane of
 * another device. Merges, cuts and copies may read it, but only if devices are said to reach each
 * other.
 */
#pragma once

#include "src/device/device.h"

/* All that backend_cpu has; of it, that the memory is not the host's, is for the user to say. */
extern const struct backend backend_owning;

/* How many devices it has, and whether they may read from each other; 1, and not, at first. */
void owned_memory_set(unsigned n_devices, bool reach);

/* What a device has read in another's memory, so far: slices and copies. */
unsigned long owned_memory_n_reached(void);

/* The number of the device that the memory, lane or mark belongs to, or that it is. */
unsigned owned_memory_number_of(const void *thing);

/* Merges that an open device has done. */
unsigned long owned_memory_n_merges(const struct device *device);
