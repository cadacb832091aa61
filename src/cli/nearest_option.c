/*
 * nearest_option - what may be meant by a name that no option has (see nearest_option.h)
 */
#include "src/cli/nearest_option.h"

#include <string.h>

/* Of names that are compared: no option's is longer. */
enum { MOST_NAME_NBYTES = 31 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many characters must be put in, left out, changed, or exchanged with the next, until one name
 * is the other? Row i of the table is about the first i of a; of it the last three are there.
 */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t rows[3][MOST_NAME_NBYTES + 1];

	for (size_t j = 0; j <= n_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		size_t *row = rows[i % 3], *before = rows[(i + 2) % 3];

		row[0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			row[j] = least(before[j - 1] + (a[i - 1] != b[j - 1]),
				       least(before[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], rows[(i + 1) % 3][j - 2] + 1);
		}
	}
	return rows[n_a % 3][n_b];
}

/* A slip or two, and fewer in a short word, in which they could make anything of it. */
const struct gsort_option *nearest_option(const struct option_list *options, const char *name,
					  size_t n)
{
	size_t nearest = least(n / 3, 2) + 1;
	const struct gsort_option *found = NULL;

	for (unsigned i = 0; i < options->n && n <= MOST_NAME_NBYTES; i++) {
		const char *other = options->all[i].name;
		const size_t d = distance(name, n, other, strnlen(other, MOST_NAME_NBYTES));

		if (d < nearest) {
			nearest = d;
			found = &options->all[i];
		}
	}
	return found;
}
