/*
 * npy - the header of a .npy file (see npy.h)
 */
#include "io/header/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "io/header/npy_internal.h"
#include "src/base/diagnostics.h"
#include "src/record/layout.h"

enum { MAGIC_NBYTES = 6, VERSION_NBYTES = 2 };

bool npy_begins(const unsigned char *bytes, size_t n)
{
	return n >= MAGIC_NBYTES && memcmp(bytes, NPY_MAGIC, MAGIC_NBYTES) == 0;
}

bool npy_recognise(const unsigned char *bytes, size_t n, uint64_t *ret_header_nbytes)
{
	uint64_t nbytes;

	if (n < NPY_PREFIX_NBYTES || !npy_begins(bytes, n) || bytes[6] < 1 || bytes[6] > 3 ||
	    bytes[7] != 0)
		return false;
	nbytes = 8 + (bytes[6] == 1 ? 2 : 4) + bytes[8] + ((uint64_t)bytes[9] << 8);
	if (bytes[6] > 1)
		nbytes += ((uint64_t)bytes[10] << 16) + ((uint64_t)bytes[11] << 24);
	*ret_header_nbytes = nbytes;
	return true;
}

/* --- the text --- */

int npy_refuse(const struct npy_parsing *parsing, const char *format, ...)
{
	char what[512];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	return fail_hint(-EINVAL, HINT_AS_PLAIN_RECORDS, parsing->npy->header_nbytes,
			 "%s: is a file of numpy %s", parsing->name, what);
}

int npy_refuse_all(const struct npy_parsing *parsing, const char *what)
{
	return fail(-EINVAL, "%s: is a file of numpy %s", parsing->name, what);
}

int npy_refuse_spelling(const struct npy_parsing *parsing)
{
	return npy_refuse(parsing, "whose header is not understood, at '%.40s'", parsing->text.at);
}

int npy_fail_memory(const struct npy_parsing *parsing)
{
	return fail(-errno, "%s: no memory for its header: %m", parsing->name);
}

int npy_take_string(struct npy_parsing *parsing, char **ret_string)
{
	const int r = python_take_string(&parsing->text, ret_string);

	if (r == -ENOMEM)
		return npy_fail_memory(parsing);
	return r < 0 ? npy_refuse_spelling(parsing) : 0;
}

int npy_take_shape(struct npy_parsing *parsing, uint64_t *dims, size_t *ret_n)
{
	struct python_text *text = &parsing->text;
	const char *const close = python_take(text, "(") ? ")" :
				  python_take(text, "[") ? "]" :
							   NULL;
	size_t n = 0;

	while (!close || !python_take(text, close)) {
		if (n == NPY_MOST_DIMENSIONS)
			return npy_refuse(parsing, "with more than %d dimensions",
					  NPY_MOST_DIMENSIONS);
		if (!python_take_number(text, &dims[n++]))
			return npy_refuse_spelling(parsing);
		if (!close)
			break;
		if (!python_take(text, ",") && !python_begins(text, close))
			return npy_refuse_spelling(parsing);
	}
	*ret_n = n;
	return 0;
}

int npy_multiply(const struct npy_parsing *parsing, const uint64_t *dims, size_t n,
		 uint64_t *ret_product)
{
	uint64_t product = 1;

	for (size_t i = 0; i < n; i++)
		if (__builtin_mul_overflow(product, dims[i], &product))
			return npy_refuse(parsing, "with a shape of more than 2^64 items");
	*ret_product = product;
	return 0;
}

/* What of the dictionary has that key. */
static int take_value(struct npy_parsing *parsing, const char *key)
{
	if (!python_take(&parsing->text, ":"))
		return npy_refuse_spelling(parsing);
	if (strcmp(key, "descr") == 0 && parsing->npy->descr)
		return npy_refuse(parsing, "whose header has two entries 'descr'");
	if (strcmp(key, "descr") == 0)
		return npy_take_descr(parsing);
	if (strcmp(key, "shape") == 0)
		return npy_take_shape(parsing, parsing->dims, &parsing->n_dims);
	if (strcmp(key, "fortran_order") == 0) {
		parsing->is_fortran = python_take(&parsing->text, "True");
		return parsing->is_fortran || python_take(&parsing->text, "False") ?
			       0 :
			       npy_refuse_spelling(parsing);
	}
	return npy_refuse(parsing, "whose header has an entry '%.40s', which gsort does not know",
			  key);
}

/* One of the three things that there are in it. */
static int take_entry(struct npy_parsing *parsing)
{
	char *key;
	int r = npy_take_string(parsing, &key);

	if (r < 0)
		return r;
	r = take_value(parsing, key);
	free(key);
	return r;
}

