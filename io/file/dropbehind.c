/*
 * dropbehind - keeps what is read from staying in the page cache (see dropbehind.h)
 */
#include "io/file/dropbehind.h"

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

void dropbehind_begin_read(struct dropbehind *dropbehind, const struct file *file,
			   uint64_t file_end, uint64_t offset)
{
	const uint64_t begin = offset - offset % RANGE_NBYTES, end = begin + RANGE_NBYTES;
	bool uncached;

	if (dropbehind->end && begin == dropbehind->begin)
		return;
	uncached = dropbehind->end && begin == dropbehind->end ? dropbehind->next_is_uncached :
								 is_uncached(file, file_end, begin);
	dropbehind_finish(dropbehind, file);
	*dropbehind = (struct dropbehind){ .begin = begin,
					   .end = end,
					   .is_uncached = uncached,
					   .next_is_uncached = is_uncached(file, file_end, end) };
}

void dropbehind_end_read(const struct dropbehind *dropbehind, const struct file *file,
			 uint64_t begin, uint64_t end)
{
	if (dropbehind->is_uncached && end > dropbehind->begin &&
	    begin / DROP_NBYTES != end / DROP_NBYTES)
		file_drop_cache(file, dropbehind->begin,
				(end < dropbehind->end ? end : dropbehind->end) -
					dropbehind->begin);
}

void dropbehind_finish(struct dropbehind *dropbehind, const struct file *file)
{
	if (dropbehind->is_uncached)
		file_drop_cache(file, dropbehind->begin, dropbehind->end - dropbehind->begin);
	*dropbehind = (struct dropbehind){ 0 };
}
