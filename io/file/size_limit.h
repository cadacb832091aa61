/*
 * size_limit - what to say of a file that may not grow any more
 *
 * EFBIG is "File too large" to strerror(), and to the person a disk that has space. Mostly it is
 * the limit that the shell has set on the size of files (RLIMIT_FSIZE); then the limit is named.
 */
#pragma once

#include <stdint.h>

/* May a file of this process come to end at `end`? 0, or -EFBIG without a message. */
int size_limit_check(uint64_t end);

enum { SIZE_LIMIT_HINT_NBYTES = 128 };

/*
 * What a message about a refused write ends with, after %m of `r`, a negative errno: of -EFBIG
 * which limit that is, if it is one; else nothing. Returns `text`.
 */
const char *size_limit_hint(int r, char text[static SIZE_LIMIT_HINT_NBYTES]);
