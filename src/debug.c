/*
 * debug - how the keys were understood, for --debug (see debug.h)
 */
#include "src/debug.h"

#include <inttypes.h>
#include <stdio.h>

enum { DEBUG_RECORDS = 5 };

static void print_hex(const unsigned char *bytes, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		fprintf(stderr, "%02x", bytes[i]);
}

/* A code as its digits, most significant first: codes sort as these texts do. */
static void print_code(const struct layout *layout, code_t code)
{
	for (uint64_t i = layout->record_nbytes; i-- > 0;)
		fprintf(stderr, "%02x", (unsigned)(code >> 8 * i) & 0xff);
}

static int print_record(const struct layout *layout, struct input *input, uint64_t number)
{
	unsigned char record[16];
	int r = input_read_at(input, number * layout->record_nbytes, record, layout->record_nbytes);

	if (r < 0)
		return r;
	fprintf(stderr, "record %" PRIu64 ": bytes ", number + 1);
	print_hex(record, layout->record_nbytes);
	fprintf(stderr, " code ");
	print_code(layout, layout_encode(layout, record));
	fputc('\n', stderr);
	return 0;
}

int debug_print(const struct layout *layout, struct input *input)
{
	const uint64_t nbytes = input_total_nbytes(input);
	char type[16];
	int r = 0;

	key_format_type(&layout->key, type);
	fprintf(stderr, "key 1: offset %" PRIu64 ", type %s, %u bytes, %s\n", layout->key.offset,
		type, (unsigned)layout->key.nbytes,
		layout->key.descending ? "descending" : "ascending");
	fprintf(stderr, "record: %" PRIu64 " bytes, sorted as a code in an element of %u bytes%s\n",
		layout->record_nbytes, (unsigned)layout->element_nbytes,
		code_map_is_identity(&layout->map) ? ", which is the record itself" : "");
	if (nbytes == INPUT_SIZE_UNKNOWN) {
		fprintf(stderr, "records: from a pipe, so not shown\n");
		return 0;
	}
	for (uint64_t i = 0; i < DEBUG_RECORDS && i < nbytes / layout->record_nbytes && r == 0; i++)
		r = print_record(layout, input, i);
	return r;
}
