/*
 * npy_read - reads the header of a .npy file (see npy.h)
 */
#include "io/header/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "io/header/python_literal.h"
#include "src/base/diagnostics.h"
#include "src/record/layout.h"

enum { MAGIC_NBYTES = 6 };

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

/* --- the state of the parser, and its errors --- */

enum { MAX_DIMENSIONS = 64, MAX_ITEM_NBYTES = 1 << 30, TYPE_NBYTES = 64 };

/* The state of the parser. */
struct parser {
	struct python_text text;
	const char *name; /* name of the file */
	struct npy *npy;
	struct schema item;
	uint64_t item_nbytes;
	FILE *descr, *top_names; /* become the members of npy */
	void *names;             /* names and titles of the current structure, of tsearch() */
	bool is_fortran, is_structure;
	bool has_order, has_shape; /* entries of the dictionary */
	uint64_t dims[MAX_DIMENSIONS];
	size_t n_dims;
};

/* The full name of a field; its own begins at base_name_offset. */
struct field_path {
	const char *name;
	uint32_t base_name_offset;
	unsigned depth;
};

/* --- values --- */

static int refuse(const struct parser *parser, const char *format, ...)
{
	char reason[512];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof reason, format, args);
	va_end(args);
	return fail(-EINVAL,
		    "%s: is a .npy file %s; use --skip-bytes=%" PRIu64
		    " with -t, or -R and -k, to read plain records after the header",
		    parser->name, reason, parser->npy->header_nbytes);
}

static int refuse_with(const struct parser *parser, const char *reason)
{
	return fail(-EINVAL, "%s: is a .npy file %s", parser->name, reason);
}

static int refuse_syntax(const struct parser *parser)
{
	return refuse(parser, "with a header that cannot be parsed at '%.40s'", parser->text.next);
}

static int fail_memory(const struct parser *parser)
{
	return fail(-errno, "%s: no memory for its header: %m", parser->name);
}

static int parse_string(struct parser *parser, char **ret_string)
{
	const int r = python_parse_string(&parser->text, ret_string);

	if (r == -ENOMEM)
		return fail_memory(parser);
	return r < 0 ? refuse_syntax(parser) : 0;
}

static int parse_shape(struct parser *parser, uint64_t *dims, size_t *ret_n)
{
	struct python_text *text = &parser->text;
	const char *const close = python_accept(text, "(") ? ")" :
				  python_accept(text, "[") ? "]" :
							     NULL;
	size_t n = 0;

	while (!close || !python_accept(text, close)) {
		if (n == MAX_DIMENSIONS)
			return refuse(parser, "with more than %d dimensions", MAX_DIMENSIONS);
		if (!python_parse_number(text, &dims[n++]))
			return refuse_syntax(parser);
		if (!close)
			break;
		if (!python_accept(text, ",") && !python_peek(text, close))
			return refuse_syntax(parser);
	}
	*ret_n = n;
	return 0;
}

static int count_items(const struct parser *parser, const uint64_t *dims, size_t n,
		       uint64_t *ret_product)
{
	uint64_t product = 1;

	for (size_t i = 0; i < n; i++)
		if (__builtin_mul_overflow(product, dims[i], &product))
			return refuse(parser, "with a shape of more than 2^64 items");
	*ret_product = product;
	return 0;
}

/* --- types --- */

/* Names of types that numpy reads (on 64-bit Linux), but does not write. */
static const struct {
	const char *type, *names;
} named_types[] = {
	{ "b1", "? bool bool_ bool8" },
	{ "i1", "b byte int8" },
	{ "u1", "B ubyte uint8" },
	{ "i2", "h short int16" },
	{ "u2", "H ushort uint16" },
	{ "i4", "i intc int32" },
	{ "u4", "I uintc uint32" },
	{ "i8", "l q p int int_ int0 intp long longlong int64" },
	{ "u8", "L Q P uint uint0 uintp ulong ulonglong uint64" },
	{ "f2", "e half float16" },
	{ "f4", "f single float32" },
	{ "f8", "d double float float_ float64" },
	{ "f16", "g longdouble longfloat float128" },
	{ "c8", "F csingle singlecomplex complex64" },
	{ "c16", "D cdouble cfloat complex complex_ complex128" },
	{ "c32", "G clongdouble clongfloat longcomplex complex256" },
	{ "M8", "M datetime64" },
	{ "m8", "m timedelta64" },
	{ "S1", "c" },
	{ "S0", "S a bytes bytes_ bytes0 string_" },
	{ "U0", "U str str_ str0 unicode unicode_" },
	{ "V0", "V void void0" },
	{ "O", "object object_ object0" },
};

