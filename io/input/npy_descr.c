/*
 * npy_descr - the type of an item of numpy, and what fields it comes to (see npy.h)
 *
 * What is read is spelled anew as it is understood, in one way, so that the same type is the same
 * text, whatever version of numpy, and in what encoding, has written it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/input/npy_inside.h"
#include "src/base/messages.h"

enum {
	MOST_NAME_NBYTES = 512, /* of a field, with those around it */
	MOST_DEPTH = 16,        /* of structures within structures */
	MOST_RECORD_NBYTES = 1 << 30,
	MOST_TYPE_NBYTES = 64,
};

/* --- types --- */

/* Names of numpy that are no letter and number, which it reads, and does not write. */
static const struct {
	const char *name, *type;
} names[] = {
	{ "?", "b1" },         { "b", "i1" },           { "B", "u1" },       { "h", "i2" },
	{ "H", "u2" },         { "i", "i4" },           { "I", "u4" },       { "l", "i8" },
	{ "L", "u8" },         { "q", "i8" },           { "Q", "u8" },       { "p", "i8" },
	{ "P", "u8" },         { "e", "f2" },           { "f", "f4" },       { "d", "f8" },
	{ "F", "c8" },         { "D", "c16" },          { "g", "f16" },      { "G", "c32" },
	{ "bool", "b1" },      { "int8", "i1" },        { "uint8", "u1" },   { "int16", "i2" },
	{ "uint16", "u2" },    { "int32", "i4" },       { "uint32", "u4" },  { "int64", "i8" },
	{ "uint64", "u8" },    { "float16", "f2" },     { "float32", "f4" }, { "float64", "f8" },
	{ "complex64", "c8" }, { "complex128", "c16" },
};

/* As numpy writes it, "<f8": the order of bytes, if there is any, a letter and their number. */
static void spell_type(const char *given, char type[static MOST_TYPE_NBYTES])
{
	const bool has_order = *given && strchr("<>|=", *given);
	const char *body = given + has_order;
	bool has_bytes;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(body, names[i].name) == 0)
			body = names[i].type;
	has_bytes = strchr("SVaOb", *body) || strcmp(body, "i1") == 0 || strcmp(body, "u1") == 0;
	snprintf(type, MOST_TYPE_NBYTES, "%c%c%s",
		 has_bytes     ? '|' :
		 *given == '>' ? '>' :
				 '<',
		 *body == 'a' ? 'S' : *body, *body ? body + 1 : "");
}

/* The number behind the letter, and nothing behind it. */
static bool parse_number(const char *type, unsigned long *ret_number)
{
	char *end;

	if (type[2] < '0' || type[2] > '9')
		return false;
	errno = 0;
	*ret_number = strtoul(type + 2, &end, 10);
	return errno == 0 && *end == '\0' && *ret_number <= MOST_RECORD_NBYTES;
}

/* Characters of 4 bytes, which compare one after the other. */
static void set_text(const char *type, unsigned long n, struct field *field)
{
	field->key = (struct key){
		.nbytes = 4,
		.kind = KEY_UNSIGNED,
		.big_endian = type[0] == '>',
	};
	field->n = (uint32_t)n;
}

static void set_bytes(struct field *field, uint64_t nbytes)
{
	field->n = 1;
	field->key =
		(struct key){ .nbytes = (uint32_t)nbytes, .kind = KEY_BYTES, .big_endian = true };
}

/* Of a field: some types have no bytes, and others (long double) are known by their size only. */
static int parse_type(const struct npy_parsing *parsing, const char *type, struct field *field)
{
	unsigned long n;

	if (type[1] == 'O')
		return npy_refuse(parsing, "that holds objects of Python, which have no records");
	field->n = 1;
	if (key_parse_type(type, &field->key) == 0) {
		field->key.numeric = key_has_orders(&field->key);
		return 0;
	}
	if (!parse_number(type, &n) || !strchr("SVUfc", type[1]))
		return npy_refuse(parsing, "of type '%.40s', which gsort does not know", type);
	if (type[1] == 'U' && n > 0)
		set_text(type, n, field);
	else
		set_bytes(field, n);
	field->is_opaque = type[1] == 'f' || type[1] == 'c';
	return 0;
}

/* --- fields --- */

/* "(2, 3)" or "(2,)" */
static void spell_shape(FILE *stream, const uint64_t *dims, size_t n)
{
	fputc('(', stream);
	for (size_t i = 0; i < n; i++)
		fprintf(stream, "%s%" PRIu64, i ? ", " : "", dims[i]);
	fputs(n == 1 ? ",)" : ")", stream);
}

