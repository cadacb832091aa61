/*
 * size_limit - what to say of a file that may not grow any more (see size_limit.h)
 */
#include "io/file/size_limit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "src/base/size.h"

int size_limit_check(uint64_t end)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
			       end > limit.rlim_cur ?
		       -EFBIG :
		       0;
}

const char *size_limit_hint(int r, char text[static SIZE_LIMIT_HINT_NBYTES])
{
	struct rlimit limit;
	char size[32];

	text[0] = '\0';
	if (r != -EFBIG || getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
		return text;
	size_format_down(limit.rlim_cur, size);
	snprintf(text, SIZE_LIMIT_HINT_NBYTES,
		 "; the limit on the size of files (RLIMIT_FSIZE) is %s: raise it with ulimit -f",
		 size);
	return text;
}
