/*
 * key_type.c - the table of key types, and how they are spelled
 */
#include "src/record/key_type.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/int_math.h"

/* A set of widths: bit n for n bytes. */
#define WIDTH(n) (1u << (n))
#define ALL_WIDTHS 0x1fffeu /* 1 to 16 */

enum { MAX_WIDTH = 16, MAX_NAME_NBYTES = 24 };

static const struct key_kind_info {
	const char *letters;
	uint32_t widths;
	bool has_sign, is_float;
	bool width_in_bytes;     /* the number in the name is of bytes; else bits */
	bool is_fixed;           /* the name has no number */
	bool has_orders;         /* has :n and :t */
	bool numeric_by_default; /* :n if neither is given */
	uint8_t n_exponent_bits;
} kinds[] = {
	[KEY_UNSIGNED] = { .letters = "u", .widths = ALL_WIDTHS },
	[KEY_SIGNED] = { .letters = "i", .widths = ALL_WIDTHS, .has_sign = true },
	/* Exponents follow from the widths: see key_n_fraction_bits(). */
	[KEY_FLOAT] = { .letters = "f",
			.widths = WIDTH(2) | WIDTH(4) | WIDTH(8),
			.has_sign = true,
			.is_float = true,
			.has_orders = true },
	[KEY_BFLOAT] = { .letters = "bf",
			 .widths = WIDTH(2),
			 .has_sign = true,
			 .is_float = true,
			 .has_orders = true,
			 .n_exponent_bits = 8 },
	[KEY_COMPLEX] = { .letters = "c", .widths = WIDTH(8) | WIDTH(16), .has_orders = true },
	[KEY_TIME] = { .letters = "t",
		       .widths = WIDTH(8),
		       .has_sign = true,
		       .has_orders = true,
		       .numeric_by_default = true },
	[KEY_BOOL] = { .letters = "bool", .widths = WIDTH(1), .is_fixed = true },
	[KEY_BYTES] = { .letters = "b", .width_in_bytes = true }, /* of any width */
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* The names of C, as on 64-bit Linux, where char is signed. */
static const struct type_alias {
	const char *text, *type;
} type_aliases[] = {
	{ "uint8", "u8" },
	{ "uint16", "u16" },
	{ "uint32", "u32" },
	{ "uint64", "u64" },
	{ "uint128", "u128" },
	{ "int8", "i8" },
	{ "int16", "i16" },
	{ "int32", "i32" },
	{ "int64", "i64" },
	{ "int128", "i128" },
	{ "uint8_t", "u8" },
	{ "uint16_t", "u16" },
	{ "uint32_t", "u32" },
	{ "uint64_t", "u64" },
	{ "int8_t", "i8" },
	{ "int16_t", "i16" },
	{ "int32_t", "i32" },
	{ "int64_t", "i64" },
	{ "char", "i8" },
	{ "short", "i16" },
	{ "int", "i32" },
	{ "long", "i64" },
	{ "unsigned", "u32" },
	{ "size_t", "u64" },
	{ "ssize_t", "i64" },
	{ "__uint128_t", "u128" },
	{ "__int128_t", "i128" },
	{ "half", "f16" },
	{ "float", "f32" },
	{ "double", "f64" },
	{ "float16", "f16" },
	{ "float32", "f32" },
	{ "float64", "f64" },
	{ "_Float16", "f16" },
	{ "bfloat16", "bf16" },
	{ "_Bool", "bool" },
	{ "bool_", "bool" },
	{ "unsigned char", "u8" },
	{ "unsigned short", "u16" },
	{ "complex64", "c64" },
	{ "complex128", "c128" },
	{ "datetime64", "t64" },
	{ "timedelta64", "t64" },
	{ "byte", "i8" },
	{ "unsigned long", "u64" },
	{ "unsigned int", "u32" },
	{ "signed char", "i8" },
	{ "long long", "i64" },
	{ "unsigned long long", "u64" },
	{ "__int128", "i128" },
	{ "time_t", "i64" },
	{ "off_t", "i64" },
	{ "ptrdiff_t", "i64" },
	{ "intptr_t", "i64" },
	{ "uintptr_t", "u64" },
	{ "ubyte", "u8" },
	{ "ushort", "u16" },
	{ "intc", "i32" },
	{ "uintc", "u32" },
	{ "int_", "i64" },
	{ "intp", "i64" },
	{ "uintp", "u64" },
	{ "ulong", "u64" },
	{ "longlong", "i64" },
	{ "ulonglong", "u64" },
	{ "single", "f32" },
	{ "float_", "f64" },
	{ "csingle", "c64" },
	{ "bool", "bool" },
	{ "cdouble", "c128" },
};

enum { N_TYPE_ALIASES = sizeof type_aliases / sizeof type_aliases[0] };

/* numpy's letters, which are followed by a number of bytes. */
static const struct numpy_kind {
	char letter;
	enum key_kind kind;
	bool needs_order; /* valid only with < or >: u8 is one byte, not eight */
} numpy_kinds[] = {
	{ 'u', KEY_UNSIGNED, true }, { 'i', KEY_SIGNED, true },   { 'b', KEY_BOOL, true },
	{ 'f', KEY_FLOAT, false },   { 'S', KEY_BYTES, false },   { 'a', KEY_BYTES, false },
	{ 'V', KEY_BYTES, false },   { 'c', KEY_COMPLEX, false }, { 'M', KEY_TIME, false },
	{ 'm', KEY_TIME, false },
};

enum { N_NUMPY_KINDS = sizeof numpy_kinds / sizeof numpy_kinds[0] };

static bool has_width(enum key_kind kind, unsigned long nbytes)
{
	if (kind == KEY_BYTES)
		return nbytes > 0 && nbytes <= UINT32_MAX;
	return nbytes <= MAX_WIDTH && (kinds[kind].widths >> nbytes & 1);
}

static struct key make_key(enum key_kind kind, unsigned long nbytes, bool big_endian)
{
	return (struct key){ .nbytes = (uint32_t)nbytes,
			     .kind = kind,
			     .big_endian = big_endian || kind == KEY_BYTES,
			     .numeric = kinds[kind].numeric_by_default };
}

/* Parse digits that do not begin with 0, and move the position after them. */
static bool parse_width(const char **position, unsigned long *ret_number)
{
	char *end;

	if (**position < '1' || **position > '9')
		return false;
	errno = 0;
	*ret_number = strtoul(*position, &end, 10);
	*position = end;
	return errno == 0;
}

/* Parse "", "le" or "be". */
static bool parse_byte_order(const char *suffix, bool *ret_big_endian)
{
	*ret_big_endian = strcmp(suffix, "be") == 0;
	return !*suffix || *ret_big_endian || strcmp(suffix, "le") == 0;
}

/* Parse "bool", or letters and a number, and the byte order, if the type has one. */
static bool parse_kind(const char *text, enum key_kind kind, struct key *ret_key)
{
	const struct key_kind_info *row = &kinds[kind];
	const size_t n = strlen(row->letters);
	const char *position = text + n;
	unsigned long number = 8;
	bool big_endian = row->width_in_bytes;

	if (strncmp(text, row->letters, n) != 0 ||
	    (!row->is_fixed && !parse_width(&position, &number)))
		return false;
	if (row->width_in_bytes ? *position != '\0' :
				  number % 8 != 0 || !parse_byte_order(position, &big_endian))
		return false;
	if (!row->width_in_bytes)
		number /= 8;
	if (!has_width(kind, number))
		return false;
	*ret_key = make_key(kind, number, big_endian);
	return true;
}

static bool parse_native_type(const char *text, struct key *ret_key)
{
	for (unsigned i = 0; i < N_KINDS; i++)
		if (parse_kind(text, (enum key_kind)i, ret_key))
			return true;
	return false;
}

/* Parse a name of C or Python, with an optional byte order. */
static bool parse_alias(const char *text, struct key *ret_key)
{
	for (unsigned i = 0; i < N_TYPE_ALIASES; i++) {
		const size_t n = strlen(type_aliases[i].text);
		bool big_endian;

		if (strncmp(text, type_aliases[i].text, n) != 0 ||
		    !parse_byte_order(text + n, &big_endian) ||
		    !parse_native_type(type_aliases[i].type, ret_key))
			continue;
		ret_key->big_endian = big_endian;
		return true;
	}
	return false;
}

/* Accept "", or a unit such as "[ns]", which does not change the order. */
static bool is_numpy_unit(enum key_kind kind, const char *suffix)
{
	return !*suffix ||
	       (kind == KEY_TIME && *suffix == '[' && suffix[strlen(suffix) - 1] == ']');
}

/* Parse "<f4", ">i8", "|b1", "S10", "<M8[ns]". */
static bool parse_numpy(const char *text, struct key *ret_key)
{
	const bool has_order = *text && strchr("<>|=", *text);
	const char *position = text + has_order;
	const char letter = *position++;
	unsigned long nbytes;

	for (unsigned i = 0; letter && i < N_NUMPY_KINDS; i++) {
		const struct numpy_kind *row = &numpy_kinds[i];

		if (row->letter != letter || (row->needs_order && !has_order))
			continue;
		if (!parse_width(&position, &nbytes) || !is_numpy_unit(row->kind, position) ||
		    !has_width(row->kind, nbytes))
			return false;
		*ret_key = make_key(row->kind, nbytes, *text == '>');
		return true;
	}
	return false;
}

/* Parse the order after a type: nothing, ":n" or ":numpy", ":t" or ":total". */
static bool parse_value_order(const char *suffix, struct key *key)
{
	const bool is_numpy = strcmp(suffix, ":n") == 0 || strcmp(suffix, ":numpy") == 0;

	if (!*suffix)
		return true;
	if (!key_has_orders(key) ||
	    !(is_numpy || strcmp(suffix, ":t") == 0 || strcmp(suffix, ":total") == 0))
		return false;
	key->numeric = is_numpy;
	key->has_explicit_order = true;
	return true;
}

int key_parse_type(const char *text, struct key *ret_key)
{
	const size_t n = strcspn(text, ":");
	char name[MAX_NAME_NBYTES];
	struct key key;

	if (n >= sizeof name)
		return -EINVAL;
	memcpy(name, text, n);
	name[n] = '\0';
	if (!parse_native_type(name, &key) && !parse_alias(name, &key) && !parse_numpy(name, &key))
		return -EINVAL;
	if (!parse_value_order(text + n, &key))
		return -EINVAL;
	*ret_key = key;
	return 0;
}

/* Write the name, with `order` after it if the type has a byte order. */
static void format_type_name(const struct key *key, const char *order,
			     char text[static KEY_TYPE_NBYTES])
{
	const struct key_kind_info *row = &kinds[key->kind];

	if (row->is_fixed)
		snprintf(text, KEY_TYPE_NBYTES, "%s", row->letters);
	else if (row->width_in_bytes)
		snprintf(text, KEY_TYPE_NBYTES, "%s%u", row->letters, (unsigned)key->nbytes);
	else
		snprintf(text, KEY_TYPE_NBYTES, "%s%u%s", row->letters, (unsigned)key->nbytes * 8,
			 order);
}

struct key_type_text key_format_type(const struct key *key)
{
	struct key_type_text type;

	format_type_name(key, key->big_endian ? "be" : "le", type.text);
	if (key->numeric != kinds[key->kind].numeric_by_default)
		strcat(type.text, key->numeric ? ":n" : ":t");
	return type;
}

struct key_text key_format(const struct key *key)
{
	struct key_text formatted;

	snprintf(formatted.text, sizeof formatted, "%" PRIu64 ":%s%s", key->offset,
		 key_format_type(key).text, key->descending ? ":r" : "");
	return formatted;
}

void keys_format(const struct key *keys, uint32_t n, uint64_t record_nbytes,
		 char text[static KEYS_TEXT_NBYTES])
{
	size_t length = 0;

	if (n == 1 && keys[0].nbytes == record_nbytes) {
		strcpy(text, key_format_type(&keys[0]).text);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		length += (size_t)snprintf(text + length, KEYS_TEXT_NBYTES - length, "%s%s",
					   i ? "," : "", key_format(&keys[i]).text);
		if (length >= KEYS_TEXT_NBYTES) {
			strcpy(text + KEYS_TEXT_NBYTES - 4, "...");
			return;
		}
	}
}

bool key_type_by_index(unsigned i, struct key *ret_key)
{
	for (unsigned kind = 0; kind < N_KINDS; kind++)
		for (unsigned nbytes = 1; nbytes <= MAX_WIDTH; nbytes++)
			if (kinds[kind].widths >> nbytes & 1 && i-- == 0) {
				*ret_key = make_key((enum key_kind)kind, nbytes, false);
				return true;
			}
	return false;
}

bool key_has_sign(const struct key *key)
{
	return kinds[key->kind].has_sign;
}

bool key_is_float(const struct key *key)
{
	return kinds[key->kind].is_float;
}

bool key_has_orders(const struct key *key)
{
	return kinds[key->kind].has_orders;
}

bool key_has_equal_bit_patterns(const struct key *key)
{
	return key->numeric && (key_is_float(key) || key->kind == KEY_COMPLEX);
}

unsigned key_n_fraction_bits(const struct key *key)
{
	static const uint8_t n_exponent_bits[MAX_WIDTH + 1] = { [2] = 5, [4] = 8, [8] = 11 };
	const unsigned kind_bits = kinds[key->kind].n_exponent_bits;

	if (!key_is_float(key))
		return 0;
	return key->nbytes * 8 - 1 - (kind_bits ? kind_bits : n_exponent_bits[key->nbytes]);
}

/* --- Suggestions --- */

/* Insertions, deletions and substitutions between two words (Levenshtein 1965). */
static unsigned count_edits(const char *a, const char *b)
{
	unsigned row[MAX_NAME_NBYTES + 1];
	const size_t n = strlen(b);

	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];

		row[0] = i + 1;
		for (unsigned j = 0; j < n; j++) {
			const bool is_equal = tolower((unsigned char)a[i]) ==
					      tolower((unsigned char)b[j]);
			const unsigned substituted = diagonal + !is_equal;

			diagonal = row[j + 1];
			row[j + 1] = (unsigned)u64_min(u64_min(row[j], diagonal) + 1, substituted);
		}
	}
	return row[n];
}

