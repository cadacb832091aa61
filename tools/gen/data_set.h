/*
 * data_set - records that are made, not read: record i is a function of i
 *
 * Nothing is carried from one record to the next, so any range can be made by any thread.
 */
#pragma once

#include <stdint.h>

/* The first member of the struct of every kind of data set. */
struct data_set {
	uint64_t record_nbytes;
	uint64_t n_records;
	/* Write the records [first, first + n), all within the set. Thread-safe. */
	void (*fill)(const struct data_set *data_set, uint64_t first, uint64_t n, void *records);
};

static inline void data_set_fill(const struct data_set *data_set, uint64_t first, uint64_t n,
				 void *records)
{
	data_set->fill(data_set, first, n, records);
}
