/*
 * fuzz_arguments - fuzz command lines, and the layouts that their options define
 *
 * For libFuzzer (docs/testing.md). An input is a list of words, each of which ends with a zero
 * byte. Two zero bytes end the list. Records follow. A command line is refused with a message of
 * one line, or its options define a layout. Then the records are encoded:
 *
 *	key-only	decoding gives the same bytes
 *	records		items do not overflow; a normalised key begins with its prefix
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/captured_messages.h"
#include "tests/support/final_options.h"
#include "tests/support/decode_key.h"

enum { MAX_FUZZ_WORDS = 32 };

static void check(bool condition)
{
	if (!condition)
		abort();
}

static void check_key_only(const struct layout *layout, const unsigned char *records, size_t n)
{
	const size_t nbytes = layout->record_nbytes;
	unsigned char *decoded = malloc(nbytes);

	check(decoded != NULL);
	for (size_t i = 0; i < n; i++) {
		layout_decode(layout, layout_encode(layout, records + i * nbytes), decoded);
		check(memcmp(decoded, records + i * nbytes, nbytes) == 0);
	}
	free(decoded);
}

/* Return the first 16 bytes of a normalised key as a number. */
static encoded_key_t make_key_prefix(const unsigned char *key, size_t nbytes)
{
	encoded_key_t prefix = 0;

	for (size_t i = 0; i < 16; i++)
		prefix = prefix << 8 | (i < nbytes ? key[i] : 0);
	return prefix;
}

static void check_records(const struct layout *layout, const unsigned char *records, size_t n)
{
	const size_t key_nbytes = (layout->record_keys.key_nbytes + 7) / 8 * 8;
	unsigned char *item = malloc(layout->item_nbytes), *key = malloc(key_nbytes);

	check(item && key);
	for (size_t i = 0; i < n; i++) {
		const unsigned char *record = records + i * layout->record_nbytes;

		layout_normalise_key(&layout->record_keys, record, key);
		check(layout_key_prefix(&layout->record_keys, record) ==
		      make_key_prefix(key, key_nbytes));
		layout_project_record(layout, record, i, item);
		check(layout_item_count(layout, item) == 1);
		layout_item_hash(layout, item);
	}
	free(item);
	free(key);
}

static void check_layout(const struct options *options, const unsigned char *data, size_t nbytes)
{
	const struct sort_spec spec = options->spec;
	struct layout layout;
	unsigned char *records;
	size_t n;

	if (spec_layout(&spec, &layout) < 0)
		return;
	n = nbytes / layout.record_nbytes;
	n = n < 100 ? n : 100;
	records = malloc(n * layout.record_nbytes + 1); /* copied for AddressSanitizer */
	check(records != NULL);
	memcpy(records, data, n * layout.record_nbytes);
	if (layout.kind == LAYOUT_KEY_ONLY)
		check_key_only(&layout, records, n);
	else
		check_records(&layout, records, n);
	free(records);
	layout_free(&layout);
}

/* Split the words off. Returns the offset of the records. */
static size_t split_words(char *data, size_t nbytes, int *ret_argc, char **argv)
{
	size_t i = 0;

	*ret_argc = 1;
	while (i < nbytes && data[i] && *ret_argc < MAX_FUZZ_WORDS) {
		argv[(*ret_argc)++] = data + i;
		i += strlen(data + i) + 1;
	}
	return i < nbytes ? i + 1 : nbytes;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

/* --help prints to standard output, and --files0-from may read standard input. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	check(freopen("/dev/null", "w", stdout) && freopen("/dev/null", "r", stdin));
	return 0;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	char *argv[MAX_FUZZ_WORDS + 1] = { "gsort" };
	char *copy = malloc(nbytes + 2);
	struct options options;
	size_t records_offset;
	int argc, r;

	check(copy != NULL);
	memcpy(copy, data, nbytes);
	copy[nbytes] = copy[nbytes + 1] = '\0';
	records_offset = split_words(copy, nbytes, &argc, argv);
	captured_messages_reset(true);
	r = parse_final_options(argc, argv, &options);
	if (r < 0) {
		check(captured_messages_has_error() && *captured_messages_error());
	} else if (r == 0) {
		check(!captured_messages_has_error());
		check_layout(&options, data + records_offset, nbytes - records_offset);
		options_free(&options);
	}
	free(copy);
	return 0;
}
