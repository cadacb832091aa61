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

#include "config.h"

#include "io/header/npy_internal.h"

enum { MAX_STRUCT_DEPTH = 16 }; /* of structures within structures */

/* --- items --- */

/* The shape of an array of items; of one item there are no dimensions. */
struct npy_array_shape {
	uint64_t dims[NPY_MAX_DIMENSIONS];
	size_t n_dims;
};

/* A type, or a structure, whose fields are among the others by then; or an array of it. */
struct npy_item {
	bool is_structure;
	size_t n_fields_before; /* fields and bytes in front of it */
	uint64_t nbytes_before;
	struct field field; /* of a type */
	char type[NPY_TYPE_NBYTES];
	struct npy_array_shape shape;
};

static struct npy_item begin_item(const struct npy_parser *parser)
{
	return (struct npy_item){ .n_fields_before = parser->item.n,
				  .nbytes_before = parser->item_nbytes };
}

/* As to numpy, a number of 1 makes no array. What is an array already is one of arrays then. */
static int parse_array_shape(struct npy_parser *parser, struct npy_array_shape *array)
{
	const bool is_number = !python_peek(&parser->text, "(") && !python_peek(&parser->text, "[");
	struct npy_array_shape outer;
	int r = npy_parse_shape(parser, outer.dims, &outer.n_dims);

	if (r < 0 || (is_number && outer.dims[0] == 1))
		return r;
	if (outer.n_dims + array->n_dims > NPY_MAX_DIMENSIONS)
		return npy_refuse(parser, "with an array of more than %d dimensions",
				  NPY_MAX_DIMENSIONS);
	memcpy(outer.dims + outer.n_dims, array->dims, array->n_dims * sizeof *array->dims);
	outer.n_dims += array->n_dims;
	*array = outer;
	return 0;
}

/* How many characters: ('S', 8), which is 'S8' to numpy. */
static int parse_string_size(struct npy_parser *parser, struct npy_item *item)
{
	const char type[] = { item->type[0], item->type[1], '\0' };
	uint64_t n;

	if (!python_parse_number(&parser->text, &n))
		return npy_refuse_syntax(parser);
	snprintf(item->type, sizeof item->type, "%s%" PRIu64, type, n);
	return npy_parse_type(parser, item->type, &item->field);
}

/* A number behind a type of any size is that, and else a shape. */
static int parse_size_or_shape(struct npy_parser *parser, struct npy_item *item)
{
	const char *size = item->type + 2;
	const bool has_no_size = !item->is_structure && item->shape.n_dims == 0 &&
				 strchr("SUV", item->type[1]) && strcmp(size, "0") == 0;

	return has_no_size && !python_peek(&parser->text, "(") && !python_peek(&parser->text, "[") ?
		       parse_string_size(parser, item) :
		       parse_array_shape(parser, &item->shape);
}

/* ", (2, 3)" or ", (2,)" */
static void format_array_shape(FILE *stream, const struct npy_array_shape *array)
{
	if (array->n_dims == 0)
		return;
	fputs(", (", stream);
	for (size_t i = 0; i < array->n_dims; i++)
		fprintf(stream, "%s%" PRIu64, i ? ", " : "", array->dims[i]);
	fputs(array->n_dims == 1 ? ",)" : ")", stream);
}

/* "'<i4', (2, 3)", of the field that it becomes. NULL, after a message: no memory. */
static char *format_item(const struct npy_parser *parser, const struct npy_item *item)
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
	npy_fail_memory(parser);
	free(spelling);
	return NULL;
}

/* To numpy, what has no name is that, where it is of type V or an array. */
static bool is_padding(const struct npy_field_path *field_path, const struct npy_item *item)
{
	return field_path->depth > 0 && !field_path->name[field_path->base_name_offset] &&
	       (item->type[1] == 'V' || item->shape.n_dims > 0);
}

