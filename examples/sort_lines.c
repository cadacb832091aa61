/*
 * sort_lines - sort a CSV file by the numbers in a column
 *
 * usage: sort_lines COLUMN INPUT OUTPUT
 *
 * The first line is a header and stays at the top. Lines with equal numbers keep their order.
 * OUTPUT may be INPUT: it is replaced when the sort is complete.
 */
#include <gsort.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct gsort *sort;
	char key[64];
	int status = 1;

	if (argc != 4 || gsort_open(&sort) < 0)
		return 1;
	snprintf(key, sizeof key, "%.20s,%.20sn", argv[1], argv[1]);
	/* "lines" comes first. The other options have the names and values of GNU sort. */
	if (gsort_set(sort, "lines", NULL) < 0 || gsort_set(sort, "field-separator", ",") < 0 ||
	    gsort_set(sort, "key", key) < 0 || gsort_set(sort, "stable", NULL) < 0 ||
	    gsort_set(sort, "header", "1") < 0 || gsort_add_input_path(sort, argv[2]) < 0 ||
	    gsort_set_output_path(sort, argv[3]) < 0 || gsort_run(sort) < 0)
		fprintf(stderr, "sort_lines: %s\n", gsort_message(sort));
	else
		status = 0;
	gsort_close(sort);
	return status;
}
