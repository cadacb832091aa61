/*
 * drop_behind - keeps what is read from staying in the page cache (see drop_behind.h)
 */
#include "io/file/drop_behind.h"

#include "io/file/direct_io.h"

enum {
	RANGE_NBYTES = 64 << 20, /* there are kernels that read half of that ahead */
	DROP_NBYTES = 2 << 20,   /* each time that so much has been read: a huge page */
};

static bool is_uncached(const struct file *file, uint64_t file_end, uint64_t begin)
{
	const uint64_t remaining = begin < file_end ? file_end - begin : 0;

	return remaining &&
	       !direct_is_cached(file, begin, remaining < RANGE_NBYTES ? remaining : RANGE_NBYTES);
}

void drop_behind_begin_read(struct drop_behind *drop_behind, const struct file *file,
			    uint64_t file_end, uint64_t offset)
{
	const uint64_t begin = offset - offset % RANGE_NBYTES, end = begin + RANGE_NBYTES;
	bool uncached;

	if (drop_behind->end && begin == drop_behind->begin)
		return;
	uncached = drop_behind->end && begin == drop_behind->end ?
			   drop_behind->next_is_uncached :
			   is_uncached(file, file_end, begin);
	drop_behind_finish(drop_behind, file);
	*drop_behind = (struct drop_behind){ .begin = begin,
					     .end = end,
					     .is_uncached = uncached,
					     .next_is_uncached = is_uncached(file, file_end, end) };
}

void drop_behind_end_read(const struct drop_behind *drop_behind, const struct file *file,
			  uint64_t begin, uint64_t end)
{
	if (drop_behind->is_uncached && end > drop_behind->begin &&
	    begin / DROP_NBYTES != end / DROP_NBYTES)
		file_drop_cache(file, drop_behind->begin,
				(end < drop_behind->end ? end : drop_behind->end) -
					drop_behind->begin);
}

void drop_behind_finish(struct drop_behind *drop_behind, const struct file *file)
{
	if (drop_behind->is_uncached)
		file_drop_cache(file, drop_behind->begin, drop_behind->end - drop_behind->begin);
	*drop_behind = (struct drop_behind){ 0 };
}