/* How many bytes n of the field's have, which are behind those of before. */
static int measure(const struct npy_parsing *parsing, uint64_t n, uint64_t item_nbytes,
		   uint64_t *ret_nbytes)
{
	if (__builtin_mul_overflow(n, item_nbytes, ret_nbytes) ||
	    *ret_nbytes > MOST_RECORD_NBYTES - parsing->item_nbytes)
		return npy_refuse(parsing, "whose items have more than %d bytes",
				  MOST_RECORD_NBYTES);
	return 0;
}

/* Behind those that came before. */
static int add_field(struct npy_parsing *parsing, struct field field, uint64_t nbytes)
{
	field.key.offset = parsing->item_nbytes;
	parsing->item_nbytes += nbytes;
	return nbytes ? fields_add(&parsing->item, field) : 0;
}

/* What a field is called: by itself, and with what is around it. */
struct place {
	const char *name;
	uint32_t own_name_at;
	unsigned depth;
};

/* A type, and the shape of an array of it, which is bytes. */
static int take_array(struct npy_parsing *parsing, const struct place *place, bool may_be_array)
{
	char given[MOST_TYPE_NBYTES], type[MOST_TYPE_NBYTES], *spelling = NULL;
	uint64_t dims[NPY_MOST_DIMENSIONS], n = 1, nbytes = 0;
	struct field field = { .name = (char *)place->name, .own_name_at = place->own_name_at };
	size_t n_dims = 0, n_spelling;
	FILE *stream;
	int r = npy_take_string(parsing, given, sizeof given);

	if (r < 0)
		return r;
	spell_type(given, type);
	r = parse_type(parsing, type, &field);
	if (r == 0 && may_be_array && python_take(&parsing->text, ","))
		r = npy_take_shape(parsing, dims, &n_dims);
	if (r == 0)
		r = npy_multiply(parsing, dims, n_dims, &n);
	if (r == 0)
		r = measure(parsing, n, (uint64_t)field.key.nbytes * field.n, &nbytes);
	if (r < 0)
		return r;
	if (n_dims)
		set_bytes(&field, nbytes);
	stream = open_memstream(&spelling, &n_spelling);
	if (!stream)
		return fail(-ENOMEM, "%s: no memory for its header", parsing->name);
	python_put_string(stream, type);
	if (n_dims) {
		fputs(", ", stream);
		spell_shape(stream, dims, n_dims);
	}
	r = fclose(stream) == 0 ? 0 : fail(-ENOMEM, "%s: no memory for its header", parsing->name);
	if (r == 0) {
		fputs(spelling, parsing->descr);
		field.spelling = spelling;
		r = add_field(parsing, field, nbytes);
	}
	free(spelling);
	return r;
}

/* --- structures --- */

static int take_structure(struct npy_parsing *parsing, const struct place *outer);

/* Behind a structure: the shape of an array of them, which then is bytes that are carried along. */
static int take_array_of_them(struct npy_parsing *parsing, const struct place *place,
			      size_t n_before, uint64_t nbytes_before)
{
	struct field field = { .name = (char *)place->name,
			       .own_name_at = place->own_name_at,
			       .is_opaque = true,
			       .spelling = (char *)"an array of structures" };
	const uint64_t item_nbytes = parsing->item_nbytes - nbytes_before;
	uint64_t dims[NPY_MOST_DIMENSIONS], n, nbytes = 0;
	size_t n_dims;
	int r = npy_take_shape(parsing, dims, &n_dims);

	if (r < 0)
		return r;
	fields_cut(&parsing->item, n_before);
	parsing->item_nbytes = nbytes_before;
	r = npy_multiply(parsing, dims, n_dims, &n);
	if (r == 0)
		r = measure(parsing, n, item_nbytes, &nbytes);
	if (r < 0)
		return r;
	fputs(", ", parsing->descr);
	spell_shape(parsing->descr, dims, n_dims);
	set_bytes(&field, nbytes);
	return add_field(parsing, field, nbytes);
}

/* A structure within one: its fields, unless it is an array of them. */
static int take_inner(struct npy_parsing *parsing, const struct place *place)
{
	const size_t n_before = parsing->item.n;
	const uint64_t nbytes_before = parsing->item_nbytes;
	const struct place inner = { place->name, place->own_name_at, place->depth + 1 };
	int r = take_structure(parsing, &inner);

	if (r == 0 && python_take(&parsing->text, ","))
		r = take_array_of_them(parsing, place, n_before, nbytes_before);
	return r;
}