/* "F32", "u32LE" */
static bool suggest_lower_case(const char *typo, char text[static KEY_TYPE_NBYTES])
{
	size_t n = 0;
	struct key key;

	if (strlen(typo) >= KEY_TYPE_NBYTES)
		return false;
	for (; typo[n]; n++)
		text[n] = (char)tolower((unsigned char)typo[n]);
	text[n] = '\0';
	return key_parse_type(text, &key) == 0;
}

/* Suggest what one letter means to C and numpy. */
static bool suggest_letter(const char *typo, char text[static KEY_TYPE_NBYTES])
{
	if (strcmp(typo, "d") != 0 && strcmp(typo, "f") != 0)
		return false;
	strcpy(text, *typo == 'd' ? "f64 (double)" : "f32 (float)");
	return true;
}

/*
 * Return whether the number is a width of the kind in bytes, and no misspelled width in bits: 7 is
 * close to one, and 12 is not.
 */
static bool may_be_in_bytes(enum key_kind kind, unsigned long width)
{
	return !kinds[kind].width_in_bytes && has_width(kind, width) &&
	       (width <= 1 || (width + 1) % 8 > 2);
}

/* "u4": bytes were given instead of bits. "u6" is more likely an incomplete u64 than u48. */
static bool suggest_bits(const char *typo, char text[static KEY_TYPE_NBYTES])
{
	for (unsigned i = 0; i < N_KINDS; i++) {
		const size_t n = strlen(kinds[i].letters);
		const char *position = typo + n;
		unsigned long nbytes;

		if (strncmp(typo, kinds[i].letters, n) != 0 || !parse_width(&position, &nbytes) ||
		    strlen(position) > 2 || !may_be_in_bytes((enum key_kind)i, nbytes))
			continue;
		snprintf(text, KEY_TYPE_NBYTES, "%s%lu%s", kinds[i].letters,
			 nbytes == 6 ? 64 : nbytes * 8, position);
		return true;
	}
	return false;
}

