/*
 * fuzz_arguments - any words as a command line, and any bytes as the records that it speaks of
 *
 * For libFuzzer (docs/testing.md). An input is words that each end with a zero byte; two zeros end
 * the words, and what follows is records. A command line is refused with a message that is one
 * line, or it is taken, and then its options make a layout, in which the records can be put:
 *
 *	plain keys	what is encoded is decoded to the same bytes
 *	records		items have room for what goes into them; a key begins with its prefix
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/captured_messages.h"
#include "tests/support/final_options.h"

enum { MOST_WORDS = 32 };

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_plain(const struct layout *layout, const unsigned char *records, size_t n)
{
	const size_t nbytes = layout->record_nbytes;
	unsigned char *back = malloc(nbytes);

	check(back != NULL);
	for (size_t i = 0; i < n; i++) {
		layout_decode(layout, layout_encode(layout, records + i * nbytes), back);
		check(memcmp(back, records + i * nbytes, nbytes) == 0);
	}
	free(back);
}

/* The first 16 bytes of a normalised key as a number. */
static code_t first_bytes(const unsigned char *key, size_t nbytes)
{
	code_t code = 0;

	for (size_t i = 0; i < 16; i++)
		code = code << 8 | (i < nbytes ? key[i] : 0);
	return code;
}

static void check_records(const struct layout *layout, const unsigned char *records, size_t n)
{
	const size_t key_nbytes = (layout->record_keys.key_nbytes + 7) / 8 * 8;
	unsigned char *item = malloc(layout->item_nbytes), *key = malloc(key_nbytes);

	check(item && key);
	for (size_t i = 0; i < n; i++) {
		const unsigned char *record = records + i * layout->record_nbytes;

		layout_normalise(&layout->record_keys, record, key);
		check(layout_key_prefix(&layout->record_keys, record) ==
		      first_bytes(key, key_nbytes));
		layout_make_item(layout, record, i, item);
		check(layout_item_count(layout, item) == 1);
		layout_item_hash(layout, item);
	}
	free(item);
	free(key);
}

static void check_layout(const struct options *options, const unsigned char *data, size_t nbytes)
{
	const struct sort_spec spec = options_spec(options);
	struct layout layout;
	unsigned char *records;
	size_t n;

	if (spec_layout(&spec, &layout) < 0)
		return;
	n = nbytes / layout.record_nbytes;
	n = n < 100 ? n : 100;
	records = malloc(n * layout.record_nbytes + 1); /* with an end that the sanitizer knows */
	check(records != NULL);
	memcpy(records, data, n * layout.record_nbytes);
	if (layout.kind == LAYOUT_CODES)
		check_plain(&layout, records, n);
	else
		check_records(&layout, records, n);
	free(records);
	layout_free(&layout);
}

/* Split the words off. Returns where the records begin. */
static size_t split(char *data, size_t nbytes, int *ret_argc, char **argv)
{
	size_t i = 0;

	*ret_argc = 1;
	while (i < nbytes && data[i] && *ret_argc < MOST_WORDS) {
		argv[(*ret_argc)++] = data + i;
		i += strlen(data + i) + 1;
	}
	return i < nbytes ? i + 1 : nbytes;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

/* --help answers on standard output, and names of files may come from standard input. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	check(freopen("/dev/null", "w", stdout) && freopen("/dev/null", "r", stdin));
	return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	char *argv[MOST_WORDS + 1] = { "gsort" };
	char *copy = malloc(nbytes + 2);
	struct options options;
	size_t rest;
	int argc, r;

	check(copy != NULL);
	memcpy(copy, data, nbytes);
	copy[nbytes] = copy[nbytes + 1] = '\0';
	rest = split(copy, nbytes, &argc, argv);
	messages_reset(true);
	r = parse_settled(argc, argv, &options);
	if (r < 0) {
		check(messages_failed() && *messages_last());
	} else if (r == 0) {
		check(!messages_failed());
		check_layout(&options, data + rest, nbytes - rest);
		options_free(&options);
	}
	free(copy);
	return 0;
}
