/*
 * npy_write - the header of what is written of records of numpy (see npy.h)
 *
 * It is that of the input, or of a structure that is made here: of a count, of keys. Its fields
 * have the names that they had, one within another as a.b, and numpy wants all of them to differ:
 * the first has its name, and another of the same name, or a count beside a field `count`, has as
 * many underscores behind it as it takes.
 */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "io/header/npy_internal.h"
#include "src/base/diagnostics.h"

enum {
	MAGIC_NBYTES = 6,
	ALIGNMENT = 64,
	COUNT_NBYTES = 20, /* digits of the largest number */
	TYPE_NBYTES = 32,
	ROW_NBYTES = 32,
};

/* --- names --- */

/* Names that are there, and those of them that have been given away; both own their strings. */
struct names {
	void *wanted, *given; /* of tsearch() */
};

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool has(void *const *root, const char *name)
{
	return tfind(name, root, compare) != NULL;
}

/* Takes the name over, which may be NULL, unless it has it. */
static int add(void **root, char *name)
{
	char *const *found = name ? tsearch(name, root, compare) : NULL;

	if (!found || *found != name)
		free(name);
	return found ? 0 : -ENOMEM;
}

static int want(struct names *names, const char *name)
{
	return add(&names->wanted, strdup(name));
}

/* Under which of its names it is to be known, for the owner of `names`. */
static const char *give(struct names *names, const char *name, bool is_wanted)
{
	char *text = strdup(name), *longer;

	while (text && (has(&names->given, text) || (!is_wanted && has(&names->wanted, text)))) {
		is_wanted = false;
		longer = asprintf(&longer, "%s_", text) < 0 ? NULL : longer;
		free(text);
		text = longer;
	}
	return add(&names->given, text) == 0 ? text : NULL;
}

static void free_names(struct names *names)
{
	tdestroy(names->wanted, free);
	tdestroy(names->given, free);
}

/* --- what is written --- */

struct writing {
	const struct npy *npy;
	const struct header_wish *wish;
	FILE *stream;
	struct names names;
};

