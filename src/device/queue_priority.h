/*
 * queue_priority - which of the operations that are ready run first
 *
 * Memory that is full of sorted chunks comes back when they have been merged and written, and is
 * filled again as fast as it can be read. So what is to be merged goes before what is to be sorted;
 * otherwise the disk that runs are spilled to stands still while a whole run's chunks are sorted.
 */
#pragma once

enum lane_urgency {
	LANE_PATIENT, /* sorting chunks */
	LANE_NORMAL,
	LANE_URGENT, /* short operations that somebody waits for */
	N_LANE_URGENCIES,
};
