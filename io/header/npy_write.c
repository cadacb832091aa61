/*
 * npy_write - makes the .npy header of an output (see npy.h)
 *
 * It describes the records of the input, or a structure of a count, keys and records. Its fields
 * keep their names, nested ones as a.b, but numpy requires unique names: the first field of a name
 * keeps it; underscores are appended to the names of others, and of a count if there is a field
 * `count`.
 */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/header/npy.h"
#include "io/header/python_literal.h"
#include "src/base/diagnostics.h"

enum {
	MAGIC_NBYTES = 6,
	ALIGNMENT = 64,
	COUNT_NBYTES = 20, /* digits of the largest count */
	TYPE_NBYTES = 32,
	ROW_NBYTES = 32,
};

/* --- names --- */

/*
 * Names that fields of the input have, and names that have been assigned. Both sets own their
 * strings.
 */
struct unique_names {
	void *requested, *assigned; /* of tsearch() */
};

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool contains_name(void *const *root, const char *name)
{
	return tfind(name, root, compare) != NULL;
}

/* Insert a name, and take ownership of it. NULL is -ENOMEM. */
static int insert_name(void **root, char *name)
{
	char *const *node = name ? tsearch(name, root, compare) : NULL;

	if (!node || *node != name)
		free(name);
	return node ? 0 : -ENOMEM;
}

static int request_name(struct unique_names *names, const char *name)
{
	return insert_name(&names->requested, strdup(name));
}

/*
 * Assign a unique name, owned by `names`. may_be_requested: `name` itself is allowed, if it is not
 * assigned yet.
 */
static const char *assign_name(struct unique_names *names, const char *name, bool may_be_requested)
{
	char *text = strdup(name), *extended;

	while (text && (contains_name(&names->assigned, text) ||
			(!may_be_requested && contains_name(&names->requested, text)))) {
		may_be_requested = false;
		extended = asprintf(&extended, "%s_", text) < 0 ? NULL : extended;
		free(text);
		text = extended;
	}
	return insert_name(&names->assigned, text) == 0 ? text : NULL;
}

/* --- types and fields --- */

struct header_builder {
	const struct npy *npy;
	const struct output_header_params *params;
	FILE *stream;
	struct unique_names names;
};

/* Format numpy's type for a key that is no field, "'<f4'" for example; bytes if there is none. */
static void format_key_type(const struct key *key, char text[static TYPE_NBYTES])
{
	static const char letters[] = {
		[KEY_UNSIGNED] = 'u', [KEY_SIGNED] = 'i', [KEY_FLOAT] = 'f', [KEY_BFLOAT] = 'V',
		[KEY_COMPLEX] = 'c',  [KEY_TIME] = 'i',   [KEY_BOOL] = 'b',  [KEY_BYTES] = 'V',
	};
	const bool is_power = key->nbytes <= 16 && (key->nbytes & (key->nbytes - 1)) == 0;
	const bool is_number = is_power && (key->nbytes <= 8 || key->kind == KEY_COMPLEX);
	const char letter = is_number ? letters[key->kind] : 'V';

	snprintf(text, TYPE_NBYTES, "'%c%c%" PRIu32 "'",
		 letter == 'V' || key->nbytes == 1 ? '|' :
		 key->big_endian                   ? '>' :
						     '<',
		 letter, key->nbytes);
}

/* Return whether the n keys from `first` on are the elements of an array at `offset`. */
static bool keys_match_array(const struct output_header_params *params, uint32_t first,
			     const struct key *element, uint64_t offset, uint32_t n)
{
	if (n > params->n_keys - first)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (params->keys[first + i].nbytes != element->nbytes ||
		    params->keys[first + i].offset != offset + (uint64_t)i * element->nbytes)
			return false;
	return true;
}

/* Find the named field that consists of the keys from `first` on, or NULL. */
static const struct field *find_key_field(const struct header_builder *builder, uint32_t first)
{
	const struct schema *fields = &builder->npy->fields;

	for (size_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->fields[i];

		if (*field->name && field->type_text &&
		    keys_match_array(builder->params, first, &field->key, field->key.offset,
				     field->n))
			return field;
	}
	return NULL;
}

