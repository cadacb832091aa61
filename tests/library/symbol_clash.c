/*
 * symbol_clash - a program that has names which the library has inside of it, too
 *
 * It is linked with the archive: where these were the library's as well, either would call the
 * other's, or not be linked.
 */
#include <stdio.h>
#include <string.h>

#include "include/gsort.h"

static int n_calls;

#define OWN(name)                                                                                  \
	int name(void);                                                                            \
	int name(void)                                                                             \
	{                                                                                          \
		return ++n_calls;                                                                  \
	}

OWN(fail)
OWN(warn)
OWN(tell)
OWN(file_open)
OWN(ring_push)
OWN(input_open)
OWN(output_open)
OWN(sort_run)
OWN(thread_start)
OWN(handover_put)

int main(void)
{
	const char numbers[] = { 3, 1, 2 };
	struct gsort *sort;
	char found[4];
	size_t got = 0;

	if (gsort_open(&sort) < 0 || gsort_set_type(sort, "u8") < 0 ||
	    gsort_put(sort, numbers, 3) < 0 || gsort_finish(sort) < 0 ||
	    gsort_get(sort, found, sizeof found, &got) < 0) {
		puts(gsort_message(sort));
		return 1;
	}
	if (gsort_set_type(sort, "u16") == 0) /* fails, as the library's own fail() says */
		return 1;
	gsort_close(sort);
	return got != 3 || memcmp(found, "\1\2\3", 3) != 0 || n_calls != 0 || warn() != 1;
}
