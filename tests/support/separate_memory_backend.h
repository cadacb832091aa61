/*
 * separate_memory_backend.h - the CPU back end as devices with separate memories
 *
 * Memory, queues and events belong to the device that allocated them. An operation on memory of
 * another device, or an event in a queue of another device, ends the process with a message. With
 * peer access merges, cuts and copies may read memory of other devices.
 */
#pragma once

#include "src/device/device.h"

/* All operations of backend_cpu. The user decides whether its memory is unified. */
extern const struct backend separate_memory_backend;

/* Set the number of devices and their peer access. Initially 1, without peer access. */
void separate_memory_set_devices(unsigned n_devices, bool has_peer_access);

/* Return the number of slices and copies that devices read from other devices' memory. */
unsigned long separate_memory_n_peer_reads(void);

/* Return the number of the device, or of the device that the memory, queue or event belongs to. */
unsigned separate_memory_device_number(const void *object);

/* Return the number of merges that an open device ran. */
unsigned long separate_memory_n_merges(const struct device *device);