/* Get the name of the key at `first`, or of its field, which has *ret_n keys. */
static const char *get_key_name(const struct header_builder *builder, uint32_t first,
				char name[static 32], const struct field **ret_field,
				uint32_t *ret_n)
{
	*ret_field = find_key_field(builder, first);
	*ret_n = *ret_field ? (*ret_field)->n : 1;
	snprintf(name, 32, "key%" PRIu32, first);
	return *ret_field ? (*ret_field)->name : name;
}

static int request_key_names(struct header_builder *builder)
{
	const struct field *field;
	char name[32];
	int r = 0;

	for (uint32_t i = 0, n; i < builder->params->n_keys && r == 0; i += n)
		r = request_name(&builder->names, get_key_name(builder, i, name, &field, &n));
	return r;
}

/* Format the keys as fields: "('id', '<u8'), ('key1', '<f4')". */
static int format_key_fields(struct header_builder *builder)
{
	const struct field *field;
	char name[32], type[TYPE_NBYTES];

	for (uint32_t i = 0, n; i < builder->params->n_keys; i += n) {
		const char *base_name = get_key_name(builder, i, name, &field, &n);
		const char *unique_name = assign_name(&builder->names, base_name, true);

		if (!unique_name)
			return -ENOMEM;
		format_key_type(&builder->params->keys[i], type);
		fputs(i ? ", (" : "(", builder->stream);
		python_write_string(builder->stream, unique_name);
		fprintf(builder->stream, ", %s)", field ? field->type_text : type);
	}
	return 0;
}

/* Format the record: its fields, or one field if it has none. */
static void format_record_field(FILE *stream, const struct npy *npy)
{
	const size_t n = strlen(npy->descr);

	if (npy->descr[0] == '[') /* without the brackets */
		fprintf(stream, "%.*s", (int)(n - 2), npy->descr + 1);
	else if (*npy->row_shape)
		fprintf(stream, "('value', %s, (%s,))", npy->descr, npy->row_shape + 2);
	else
		fprintf(stream, "('value', %s)", npy->descr);
}

/*
 * Return whether the record is a single value that is the key, so that --keys-only writes the same.
 */
static bool is_scalar_key(const struct npy *npy, const struct output_header_params *params)
{
	const struct key *first = &params->keys[0];

	return npy->descr[0] != '[' && !*npy->row_shape && first->offset == 0 &&
	       params->n_keys * (uint64_t)first->nbytes == npy->fields.record_nbytes &&
	       keys_match_array(params, 0, first, 0, params->n_keys);
}

/* Return whether all keys are columns of a row. */
static bool are_column_keys(const struct npy *npy, const struct output_header_params *params)
{
	const uint32_t n = npy->fields.n_per_column;
	const struct key *column = npy->fields.n ? &npy->fields.fields[0].key : NULL;

	if (!npy->fields.has_columns || params->n_keys % n != 0)
		return false;
	for (uint32_t i = 0; i < params->n_keys; i += n)
		if (params->keys[i].offset % ((uint64_t)column->nbytes * n) != 0 ||
		    !keys_match_array(params, i, column, params->keys[i].offset, n))
			return false;
	return true;
}

/* Format a structure of a count, and the record or its keys. */
static int format_structure(struct header_builder *builder, bool keys_only)
{
	const struct output_header_params *params = builder->params;
	const char *name = builder->npy->top_names;
	int r = keys_only ? request_key_names(builder) : 0;

	for (; !keys_only && *name && r == 0; name += strlen(name) + 1)
		r = request_name(&builder->names, name);
	fputc('[', builder->stream);
	if (r == 0 && params->count) {
		name = assign_name(&builder->names, "count", false);
		if (!name)
			return -ENOMEM;
		fputc('(', builder->stream);
		python_write_string(builder->stream, name);
		fprintf(builder->stream, ", '%cu8'), ", params->count_is_be ? '>' : '<');
	}
	if (r == 0 && keys_only)
		r = format_key_fields(builder);
	else if (r == 0)
		format_record_field(builder->stream, builder->npy);
	fputc(']', builder->stream);
	return r;
}

/* Format the type of an item and the shape of a record. */
static int format_descr(struct header_builder *builder, char row_shape[static ROW_NBYTES])
{
	const struct npy *npy = builder->npy;
	const struct output_header_params *params = builder->params;
	const bool keys_only = params->keys_only && !is_scalar_key(npy, params);

	row_shape[0] = '\0';
	if (params->index) {
		fputs("'<i8'", builder->stream);
	} else if (keys_only && !params->count && are_column_keys(npy, params)) {
		fputs(npy->descr, builder->stream);
		snprintf(row_shape, ROW_NBYTES, ", %" PRIu32,
			 params->n_keys / npy->fields.n_per_column);
	} else if (keys_only || params->count) {
		return format_structure(builder, keys_only);
	} else {
		fputs(npy->descr, builder->stream);
	}
	return 0;
}

