/*
 * key_type - the table of types, and their spellings (see key_type.h)
 */
#include "src/record/key_type.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Bit n of a set of widths: n bytes. */
#define WIDTH(n) (1u << (n))
#define ALL_WIDTHS 0x1fffeu /* 1 to 16 */

enum { MOST_WIDTH = 16, MOST_NAME_NBYTES = 24 };

static const struct kind {
	const char *letters;
	uint32_t widths;
	bool has_sign, is_float;
	bool counts_bytes; /* the number in the name; else bits */
	bool is_one;       /* there is no number */
	bool has_orders;   /* :n and :t; */
	bool is_numeric;   /* the first of these, if none is given */
	uint8_t n_exponent_bits;
} kinds[] = {
	[KEY_UNSIGNED] = { .letters = "u", .widths = ALL_WIDTHS },
	[KEY_SIGNED] = { .letters = "i", .widths = ALL_WIDTHS, .has_sign = true },
	/* The exponent's bits are those of the width: see key_n_fraction_bits(). */
	[KEY_FLOAT] = { .letters = "f",
			.widths = WIDTH(2) | WIDTH(4) | WIDTH(8),
			.has_sign = true,
			.is_float = true,
			.has_orders = true },
	[KEY_BRAIN] = { .letters = "bf",
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
		       .is_numeric = true },
	[KEY_BOOL] = { .letters = "bool", .widths = WIDTH(1), .is_one = true },
	[KEY_BYTES] = { .letters = "b", .counts_bytes = true }, /* of any width */
};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* C's names are those of Linux on 64 bits, where char has a sign. */
static const struct spelling {
	const char *text, *type;
} spellings[] = {
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

enum { N_SPELLINGS = sizeof spellings / sizeof spellings[0] };

/* numpy's letter of a kind, behind which the number is of bytes. */
static const struct numpy_kind {
	char letter;
	enum key_kind kind;
	bool needs_order; /* without < or > it is not numpy's: u8 is a byte, not eight of them */
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
	return nbytes <= MOST_WIDTH && (kinds[kind].widths >> nbytes & 1);
}

static struct key make_key(enum key_kind kind, unsigned long nbytes, bool big_endian)
{
	return (struct key){ .nbytes = (uint32_t)nbytes,
			     .kind = kind,
			     .big_endian = big_endian || kind == KEY_BYTES,
			     .numeric = kinds[kind].is_numeric };
}

/* Digits, of which the first is not 0, and what is behind them. */
static bool take_number(const char **at, unsigned long *ret_number)
{
	char *end;

	if (**at < '1' || **at > '9')
		return false;
	errno = 0;
	*ret_number = strtoul(*at, &end, 10);
	*at = end;
	return errno == 0;
}

/* What is left of a name. */
static bool take_order(const char *at, bool *ret_big_endian)
{
	*ret_big_endian = strcmp(at, "be") == 0;
	return !*at || *ret_big_endian || strcmp(at, "le") == 0;
}

/* "bool", or letters and a number, and the order of bytes, if they have one. */
static bool parse_kind(const char *text, enum key_kind kind, struct key *ret_key)
{
	const struct kind *row = &kinds[kind];
	const size_t n = strlen(row->letters);
	const char *at = text + n;
	unsigned long number = 8;
	bool big_endian = row->counts_bytes;

	if (strncmp(text, row->letters, n) != 0 || (!row->is_one && !take_number(&at, &number)))
		return false;
	if (row->counts_bytes ? *at != '\0' : number % 8 != 0 || !take_order(at, &big_endian))
		return false;
	if (!row->counts_bytes)
		number /= 8;
	if (!has_width(kind, number))
		return false;
	*ret_key = make_key(kind, number, big_endian);
	return true;
}

static bool parse_own(const char *text, struct key *ret_key)
{
	for (unsigned i = 0; i < N_KINDS; i++)
		if (parse_kind(text, (enum key_kind)i, ret_key))
			return true;
	return false;
}

/* A name of C, or of Python; the order of bytes may follow it. */
static bool parse_spelling(const char *text, struct key *ret_key)
{
	for (unsigned i = 0; i < N_SPELLINGS; i++) {
		const size_t n = strlen(spellings[i].text);
		bool big_endian;

		if (strncmp(text, spellings[i].text, n) != 0 ||
		    !take_order(text + n, &big_endian) || !parse_own(spellings[i].type, ret_key))
			continue;
		ret_key->big_endian = big_endian;
		return true;
	}
	return false;
}

/* "[ns]", which does not matter to the order; or nothing. */
static bool is_unit(enum key_kind kind, const char *at)
{
	return !*at || (kind == KEY_TIME && *at == '[' && at[strlen(at) - 1] == ']');
}

/* "<f4", ">i8", "|b1", "S10", "<M8[ns]": bytes, not bits. */
static bool parse_numpy(const char *text, struct key *ret_key)
{
	const bool has_order = *text && strchr("<>|=", *text);
	const char *at = text + has_order;
	const char letter = *at++;
	unsigned long nbytes;

	for (unsigned i = 0; letter && i < N_NUMPY_KINDS; i++) {
		const struct numpy_kind *row = &numpy_kinds[i];

		if (row->letter != letter || (row->needs_order && !has_order))
			continue;
		if (!take_number(&at, &nbytes) || !is_unit(row->kind, at) ||
		    !has_width(row->kind, nbytes))
			return false;
		*ret_key = make_key(row->kind, nbytes, *text == '>');
		return true;
	}
	return false;
}

/* Parse the order behind a type: nothing, ":n" or ":numpy", ":t" or ":total". */
static bool take_order_of_values(const char *at, struct key *key)
{
	const bool is_numpy = strcmp(at, ":n") == 0 || strcmp(at, ":numpy") == 0;

	if (!*at)
		return true;
	if (!key_has_orders(key) ||
	    !(is_numpy || strcmp(at, ":t") == 0 || strcmp(at, ":total") == 0))
		return false;
	key->numeric = is_numpy;
	key->has_order = true;
	return true;
}

int key_parse_type(const char *text, struct key *ret_key)
{
	const size_t n = strcspn(text, ":");
	char name[MOST_NAME_NBYTES];
	struct key key;

	if (n >= sizeof name)
		return -EINVAL;
	memcpy(name, text, n);
	name[n] = '\0';
	if (!parse_own(name, &key) && !parse_spelling(name, &key) && !parse_numpy(name, &key))
		return -EINVAL;
	if (!take_order_of_values(text + n, &key))
		return -EINVAL;
	*ret_key = key;
	return 0;
}

/* With `order` behind it, where the type has one. */
static void name_type(const struct key *key, const char *order, char text[static KEY_TYPE_NBYTES])
{
	const struct kind *row = &kinds[key->kind];

	if (row->is_one)
		snprintf(text, KEY_TYPE_NBYTES, "%s", row->letters);
	else if (row->counts_bytes)
		snprintf(text, KEY_TYPE_NBYTES, "%s%u", row->letters, (unsigned)key->nbytes);
	else
		snprintf(text, KEY_TYPE_NBYTES, "%s%u%s", row->letters, (unsigned)key->nbytes * 8,
			 order);
}

void key_format_type(const struct key *key, char text[static KEY_TYPE_NBYTES])
{
	name_type(key, key->big_endian ? "be" : "le", text);
	if (key->numeric != kinds[key->kind].is_numeric)
		strcat(text, key->numeric ? ":n" : ":t");
}

void keys_format(const struct key *keys, uint32_t n, uint64_t record_nbytes,
		 char text[static KEYS_TEXT_NBYTES])
{
	char type[KEY_TYPE_NBYTES];
	size_t at = 0;

	if (n == 1 && keys[0].nbytes == record_nbytes) {
		key_format_type(&keys[0], text);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		key_format_type(&keys[i], type);
		at += (size_t)snprintf(text + at, KEYS_TEXT_NBYTES - at, "%s%" PRIu64 ":%s%s",
				       i ? "," : "", keys[i].offset, type,
				       keys[i].descending ? ":r" : "");
		if (at >= KEYS_TEXT_NBYTES) {
			strcpy(text + KEYS_TEXT_NBYTES - 4, "...");
			return;
		}
	}
}

bool key_type_at(unsigned i, struct key *ret_key)
{
	for (unsigned kind = 0; kind < N_KINDS; kind++)
		for (unsigned nbytes = 1; nbytes <= MOST_WIDTH; nbytes++)
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

bool key_has_alikes(const struct key *key)
{
	return key->numeric && (key_is_float(key) || key->kind == KEY_COMPLEX);
}

unsigned key_n_fraction_bits(const struct key *key)
{
	static const uint8_t n_exponent_bits[MOST_WIDTH + 1] = { [2] = 5, [4] = 8, [8] = 11 };
	const unsigned of_kind = kinds[key->kind].n_exponent_bits;

	if (!key_is_float(key))
		return 0;
	return key->nbytes * 8 - 1 - (of_kind ? of_kind : n_exponent_bits[key->nbytes]);
}

/* --- did you mean --- */

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	const unsigned d = a < b ? a : b;

	return c < d ? c : d;
}

/* Letters to be put in, left out or changed to make one of the other (Levenshtein 1965). */
static unsigned count_slips(const char *a, const char *b)
{
	unsigned row[MOST_NAME_NBYTES + 1];
	const size_t n = strlen(b);

	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];

		row[0] = i + 1;
		for (unsigned j = 0; j < n; j++) {
			const bool same = tolower((unsigned char)a[i]) ==
					  tolower((unsigned char)b[j]);
			const unsigned changed = diagonal + !same;

			diagonal = row[j + 1];
			row[j + 1] = least(row[j] + 1, diagonal + 1, changed);
		}
	}
	return row[n];
}

