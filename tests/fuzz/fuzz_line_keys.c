/*
 * fuzz_line_keys - fuzz keys of lines (-k) and the comparison of lines
 *
 * For libFuzzer (docs/testing.md). The first line of an input has words: POS1[,POS2] of -k, -t and
 * a separator, or '-' and letters. The next two lines are compared, in both orders and with
 * themselves.
 */
#include <stdlib.h>
#include <string.h>

#include "src/lines/line_keys.h"
#include "tests/support/captured_messages.h"

static void check(bool condition)
{
	if (!condition)
		abort();
}

/* Add the option of a word. Returns false if it is refused. */
static bool add_word(struct line_keys *keys, const char *word)
{
	if (strncmp(word, "-t", 2) == 0)
		return line_keys_set_separator(keys, word + 2) == 0;
	if (*word != '-')
		return line_keys_add(keys, word) == 0;
	for (word++; *word; word++)
		if (*word == 's')
			keys->stable = true;
		else if (*word == 'u')
			keys->unique = true;
		else if (!line_keys_add_letter(keys, *word))
			return false;
	return true;
}

/* Make keys of the words of a text. Modifies the text. */
static bool make_keys(char *text, struct line_keys *ret_keys)
{
	struct line_keys requested;
	char *state;
	bool is_valid = true;

	line_keys_init(&requested);
	for (char *word = strtok_r(text, " ", &state); word && is_valid;
	     word = strtok_r(NULL, " ", &state))
		is_valid = add_word(&requested, word);
	is_valid = is_valid && line_keys_finish(&requested, ret_keys) == 0;
	line_keys_free(&requested);
	return is_valid;
}

/* Split the rest of the data into two lines. */
static void take_lines(const unsigned char *data, size_t nbytes, struct line_view lines[2])
{
	const unsigned char *end = nbytes ? memchr(data, '\n', nbytes) : NULL;

	lines[0] = (struct line_view){ data, end ? (size_t)(end - data) : nbytes };
	lines[1] = end ? (struct line_view){ end + 1, nbytes - lines[0].nbytes - 1 } :
			 (struct line_view){ data, 0 };
}

static int sign(int order)
{
	return (order > 0) - (order < 0);
}

static void check_order(const struct line_keys *keys, const struct line_view lines[2])
{
	struct line_key_buffer scratch[2] = { 0 };
	const int order = sign(line_keys_compare(keys, lines[0], lines[1], scratch));

	check(sign(line_keys_compare(keys, lines[1], lines[0], scratch)) == -order);
	check(line_keys_compare(keys, lines[0], lines[0], scratch) == 0);
	check(!scratch[0].has_failed && !scratch[1].has_failed);
	line_key_buffer_free(&scratch[0]);
	line_key_buffer_free(&scratch[1]);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	const unsigned char *end = nbytes ? memchr(data, '\n', nbytes) : NULL;
	const size_t n = end ? (size_t)(end - data) : nbytes;
	struct line_keys keys = { 0 };
	struct line_view lines[2];
	char *text = strndup((const char *)data, n), *formatted;

	check(text != NULL);
	captured_messages_reset(true);
	take_lines(end ? end + 1 : data, end ? nbytes - n - 1 : 0, lines);
	if (make_keys(text, &keys)) {
		check_order(&keys, lines);
		formatted = line_keys_format(&keys);
		check(formatted != NULL);
		free(formatted);
	}
	line_keys_free(&keys);
	free(text);
	return 0;
}
