/*
 * queue_priority - which of the operations that are ready run first
 *
 * Memory that is full of sorted chunks comes back when they have been merged and written, and is
 * filled again as fast as it can be read. So what is to be merged goes before what is to be sorted;
 * otherwise the disk that runs are spilled to stands still while a whole run's chunks are sorted.
 */
#pragma once

enum queue_priority {
	QUEUE_PRIORITY_LOW, /* sorting chunks */
	QUEUE_PRIORITY_NORMAL,
	QUEUE_PRIORITY_HIGH, /* short operations that somebody waits for */
	N_QUEUE_PRIORITIES,
};