/* Of so many bytes, behind the fields that came before. */
static int add_item_field(struct npy_parser *parser, const struct npy_field_path *field_path,
			  const struct npy_item *item, uint64_t nbytes)
{
	struct field field = item->field;
	int r;

	if (nbytes == 0)
		return 0;
	if (item->shape.n_dims)
		npy_set_bytes(&field, nbytes);
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

/* All of it has been read. A structure has added its fields; an array of them is one, of bytes. */
static int end_item(struct npy_parser *parser, const struct npy_field_path *field_path,
		    struct npy_item *item)
{
	const struct npy_array_shape *array = &item->shape;
	uint64_t item_nbytes = (uint64_t)item->field.key.nbytes * item->field.n;
	uint64_t n, nbytes;
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
	r = npy_count_items(parser, array->dims, array->n_dims, &n);
	if (r < 0)
		return r;
	if (__builtin_mul_overflow(n, item_nbytes, &nbytes) ||
	    nbytes > NPY_MAX_RECORD_NBYTES - parser->item_nbytes)
		return npy_refuse(parser, "whose items have more than %d bytes",
				  NPY_MAX_RECORD_NBYTES);
	return add_item_field(parser, field_path, item, nbytes);
}

/* --- strings --- */

static bool is_byte_order(char c)
{
	return c && strchr("<>|=", c);
}

/* "3", "(2, 3)", in front of a type within a string, which is moved behind it. */
static int parse_repeat_count(struct npy_parser *parser, const char **text,
			      struct npy_array_shape *array)
{
	const char *const saved_next = parser->text.next;
	const size_t n_digits = strspn(*text, "0123456789");
	int r;

	if (n_digits > 0) { /* and what is behind it is a type, L say */
		const uint64_t n = strtoull(*text, NULL, 10);

		*text += n_digits + strspn(*text + n_digits, " ");
		if (n != 1)
			*array = (struct npy_array_shape){ .dims = { n }, .n_dims = 1 };
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

/* "<f8", "3<f8", "(2, 3)f8", with blanks around; numpy takes "<3f8", too. */
static int parse_type_string(struct npy_parser *parser, const char *text, struct npy_item *item)
{
	const char *before_count;
	char raw_type[NPY_TYPE_NBYTES] = "", order;
	size_t n;
	int r;

	text += strspn(text, " ");
	order = is_byte_order(*text) ? *text++ : '\0';
	before_count = text;
	r = parse_repeat_count(parser, &text, &item->shape);
	if (r < 0)
		return r;
	if (order && text == before_count && is_byte_order(*text))
		return npy_refuse(parser,
				  "of type '%c%.40s', which " GSORT_PROGRAM " does not know", order,
				  text);
	for (n = strlen(text); n > 0 && text[n - 1] == ' ';)
		n--;
	if (n + 1 >= sizeof raw_type)
		return npy_refuse(
			parser, "of type '%.40s...', which " GSORT_PROGRAM " does not know", text);
	if (order && !is_byte_order(*text))
		snprintf(raw_type, sizeof raw_type, "%c%.*s", order, (int)n, text);
	else
		snprintf(raw_type, sizeof raw_type, "%.*s", (int)n, text);
	npy_normalize_type(raw_type, item->type);
	return npy_parse_type(parser, item->type, &item->field);
}

/* Where the first type ends, in "<i8, (2, 3)<f8": at a comma that is in no brackets. */
static size_t find_comma(const char *text)
{
	size_t n = 0;

	for (int depth = 0; text[n] && (depth > 0 || text[n] != ','); n++)
		depth += (text[n] == '(') - (text[n] == ')');
	return n;
}

static int parse_numbered_field(struct npy_parser *parser, const struct npy_field_path *parent,
				unsigned i, const char *type)
{
	struct npy_item item = begin_item(parser);
	struct npy_field_path field_path = { .depth = parent->depth + 1 };
	const size_t parent_nbytes = *parent->name ? strlen(parent->name) + 1 : 0;
	char *name;
	int r;

	if (asprintf(&name, "%s%sf%u", parent->name, parent_nbytes ? "." : "", i) < 0)
		return npy_fail_memory(parser);
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
 * Types with commas between them are a structure, whose fields are called f0, f1, ... A comma at
 * the end is refused: to one version of numpy it makes a structure of one type, and not to another.
 */
static int parse_type_list(struct npy_parser *parser, const struct npy_field_path *field_path,
			   char *text)
{
	bool is_last = false;
	int r = 0;

	fputc('[', parser->descr);
	for (unsigned i = 0; !is_last && r == 0; i++) {
		const size_t n = find_comma(text);

		is_last = text[n] == '\0';
		text[n] = '\0';
		r = text[strspn(text, " ")] ?
			    parse_numbered_field(parser, field_path, i, text) :
			    npy_refuse(parser, "with a comma in its 'descr' that no type is at");
		text += n + 1;
	}
	fputc(']', parser->descr);
	return r;
}

static int parse_type_or_list(struct npy_parser *parser, const struct npy_field_path *field_path,
			      struct npy_item *item)
{
	char *text;
	int r = npy_parse_string(parser, &text);

	if (r < 0)
		return r;
	item->is_structure = text[find_comma(text)] == ',';
	r = item->is_structure ? parse_type_list(parser, field_path, text) :
				 parse_type_string(parser, text, item);
	free(text);
	return r;
}

/* --- structures --- */

static int parse_structure(struct npy_parser *parser, const struct npy_field_path *parent);

/* A type, a structure, or an array of it: "([...], (2,))", once, or within each other. */
static int parse_item(struct npy_parser *parser, const struct npy_field_path *field_path,
		      struct npy_item *item)
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
		if (python_accept(&parser->text, ")")) /* no tuple */
			continue;
		if (!python_accept(&parser->text, ","))
			return npy_refuse_syntax(parser);
		r = parse_size_or_shape(parser, item);
		if (r < 0)
			return r;
		python_accept(&parser->text, ",");
		r = python_accept(&parser->text, ")") ? 0 : npy_refuse_syntax(parser);
	}
	return r;
}

/* Behind the names: the item, and the shape of an array of it. */
static int parse_field_item(struct npy_parser *parser, const struct npy_field_path *field_path,
			    const char *end)
{
	struct npy_item item;
	int r;

	if (!python_accept(&parser->text, ","))
		return npy_refuse_syntax(parser);
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
	return python_accept(&parser->text, end) ? 0 : npy_refuse_syntax(parser);
}

/* ('name', '<f8') or (('title', 'name'), '<f8', (2,)); numpy takes ['name', '<f8'], too */
static int parse_structure_field(struct npy_parser *parser, const struct npy_field_path *parent)
{
	const bool is_list = python_accept(&parser->text, "[");
	struct npy_field_path field_path = { .depth = parent->depth + 1 };
	char *name;
	int r;

	if (!is_list && !python_accept(&parser->text, "("))
		return npy_refuse_syntax(parser);
	fputc('(', parser->descr);
	r = npy_parse_field_name(parser, parent, &name, &field_path.base_name_offset);
	if (r < 0)
		return r;
	field_path.name = name;
	r = parse_field_item(parser, &field_path, is_list ? "]" : ")");
	free(name);
	return r;
}

/* Behind its '['. */
static int parse_structure_fields(struct npy_parser *parser, const struct npy_field_path *parent)
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
			return npy_refuse_syntax(parser);
	}
	fputc(']', parser->descr);
	return 0;
}

