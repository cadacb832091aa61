/*
 * queue_priority - which of the ready operations run first
 *
 * Merges run before sorts. Merging and writing sorted chunks frees their memory, which can be
 * filled again as fast as the input is read. Otherwise the disk that runs are spilled to would be
 * idle while all chunks of a run are sorted.
 */
#pragma once

enum queue_priority {
	QUEUE_PRIORITY_LOW, /* sorting chunks */
	QUEUE_PRIORITY_NORMAL,
	QUEUE_PRIORITY_HIGH, /* short operations that another thread waits for */
	N_QUEUE_PRIORITIES,
};
