/*
 * npy - the header of a .npy file (see npy.h)
 */
#include "io/header/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "io/header/npy_internal.h"
#include "src/base/diagnostics.h"
#include "src/record/layout.h"

enum { MAGIC_NBYTES = 6, VERSION_NBYTES = 2 };

bool npy_has_magic(const unsigned char *bytes, size_t n)
{
	return n >= MAGIC_NBYTES && memcmp(bytes, NPY_MAGIC, MAGIC_NBYTES) == 0;
}

bool npy_parse_prefix(const unsigned char *bytes, size_t n, uint64_t *ret_header_nbytes)
{
	uint64_t nbytes;

	if (n < NPY_PREFIX_NBYTES || !npy_has_magic(bytes, n) || bytes[6] < 1 || bytes[6] > 3 ||
	    bytes[7] != 0)
		return false;
	nbytes = 8 + (bytes[6] == 1 ? 2 : 4) + bytes[8] + ((uint64_t)bytes[9] << 8);
	if (bytes[6] > 1)
		nbytes += ((uint64_t)bytes[10] << 16) + ((uint64_t)bytes[11] << 24);
	*ret_header_nbytes = nbytes;
	return true;
}

/* --- the text --- */

int npy_refuse(const struct npy_parser *parser, const char *format, ...)
{
	char reason[512];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	return fail(-EINVAL,
		    "%s: is a file of numpy %s; --skip-bytes=%" PRIu64
		    " with -t, or -R and -k, takes what is behind the header for plain records",
		    parser->name, reason, parser->npy->header_nbytes);
}

int npy_refuse_without_hint(const struct npy_parser *parser, const char *reason)
{
	return fail(-EINVAL, "%s: is a file of numpy %s", parser->name, reason);
}

int npy_refuse_syntax(const struct npy_parser *parser)
{
	return npy_refuse(parser, "whose header is not understood, at '%.40s'", parser->text.next);
}

int npy_fail_memory(const struct npy_parser *parser)
{
	return fail(-errno, "%s: no memory for its header: %m", parser->name);
}

int npy_parse_string(struct npy_parser *parser, char **ret_string)
{
	const int r = python_parse_string(&parser->text, ret_string);

	if (r == -ENOMEM)
		return npy_fail_memory(parser);
	return r < 0 ? npy_refuse_syntax(parser) : 0;
}

int npy_parse_shape(struct npy_parser *parser, uint64_t *dims, size_t *ret_n)
{
	struct python_text *text = &parser->text;
	const char *const close = python_accept(text, "(") ? ")" :
				  python_accept(text, "[") ? "]" :
							     NULL;
	size_t n = 0;

	while (!close || !python_accept(text, close)) {
		if (n == NPY_MAX_DIMENSIONS)
			return npy_refuse(parser, "with more than %d dimensions",
					  NPY_MAX_DIMENSIONS);
		if (!python_parse_number(text, &dims[n++]))
			return npy_refuse_syntax(parser);
		if (!close)
			break;
		if (!python_accept(text, ",") && !python_peek(text, close))
			return npy_refuse_syntax(parser);
	}
	*ret_n = n;
	return 0;
}

int npy_count_items(const struct npy_parser *parser, const uint64_t *dims, size_t n,
		    uint64_t *ret_product)
{
	uint64_t product = 1;

	for (size_t i = 0; i < n; i++)
		if (__builtin_mul_overflow(product, dims[i], &product))
			return npy_refuse(parser, "with a shape of more than 2^64 items");
	*ret_product = product;
	return 0;
}

/* What of the dictionary has that key. */
static int parse_dict_value(struct npy_parser *parser, const char *key)
{
	if (!python_accept(&parser->text, ":"))
		return npy_refuse_syntax(parser);
	if (strcmp(key, "descr") == 0 && parser->npy->descr)
		return npy_refuse(parser, "whose header has two entries 'descr'");
	if (strcmp(key, "descr") == 0)
		return npy_parse_descr(parser);
	if (strcmp(key, "shape") == 0) {
		parser->has_shape = true;
		return npy_parse_shape(parser, parser->dims, &parser->n_dims);
	}
	if (strcmp(key, "fortran_order") == 0) {
		parser->has_order = true;
		parser->is_fortran = python_accept(&parser->text, "True");
		return parser->is_fortran || python_accept(&parser->text, "False") ?
			       0 :
			       npy_refuse_syntax(parser);
	}
	return npy_refuse(parser,
			  "whose header has an entry '%.40s', which " GSORT_PROGRAM
			  " does not know",
			  key);
}

/* One of the three things that there are in it. */
static int parse_dict_entry(struct npy_parser *parser)
{
	char *key;
	int r = npy_parse_string(parser, &key);

	if (r < 0)
		return r;
	r = parse_dict_value(parser, key);
	free(key);
	return r;
}