/* Return whether the name of n bytes is one of the words. */
static bool has_word(const char *words, const char *name, size_t n)
{
	for (size_t n_word; *words; words += n_word + (words[n_word] == ' ')) {
		n_word = strcspn(words, " ");
		if (n_word == n && memcmp(words, name, n) == 0)
			return true;
	}
	return false;
}

/* Format a type as numpy writes it, "<f8". raw_type may be a name like "float64". */
static void normalize_type(const char *raw_type, char type[static TYPE_NBYTES])
{
	const bool has_order = *raw_type && strchr("<>|=", *raw_type);
	const char *body = raw_type + has_order;
	const size_t n_name = strcspn(body, "["); /* the unit of a time follows */
	const char *name = body;
	char spelling[TYPE_NBYTES - 1];
	bool has_bytes;
	int n;

	for (size_t i = 0; i < sizeof named_types / sizeof named_types[0]; i++)
		if (has_word(named_types[i].names, body, n_name))
			name = named_types[i].type;
	n = snprintf(spelling, sizeof spelling, "%.*s%s",
		     name == body ? (int)n_name : (int)strlen(name), name, body + n_name);
	if (n < 0 || (size_t)n >= sizeof spelling)
		*spelling = '\0'; /* not a valid type, unlike a part of the name */
	has_bytes = strchr("SVaOb", *spelling) || strcmp(spelling, "i1") == 0 ||
		    strcmp(spelling, "u1") == 0;
	if (*spelling == 'a')
		*spelling = 'S';
	type[0] = has_bytes ? '|' : *raw_type == '>' ? '>' : '<';
	snprintf(type + 1, TYPE_NBYTES - 1, "%s", spelling);
}

/* Parse the number after the letter, at the end of the type. */
static bool parse_number(const char *type, unsigned long *ret_number)
{
	char *end;

	if (type[2] < '0' || type[2] > '9')
		return false;
	errno = 0;
	*ret_number = strtoul(type + 2, &end, 10);
	return errno == 0 && *end == '\0' && *ret_number <= MAX_ITEM_NBYTES;
}

static void set_bytes(struct field *field, uint64_t nbytes)
{
	field->n = 1;
	field->key =
		(struct key){ .nbytes = (uint32_t)nbytes, .kind = KEY_BYTES, .big_endian = true };
}

/*
 * Return whether the text is the unit of a time, "[25s]". numpy also reads "[h/4]", but does not
 * write it.
 */
static bool is_time_unit(const char *text)
{
	static const char units[] = "Y M W D h m s ms us ns ps fs as generic";
	const char *unit = text + 1;
	unsigned long number = 0;
	char *end;

	if (!*text)
		return true;
	errno = 0;
	if (*unit >= '0' && *unit <= '9') {
		number = strtoul(unit, &end, 10);
		unit = end;
	}
	return errno == 0 && number <= INT32_MAX && text[strlen(text) - 1] == ']' &&
	       has_word(units, unit, strcspn(unit, "]")) && unit[strcspn(unit, "]") + 1] == '\0';
}

