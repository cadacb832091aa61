/*
 * debug_keys - how the keys were understood, for --debug (see debug_keys.h)
 */
#include "src/report/debug_keys.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

/* Of so many records, so many bytes at most; a multiple of 8. */
enum { DEBUG_MAX_RECORDS = 5, DEBUG_MAX_NBYTES = 32, HEX_NBYTES = 2 * DEBUG_MAX_NBYTES + 4 };

static void write_hex(const unsigned char *bytes, uint64_t n, char text[static HEX_NBYTES])
{
	for (uint64_t i = 0; i < n && i < DEBUG_MAX_NBYTES; i++, text += 2)
		snprintf(text, 3, "%02x", bytes[i]);
	strcpy(text, n > DEBUG_MAX_NBYTES ? "..." : "");
}

/* The normalised key as its digits: records sort as these texts do. */
static void write_normalised_key(const struct key_fields *keys, const unsigned char *record,
				 char text[static HEX_NBYTES])
{
	unsigned char key[DEBUG_MAX_NBYTES];

	for (uint32_t offset = 0; offset < DEBUG_MAX_NBYTES; offset += 8) {
		const uint64_t word = htobe64(key_word(keys, record, offset));

		memcpy(key + offset, &word, 8);
	}
	write_hex(key, keys->key_nbytes, text);
}

static void report_keys(const struct sort_spec *spec)
{
	char type[KEY_TYPE_NBYTES];

	for (uint32_t i = 0; i < spec->n_keys; i++) {
		const struct key *key = &spec->keys[i];

		key_format_type(key, type);
		debug_line("key %" PRIu32 ": offset %" PRIu64 ", type %s, %" PRIu32 " bytes, %s",
			   i + 1, key->offset, type, key->nbytes,
			   key->descending ? "descending" : "ascending");
	}
}

static void report_layout(const struct layout *layout)
{
	const uint64_t nbytes = layout->record_nbytes;

	if (layout_is_key_only(layout))
		debug_line("record: %" PRIu64
			   " bytes, sorted as an encoded key in an element of %" PRIu32 " bytes%s",
			   nbytes, layout->element_nbytes,
			   key_encoding_is_identity(&layout->encoding) ?
				   ", which is the record itself" :
				   "");
	else if (layout_needs_refining(layout))
		debug_line("record: %" PRIu64 " bytes, sorted as the first %" PRIu32
			   " bytes of its encoded key of %" PRIu32
			   ", the rest where these are equal, in an element of %" PRIu32 " bytes",
			   nbytes, layout_prefix_nbytes(layout), layout->record_keys.key_nbytes,
			   layout->element_nbytes);
	else
		debug_line("record: %" PRIu64 " bytes, sorted as its encoded key of %" PRIu32
			   " bytes in an element of %" PRIu32 " bytes",
			   nbytes, layout->record_keys.key_nbytes, layout->element_nbytes);
}

static int report_records(const struct layout *layout, struct input *input, uint64_t n)
{
	const uint64_t nbytes = layout->record_nbytes;
	char record_hex[HEX_NBYTES], key_hex[HEX_NBYTES];
	unsigned char *record = malloc(nbytes);
	int r = 0;

	if (!record)
		return fail(-ENOMEM, "--debug: no memory for a record of %" PRIu64 " bytes",
			    nbytes);
	for (uint64_t i = 0; i < n && r == 0; i++) {
		r = input_read_at(input, i * nbytes, record, nbytes);
		if (r < 0)
			break;
		write_hex(record, nbytes, record_hex);
		write_normalised_key(&layout->record_keys, record, key_hex);
		debug_line("record %" PRIu64 ": bytes %s encoded key %s", i + 1, record_hex,
			   key_hex);
	}
	free(record);
	return r;
}

int debug_report_keys(const struct sort_spec *spec, const struct layout *layout,
		      struct input *input)
{
	const uint64_t nbytes = input_total_nbytes(input);
	uint64_t n;

	report_keys(spec);
	report_layout(layout);
	if (nbytes == INPUT_SIZE_UNKNOWN) {
		debug_line("records: from a pipe, so not shown");
		return 0;
	}
	n = nbytes / layout->record_nbytes;
	return report_records(layout, input, n < DEBUG_MAX_RECORDS ? n : DEBUG_MAX_RECORDS);
}

void debug_report_device(const char *name)
{
	debug_line("device: %s", name);
}