/* A type of numpy for a key that is no field, "'<f4'" say; of what it has no type for, bytes. */
static void spell_key(const struct key *key, char text[static TYPE_NBYTES])
{
	static const char letters[] = {
		[KEY_UNSIGNED] = 'u', [KEY_SIGNED] = 'i', [KEY_FLOAT] = 'f', [KEY_BRAIN] = 'V',
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

/* Are the n keys from `first` on those of an array of n, whose first is `of`, at its place? */
static bool are_keys_of(const struct header_wish *wish, uint32_t first, const struct key *of,
			uint64_t offset, uint32_t n)
{
	if (n > wish->n_keys - first)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (wish->keys[first + i].nbytes != of->nbytes ||
		    wish->keys[first + i].offset != offset + (uint64_t)i * of->nbytes)
			return false;
	return true;
}

/* The field that the keys from `first` on are all of; NULL: none, or it has no name. */
static const struct field *field_of(const struct writing *writing, uint32_t first)
{
	const struct fields *fields = &writing->npy->fields;

	for (size_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->fields[i];

		if (*field->name && field->spelling &&
		    are_keys_of(writing->wish, first, &field->key, field->key.offset, field->n))
			return field;
	}
	return NULL;
}

/* What the keys from `first` on are called, and how many of them that is. */
static const char *name_key(const struct writing *writing, uint32_t first, char name[static 32],
			    const struct field **ret_field, uint32_t *ret_n)
{
	*ret_field = field_of(writing, first);
	*ret_n = *ret_field ? (*ret_field)->n : 1;
	snprintf(name, 32, "key%" PRIu32, first);
	return *ret_field ? (*ret_field)->name : name;
}

static int want_keys(struct writing *writing)
{
	const struct field *field;
	char name[32];
	int r = 0;

	for (uint32_t i = 0, n; i < writing->wish->n_keys && r == 0; i += n)
		r = want(&writing->names, name_key(writing, i, name, &field, &n));
	return r;
}

/* The keys as fields: "('id', '<u8'), ('key1', '<f4')". */
static int spell_keys(struct writing *writing)
{
	const struct field *field;
	char name[32], type[TYPE_NBYTES];

	for (uint32_t i = 0, n; i < writing->wish->n_keys; i += n) {
		const char *wanted = name_key(writing, i, name, &field, &n);
		const char *given = give(&writing->names, wanted, true);

		if (!given)
			return -ENOMEM;
		spell_key(&writing->wish->keys[i], type);
		fputs(i ? ", (" : "(", writing->stream);
		python_put_string(writing->stream, given);
		fprintf(writing->stream, ", %s)", field ? field->spelling : type);
	}
	return 0;
}

static int want_fields(struct writing *writing)
{
	int r = 0;

	for (const char *at = writing->npy->top_names; *at && r == 0; at += strlen(at) + 1)
		r = want(&writing->names, at);
	return r;
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

/* Is the record one value, and all of it the key? Then so is what --keys-only writes. */
static bool is_one_value(const struct npy *npy, const struct header_wish *wish)
{
	const struct key *first = &wish->keys[0];

	return npy->descr[0] != '[' && !*npy->row && first->offset == 0 &&
	       wish->n_keys * (uint64_t)first->nbytes == npy->fields.record_nbytes &&
	       are_keys_of(wish, 0, first, 0, wish->n_keys);
}

/* Are the keys nothing but columns? */
static bool are_columns(const struct npy *npy, const struct header_wish *wish)
{
	const uint32_t n = npy->fields.n_of_column;
	const struct key *of = npy->fields.n ? &npy->fields.fields[0].key : NULL;

	if (!npy->fields.are_columns || wish->n_keys % n != 0)
		return false;
	for (uint32_t i = 0; i < wish->n_keys; i += n)
		if (wish->keys[i].offset % ((uint64_t)of->nbytes * n) != 0 ||
		    !are_keys_of(wish, i, of, wish->keys[i].offset, n))
			return false;
	return true;
}

/* A structure that none of the input is: a count, and the record or its keys. */
static int spell_structure(struct writing *writing, bool keys_only)
{
	const struct header_wish *wish = writing->wish;
	int r = keys_only ? want_keys(writing) : want_fields(writing);

	fputc('[', writing->stream);
	if (r == 0 && wish->count) {
		const char *name = give(&writing->names, "count", false);

		if (!name)
			return -ENOMEM;
		fputc('(', writing->stream);
		python_put_string(writing->stream, name);
		fprintf(writing->stream, ", '%cu8'), ", wish->count_is_be ? '>' : '<');
	}
	if (r == 0 && keys_only)
		r = spell_keys(writing);
	else if (r == 0)
		spell_record(writing->stream, writing->npy);
	fputc(']', writing->stream);
	return r;
}

/* The type of an item, and the shape of a record. */
static int spell_items(struct writing *writing, char row[static ROW_NBYTES])
{
	const struct npy *npy = writing->npy;
	const struct header_wish *wish = writing->wish;
	const bool keys_only = wish->keys_only && !is_one_value(npy, wish);

	row[0] = '\0';
	if (wish->index) {
		fputs("'<i8'", writing->stream);
	} else if (keys_only && !wish->count && are_columns(npy, wish)) {
		fputs(npy->descr, writing->stream);
		snprintf(row, ROW_NBYTES, ", %" PRIu32, wish->n_keys / npy->fields.n_of_column);
	} else if (keys_only || wish->count) {
		return spell_structure(writing, keys_only);
	} else {
		fputs(npy->descr, writing->stream);
	}
	return 0;
}

/* All but the prefix, up to the number of records; and what is behind that. */
static int spell(const struct npy *npy, const struct header_wish *wish, char **ret_before,
		 char **ret_behind)
{
	const bool is_same = !wish->count && !wish->index && !wish->keys_only;
	struct writing writing = { .npy = npy, .wish = wish };
	char row[ROW_NBYTES];
	size_t nbytes;
	int r;

	writing.stream = open_memstream(ret_before, &nbytes);
	if (!writing.stream)
		return -errno;
	fputs("{'descr': ", writing.stream);
	r = spell_items(&writing, row);
	fputs(", 'fortran_order': False, 'shape': (", writing.stream);
	free_names(&writing.names);
	if (fclose(writing.stream) != 0 && r == 0)
		r = -errno;
	if (r == 0 && asprintf(ret_behind, "%s), }",
			       *(is_same ? npy->row : row) ? (is_same ? npy->row : row) : ",") < 0)
		r = -ENOMEM;
	return r;
}

static void put_prefix(unsigned char *bytes, unsigned version, size_t nbytes)
{
	const size_t begin = version == 1 ? 10 : 12, text_nbytes = nbytes - begin;

	memcpy(bytes, NPY_MAGIC, MAGIC_NBYTES);
	bytes[6] = (unsigned char)version;
	bytes[7] = 0;
	for (size_t i = 8; i < begin; i++)
		bytes[i] = (unsigned char)(text_nbytes >> 8 * (i - 8));
}

/* What we write has to be what we read. */
static int fail_long(size_t nbytes)
{
	return fail(-EINVAL,
		    "the output's header would have %zu bytes, more than the %d that are read: "
		    "it has too many fields",
		    nbytes, NPY_MOST_HEADER_NBYTES);
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
		if (header.nbytes <= NPY_MOST_HEADER_NBYTES)
			header.bytes = malloc(header.nbytes);
		header.behind = behind;
		header.count_at = begin + strlen(before);
	}
	if (!header.bytes) {
		free(before);
		free(behind);
		return header.nbytes > NPY_MOST_HEADER_NBYTES ?
			       fail_long(header.nbytes) :
			       fail(r < 0 ? r : -ENOMEM,
				    "no memory for the header of the output: %m");
	}
	put_prefix(header.bytes, version, header.nbytes);
	memcpy(header.bytes + begin, before, strlen(before));
	header_set_count(&header, 0);
	free(before);
	*ret_header = header;
	return 0;
}