/* Make a field of a type. Some have no bytes; of others (long double) only the size is known. */
static int parse_type(const struct parser *parser, const char *type, struct field *field)
{
	unsigned long n;

	if (type[1] == 'O')
		return refuse_with(parser, "of Python objects (no fixed size)");
	field->n = 1;
	if (strchr("mM", type[1]) && !is_time_unit(type + strcspn(type, "[")))
		return refuse(parser, "of type '%.40s' with an invalid unit", type);
	if (key_parse_type(type, &field->key) == 0) {
		field->key.numeric = key_has_orders(&field->key);
		return 0;
	}
	if (!parse_number(type, &n) || !strchr("SVUfc", type[1]))
		return refuse(parser, "of unsupported type '%.40s'", type);
	set_bytes(field, n);
	if (type[1] == 'U' && n > 0) { /* characters of 4 bytes, compared one by one */
		field->n = (uint32_t)n;
		field->key = (struct key){ .nbytes = 4,
					   .kind = KEY_UNSIGNED,
					   .big_endian = type[0] == '>' };
	}
	field->is_opaque = type[1] == 'f' || type[1] == 'c';
	return 0;
}

/* --- names of fields --- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Names and titles of a structure must be unique. */
static int check_unique_name(struct parser *parser, const char *name)
{
	char *copy = strdup(name),
	     **node = copy ? tsearch(copy, &parser->names, compare_names) : NULL;
	const bool is_new = node && *node == copy;

	if (!is_new)
		free(copy);
	if (!node)
		return fail_memory(parser);
	return is_new ? 0 :
			refuse(parser, "with two fields or titles '%.40s' in one structure", name);
}

/* Write and register a name or a title. Padding has no name. */
static int record_field_name(struct parser *parser, const struct field_path *parent,
			     const char *name)
{
	python_write_string(parser->descr, name);
	if (!*name)
		return 0;
	if (parent->depth == 0)
		fwrite(name, 1, strlen(name) + 1, parser->top_names);
	return check_unique_name(parser, name);
}

static int parse_title(struct parser *parser, const struct field_path *parent)
{
	char *title;
	int r = parse_string(parser, &title);

	if (r < 0)
		return r;
	fputc('(', parser->descr);
	r = record_field_name(parser, parent, title);
	fputs(", ", parser->descr);
	free(title);
	return r;
}

/* Parse what follows the '(' of ('title', 'name'). None is no title. */
static int parse_titled_name(struct parser *parser, const struct field_path *parent,
			     char **ret_name)
{
	const bool has_title = !python_accept(&parser->text, "None");
	int r = has_title ? parse_title(parser, parent) : 0;

	if (r == 0 && !python_accept(&parser->text, ","))
		r = refuse_syntax(parser);
	if (r == 0)
		r = parse_string(parser, ret_name);
	if (r < 0)
		return r;
	r = record_field_name(parser, parent, *ret_name);
	fputs(has_title ? ")" : "", parser->descr);
	if (r == 0 && !python_accept(&parser->text, ")"))
		r = refuse_syntax(parser);
	if (r < 0)
		free(*ret_name);
	return r;
}

/* Parse 'name' or ('title', 'name'). */
static int parse_base_name(struct parser *parser, const struct field_path *parent, char **ret_name)
{
	int r;

	if (python_accept(&parser->text, "("))
		return parse_titled_name(parser, parent, ret_name);
	r = parse_string(parser, ret_name);
	if (r < 0)
		return r;
	r = record_field_name(parser, parent, *ret_name);
	if (r < 0)
		free(*ret_name);
	return r;
}

static int parse_field_name(struct parser *parser, const struct field_path *parent, char **ret_name,
			    uint32_t *ret_base_name_offset)
{
	char *base_name;
	int r = parse_base_name(parser, parent, &base_name);

	if (r < 0)
		return r;
	r = asprintf(ret_name, "%s%s%s", parent->name, *parent->name && *base_name ? "." : "",
		     base_name);
	*ret_base_name_offset = r < 0 ? 0 : (uint32_t)(strlen(*ret_name) - strlen(base_name));
	free(base_name);
	return r < 0 ? fail_memory(parser) : 0;
}

enum { MAX_STRUCT_DEPTH = 16 }; /* of nested structures */

/*
 * --- items ---
 *
 * The type is written again in one way, so that equal types have equal text, whatever version of
 * numpy wrote them, in whatever encoding.
 */