/* "F32", "u32LE" */
static bool suggest_lower(const char *wrong, char text[static KEY_TYPE_NBYTES])
{
	size_t n = 0;
	struct key key;

	if (strlen(wrong) >= KEY_TYPE_NBYTES)
		return false;
	for (; wrong[n]; n++)
		text[n] = (char)tolower((unsigned char)wrong[n]);
	text[n] = '\0';
	return key_parse_type(text, &key) == 0;
}

/* Is it so near a width in bits that it is none in bytes? 7 is, and 12 is not. */
static bool is_near_bits(unsigned long number)
{
	return (number + 1) % 8 <= 2;
}

/* "u4": bytes were meant for bits. */
static bool suggest_bits(const char *wrong, char text[static KEY_TYPE_NBYTES])
{
	for (unsigned i = 0; i < N_KINDS; i++) {
		const size_t n = strlen(kinds[i].letters);
		const char *at = wrong + n;
		unsigned long nbytes;

		if (strncmp(wrong, kinds[i].letters, n) != 0 || !take_number(&at, &nbytes) ||
		    strlen(at) > 2 || kinds[i].counts_bytes ||
		    !has_width((enum key_kind)i, nbytes) || (nbytes > 1 && is_near_bits(nbytes)))
			continue;
		snprintf(text, KEY_TYPE_NBYTES, "%s%lu%s", kinds[i].letters, nbytes * 8, at);
		return true;
	}
	return false;
}

