/*
 * separate_memory_backend - the CPU back end as devices whose memories must not be mixed
 *
 * Memory, queues and marks belong to the device that gave them. What works on another device's
 * memory, as no GPU could, ends the process with a message; so does an event that is set in a
 * queue of another device. Merges, cuts and copies may read it, but only if devices are said to
 * reach each other.
 */
#pragma once

#include "src/device/device.h"

/* All that backend_cpu has; of it, that the memory is not the host's, is for the user to say. */
extern const struct backend separate_memory_backend;

/* How many devices it has, and whether they may read from each other; 1, and not, at first. */
void separate_memory_set_devices(unsigned n_devices, bool has_peer_access);

/* What a device has read in another's memory, so far: slices and copies. */
unsigned long separate_memory_n_peer_reads(void);

/* The number of the device that the memory, queue or mark belongs to, or that it is. */
unsigned separate_memory_device_number(const void *object);

/* Merges that an open device has done. */
unsigned long separate_memory_n_merges(const struct device *device);