/* The shape of an array; no dimensions: a single item. */
struct array_shape {
	uint64_t dims[MAX_DIMENSIONS];
	size_t n_dims;
};

/* A type, a structure whose fields have been added to the schema, or an array of these. */
struct item {
	bool is_structure;
	size_t n_fields_before; /* fields of the schema before this one */
	uint64_t nbytes_before;
	struct field field; /* of a type */
	char type[TYPE_NBYTES];
	struct array_shape shape;
};

static struct item begin_item(const struct parser *parser)
{
	return (struct item){ .n_fields_before = parser->item.n,
			      .nbytes_before = parser->item_nbytes };
}

/* Like numpy, ignore a number of 1. The items of an array become arrays. */
static int parse_array_shape(struct parser *parser, struct array_shape *array)
{
	const bool is_number = !python_peek(&parser->text, "(") && !python_peek(&parser->text, "[");
	struct array_shape outer;
	int r = parse_shape(parser, outer.dims, &outer.n_dims);

	if (r < 0 || (is_number && outer.dims[0] == 1))
		return r;
	if (outer.n_dims + array->n_dims > MAX_DIMENSIONS)
		return refuse(parser, "with an array of more than %d dimensions", MAX_DIMENSIONS);
	memcpy(outer.dims + outer.n_dims, array->dims, array->n_dims * sizeof *array->dims);
	outer.n_dims += array->n_dims;
	*array = outer;
	return 0;
}

/* Parse the number of characters in ('S', 8), which means 'S8'. */
static int parse_string_size(struct parser *parser, struct item *item)
{
	const char type[] = { item->type[0], item->type[1], '\0' };
	uint64_t n;

	if (!python_parse_number(&parser->text, &n))
		return refuse_syntax(parser);
	snprintf(item->type, sizeof item->type, "%s%" PRIu64, type, n);
	return parse_type(parser, item->type, &item->field);
}

/* A number after a type without a size is its size; anything else is a shape. */
static int parse_size_or_shape(struct parser *parser, struct item *item)
{
	const char *size = item->type + 2;
	const bool has_no_size = !item->is_structure && item->shape.n_dims == 0 &&
				 strchr("SUV", item->type[1]) && strcmp(size, "0") == 0;

	return has_no_size && !python_peek(&parser->text, "(") && !python_peek(&parser->text, "[") ?
		       parse_string_size(parser, item) :
		       parse_array_shape(parser, &item->shape);
}

/* Format a shape: ", (2, 3)" or ", (2,)". */
static void format_array_shape(FILE *stream, const struct array_shape *array)
{
	if (array->n_dims == 0)
		return;
	fputs(", (", stream);
	for (size_t i = 0; i < array->n_dims; i++)
		fprintf(stream, "%s%" PRIu64, i ? ", " : "", array->dims[i]);
	fputs(array->n_dims == 1 ? ",)" : ")", stream);
}

/* Format the type of a field, "'<i4', (2, 3)". Returns NULL without memory (reported). */
static char *format_item(const struct parser *parser, const struct item *item)
{
	char *spelling = NULL;
	size_t n;
	FILE *stream = open_memstream(&spelling, &n);

	if (stream && item->is_structure)
		fputs("an array of structures", stream);
	if (stream && !item->is_structure) {
		python_write_string(stream, item->type);
		format_array_shape(stream, &item->shape);
	}
	if (stream && fclose(stream) == 0)
		return spelling;
	fail_memory(parser);
	free(spelling);
	return NULL;
}

/* Like numpy, a field of a structure without a name is padding if it is of type V or an array. */
static bool is_padding(const struct field_path *field_path, const struct item *item)
{
	return field_path->depth > 0 && !field_path->name[field_path->base_name_offset] &&
	       (item->type[1] == 'V' || item->shape.n_dims > 0);
}