/* "u63", "u32b": of this kind, and at most one bit off. */
static bool is_near_type(const char *wrong, const struct key *key)
{
	const struct kind *row = &kinds[key->kind];
	const char *at = wrong + strlen(row->letters);
	const unsigned long nbits = key->nbytes * 8ul;
	unsigned long number;

	return !row->is_one && strncasecmp(wrong, row->letters, strlen(row->letters)) == 0 &&
	       take_number(&at, &number) && number + 1 >= nbits && number <= nbits + 1;
}

/* Names that are near some others, and mean something else, or none of the types that there are. */
static const char *const others[] = {
	"uint", /* 32 bits to C, and 64 to numpy */
	"bytes",
};

/* Of unsigned and signed the first letters differ. */
static bool begins_alike(const char *a, const char *b)
{
	return tolower((unsigned char)a[strspn(a, "_")]) ==
	       tolower((unsigned char)b[strspn(b, "_")]);
}

/* Are the digits of both the same? Of names that are words no other number is a slip. */
static bool has_same_number(const char *a, const char *b)
{
	a += strcspn(a, "0123456789");
	b += strcspn(b, "0123456789");
	return strspn(a, "0123456789") == strspn(b, "0123456789") &&
	       strncmp(a, b, strspn(a, "0123456789")) == 0;
}

/* Fewer slips than before. Of types that are as near as each other, none. */
static void suggest_if_near(const char *wrong, const char *name, const char *type,
			    unsigned *n_slips, char text[static KEY_TYPE_NBYTES])
{
	const unsigned n = count_slips(wrong, name);

	if (n > *n_slips)
		return;
	if (n < *n_slips)
		snprintf(text, KEY_TYPE_NBYTES, "%s", type);
	else if (strcmp(text, type) != 0)
		*text = '\0';
	*n_slips = n;
}

enum { MOST_SLIPS = 2 };

static bool suggest_type(const char *wrong, char text[static KEY_TYPE_NBYTES])
{
	static const char *const orders[] = { "", "be", "le" };
	unsigned n_slips = MOST_SLIPS + 1;
	struct key key;

	*text = '\0';
	for (unsigned i = 0; key_type_at(i, &key); i++)
		for (unsigned j = 0; is_near_type(wrong, &key) && j < 3; j++) {
			char name[KEY_TYPE_NBYTES];

			name_type(&key, orders[j], name);
			if (count_slips(wrong, name) < n_slips)
				suggest_if_near(wrong, name, name, &n_slips, text);
		}
	return *text;
}

/* Not so many slips that anything is like anything, and nothing that is nearer to another sign. */
static bool suggest_word(const char *wrong, char text[static KEY_TYPE_NBYTES])
{
	const unsigned half = (unsigned)(strlen(wrong) + 1) / 2;
	unsigned n_slips = half < MOST_SLIPS + 1 ? half : MOST_SLIPS + 1;

	*text = '\0';
	for (unsigned i = 0; i < N_SPELLINGS; i++)
		if (has_same_number(wrong, spellings[i].text) &&
		    begins_alike(wrong, spellings[i].text))
			suggest_if_near(wrong, spellings[i].text, spellings[i].type, &n_slips,
					text);
	for (unsigned i = 0; i < N_SPELLINGS; i++)
		if (count_slips(wrong, spellings[i].text) < n_slips)
			return false;
	for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++)
		suggest_if_near(wrong, others[i], "", &n_slips, text);
	return *text;
}

bool key_suggest_type(const char *wrong, char text[static KEY_TYPE_NBYTES])
{
	/* numpy's own spelling has no near misses: <f16 is no <f8, and no f16 either. */
	if (strlen(wrong) >= MOST_NAME_NBYTES || strchr("<>|=", *wrong))
		return false;
	return suggest_lower(wrong, text) || suggest_bits(wrong, text) ||
	       suggest_type(wrong, text) || suggest_word(wrong, text);
}