/* It has names of its own. */
static int parse_structure(struct npy_parser *parser, const struct npy_field_path *parent)
{
	void *const outer_names = parser->names;
	int r;

	if (parent->depth == MAX_STRUCT_DEPTH)
		return npy_refuse(parser, "with more than %d structures within each other",
				  MAX_STRUCT_DEPTH);
	parser->names = NULL;
	r = parse_structure_fields(parser, parent);
	npy_clear_names(parser);
	parser->names = outer_names;
	return r;
}

/* An item of items is an array, whose dimensions are not in the shape. */
static int parse_root_item(struct npy_parser *parser)
{
	const struct npy_field_path field_path = { "", 0, 0 };
	struct npy_item item;
	int r = parse_item(parser, &field_path, &item);

	if (r < 0)
		return r;
	parser->is_structure = item.is_structure;
	if (item.shape.n_dims)
		return npy_refuse(parser, "whose items are arrays, which numpy does not load");
	return end_item(parser, &field_path, &item);
}

/* The first error counts. */
static int close_stream(const struct npy_parser *parser, FILE *stream, int r)
{
	return stream && fclose(stream) != 0 && r == 0 ? npy_fail_memory(parser) : r;
}

int npy_parse_descr(struct npy_parser *parser)
{
	struct npy *npy = parser->npy;
	size_t n_descr, n_top_names;
	int r = 0;

	parser->descr = open_memstream(&npy->descr, &n_descr);
	parser->top_names = parser->descr ? open_memstream(&npy->top_names, &n_top_names) : NULL;
	if (!parser->top_names)
		r = npy_fail_memory(parser);
	if (r == 0)
		r = parse_root_item(parser);
	if (r == 0)
		fputc('\0', parser->top_names);
	r = close_stream(parser, parser->descr, r);
	return close_stream(parser, parser->top_names, r);
}