/* Add a field of nbytes to the schema. */
static int add_item_field(struct parser *parser, const struct field_path *field_path,
			  const struct item *item, uint64_t nbytes)
{
	struct field field = item->field;
	int r;

	if (nbytes == 0)
		return 0;
	if (item->shape.n_dims)
		set_bytes(&field, nbytes);
	field.name =
		(char *)(field_path->name[field_path->base_name_offset] ? field_path->name : "");
	field.is_padding = is_padding(field_path, item);
	field.base_name_offset = field_path->base_name_offset;
	field.key.offset = parser->item_nbytes;
	field.type_text = format_item(parser, item);
	r = field.type_text ? schema_add_field(&parser->item, field) : -ENOMEM;
	free(field.type_text);
	parser->item_nbytes += nbytes;
	return r;
}

/* Finish an item. An array of structures becomes one field of bytes. */
static int end_item(struct parser *parser, const struct field_path *field_path, struct item *item)
{
	const struct array_shape *array = &item->shape;
	uint64_t item_nbytes = (uint64_t)item->field.key.nbytes * item->field.n;
	uint64_t n = 0, nbytes;
	int r;

	if (!item->is_structure)
		python_write_string(parser->descr, item->type);
	format_array_shape(parser->descr, array);
	if (item->is_structure && array->n_dims == 0)
		return 0;
	if (item->is_structure) {
		item->field.is_opaque = true;
		item_nbytes = parser->item_nbytes - item->nbytes_before;
		schema_truncate(&parser->item, item->n_fields_before);
		parser->item_nbytes = item->nbytes_before;
	}
	r = count_items(parser, array->dims, array->n_dims, &n);
	if (r < 0)
		return r;
	if (__builtin_mul_overflow(n, item_nbytes, &nbytes) ||
	    nbytes > MAX_ITEM_NBYTES - parser->item_nbytes)
		return refuse(parser, "with items of more than %d bytes", MAX_ITEM_NBYTES);
	return add_item_field(parser, field_path, item, nbytes);
}

/* --- types within strings --- */

static bool is_byte_order(char c)
{
	return c && strchr("<>|=", c);
}

/* Parse "3" or "(2, 3)" before a type within a string. */
static int parse_repeat_count(struct parser *parser, const char **text, struct array_shape *array)
{
	const char *const saved_next = parser->text.next;
	const size_t n_digits = strspn(*text, "0123456789");
	int r;

	if (n_digits > 0) { /* no suffix: L would be a type */
		const uint64_t n = strtoull(*text, NULL, 10);

		*text += n_digits + strspn(*text + n_digits, " ");
		if (n != 1)
			*array = (struct array_shape){ .dims = { n }, .n_dims = 1 };
		return 0;
	}
	if (**text != '(')
		return 0;
	parser->text.next = *text;
	r = parse_array_shape(parser, array);
	python_skip_blanks(&parser->text);
	*text = parser->text.next;
	parser->text.next = saved_next;
	return r;
}

/* Parse "<f8", "3<f8" or "(2, 3)f8", with blanks around; numpy also reads "<3f8". */
static int parse_type_string(struct parser *parser, const char *text, struct item *item)
{
	const char *before_count;
	char raw_type[TYPE_NBYTES] = "", order;
	size_t n;
	int r;

	text += strspn(text, " ");
	order = is_byte_order(*text) ? *text++ : '\0';
	before_count = text;
	r = parse_repeat_count(parser, &text, &item->shape);
	if (r < 0)
		return r;
	if (order && text == before_count && is_byte_order(*text))
		return refuse(parser, "of unsupported type '%c%.40s'", order, text);
	for (n = strlen(text); n > 0 && text[n - 1] == ' ';)
		n--;
	if (n + 1 >= sizeof raw_type)
		return refuse(parser, "of unsupported type '%.40s...'", text);
	if (order && !is_byte_order(*text))
		snprintf(raw_type, sizeof raw_type, "%c%.*s", order, (int)n, text);
	else
		snprintf(raw_type, sizeof raw_type, "%.*s", (int)n, text);
	normalize_type(raw_type, item->type);
	return parse_type(parser, item->type, &item->field);
}