/* "u63", "u32b": the same kind, and one edit away. */
static bool is_similar_type(const char *typo, const struct key *key)
{
	const struct key_kind_info *row = &kinds[key->kind];
	const char *position = typo + strlen(row->letters);
	const unsigned long nbits = key->nbytes * 8ul;
	unsigned long number;

	return !row->is_fixed && strncasecmp(typo, row->letters, strlen(row->letters)) == 0 &&
	       parse_width(&position, &number) && number + 1 >= nbits && number <= nbits + 1;
}

/* Words that are close to some types, but mean another type, or none. */
static const char *const ambiguous_words[] = {
	"uint", /* 32 bits in C, 64 in numpy */
	"bytes",
};

/* Signed and unsigned types differ in the first letter. */
static bool has_same_initial(const char *a, const char *b)
{
	return tolower((unsigned char)a[strspn(a, "_")]) ==
	       tolower((unsigned char)b[strspn(b, "_")]);
}

/* Return whether both words have the same digits. Another number in a word is not a typo. */
static bool has_same_number(const char *a, const char *b)
{
	a += strcspn(a, "0123456789");
	b += strcspn(b, "0123456789");
	return strspn(a, "0123456789") == strspn(b, "0123456789") &&
	       strncmp(a, b, strspn(a, "0123456789")) == 0;
}