/* 'name' or ('title', 'name'), of which those of the outermost structure are kept. */
static int take_names(struct npy_parsing *parsing, unsigned depth,
		      char name[static MOST_NAME_NBYTES])
{
	const bool has_title = python_take(&parsing->text, "(");
	int r = npy_take_string(parsing, name, MOST_NAME_NBYTES);

	if (r == 0 && has_title) {
		fputc('(', parsing->descr);
		python_put_string(parsing->descr, name);
		fputs(", ", parsing->descr);
		if (depth == 0)
			fwrite(name, 1, strlen(name) + 1, parsing->tops);
		r = python_take(&parsing->text, ",") ?
			    npy_take_string(parsing, name, MOST_NAME_NBYTES) :
			    npy_refuse_spelling(parsing);
	}
	if (r < 0)
		return r;
	python_put_string(parsing->descr, name);
	if (depth == 0)
		fwrite(name, 1, strlen(name) + 1, parsing->tops);
	if (has_title)
		fputc(')', parsing->descr);
	return has_title && !python_take(&parsing->text, ")") ? npy_refuse_spelling(parsing) : 0;
}

/* ('name', '<f8') or (('title', 'name'), '<f8', (2,)) */
static int take_field(struct npy_parsing *parsing, const struct place *outer)
{
	char part[MOST_NAME_NBYTES], name[MOST_NAME_NBYTES];
	struct place place = { name, 0, outer->depth };
	int r;

	if (!python_take(&parsing->text, "("))
		return npy_refuse_spelling(parsing);
	fputc('(', parsing->descr);
	r = take_names(parsing, outer->depth, part);
	if (r == 0 && !python_take(&parsing->text, ","))
		r = npy_refuse_spelling(parsing);
	if (r < 0)
		return r;
	fputs(", ", parsing->descr);
	if ((size_t)snprintf(name, sizeof name, "%s%s%s", outer->name,
			     *outer->name && *part ? "." : "", part) >= sizeof name)
		return npy_refuse(parsing, "with a name of more than %zu bytes", sizeof name);
	place.own_name_at = (uint32_t)(strlen(name) - strlen(part));
	if (python_take(&parsing->text, "["))
		r = take_inner(parsing, &place);
	else
		r = take_array(parsing, *part ? &place : &(struct place){ "", 0, 0 }, true);
	fputc(')', parsing->descr);
	if (r < 0)
		return r;
	return python_take(&parsing->text, ")") ? 0 : npy_refuse_spelling(parsing);
}

/* Behind its '['. */
static int take_structure(struct npy_parsing *parsing, const struct place *outer)
{
	bool is_first = true;

	if (outer->depth == MOST_DEPTH)
		return npy_refuse(parsing, "with more than %d structures within each other",
				  MOST_DEPTH);
	fputc('[', parsing->descr);
	for (; !python_take(&parsing->text, "]"); is_first = false) {
		int r;

		fputs(is_first ? "" : ", ", parsing->descr);
		r = take_field(parsing, outer);
		if (r < 0)
			return r;
		python_skip_blanks(&parsing->text);
		if (!python_take(&parsing->text, ",") && *parsing->text.at != ']')
			return npy_refuse_spelling(parsing);
	}
	fputc(']', parsing->descr);
	return 0;
}

int npy_take_descr(struct npy_parsing *parsing)
{
	const struct place place = { "", 0, 0 };
	struct npy *npy = parsing->npy;
	size_t n_descr, n_tops;
	int r = 0;

	parsing->descr = open_memstream(&npy->descr, &n_descr);
	parsing->tops = open_memstream(&npy->top_names, &n_tops);
	parsing->is_structure = python_take(&parsing->text, "[");
	if (parsing->descr && parsing->tops) {
		r = parsing->is_structure ? take_structure(parsing, &place) :
					    take_array(parsing, &place, false);
		fputc('\0', parsing->tops);
	}
	if (!parsing->descr || fclose(parsing->descr) != 0)
		r = r < 0 ? r : -ENOMEM;
	if (!parsing->tops || fclose(parsing->tops) != 0)
		r = r < 0 ? r : -ENOMEM;
	return r == -ENOMEM ? fail(-ENOMEM, "%s: no memory for its header", parsing->name) : r;
}