static int take_dictionary(struct npy_parsing *parsing)
{
	if (!python_take(&parsing->text, "{"))
		return npy_refuse_spelling(parsing);
	while (!python_take(&parsing->text, "}")) {
		const int r = take_entry(parsing);

		if (r < 0)
			return r;
		python_skip_blanks(&parsing->text);
		if (!python_take(&parsing->text, ",") && *parsing->text.at != '}')
			return npy_refuse_spelling(parsing);
	}
	python_skip_blanks(&parsing->text);
	if (*parsing->text.at)
		return npy_refuse_spelling(parsing);
	return parsing->npy->descr ? 0 : npy_refuse(parsing, "whose header has no 'descr'");
}

/* --- records --- */

/* Rows of several items: those are their columns. */
static int make_columns(struct npy_parsing *parsing, uint64_t n)
{
	struct fields *fields = &parsing->npy->fields;
	const struct field item = parsing->item.n ? parsing->item.fields[0] : (struct field){ 0 };

	if (parsing->is_structure)
		return npy_refuse(parsing, "with rows of structures, which gsort does not sort");
	fields->are_columns = true;
	fields->n_of_column = item.n;
	return fields_add(fields, (struct field){ .name = (char *)"",
						  .key = item.key,
						  .n = (uint32_t)n * item.n,
						  .spelling = item.spelling });
}

/* How many items, and bytes, a record has: all dimensions but the first. */
static int measure_record(const struct npy_parsing *parsing, uint64_t *ret_n_items,
			  uint64_t *ret_nbytes)
{
	uint64_t n_items = 1, nbytes;
	int r = parsing->n_dims > 1 ?
			npy_multiply(parsing, parsing->dims + 1, parsing->n_dims - 1, &n_items) :
			0;

	if (r < 0)
		return r;
	if (__builtin_mul_overflow(n_items, parsing->item_nbytes, &nbytes) ||
	    nbytes > LAYOUT_MOST_RECORD_NBYTES)
		return npy_refuse(parsing, "whose records have more than %d bytes",
				  LAYOUT_MOST_RECORD_NBYTES);
	if (nbytes == 0)
		return npy_refuse_all(parsing, "whose records have no bytes");
	if (!parsing->is_structure && parsing->item.fields[0].is_opaque)
		return npy_refuse(parsing, "of type %.60s, which gsort does not know",
				  parsing->item.fields[0].spelling);
	*ret_n_items = n_items;
	*ret_nbytes = nbytes;
	return 0;
}

/* ", 3, 4" */
static int spell_row(const struct npy_parsing *parsing)
{
	char row[NPY_MOST_DIMENSIONS * 24] = "";
	size_t at = 0;

	for (size_t i = 1; i < parsing->n_dims; i++)
		at += (size_t)snprintf(row + at, sizeof row - at, ", %" PRIu64, parsing->dims[i]);
	parsing->npy->row = strdup(row);
	return parsing->npy->row ? 0 : npy_fail_memory(parsing);
}

/* It would be other bytes that are taken for a row. */
static int refuse_fortran(const struct npy_parsing *parsing)
{
	return fail(-EINVAL,
		    "%s: is a file of numpy in Fortran order, where a row is not in one piece: "
		    "save numpy.ascontiguousarray() of it, which is in C order",
		    parsing->name);
}

static int make_records(struct npy_parsing *parsing)
{
	struct npy *npy = parsing->npy;
	uint64_t n_items = 0, record_nbytes = 0;
	int r;

	if (parsing->n_dims > 1 && parsing->is_fortran)
		return refuse_fortran(parsing);
	r = measure_record(parsing, &n_items, &record_nbytes);
	if (r < 0)
		return r;
	if (parsing->n_dims > 1) {
		r = make_columns(parsing, n_items);
	} else {
		npy->fields = parsing->item;
		parsing->item = (struct fields){ 0 };
	}
	npy->fields.of_file = true;
	npy->fields.header_nbytes = npy->header_nbytes;
	npy->fields.record_nbytes = record_nbytes;
	npy->n_records = parsing->n_dims ? parsing->dims[0] : 1;
	return r < 0 ? r : spell_row(parsing);
}

int npy_parse(const unsigned char *header, uint64_t nbytes, const char *name, struct npy *ret_npy)
{
	struct npy *npy = ret_npy;
	struct npy_parsing parsing = { .name = name, .npy = npy };
	const size_t begin = header[6] == 1 ? 10 : 12;
	char *text;
	int r;

	*npy = (struct npy){ .header_nbytes = nbytes, .version = header[6] };
	text = strndup((const char *)header + begin, (size_t)nbytes - begin);
	if (!text)
		return npy_fail_memory(&parsing);
	parsing.text = (struct python_text){ text, .is_latin1 = header[6] < 3 };
	r = take_dictionary(&parsing);
	if (r == 0)
		r = make_records(&parsing);
	fields_free(&parsing.item);
	free(text);
	return r;
}

void npy_free(struct npy *npy)
{
	fields_free(&npy->fields);
	free(npy->descr);
	free(npy->top_names);
	free(npy->row);
	*npy = (struct npy){ 0 };
}

bool npy_is_alike(const struct npy *a, const struct npy *b)
{
	return strcmp(a->descr, b->descr) == 0 && strcmp(a->row, b->row) == 0;
}