static int parse_dict(struct npy_parser *parser)
{
	if (!python_accept(&parser->text, "{"))
		return npy_refuse_syntax(parser);
	while (!python_accept(&parser->text, "}")) {
		const int r = parse_dict_entry(parser);

		if (r < 0)
			return r;
		python_skip_blanks(&parser->text);
		if (!python_accept(&parser->text, ",") && *parser->text.next != '}')
			return npy_refuse_syntax(parser);
	}
	python_skip_blanks(&parser->text);
	if (*parser->text.next)
		return npy_refuse_syntax(parser);
	if (parser->npy->descr && parser->has_order && parser->has_shape)
		return 0;
	return npy_refuse(parser, "whose header is damaged: it has no '%s'",
			  !parser->npy->descr ? "descr" :
			  !parser->has_order  ? "fortran_order" :
						"shape");
}

/* --- records --- */

/* Rows of several items: those are their columns. */
static int make_column_field(struct npy_parser *parser, uint64_t n)
{
	struct schema *fields = &parser->npy->fields;
	const struct field item = parser->item.n ? parser->item.fields[0] : (struct field){ 0 };

	if (parser->is_structure)
		return npy_refuse(parser,
				  "with rows of structures, which " GSORT_PROGRAM " does not sort");
	fields->has_columns = true;
	fields->n_per_column = item.n;
	return schema_add_field(fields, (struct field){ .name = (char *)"",
							.key = item.key,
							.n = (uint32_t)n * item.n,
							.type_text = item.type_text });
}

/* How many items, and bytes, a record has: all dimensions but the first. */
static int measure_record(const struct npy_parser *parser, uint64_t *ret_n_items,
			  uint64_t *ret_nbytes)
{
	uint64_t n_items = 1, nbytes;
	int r = parser->n_dims > 1 ?
			npy_count_items(parser, parser->dims + 1, parser->n_dims - 1, &n_items) :
			0;

	if (r < 0)
		return r;
	if (__builtin_mul_overflow(n_items, parser->item_nbytes, &nbytes) ||
	    nbytes > LAYOUT_MAX_RECORD_NBYTES)
		return npy_refuse(parser, "whose records have more than %d bytes",
				  LAYOUT_MAX_RECORD_NBYTES);
	if (nbytes == 0)
		return npy_refuse_without_hint(parser, "whose records have no bytes");
	if (!parser->is_structure && parser->item.fields[0].is_opaque)
		return npy_refuse(parser, "of type %.60s, which " GSORT_PROGRAM " does not know",
				  parser->item.fields[0].type_text);
	*ret_n_items = n_items;
	*ret_nbytes = nbytes;
	return 0;
}

/* ", 3, 4" */
static int format_row_shape(const struct npy_parser *parser)
{
	char row_shape[NPY_MAX_DIMENSIONS * 24] = "";
	size_t length = 0;

	for (size_t i = 1; i < parser->n_dims; i++)
		length += (size_t)snprintf(row_shape + length, sizeof row_shape - length,
					   ", %" PRIu64, parser->dims[i]);
	parser->npy->row_shape = strdup(row_shape);
	return parser->npy->row_shape ? 0 : npy_fail_memory(parser);
}

/* It would be other bytes that are taken for a row. */
static int refuse_fortran(const struct npy_parser *parser)
{
	return fail(-EINVAL,
		    "%s: is a file of numpy in Fortran order, where a row is not in one piece: "
		    "save numpy.ascontiguousarray() of it, which is in C order",
		    parser->name);
}

static int make_record_fields(struct npy_parser *parser)
{
	struct npy *npy = parser->npy;
	uint64_t n_items = 0, record_nbytes = 0;
	int r;

	if (parser->n_dims > 1 && parser->is_fortran)
		return refuse_fortran(parser);
	r = measure_record(parser, &n_items, &record_nbytes);
	if (r < 0)
		return r;
	if (parser->n_dims > 1) {
		r = make_column_field(parser, n_items);
	} else {
		npy->fields = parser->item;
		parser->item = (struct schema){ 0 };
	}
	npy->fields.from_file = true;
	npy->fields.header_nbytes = npy->header_nbytes;
	npy->fields.record_nbytes = record_nbytes;
	npy->n_records = parser->n_dims ? parser->dims[0] : 1;
	return r < 0 ? r : format_row_shape(parser);
}

int npy_parse(const unsigned char *header, uint64_t nbytes, const char *name, struct npy *ret_npy)
{
	struct npy *npy = ret_npy;
	struct npy_parser parser = { .name = name, .npy = npy };
	const size_t begin = header[6] == 1 ? 10 : 12;
	char *text;
	int r;

	*npy = (struct npy){ .header_nbytes = nbytes, .version = header[6] };
	text = strndup((const char *)header + begin, (size_t)nbytes - begin);
	if (!text)
		return npy_fail_memory(&parser);
	parser.text = (struct python_text){ text, .is_latin1 = header[6] < 3 };
	r = parse_dict(&parser);
	if (r == 0)
		r = make_record_fields(&parser);
	schema_free(&parser.item);
	free(text);
	return r;
}

void npy_free(struct npy *npy)
{
	schema_free(&npy->fields);
	free(npy->descr);
	free(npy->top_names);
	free(npy->row_shape);
	*npy = (struct npy){ 0 };
}

bool npy_has_same_records(const struct npy *a, const struct npy *b)
{
	return strcmp(a->descr, b->descr) == 0 && strcmp(a->row_shape, b->row_shape) == 0;
}
