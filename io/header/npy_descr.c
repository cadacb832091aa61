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

#include "io/header/npy_internal.h"

enum { MOST_DEPTH = 16 }; /* of structures within structures */

/* --- items --- */

/* The shape of an array of items; of one item there are no dimensions. */
struct array {
	uint64_t dims[NPY_MOST_DIMENSIONS];
	size_t n_dims;
};

/* A type, or a structure, whose fields are among the others by then; or an array of it. */
struct item {
	bool is_structure;
	size_t n_before; /* fields and bytes in front of it */
	uint64_t nbytes_before;
	struct field field; /* of a type */
	char type[NPY_TYPE_NBYTES];
	struct array array;
};

static struct item begin_item(const struct npy_parsing *parsing)
{
	return (struct item){ .n_before = parsing->item.n, .nbytes_before = parsing->item_nbytes };
}

/* As to numpy, a number of 1 makes no array. What is an array already is one of arrays then. */
static int take_shape(struct npy_parsing *parsing, struct array *array)
{
	const bool is_number = !python_begins(&parsing->text, "(") &&
			       !python_begins(&parsing->text, "[");
	struct array outer;
	int r = npy_take_shape(parsing, outer.dims, &outer.n_dims);

	if (r < 0 || (is_number && outer.dims[0] == 1))
		return r;
	if (outer.n_dims + array->n_dims > NPY_MOST_DIMENSIONS)
		return npy_refuse(parsing, "with an array of more than %d dimensions",
				  NPY_MOST_DIMENSIONS);
	memcpy(outer.dims + outer.n_dims, array->dims, array->n_dims * sizeof *array->dims);
	outer.n_dims += array->n_dims;
	*array = outer;
	return 0;
}

/* How many characters: ('S', 8), which is 'S8' to numpy. */
static int take_size(struct npy_parsing *parsing, struct item *item)
{
	const char type[] = { item->type[0], item->type[1], '\0' };
	uint64_t n;

	if (!python_take_number(&parsing->text, &n))
		return npy_refuse_spelling(parsing);
	snprintf(item->type, sizeof item->type, "%s%" PRIu64, type, n);
	return npy_parse_type(parsing, item->type, &item->field);
}

/* A number behind a type of any size is that, and else a shape. */
static int take_size_or_shape(struct npy_parsing *parsing, struct item *item)
{
	const char *size = item->type + 2;
	const bool has_none = !item->is_structure && item->array.n_dims == 0 &&
			      strchr("SUV", item->type[1]) && strcmp(size, "0") == 0;

	return has_none && !python_begins(&parsing->text, "(") &&
			       !python_begins(&parsing->text, "[") ?
		       take_size(parsing, item) :
		       take_shape(parsing, &item->array);
}

/* ", (2, 3)" or ", (2,)" */
static void spell_array(FILE *stream, const struct array *array)
{
	if (array->n_dims == 0)
		return;
	fputs(", (", stream);
	for (size_t i = 0; i < array->n_dims; i++)
		fprintf(stream, "%s%" PRIu64, i ? ", " : "", array->dims[i]);
	fputs(array->n_dims == 1 ? ",)" : ")", stream);
}

/* "'<i4', (2, 3)", of the field that it becomes. NULL, after a message: no memory. */
static char *spell_item(const struct npy_parsing *parsing, const struct item *item)
{
	char *spelling = NULL;
	size_t n;
	FILE *stream = open_memstream(&spelling, &n);

	if (stream && item->is_structure)
		fputs("an array of structures", stream);
	if (stream && !item->is_structure) {
		python_put_string(stream, item->type);
		spell_array(stream, &item->array);
	}
	if (stream && fclose(stream) == 0)
		return spelling;
	npy_fail_memory(parsing);
	free(spelling);
	return NULL;
}

/* To numpy, what has no name is that, where it is of type V or an array. */
static bool is_padding(const struct npy_place *place, const struct item *item)
{
	return place->depth > 0 && !place->name[place->own_name_at] &&
	       (item->type[1] == 'V' || item->array.n_dims > 0);
}

/* Of so many bytes, behind the fields that came before. */
static int add_field(struct npy_parsing *parsing, const struct npy_place *place,
		     const struct item *item, uint64_t nbytes)
{
	struct field field = item->field;
	int r;

	if (nbytes == 0)
		return 0;
	if (item->array.n_dims)
		npy_set_bytes(&field, nbytes);
	field.name = (char *)(place->name[place->own_name_at] ? place->name : "");
	field.is_padding = is_padding(place, item);
	field.own_name_at = place->own_name_at;
	field.key.offset = parsing->item_nbytes;
	field.spelling = spell_item(parsing, item);
	r = field.spelling ? fields_add(&parsing->item, field) : -ENOMEM;
	free(field.spelling);
	parsing->item_nbytes += nbytes;
	return r;
}

