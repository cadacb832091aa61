/*
 * npy - the header of a .npy file (see npy.h)
 */
#include "io/input/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/messages.h"
#include "src/record/record.h"

enum {
	MAGIC_NBYTES = 6,
	MOST_NAME_NBYTES = 512, /* of a field, with those around it */
	MOST_DEPTH = 16,        /* of structures within structures */
	MOST_DIMENSIONS = 64,
	MOST_RECORD_NBYTES = 1 << 30,
	ALIGNMENT = 64,
	COUNT_NBYTES = 20, /* digits of the largest number */
};

bool npy_recognise(const unsigned char *bytes, size_t n, uint64_t *ret_header_nbytes)
{
	uint64_t nbytes;

	if (n < NPY_PREFIX_NBYTES || memcmp(bytes, "\x93NUMPY", MAGIC_NBYTES) != 0 ||
	    bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
		return false;
	nbytes = 8 + (bytes[6] == 1 ? 2 : 4) + bytes[8] + ((uint64_t)bytes[9] << 8);
	if (bytes[6] > 1)
		nbytes += ((uint64_t)bytes[10] << 16) + ((uint64_t)bytes[11] << 24);
	*ret_header_nbytes = nbytes;
	return true;
}

/* --- the text --- */

/* What is being understood. */
struct parsing {
	const char *at;
	const char *name; /* of the file */
	struct npy *npy;
	struct fields item;
	uint64_t item_nbytes;
	bool is_fortran, is_structure;
	uint64_t dims[MOST_DIMENSIONS];
	size_t n_dims;
};

static int refuse(const struct parsing *parsing, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int refuse(const struct parsing *parsing, const char *format, ...)
{
	char what[512];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	return fail_hint(-EINVAL, HINT_TAKE_AS_RECORDS, 0, "%s: is a file of numpy %s",
			 parsing->name, what);
}

static int refuse_spelling(const struct parsing *parsing)
{
	return refuse(parsing, "whose header is not understood, at '%.40s'", parsing->at);
}

static void skip_blanks(struct parsing *parsing)
{
	parsing->at += strspn(parsing->at, " \t\r\n");
}

static bool take(struct parsing *parsing, const char *word)
{
	const size_t n = strlen(word);

	skip_blanks(parsing);
	if (strncmp(parsing->at, word, n) != 0)
		return false;
	parsing->at += n;
	return true;
}

/* 'quoted' or "quoted"; what is escaped in it stays so. */
static int take_quoted(struct parsing *parsing, char *text, size_t most_nbytes)
{
	char quote;
	size_t n = 0;

	skip_blanks(parsing);
	quote = *parsing->at;
	if (quote != '\'' && quote != '"')
		return refuse_spelling(parsing);
	for (parsing->at++; *parsing->at && *parsing->at != quote; parsing->at++) {
		if (n + 2 >= most_nbytes)
			return refuse(parsing, "with a name of more than %zu bytes", most_nbytes);
		if (*parsing->at == '\\' && parsing->at[1])
			text[n++] = *parsing->at++;
		text[n++] = *parsing->at;
	}
	text[n] = '\0';
	if (*parsing->at != quote)
		return refuse_spelling(parsing);
	parsing->at++;
	return 0;
}

/* "(3, 4)", "(3,)", "()", or a number without brackets. */
static int take_shape(struct parsing *parsing, uint64_t *dims, size_t *ret_n)
{
	const bool is_tuple = take(parsing, "(");
	size_t n = 0;
	char *end;

	while (!is_tuple || !take(parsing, ")")) {
		skip_blanks(parsing);
		if (*parsing->at < '0' || *parsing->at > '9' || n == MOST_DIMENSIONS)
			return refuse_spelling(parsing);
		errno = 0;
		dims[n++] = strtoull(parsing->at, &end, 10);
		if (errno)
			return refuse_spelling(parsing);
		parsing->at = end;
		take(parsing, "L"); /* of Python 2 */
		if (!is_tuple)
			break;
		if (!take(parsing, ",") && *parsing->at != ')')
			return refuse_spelling(parsing);
	}
	*ret_n = n;
	return 0;
}

/* How many items such an array has. */
static int multiply(const struct parsing *parsing, const uint64_t *dims, size_t n,
		    uint64_t *ret_product)
{
	uint64_t product = 1;

	for (size_t i = 0; i < n; i++)
		if (__builtin_mul_overflow(product, dims[i], &product))
			return refuse(parsing, "with a shape of more than 2^64 items");
	*ret_product = product;
	return 0;
}

/* --- types --- */

/* Characters of 4 bytes, which compare one after the other. */
static bool parse_text_type(const char *type, struct field *field)
{
	char *end;
	const unsigned long n = type[0] && type[1] == 'U' && type[2] >= '1' && type[2] <= '9' ?
					strtoul(type + 2, &end, 10) :
					0;

	if (n == 0 || *end || n > UINT32_MAX)
		return false;
	field->key = (struct key){
		.nbytes = 4,
		.kind = KEY_UNSIGNED,
		.big_endian = type[0] == '>',
	};
	field->n = (uint32_t)n;
	return true;
}

static int parse_type(const struct parsing *parsing, const char *type, struct field *field)
{
	if (type[0] && type[1] == 'O')
		return refuse(parsing, "that holds objects of Python, which have no records");
	field->n = 1;
	if (parse_text_type(type, field))
		return 0;
	if (!*type || !strchr("<>|=", *type) || key_parse_type(type, &field->key) < 0)
		return refuse(parsing, "of type '%s', which gsort does not know", type);
	field->key.numeric = key_has_orders(&field->key);
	return 0;
}

/* A field of that type, or an array of it, which is bytes. Behind those that came before. */
static int add_field(struct parsing *parsing, const char *name, const char *type,
		     const uint64_t *dims, size_t n_dims)
{
	struct field field = { .name = (char *)name };
	char spelling[256];
	uint64_t n = 1, nbytes = 0;
	size_t at;
	int r = parse_type(parsing, type, &field);

	if (r == 0)
		r = multiply(parsing, dims, n_dims, &n);
	if (r < 0)
		return r;
	at = (size_t)snprintf(spelling, sizeof spelling, "'%.60s'", type);
	for (size_t i = 0; i < n_dims && at < sizeof spelling - 32; i++)
		at += (size_t)snprintf(spelling + at, sizeof spelling - at, "%s%" PRIu64 "%s",
				       i ? ", " : ", (", dims[i], i + 1 == n_dims ? ",)" : "");
	if (__builtin_mul_overflow(n, (uint64_t)field.key.nbytes * field.n, &nbytes) ||
	    nbytes > MOST_RECORD_NBYTES - parsing->item_nbytes)
		return refuse(parsing, "whose items have more than %d bytes", MOST_RECORD_NBYTES);
	if (n_dims) {
		field.n = 1;
		field.key = (struct key){ .nbytes = (uint32_t)nbytes,
					  .kind = KEY_BYTES,
					  .big_endian = true };
	}
	field.key.offset = parsing->item_nbytes;
	field.spelling = spelling;
	parsing->item_nbytes += nbytes;
	return nbytes ? fields_add(&parsing->item, field) : 0;
}

static int take_structure(struct parsing *parsing, const char *outer, unsigned depth);

/* A structure within one: its fields, unless it is an array of them. */
static int take_inner(struct parsing *parsing, const char *name, unsigned depth)
{
	int r = take_structure(parsing, name, depth + 1);

	if (r == 0 && take(parsing, ","))
		r = refuse(parsing,
			   "with an array of structures, field '%s', which gsort does not "
			   "know",
			   name);
	return r;
}

/* ('name', '<f8') or (('title', 'name'), '<f8', (2,)) */
static int take_field(struct parsing *parsing, const char *outer, unsigned depth)
{
	char part[MOST_NAME_NBYTES], type[64], name[MOST_NAME_NBYTES];
	uint64_t dims[MOST_DIMENSIONS];
	size_t n_dims = 0;
	bool has_title;
	int r;

	if (!take(parsing, "("))
		return refuse_spelling(parsing);
	has_title = take(parsing, "(");
	r = take_quoted(parsing, part, sizeof part);
	if (r == 0 && has_title)
		r = take(parsing, ",") ? take_quoted(parsing, part, sizeof part) :
					 refuse_spelling(parsing);
	if (r == 0 && ((has_title && !take(parsing, ")")) || !take(parsing, ",")))
		r = refuse_spelling(parsing);
	if (r < 0)
		return r;
	if ((size_t)snprintf(name, sizeof name, "%s%s%s", outer, *outer && *part ? "." : "",
			     part) >= sizeof name)
		return refuse(parsing, "with a name of more than %zu bytes", sizeof name);
	if (take(parsing, "[")) {
		r = take_inner(parsing, name, depth);
	} else {
		r = take_quoted(parsing, type, sizeof type);
		if (r == 0 && take(parsing, ","))
			r = take_shape(parsing, dims, &n_dims);
		if (r == 0)
			r = add_field(parsing, *part ? name : "", type, dims, n_dims);
	}
	if (r < 0)
		return r;
	return take(parsing, ")") ? 0 : refuse_spelling(parsing);
}

/* Behind its '['. */
static int take_structure(struct parsing *parsing, const char *outer, unsigned depth)
{
	if (depth == MOST_DEPTH)
		return refuse(parsing, "with more than %d structures within each other",
			      MOST_DEPTH);
	while (!take(parsing, "]")) {
		const int r = take_field(parsing, outer, depth);

		if (r < 0)
			return r;
		skip_blanks(parsing);
		if (!take(parsing, ",") && *parsing->at != ']')
			return refuse_spelling(parsing);
	}
	return 0;
}

static int take_descr(struct parsing *parsing)
{
	char type[64];
	const char *begin;
	int r;

	skip_blanks(parsing);
	begin = parsing->at;
	parsing->is_structure = take(parsing, "[");
	if (parsing->is_structure) {
		r = take_structure(parsing, "", 0);
	} else {
		r = take_quoted(parsing, type, sizeof type);
		if (r == 0)
			r = add_field(parsing, "", type, NULL, 0);
	}
	if (r < 0)
		return r;
	free(parsing->npy->descr);
	parsing->npy->descr = strndup(begin, (size_t)(parsing->at - begin));
	return parsing->npy->descr ? 0 :
				     fail(-ENOMEM, "%s: no memory for its header", parsing->name);
}

/* One of the three things that there are in the dictionary. */
static int take_entry(struct parsing *parsing)
{
	char key[32];
	int r = take_quoted(parsing, key, sizeof key);

	if (r == 0 && !take(parsing, ":"))
		r = refuse_spelling(parsing);
	if (r < 0)
		return r;
	if (strcmp(key, "descr") == 0 && !parsing->npy->descr)
		return take_descr(parsing);
	if (strcmp(key, "shape") == 0)
		return take_shape(parsing, parsing->dims, &parsing->n_dims);
	if (strcmp(key, "fortran_order") == 0) {
		parsing->is_fortran = take(parsing, "True");
		return parsing->is_fortran || take(parsing, "False") ? 0 : refuse_spelling(parsing);
	}
	return refuse(parsing, "whose header has an entry '%s', which gsort does not know", key);
}

static int take_dictionary(struct parsing *parsing)
{
	if (!take(parsing, "{"))
		return refuse_spelling(parsing);
	while (!take(parsing, "}")) {
		const int r = take_entry(parsing);

		if (r < 0)
			return r;
		skip_blanks(parsing);
		if (!take(parsing, ",") && *parsing->at != '}')
			return refuse_spelling(parsing);
	}
	return parsing->npy->descr ? 0 : refuse(parsing, "whose header has no 'descr'");
}

/* --- records --- */

/* Rows of several items: those are their columns. */
static int make_columns(struct parsing *parsing, uint64_t n)
{
	struct fields *fields = &parsing->npy->fields;
	const struct field item = parsing->item.n ? parsing->item.fields[0] : (struct field){ 0 };

	if (parsing->is_structure || item.n != 1)
		return refuse(parsing, "with rows of %s, which gsort does not sort",
			      parsing->is_structure ? "structures" : "texts");
	fields_free(&parsing->item);
	fields->are_columns = true;
	return fields_add(fields,
			  (struct field){ .name = (char *)"", .key = item.key, .n = (uint32_t)n });
}

static int make_records(struct parsing *parsing)
{
	struct npy *npy = parsing->npy;
	char row[MOST_DIMENSIONS * 24] = "";
	uint64_t n_items = 1, record_nbytes = parsing->item_nbytes;
	size_t at = 0;
	int r;

	for (size_t i = 1; i < parsing->n_dims; i++)
		at += (size_t)snprintf(row + at, sizeof row - at, ", %" PRIu64, parsing->dims[i]);
	if (parsing->n_dims > 1 && parsing->is_fortran)
		return refuse(parsing, "in Fortran order, where a row is not in one piece: "
				       "numpy.ascontiguousarray() puts it in C order");
	r = parsing->n_dims > 1 ?
		    multiply(parsing, parsing->dims + 1, parsing->n_dims - 1, &n_items) :
		    0;
	if (r < 0)
		return r;
	if (__builtin_mul_overflow(n_items, record_nbytes, &record_nbytes) ||
	    record_nbytes > LAYOUT_MOST_RECORD_NBYTES)
		return refuse(parsing, "whose records have more than %d bytes",
			      LAYOUT_MOST_RECORD_NBYTES);
	if (record_nbytes == 0)
		return refuse(parsing, "whose records have no bytes");
	if (parsing->n_dims > 1) {
		r = make_columns(parsing, n_items);
	} else {
		npy->fields = parsing->item;
		parsing->item = (struct fields){ 0 };
	}
	npy->fields.record_nbytes = record_nbytes;
	npy->n_records = parsing->n_dims ? parsing->dims[0] : 1;
	npy->row = strdup(row);
	return r < 0 || npy->row ? r : fail(-ENOMEM, "%s: no memory for its header", parsing->name);
}

int npy_parse(const unsigned char *header, uint64_t nbytes, const char *name, struct npy *ret_npy)
{
	struct npy *npy = ret_npy;
	struct parsing parsing = { .name = name, .npy = npy };
	const size_t begin = header[6] == 1 ? 10 : 12;
	char *text;
	int r;

	*npy = (struct npy){ .header_nbytes = nbytes, .version = header[6] };
	text = strndup((const char *)header + begin, (size_t)nbytes - begin);
	if (!text)
		return fail(-ENOMEM, "%s: no memory for its header", name);
	parsing.at = text;
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
	free(npy->row);
	*npy = (struct npy){ 0 };
}

bool npy_is_alike(const struct npy *a, const struct npy *b)
{
	return strcmp(a->descr, b->descr) == 0 && strcmp(a->row, b->row) == 0;
}

/* --- writing --- */

/* A type of numpy for a key that is no field, "'<f4'" say; of what it has no type for, bytes. */
static void spell_key(const struct key *key, char text[static 32])
{
	static const char letters[] = {
		[KEY_UNSIGNED] = 'u', [KEY_SIGNED] = 'i', [KEY_FLOAT] = 'f', [KEY_BRAIN] = 'V',
		[KEY_COMPLEX] = 'c',  [KEY_TIME] = 'i',   [KEY_BOOL] = 'b',  [KEY_BYTES] = 'V',
	};
	const bool is_power = key->nbytes <= 16 && (key->nbytes & (key->nbytes - 1)) == 0;
	const bool is_number = is_power && (key->nbytes <= 8 || key->kind == KEY_COMPLEX);
	const char letter = is_number ? letters[key->kind] : 'V';

	snprintf(text, 32, "'%c%c%" PRIu32 "'",
		 letter == 'V' || key->nbytes == 1 ? '|' :
		 key->big_endian                   ? '>' :
						     '<',
		 letter, key->nbytes);
}

static const struct field *field_of(const struct npy *npy, const struct key *key)
{
	for (size_t i = 0; i < npy->fields.n; i++) {
		const struct field *field = &npy->fields.fields[i];

		if (field->key.offset == key->offset && field->key.nbytes == key->nbytes &&
		    field->spelling && *field->name)
			return field;
	}
	return NULL;
}

static void spell_name(FILE *stream, const char *name)
{
	const char quote = strchr(name, '\'') ? '"' : '\'';

	fprintf(stream, "%c%s%c", quote, name, quote);
}

/* The keys as fields: "('id', '<u8'), ('key1', '<f4')". */
static void spell_keys(FILE *stream, const struct npy *npy, const struct header_wish *wish)
{
	for (uint32_t i = 0; i < wish->n_keys;) {
		const struct key *key = &wish->keys[i];
		const struct field *field = field_of(npy, key);
		char type[32];

		fputs(i ? ", (" : "(", stream);
		spell_key(key, type);
		if (field)
			spell_name(stream, field->name);
		else
			fprintf(stream, "'key%" PRIu32 "'", i);
		fprintf(stream, ", %s)", field ? field->spelling : type);
		i += field ? field->n : 1;
	}
}

/* The record as it is, as a field or as those that it has. */
static void spell_record(FILE *stream, const struct npy *npy)
{
	const size_t n = strlen(npy->descr);

	if (npy->descr[0] == '[') /* what is within the brackets */
		fprintf(stream, "%.*s", (int)(n - 2), npy->descr + 1);
	else if (*npy->row)
		fprintf(stream, "('value', %s, (%s,))", npy->descr, npy->row + 2);
	else
		fprintf(stream, "('value', %s)", npy->descr);
}

static bool has_field(const struct npy *npy, const char *name)
{
	for (size_t i = 0; i < npy->fields.n; i++)
		if (strcmp(npy->fields.fields[i].name, name) == 0)
			return true;
	return false;
}

/* Is the record one value, and all of it the key? Then so is what --keys-only writes. */
static bool is_one_value(const struct npy *npy, const struct header_wish *wish)
{
	return npy->descr[0] != '[' && !*npy->row && wish->keys[0].offset == 0 &&
	       wish->n_keys * (uint64_t)wish->keys[0].nbytes == npy->fields.record_nbytes;
}

/* The type of an item, and the shape of a record. */
static void spell_items(FILE *stream, const struct npy *npy, const struct header_wish *wish,
			char row[static 32])
{
	const bool keys_only = wish->keys_only && !is_one_value(npy, wish);
	const bool are_columns = keys_only && *npy->row && !wish->count;

	row[0] = '\0';
	if (wish->index) {
		fputs("'<i8'", stream);
	} else if (are_columns) {
		fputs(npy->descr, stream);
		snprintf(row, 32, ", %" PRIu32, wish->n_keys);
	} else if (keys_only || wish->count) {
		fputc('[', stream);
		if (wish->count)
			fprintf(stream, "('%s', '%cu8'), ",
				has_field(npy, "count") ? "count_" : "count",
				wish->count_is_be ? '>' : '<');
		if (keys_only)
			spell_keys(stream, npy, wish);
		else
			spell_record(stream, npy);
		fputc(']', stream);
	} else {
		fputs(npy->descr, stream);
	}
}

/* All but the prefix, up to the number of records; and what is behind that. */
static int spell(const struct npy *npy, const struct header_wish *wish, char **ret_before,
		 char **ret_behind)
{
	const bool is_same = !wish->count && !wish->index && !wish->keys_only;
	char row[32];
	size_t nbytes;
	FILE *stream = open_memstream(ret_before, &nbytes);

	if (!stream)
		return -ENOMEM;
	fputs("{'descr': ", stream);
	spell_items(stream, npy, wish, row);
	fputs(", 'fortran_order': False, 'shape': (", stream);
	if (fclose(stream) != 0)
		return -ENOMEM;
	if (asprintf(ret_behind, "%s), }",
		     *(is_same ? npy->row : row) ? (is_same ? npy->row : row) : ",") < 0)
		return -ENOMEM;
	return 0;
}

static void put_prefix(unsigned char *bytes, unsigned version, size_t nbytes)
{
	const size_t begin = version == 1 ? 10 : 12, text_nbytes = nbytes - begin;

	memcpy(bytes, "\x93NUMPY", MAGIC_NBYTES);
	bytes[6] = (unsigned char)version;
	bytes[7] = 0;
	for (size_t i = 8; i < begin; i++)
		bytes[i] = (unsigned char)(text_nbytes >> 8 * (i - 8));
}

int npy_make_header(const struct npy *npy, const struct header_wish *wish,
		    struct header *ret_header)
{
	char *before = NULL, *behind = NULL;
	struct header header = { 0 };
	unsigned version = npy->version;
	size_t begin = 0;
	int r = spell(npy, wish, &before, &behind);

	if (r == 0) {
		const size_t text_nbytes = strlen(before) + COUNT_NBYTES + strlen(behind) + 1;

		if (version == 1 && text_nbytes > UINT16_MAX - ALIGNMENT)
			version = 2;
		begin = version == 1 ? 10 : 12;
		header.nbytes = (begin + text_nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		header.bytes = malloc(header.nbytes);
		header.behind = behind;
		header.count_at = begin + strlen(before);
	}
	if (!header.bytes) {
		free(before);
		free(behind);
		return fail(-ENOMEM, "no memory for the header of the output");
	}
	put_prefix(header.bytes, version, header.nbytes);
	memcpy(header.bytes + begin, before, strlen(before));
	header_set_count(&header, 0);
	free(before);
	*ret_header = header;
	return 0;
}
