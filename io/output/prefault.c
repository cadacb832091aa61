/*
 * prefault - the page cache of files, made ready before there is anything to write (see
 * prefault.h)
 *
 * The whole pieces of all files are numbered, one file behind the other, as writers will come to
 * them.
 */
#include "io/output/prefault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "src/base/int_math.h"
#include "src/base/thread.h"

enum { MAX_PREFAULT_THREADS = 8 };

struct prefault {
	uint64_t n_segments;                     /* whole ones of what will be reserved */
	uint64_t n_writers, segments_per_writer; /* and of each writer, but for the last ones */

	atomic_uint_least64_t n_claimed; /* in the order in which they are made ready */
	atomic_bool is_stopped;

	unsigned n_threads;
	pthread_t threads[MAX_PREFAULT_THREADS];

	uint32_t n_users; /* that have not stopped it */
	uint32_t n_files;
	struct prefault_entry {
		struct prefault_file file;
		uint64_t first_index;   /* number of its first piece, */
		uint64_t first_segment; /* which is this one of the file */
	} entries[];
};

/* Which piece is the i-th: the first of each writer, then the second of each. False: none. */
static bool nth_segment(const struct prefault *prefault, uint64_t i, uint64_t *ret_segment)
{
	*ret_segment =
		i % prefault->n_writers * prefault->segments_per_writer + i / prefault->n_writers;
	return *ret_segment < prefault->n_segments;
}

/* The last place that begins at or before the piece: those of none are before it. */
static const struct prefault_entry *find_segment_entry(const struct prefault *prefault,
						       uint64_t segment)
{
	return &prefault->entries[find_interval(prefault->entries, sizeof *prefault->entries,
						offsetof(struct prefault_entry, first_index),
						prefault->n_files, segment)];
}

static bool prefault_segment(const struct prefault *prefault, uint64_t segment)
{
	const struct prefault_entry *entry = find_segment_entry(prefault, segment);
	const uint64_t offset =
		(entry->first_segment + segment - entry->first_index) * MMAP_SEGMENT_NBYTES;
	const uint64_t base = entry->file.preallocation->base;
	struct mapping mapping;

	if (!preallocate_range(entry->file.preallocation, offset - base,
			       offset - base + MMAP_SEGMENT_NBYTES) ||
	    mapping_open_writable(entry->file.file, offset, MMAP_SEGMENT_NBYTES, &mapping) < 0)
		return false;
	mapping_populate(&mapping, 0, MMAP_SEGMENT_NBYTES);
	mapping_close(&mapping);
	return true;
}

/* Where one cannot be had, the others need not be tried. */
static void *prefault_main(void *context)
{
	struct prefault *prefault = context;
	const uint64_t n = prefault->n_writers * prefault->segments_per_writer;
	uint64_t i, segment;

	while (!atomic_load(&prefault->is_stopped) &&
	       (i = atomic_fetch_add(&prefault->n_claimed, 1)) < n)
		if (nth_segment(prefault, i, &segment) && !prefault_segment(prefault, segment))
			atomic_store(&prefault->is_stopped, true);
	return NULL;
}

static void join_prefault_threads(struct prefault *prefault)
{
	while (prefault->n_threads > 0)
		pthread_join(prefault->threads[--prefault->n_threads], NULL);
}

static void add_prefault_file(struct prefault *prefault, struct prefault_file file)
{
	const uint64_t base = file.preallocation->base,
		       end = base + file.preallocation->total_nbytes;
	const uint64_t first_segment = (base + MMAP_SEGMENT_NBYTES - 1) / MMAP_SEGMENT_NBYTES;

	prefault->entries[prefault->n_files++] =
		(struct prefault_entry){ file, prefault->n_segments, first_segment };
	if (end / MMAP_SEGMENT_NBYTES > first_segment)
		prefault->n_segments += end / MMAP_SEGMENT_NBYTES - first_segment;
}

int prefault_start(const struct prefault_file *files, uint32_t n, uint32_t n_writers,
		   unsigned n_threads, struct prefault **ret_prefault)
{
	struct prefault *prefault = calloc(1, sizeof *prefault + n * sizeof *prefault->entries);
	int r = 0;

	if (!prefault)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		add_prefault_file(prefault, files[i]);
	prefault->n_users = n;
	prefault->n_writers = n_writers;
	prefault->segments_per_writer = (prefault->n_segments + n_writers - 1) / n_writers;
	while (r == 0 && prefault->n_threads < n_threads &&
	       prefault->n_threads < MAX_PREFAULT_THREADS) {
		r = thread_start(prefault_main, prefault, 0,
				 &prefault->threads[prefault->n_threads]);
		prefault->n_threads += r == 0;
	}
	if (prefault->n_threads == 0) {
		free(prefault);
		return r;
	}
	*ret_prefault = prefault;
	return 0;
}

void prefault_wait(struct prefault *prefault)
{
	join_prefault_threads(prefault);
}

void prefault_stop(struct prefault *prefault)
{
	if (!prefault)
		return;
	atomic_store(&prefault->is_stopped, true);
	join_prefault_threads(prefault);
	if (--prefault->n_users == 0)
		free(prefault);
}