/* All of it has been read. A structure has added its fields; an array of them is one, of bytes. */
static int end_item(struct npy_parsing *parsing, const struct npy_place *place, struct item *item)
{
	const struct array *array = &item->array;
	uint64_t item_nbytes = (uint64_t)item->field.key.nbytes * item->field.n;
	uint64_t n, nbytes;
	int r;

	if (!item->is_structure)
		python_put_string(parsing->descr, item->type);
	spell_array(parsing->descr, array);
	if (item->is_structure && array->n_dims == 0)
		return 0;
	if (item->is_structure) {
		item->field.is_opaque = true;
		item_nbytes = parsing->item_nbytes - item->nbytes_before;
		fields_cut(&parsing->item, item->n_before);
		parsing->item_nbytes = item->nbytes_before;
	}
	r = npy_multiply(parsing, array->dims, array->n_dims, &n);
	if (r < 0)
		return r;
	if (__builtin_mul_overflow(n, item_nbytes, &nbytes) ||
	    nbytes > NPY_MOST_RECORD_NBYTES - parsing->item_nbytes)
		return npy_refuse(parsing, "whose items have more than %d bytes",
				  NPY_MOST_RECORD_NBYTES);
	return add_field(parsing, place, item, nbytes);
}

/* --- strings --- */

static bool is_order(char c)
{
	return c && strchr("<>|=", c);
}

/* "3", "(2, 3)", in front of a type within a string, which is moved behind it. */
static int take_repeats(struct npy_parsing *parsing, const char **text, struct array *array)
{
	const char *const after = parsing->text.at;
	const size_t n_digits = strspn(*text, "0123456789");
	int r;

	if (n_digits > 0) { /* and what is behind it is a type, L say */
		const uint64_t n = strtoull(*text, NULL, 10);

		*text += n_digits + strspn(*text + n_digits, " ");
		if (n != 1)
			*array = (struct array){ .dims = { n }, .n_dims = 1 };
		return 0;
	}
	if (**text != '(')
		return 0;
	parsing->text.at = *text;
	r = take_shape(parsing, array);
	python_skip_blanks(&parsing->text);
	*text = parsing->text.at;
	parsing->text.at = after;
	return r;
}

/* "<f8", "3<f8", "(2, 3)f8", with blanks around; numpy takes "<3f8", too. */
static int take_type(struct npy_parsing *parsing, const char *text, struct item *item)
{
	char given[NPY_TYPE_NBYTES] = "", order;
	size_t n;
	int r;

	text += strspn(text, " ");
	order = is_order(*text) ? *text++ : '\0';
	r = take_repeats(parsing, &text, &item->array);
	if (r < 0)
		return r;
	for (n = strlen(text); n > 0 && text[n - 1] == ' ';)
		n--;
	if (n + 1 >= sizeof given)
		return npy_refuse(parsing, "of type '%.40s...', which gsort does not know", text);
	if (order && !is_order(*text))
		snprintf(given, sizeof given, "%c%.*s", order, (int)n, text);
	else
		snprintf(given, sizeof given, "%.*s", (int)n, text);
	npy_spell_type(given, item->type);
	return npy_parse_type(parsing, item->type, &item->field);
}

/* Where the first type ends, in "<i8, (2, 3)<f8": at a comma that is in no brackets. */
static size_t find_comma(const char *text)
{
	size_t n = 0;

	for (int depth = 0; text[n] && (depth > 0 || text[n] != ','); n++)
		depth += (text[n] == '(') - (text[n] == ')');
	return n;
}

static int take_numbered(struct npy_parsing *parsing, const struct npy_place *outer, unsigned i,
			 const char *type)
{
	struct item item = begin_item(parsing);
	struct npy_place place = { .depth = outer->depth + 1 };
	const size_t n_outer = *outer->name ? strlen(outer->name) + 1 : 0;
	char *name;
	int r;

	if (asprintf(&name, "%s%sf%u", outer->name, n_outer ? "." : "", i) < 0)
		return npy_fail_memory(parsing);
	if (outer->depth == 0)
		fwrite(name, 1, strlen(name) + 1, parsing->tops);
	place.name = name;
	place.own_name_at = (uint32_t)n_outer;
	fprintf(parsing->descr, "%s('%s', ", i ? ", " : "", name + n_outer);
	r = take_type(parsing, type, &item);
	if (r == 0)
		r = end_item(parsing, &place, &item);
	fputc(')', parsing->descr);
	free(name);
	return r;
}

/*
 * Types with commas between them are a structure, whose fields are called f0, f1, ... A comma at
 * the end is refused: to one version of numpy it makes a structure of one type, and not to another.
 */
static int take_types(struct npy_parsing *parsing, const struct npy_place *place, char *text)
{
	bool is_last = false;
	int r = 0;

	fputc('[', parsing->descr);
	for (unsigned i = 0; !is_last && r == 0; i++) {
		const size_t n = find_comma(text);

		is_last = text[n] == '\0';
		text[n] = '\0';
		r = text[strspn(text, " ")] ?
			    take_numbered(parsing, place, i, text) :
			    npy_refuse(parsing, "with a comma in its 'descr' that no type is at");
		text += n + 1;
	}
	fputc(']', parsing->descr);
	return r;
}

