/*
 * symbol_clash - a program may define names of internal functions of the library
 *
 * Linked with the archive. If the archive exported these names, linking would fail, or the library
 * would call the functions of the program.
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
OWN(notice)
OWN(file_open)
OWN(bounded_queue_push)
OWN(input_open_endpoints)
OWN(output_open)
OWN(sort_run)
OWN(thread_start)
OWN(rendezvous_put)

int main(void)
{
	const char numbers[] = { 3, 1, 2 };
	struct gsort *sort;
	char actual[4];
	size_t n_received = 0;

	if (gsort_open(&sort) < 0 || gsort_set_type(sort, "u8") < 0 ||
	    gsort_put(sort, numbers, 3) < 0 || gsort_finish(sort) < 0 ||
	    gsort_get(sort, actual, sizeof actual, &n_received) < 0) {
		puts(gsort_message(sort));
		return 1;
	}
	if (gsort_set_type(sort, "u16") == 0) /* too late: calls fail() of the library */
		return 1;
	gsort_close(sort);
	return n_received != 3 || memcmp(actual, "\1\2\3", 3) != 0 || n_calls != 0 || warn() != 1;
}
