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
enum { SHOWN_RECORDS = 5, SHOWN_NBYTES = 32, HEX_NBYTES = 2 * SHOWN_NBYTES + 4 };

static void write_hex(const unsigned char *bytes, uint64_t n, char text[static HEX_NBYTES])
{
	for (uint64_t i = 0; i < n && i < SHOWN_NBYTES; i++, text += 2)
		snprintf(text, 3, "%02x", bytes[i]);
	strcpy(text, n > SHOWN_NBYTES ? "..." : "");
}

/* The normalised key as its digits: records sort as these texts do. */
static void write_code(const struct key_fields *keys, const unsigned char *record,
		       char text[static HEX_NBYTES])
{
	unsigned char code[SHOWN_NBYTES];

	for (uint32_t at = 0; at < SHOWN_NBYTES; at += 8) {
		const uint64_t word = htobe64(key_word(keys, record, at));

		memcpy(code + at, &word, 8);
	}
	write_hex(code, keys->key_nbytes, text);
}

static void tell_keys(const struct sort_spec *spec)
{
	char type[KEY_TYPE_NBYTES];

	for (uint32_t i = 0; i < spec->n_keys; i++) {
		const struct key *key = &spec->keys[i];

		key_format_type(key, type);
		detail("key %" PRIu32 ": offset %" PRIu64 ", type %s, %" PRIu32 " bytes, %s", i + 1,
		       key->offset, type, key->nbytes,
		       key->descending ? "descending" : "ascending");
	}
}

static void tell_layout(const struct layout *layout)
{
	const uint64_t nbytes = layout->record_nbytes;

	if (layout_is_plain(layout))
		detail("record: %" PRIu64
		       " bytes, sorted as an encoded key in an element of %" PRIu32 " bytes%s",
		       nbytes, layout->element_nbytes,
		       code_map_is_identity(&layout->map) ? ", which is the record itself" : "");
	else if (layout_needs_refining(layout))
		detail("record: %" PRIu64 " bytes, sorted as the first %" PRIu32
		       " bytes of its encoded key of %" PRIu32
		       ", the rest where these are equal, in an element of %" PRIu32 " bytes",
		       nbytes, layout_prefix_nbytes(layout), layout->record_keys.key_nbytes,
		       layout->element_nbytes);
	else
		detail("record: %" PRIu64 " bytes, sorted as its encoded key of %" PRIu32
		       " bytes in an element of %" PRIu32 " bytes",
		       nbytes, layout->record_keys.key_nbytes, layout->element_nbytes);
}

static int tell_records(const struct layout *layout, struct input *input, uint64_t n)
{
	const uint64_t nbytes = layout->record_nbytes;
	char bytes[HEX_NBYTES], code[HEX_NBYTES];
	unsigned char *record = malloc(nbytes);
	int r = 0;

	if (!record)
		return fail(-ENOMEM, "--debug: no memory for a record of %" PRIu64 " bytes",
			    nbytes);
	for (uint64_t i = 0; i < n && r == 0; i++) {
		r = input_read_at(input, i * nbytes, record, nbytes);
		if (r < 0)
			break;
		write_hex(record, nbytes, bytes);
		write_code(&layout->record_keys, record, code);
		detail("record %" PRIu64 ": bytes %s encoded key %s", i + 1, bytes, code);
	}
	free(record);
	return r;
}

int debug_tell(const struct sort_spec *spec, const struct layout *layout, struct input *input)
{
	const uint64_t nbytes = input_total_nbytes(input);
	uint64_t n;

	tell_keys(spec);
	tell_layout(layout);
	if (nbytes == INPUT_SIZE_UNKNOWN) {
		detail("records: from a pipe, so not shown");
		return 0;
	}
	n = nbytes / layout->record_nbytes;
	return tell_records(layout, input, n < SHOWN_RECORDS ? n : SHOWN_RECORDS);
}

void debug_tell_device(const char *name)
{
	detail("device: %s", name);
}