static int take_string(struct npy_parsing *parsing, const struct npy_place *place,
		       struct item *item)
{
	char *text;
	int r = npy_take_string(parsing, &text);

	if (r < 0)
		return r;
	item->is_structure = text[find_comma(text)] == ',';
	r = item->is_structure ? take_types(parsing, place, text) : take_type(parsing, text, item);
	free(text);
	return r;
}

/* --- structures --- */

static int take_structure(struct npy_parsing *parsing, const struct npy_place *outer);

/* A type, a structure, or an array of it: "([...], (2,))", once, or within each other. */
static int take_item(struct npy_parsing *parsing, const struct npy_place *place, struct item *item)
{
	size_t n_tuples = 0;
	int r;

	*item = begin_item(parsing);
	while (python_take(&parsing->text, "("))
		n_tuples++;
	item->is_structure = python_take(&parsing->text, "[");
	r = item->is_structure ? take_structure(parsing, place) : take_string(parsing, place, item);
	for (; n_tuples > 0 && r == 0; n_tuples--) {
		if (python_take(&parsing->text, ")")) /* no tuple */
			continue;
		if (!python_take(&parsing->text, ","))
			return npy_refuse_spelling(parsing);
		r = take_size_or_shape(parsing, item);
		if (r < 0)
			return r;
		python_take(&parsing->text, ",");
		r = python_take(&parsing->text, ")") ? 0 : npy_refuse_spelling(parsing);
	}
	return r;
}

/* Behind the names: the item, and the shape of an array of it. */
static int take_rest(struct npy_parsing *parsing, const struct npy_place *place, const char *end)
{
	struct item item;
	int r;

	if (!python_take(&parsing->text, ","))
		return npy_refuse_spelling(parsing);
	fputs(", ", parsing->descr);
	r = take_item(parsing, place, &item);
	if (r == 0 && python_take(&parsing->text, ",") && !python_begins(&parsing->text, end))
		r = take_size_or_shape(parsing, &item);
	if (r == 0)
		r = end_item(parsing, place, &item);
	if (r < 0)
		return r;
	python_take(&parsing->text, ",");
	fputc(')', parsing->descr);
	return python_take(&parsing->text, end) ? 0 : npy_refuse_spelling(parsing);
}

/* ('name', '<f8') or (('title', 'name'), '<f8', (2,)); numpy takes ['name', '<f8'], too */
static int take_field(struct npy_parsing *parsing, const struct npy_place *outer)
{
	const bool is_list = python_take(&parsing->text, "[");
	struct npy_place place = { .depth = outer->depth + 1 };
	char *name;
	int r;

	if (!is_list && !python_take(&parsing->text, "("))
		return npy_refuse_spelling(parsing);
	fputc('(', parsing->descr);
	r = npy_take_names(parsing, outer, &name, &place.own_name_at);
	if (r < 0)
		return r;
	place.name = name;
	r = take_rest(parsing, &place, is_list ? "]" : ")");
	free(name);
	return r;
}

/* Behind its '['. */
static int take_fields(struct npy_parsing *parsing, const struct npy_place *outer)
{
	bool is_first = true;

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

/* It has names of its own. */
static int take_structure(struct npy_parsing *parsing, const struct npy_place *outer)
{
	void *const names_around = parsing->names;
	int r;

	if (outer->depth == MOST_DEPTH)
		return npy_refuse(parsing, "with more than %d structures within each other",
				  MOST_DEPTH);
	parsing->names = NULL;
	r = take_fields(parsing, outer);
	npy_forget_names(parsing);
	parsing->names = names_around;
	return r;
}

/* An item of items is an array, whose dimensions are not in the shape. */
static int take_whole(struct npy_parsing *parsing)
{
	const struct npy_place place = { "", 0, 0 };
	struct item item;
	int r = take_item(parsing, &place, &item);

	if (r < 0)
		return r;
	parsing->is_structure = item.is_structure;
	if (item.array.n_dims)
		return npy_refuse(parsing, "whose items are arrays, which numpy does not load");
	return end_item(parsing, &place, &item);
}

/* The first error counts. */
static int close_stream(const struct npy_parsing *parsing, FILE *stream, int r)
{
	return stream && fclose(stream) != 0 && r == 0 ? npy_fail_memory(parsing) : r;
}

int npy_take_descr(struct npy_parsing *parsing)
{
	struct npy *npy = parsing->npy;
	size_t n_descr, n_tops;
	int r = 0;

	parsing->descr = open_memstream(&npy->descr, &n_descr);
	parsing->tops = parsing->descr ? open_memstream(&npy->top_names, &n_tops) : NULL;
	if (!parsing->tops)
		r = npy_fail_memory(parsing);
	if (r == 0)
		r = take_whole(parsing);
	if (r == 0)
		fputc('\0', parsing->tops);
	r = close_stream(parsing, parsing->descr, r);
	return close_stream(parsing, parsing->tops, r);
}