/* Keep the name with the fewest edits. If two are equally close, keep none. */
static void suggest_if_closer(const char *typo, const char *name, const char *type,
			      unsigned *n_edits, char text[static KEY_TYPE_NBYTES])
{
	const unsigned n = count_edits(typo, name);

	if (n > *n_edits)
		return;
	if (n < *n_edits)
		snprintf(text, KEY_TYPE_NBYTES, "%s", type);
	else if (strcmp(text, type) != 0)
		*text = '\0';
	*n_edits = n;
}

enum { MAX_EDITS = 2 };

static bool suggest_type(const char *typo, char text[static KEY_TYPE_NBYTES])
{
	static const char *const orders[] = { "", "be", "le" };
	unsigned n_edits = MAX_EDITS + 1;
	struct key key;

	*text = '\0';
	for (unsigned i = 0; key_type_by_index(i, &key); i++)
		for (unsigned j = 0; is_similar_type(typo, &key) && j < 3; j++) {
			char name[KEY_TYPE_NBYTES];

			format_type_name(&key, orders[j], name);
			if (count_edits(typo, name) < n_edits)
				suggest_if_closer(typo, name, name, &n_edits, text);
		}
	return *text;
}

/* Allow few edits, and no name that is closer to another type. */
static bool suggest_alias(const char *typo, char text[static KEY_TYPE_NBYTES])
{
	const unsigned half = (unsigned)(strlen(typo) + 1) / 2;
	unsigned n_edits = half < MAX_EDITS + 1 ? half : MAX_EDITS + 1;

	*text = '\0';
	for (unsigned i = 0; i < N_TYPE_ALIASES; i++)
		if (has_same_number(typo, type_aliases[i].text) &&
		    has_same_initial(typo, type_aliases[i].text))
			suggest_if_closer(typo, type_aliases[i].text, type_aliases[i].type,
					  &n_edits, text);
	for (unsigned i = 0; i < N_TYPE_ALIASES; i++)
		if (count_edits(typo, type_aliases[i].text) < n_edits)
			return false;
	for (unsigned i = 0; i < sizeof ambiguous_words / sizeof ambiguous_words[0]; i++)
		suggest_if_closer(typo, ambiguous_words[i], "", &n_edits, text);
	return *text;
}

bool key_suggest_type(const char *typo, char text[static KEY_TYPE_NBYTES])
{
	/* numpy's own notation has no near misses: <f16 is neither <f8 nor f16. */
	if (strlen(typo) >= MAX_NAME_NBYTES || strchr("<>|=", *typo))
		return false;
	return suggest_letter(typo, text) || suggest_lower_case(typo, text) ||
	       suggest_bits(typo, text) || suggest_type(typo, text) || suggest_alias(typo, text);
}