/* Find the first comma outside of brackets: the end of the first type in "<i8, (2, 3)<f8". */
static size_t find_comma(const char *text)
{
	size_t n = 0;

	for (int depth = 0; text[n] && (depth > 0 || text[n] != ','); n++)
		depth += (text[n] == '(') - (text[n] == ')');
	return n;
}

static int parse_numbered_field(struct parser *parser, const struct field_path *parent, unsigned i,
				const char *type)
{
	struct item item = begin_item(parser);
	struct field_path field_path = { .depth = parent->depth + 1 };
	const size_t parent_nbytes = *parent->name ? strlen(parent->name) + 1 : 0;
	char *name;
	int r;

	if (asprintf(&name, "%s%sf%u", parent->name, parent_nbytes ? "." : "", i) < 0)
		return fail_memory(parser);
	if (parent->depth == 0)
		fwrite(name, 1, strlen(name) + 1, parser->top_names);
	field_path.name = name;
	field_path.base_name_offset = (uint32_t)parent_nbytes;
	fprintf(parser->descr, "%s('%s', ", i ? ", " : "", name + parent_nbytes);
	r = parse_type_string(parser, type, &item);
	if (r == 0)
		r = end_item(parser, &field_path, &item);
	fputc(')', parser->descr);
	free(name);
	return r;
}

/*
 * Types separated by commas are the fields f0, f1, ... of a structure. numpy's versions disagree
 * about a comma at the end, which is refused.
 */
static int parse_type_list(struct parser *parser, const struct field_path *field_path, char *text)
{
	bool is_last = false;
	int r = 0;

	fputc('[', parser->descr);
	for (unsigned i = 0; !is_last && r == 0; i++) {
		const size_t n = find_comma(text);

		is_last = text[n] == '\0';
		text[n] = '\0';
		r = text[strspn(text, " ")] ? parse_numbered_field(parser, field_path, i, text) :
					      refuse(parser, "with an empty type in its 'descr'");
		text += n + 1;
	}
	fputc(']', parser->descr);
	return r;
}

static int parse_type_or_list(struct parser *parser, const struct field_path *field_path,
			      struct item *item)
{
	char *text;
	int r = parse_string(parser, &text);

	if (r < 0)
		return r;
	item->is_structure = text[find_comma(text)] == ',';
	r = item->is_structure ? parse_type_list(parser, field_path, text) :
				 parse_type_string(parser, text, item);
	free(text);
	return r;
}

/* --- structures --- */

static int parse_structure(struct parser *parser, const struct field_path *parent);

/* Parse a type, a structure, or an array of it, "([...], (2,))", perhaps nested. */
static int parse_item(struct parser *parser, const struct field_path *field_path, struct item *item)
{
	size_t n_tuples = 0;
	int r;

	*item = begin_item(parser);
	while (python_accept(&parser->text, "("))
		n_tuples++;
	item->is_structure = python_accept(&parser->text, "[");
	r = item->is_structure ? parse_structure(parser, field_path) :
				 parse_type_or_list(parser, field_path, item);
	for (; n_tuples > 0 && r == 0; n_tuples--) {
		if (python_accept(&parser->text, ")")) /* brackets only */
			continue;
		if (!python_accept(&parser->text, ","))
			return refuse_syntax(parser);
		r = parse_size_or_shape(parser, item);
		python_accept(&parser->text, ",");
		if (r == 0 && !python_accept(&parser->text, ")"))
			r = refuse_syntax(parser);
	}
	return r;
}

/* Parse what follows the names: the item, and its shape if it is an array. */
static int parse_field_item(struct parser *parser, const struct field_path *field_path,
			    const char *end)
{
	struct item item;
	int r;

	if (!python_accept(&parser->text, ","))
		return refuse_syntax(parser);
	fputs(", ", parser->descr);
	r = parse_item(parser, field_path, &item);
	if (r == 0 && python_accept(&parser->text, ",") && !python_peek(&parser->text, end))
		r = parse_size_or_shape(parser, &item);
	if (r == 0)
		r = end_item(parser, field_path, &item);
	if (r < 0)
		return r;
	python_accept(&parser->text, ",");
	fputc(')', parser->descr);
	return python_accept(&parser->text, end) ? 0 : refuse_syntax(parser);
}

