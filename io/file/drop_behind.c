/*
 * drop_behind - keeps what is read from staying in the page cache (see drop_behind.h)
 */
#include "io/file/drop_behind.h"

#include "io/file/direct_io.h"

enum {
	RANGE_NBYTES = 64 << 20, /* there are kernels that read half of that ahead */
	FORGET_NBYTES = 2 << 20, /* each time that so much has been read: a huge page */
};

static bool is_cold(const struct file *file, uint64_t file_end, uint64_t begin)
{
	const uint64_t left = begin < file_end ? file_end - begin : 0;

	return left && !direct_is_cached(file, begin, left < RANGE_NBYTES ? left : RANGE_NBYTES);
}

void cold_range_enter(struct cold_range *range, const struct file *file, uint64_t file_end,
		      uint64_t offset)
{
	const uint64_t begin = offset - offset % RANGE_NBYTES, end = begin + RANGE_NBYTES;
	bool was_cold;

	if (range->end && begin == range->begin)
		return;
	was_cold = range->end && begin == range->end ? range->next_is_cold :
						       is_cold(file, file_end, begin);
	cold_range_leave(range, file);
	*range = (struct cold_range){ .begin = begin,
				      .end = end,
				      .is_cold = was_cold,
				      .next_is_cold = is_cold(file, file_end, end) };
}

void cold_range_pass(const struct cold_range *range, const struct file *file, uint64_t begin,
		     uint64_t end)
{
	if (range->is_cold && end > range->begin && begin / FORGET_NBYTES != end / FORGET_NBYTES)
		file_forget(file, range->begin,
			    (end < range->end ? end : range->end) - range->begin);
}

void cold_range_leave(struct cold_range *range, const struct file *file)
{
	if (range->is_cold)
		file_forget(file, range->begin, range->end - range->begin);
	*range = (struct cold_range){ 0 };
}