/* Format the dictionary, in two parts: up to the number of records, and after it. */
static int format_dict(const struct npy *npy, const struct output_header_params *params,
		       char **ret_prefix, char **ret_suffix)
{
	const bool is_same = !params->count && !params->index && !params->keys_only;
	struct header_builder builder = { .npy = npy, .params = params };
	char row_shape[ROW_NBYTES];
	size_t nbytes;
	int r;

	builder.stream = open_memstream(ret_prefix, &nbytes);
	if (!builder.stream)
		return -errno;
	fputs("{'descr': ", builder.stream);
	r = format_descr(&builder, row_shape);
	fputs(", 'fortran_order': False, 'shape': (", builder.stream);
	tdestroy(builder.names.requested, free);
	tdestroy(builder.names.assigned, free);
	if (fclose(builder.stream) != 0 && r == 0)
		r = -errno;
	if (r == 0 && asprintf(ret_suffix, "%s), }",
			       *(is_same ? npy->row_shape : row_shape) ?
				       (is_same ? npy->row_shape : row_shape) :
				       ",") < 0)
		r = -ENOMEM;
	return r;
}

static void write_npy_prefix(unsigned char *bytes, unsigned version, size_t nbytes)
{
	const size_t begin = version == 1 ? 10 : 12, text_nbytes = nbytes - begin;

	memcpy(bytes, NPY_MAGIC, MAGIC_NBYTES);
	bytes[6] = (unsigned char)version;
	bytes[7] = 0;
	for (size_t i = 8; i < begin; i++)
		bytes[i] = (unsigned char)(text_nbytes >> 8 * (i - 8));
}

int npy_make_header(const struct npy *npy, const struct output_header_params *params,
		    struct output_header *ret_header)
{
	char *prefix = NULL, *suffix = NULL;
	struct output_header header = { 0 };
	unsigned version = npy->version;
	size_t begin = 0;
	int r = format_dict(npy, params, &prefix, &suffix);

	if (r == 0) {
		const size_t text_nbytes = strlen(prefix) + COUNT_NBYTES + strlen(suffix) + 1;

		if (version == 1 && text_nbytes > UINT16_MAX - ALIGNMENT)
			version = 2;
		begin = version == 1 ? 10 : 12;
		header.nbytes = (begin + text_nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
		if (header.nbytes <= NPY_MAX_HEADER_NBYTES)
			header.bytes = malloc(header.nbytes);
		header.count_suffix = suffix;
		header.count_offset = begin + strlen(prefix);
	}
	if (!header.bytes) {
		free(prefix);
		free(suffix);
		if (header.nbytes > NPY_MAX_HEADER_NBYTES) /* gsort could not read its output */
			return fail(-EINVAL,
				    "output header: %zu bytes exceed the limit of %d: too many "
				    "fields",
				    header.nbytes, NPY_MAX_HEADER_NBYTES);
		return fail(r < 0 ? r : -ENOMEM, "no memory for the header of the output: %m");
	}
	write_npy_prefix(header.bytes, version, header.nbytes);
	memcpy(header.bytes + begin, prefix, strlen(prefix));
	output_header_set_count(&header, 0);
	free(prefix);
	*ret_header = header;
	return 0;
}

void output_header_set_count(struct output_header *header, uint64_t n_records)
{
	char digits[24];
	unsigned char *dest = header->bytes + header->count_offset;
	size_t n, suffix_nbytes;

	if (!header->count_suffix)
		return;
	n = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n_records);
	suffix_nbytes = strlen(header->count_suffix);
	memcpy(dest, digits, n);
	memcpy(dest + n, header->count_suffix, suffix_nbytes);
	memset(dest + n + suffix_nbytes, ' ',
	       header->nbytes - header->count_offset - n - suffix_nbytes - 1);
	header->bytes[header->nbytes - 1] = '\n';
}

void output_header_free(struct output_header *header)
{
	free(header->bytes);
	free(header->count_suffix);
	*header = (struct output_header){ 0 };
}