/* Parse ('name', '<f8') or (('title', 'name'), '<f8', (2,)). numpy also reads ['name', '<f8']. */
static int parse_structure_field(struct parser *parser, const struct field_path *parent)
{
	const bool is_list = python_accept(&parser->text, "[");
	struct field_path field_path = { .depth = parent->depth + 1 };
	char *name;
	int r;

	if (!is_list && !python_accept(&parser->text, "("))
		return refuse_syntax(parser);
	fputc('(', parser->descr);
	r = parse_field_name(parser, parent, &name, &field_path.base_name_offset);
	if (r < 0)
		return r;
	field_path.name = name;
	r = parse_field_item(parser, &field_path, is_list ? "]" : ")");
	free(name);
	return r;
}

/* Parse what follows the '['. */
static int parse_structure_fields(struct parser *parser, const struct field_path *parent)
{
	bool is_first = true;

	fputc('[', parser->descr);
	for (; !python_accept(&parser->text, "]"); is_first = false) {
		int r;

		fputs(is_first ? "" : ", ", parser->descr);
		r = parse_structure_field(parser, parent);
		if (r < 0)
			return r;
		python_skip_blanks(&parser->text);
		if (!python_accept(&parser->text, ",") && *parser->text.next != ']')
			return refuse_syntax(parser);
	}
	fputc(']', parser->descr);
	return 0;
}

static int parse_structure(struct parser *parser, const struct field_path *parent)
{
	void *const outer_names = parser->names;
	int r;

	if (parent->depth == MAX_STRUCT_DEPTH)
		return refuse(parser, "with more than %d nested structures", MAX_STRUCT_DEPTH);
	parser->names = NULL;
	r = parse_structure_fields(parser, parent);
	tdestroy(parser->names, free);
	parser->names = outer_names;
	return r;
}

/* An item that is an array has dimensions that are not in the shape. */
static int parse_root_item(struct parser *parser)
{
	const struct field_path field_path = { "", 0, 0 };
	struct item item;
	int r = parse_item(parser, &field_path, &item);

	if (r < 0)
		return r;
	parser->is_structure = item.is_structure;
	if (item.shape.n_dims)
		return refuse(parser, "with arrays as items (numpy cannot load them)");
	return end_item(parser, &field_path, &item);
}

/* Close a stream. Returns the first error. */
static int close_stream(const struct parser *parser, FILE *stream, int r)
{
	return stream && fclose(stream) != 0 && r == 0 ? fail_memory(parser) : r;
}

static int parse_descr(struct parser *parser)
{
	struct npy *npy = parser->npy;
	size_t n_descr, n_top_names;
	int r = 0;

	parser->descr = open_memstream(&npy->descr, &n_descr);
	parser->top_names = parser->descr ? open_memstream(&npy->top_names, &n_top_names) : NULL;
	if (!parser->top_names)
		r = fail_memory(parser);
	if (r == 0)
		r = parse_root_item(parser);
	if (r == 0)
		fputc('\0', parser->top_names);
	r = close_stream(parser, parser->descr, r);
	return close_stream(parser, parser->top_names, r);
}

/* --- the dictionary --- */

/* Parse the value of an entry of the dictionary. */
static int parse_dict_value(struct parser *parser, const char *key)
{
	if (!python_accept(&parser->text, ":"))
		return refuse_syntax(parser);
	if (strcmp(key, "descr") == 0 && parser->npy->descr)
		return refuse(parser, "with two entries 'descr' in its header");
	if (strcmp(key, "descr") == 0)
		return parse_descr(parser);
	if (strcmp(key, "shape") == 0) {
		parser->has_shape = true;
		return parse_shape(parser, parser->dims, &parser->n_dims);
	}
	if (strcmp(key, "fortran_order") == 0) {
		parser->has_order = true;
		parser->is_fortran = python_accept(&parser->text, "True");
		return parser->is_fortran || python_accept(&parser->text, "False") ?
			       0 :
			       refuse_syntax(parser);
	}
	return refuse(parser, "with an unknown entry '%.40s' in its header", key);
}

