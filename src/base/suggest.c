/*
 * suggest - what may be meant by a word that there is not (see suggest.h)
 */
#include "src/base/suggest.h"

#include <string.h>

/* Of words that are compared; of longer ones so much of the beginning. */
enum { MAX_WORD_NBYTES = 31 };

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many characters must be put in, left out, changed, or exchanged with the next, until one word
 * is the other? Row i of the table is about the first i of a; of it the last three are there.
 */
static size_t edit_distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t rows[3][MAX_WORD_NBYTES + 1];

	for (size_t j = 0; j <= n_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		size_t *row = rows[i % 3], *previous_row = rows[(i + 2) % 3];

		row[0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			row[j] = min_size(previous_row[j - 1] + (a[i - 1] != b[j - 1]),
					  min_size(previous_row[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min_size(row[j], rows[(i + 1) % 3][j - 2] + 1);
		}
	}
	return rows[n_a % 3][n_b];
}

/* A slip or two, and fewer in a short word, in which they could make anything of it. */
const char *suggest_word(const char *word, size_t nbytes, const char *const *words, unsigned n)
{
	size_t min_distance = min_size(nbytes / 3, 2) + 1;
	const char *suggestion = NULL;

	for (unsigned i = 0; i < n && nbytes <= MAX_WORD_NBYTES; i++) {
		const size_t d =
			edit_distance(word, nbytes, words[i], strnlen(words[i], MAX_WORD_NBYTES));

		if (d < min_distance) {
			min_distance = d;
			suggestion = words[i];
		}
	}
	return suggestion;
}
