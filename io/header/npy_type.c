/*
 * npy_type - a type of numpy, '<f8', and the field that it makes (see npy_internal.h)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

#include "io/header/npy_internal.h"

/* Names of numpy (of Linux on 64 bits) that it reads, and does not write. */
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

/* Is it one of the words, a name of n bytes? */
static bool has_word(const char *words, const char *name, size_t n)
{
	for (size_t n_word; *words; words += n_word + (words[n_word] == ' ')) {
		n_word = strcspn(words, " ");
		if (n_word == n && memcmp(words, name, n) == 0)
			return true;
	}
	return false;
}

/* As numpy writes it, "<f8": the order of bytes, if there is any, a letter and their number. */
void npy_normalize_type(const char *raw_type, char type[static NPY_TYPE_NBYTES])
{
	const bool has_order = *raw_type && strchr("<>|=", *raw_type);
	const char *body = raw_type + has_order;
	const size_t n_name = strcspn(body, "["); /* behind it is the unit of a time */
	const char *name = body;
	char spelling[NPY_TYPE_NBYTES - 1];
	bool has_bytes;
	int n;

	for (size_t i = 0; i < sizeof named_types / sizeof named_types[0]; i++)
		if (has_word(named_types[i].names, body, n_name))
			name = named_types[i].type;
	n = snprintf(spelling, sizeof spelling, "%.*s%s",
		     name == body ? (int)n_name : (int)strlen(name), name, body + n_name);
	if (n < 0 || (size_t)n >= sizeof spelling)
		*spelling = '\0'; /* which no type has; nor must it be a part of it */
	has_bytes = strchr("SVaOb", *spelling) || strcmp(spelling, "i1") == 0 ||
		    strcmp(spelling, "u1") == 0;
	if (*spelling == 'a')
		*spelling = 'S';
	type[0] = has_bytes ? '|' : *raw_type == '>' ? '>' : '<';
	snprintf(type + 1, NPY_TYPE_NBYTES - 1, "%s", spelling);
}

/* The number behind the letter, and nothing behind it. */
static bool parse_number(const char *type, unsigned long *ret_number)
{
	char *end;

	if (type[2] < '0' || type[2] > '9')
		return false;
	errno = 0;
	*ret_number = strtoul(type + 2, &end, 10);
	return errno == 0 && *end == '\0' && *ret_number <= NPY_MAX_RECORD_NBYTES;
}

/* Characters of 4 bytes, which compare one after the other. */
static void set_unicode_field(const char *type, unsigned long n, struct field *field)
{
	field->key = (struct key){
		.nbytes = 4,
		.kind = KEY_UNSIGNED,
		.big_endian = type[0] == '>',
	};
	field->n = (uint32_t)n;
}

void npy_set_bytes(struct field *field, uint64_t nbytes)
{
	field->n = 1;
	field->key =
		(struct key){ .nbytes = (uint32_t)nbytes, .kind = KEY_BYTES, .big_endian = true };
}

/* What is behind a time, "[25s]"; numpy takes "[h/4]", too, and does not write it. */
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

/* Of a field: some types have no bytes, and others (long double) are known by their size only. */
int npy_parse_type(const struct npy_parser *parser, const char *type, struct field *field)
{
	unsigned long n;

	if (type[1] == 'O')
		return npy_refuse_without_hint(
			parser, "that holds objects of Python, which have no records");
	field->n = 1;
	if (strchr("mM", type[1]) && !is_time_unit(type + strcspn(type, "[")))
		return npy_refuse(parser, "of type '%.40s', whose unit is none of numpy's", type);
	if (key_parse_type(type, &field->key) == 0) {
		field->key.numeric = key_has_orders(&field->key);
		return 0;
	}
	if (!parse_number(type, &n) || !strchr("SVUfc", type[1]))
		return npy_refuse(parser, "of type '%.40s', which " GSORT_PROGRAM " does not know",
				  type);
	if (type[1] == 'U' && n > 0)
		set_unicode_field(type, n, field);
	else
		npy_set_bytes(field, n);
	field->is_opaque = type[1] == 'f' || type[1] == 'c';
	return 0;
}