static int parse_dict(struct parser *parser)
{
	if (!python_accept(&parser->text, "{"))
		return refuse_syntax(parser);
	while (!python_accept(&parser->text, "}")) {
		char *key;
		int r = parse_string(parser, &key);

		if (r < 0)
			return r;
		r = parse_dict_value(parser, key);
		free(key);
		if (r < 0)
			return r;
		python_skip_blanks(&parser->text);
		if (!python_accept(&parser->text, ",") && *parser->text.next != '}')
			return refuse_syntax(parser);
	}
	python_skip_blanks(&parser->text);
	if (*parser->text.next)
		return refuse_syntax(parser);
	if (parser->npy->descr && parser->has_order && parser->has_shape)
		return 0;
	return refuse(parser, "with an incomplete header: it has no '%s'",
		      !parser->npy->descr ? "descr" :
		      !parser->has_order  ? "fortran_order" :
					    "shape");
}

/* --- records --- */

/* Items in rows are columns: one field that is an array. */
static int make_column_field(struct parser *parser, uint64_t n)
{
	struct schema *fields = &parser->npy->fields;
	const struct field item = parser->item.n ? parser->item.fields[0] : (struct field){ 0 };

	if (parser->is_structure)
		return refuse(parser, "with rows of structures (not supported)");
	fields->has_columns = true;
	fields->n_per_column = item.n;
	return schema_add_field(fields, (struct field){ .name = (char *)"",
							.key = item.key,
							.n = (uint32_t)n * item.n,
							.type_text = item.type_text });
}

/* Determine the items and bytes of a record: of all dimensions but the first. */
static int measure_record(const struct parser *parser, uint64_t *ret_n_items, uint64_t *ret_nbytes)
{
	uint64_t n_items = 1, nbytes;
	int r = parser->n_dims > 1 ?
			count_items(parser, parser->dims + 1, parser->n_dims - 1, &n_items) :
			0;

	if (r < 0)
		return r;
	if (__builtin_mul_overflow(n_items, parser->item_nbytes, &nbytes) ||
	    nbytes > LAYOUT_MAX_RECORD_NBYTES)
		return refuse(parser, "with records of more than %d bytes",
			      LAYOUT_MAX_RECORD_NBYTES);
	if (nbytes == 0)
		return refuse_with(parser, "with records of no bytes");
	if (!parser->is_structure && parser->item.fields[0].is_opaque)
		return refuse(parser, "of unsupported type %.60s",
			      parser->item.fields[0].type_text);
	*ret_n_items = n_items;
	*ret_nbytes = nbytes;
	return 0;
}

/* Format the shape of a record: ", 3, 4". */
static int format_row_shape(const struct parser *parser)
{
	char row_shape[MAX_DIMENSIONS * 24] = "";
	size_t length = 0;

	for (size_t i = 1; i < parser->n_dims; i++)
		length += (size_t)snprintf(row_shape + length, sizeof row_shape - length,
					   ", %" PRIu64, parser->dims[i]);
	parser->npy->row_shape = strdup(row_shape);
	return parser->npy->row_shape ? 0 : fail_memory(parser);
}

static int make_record_fields(struct parser *parser)
{
	struct npy *npy = parser->npy;
	uint64_t n_items = 0, record_nbytes = 0;
	int r;

	/* In Fortran order a row is not contiguous. */
	if (parser->n_dims > 1 && parser->is_fortran)
		return refuse_with(parser, "in Fortran order; convert it with "
					   "numpy.ascontiguousarray()");
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
	struct parser parser = { .name = name, .npy = npy };
	const size_t begin = header[6] == 1 ? 10 : 12;
	char *text;
	int r;

	*npy = (struct npy){ .header_nbytes = nbytes, .version = header[6] };
	text = strndup((const char *)header + begin, (size_t)nbytes - begin);
	if (!text)
		return fail_memory(&parser);
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
