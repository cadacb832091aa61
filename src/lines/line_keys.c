/*
 * line_keys - the order of lines of text (see line_keys.h)
 */
#include "src/lines/line_keys.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/lines/line_scan.h"

/* In the order in which messages list them. */
static const char order_letters[] = "bdfghiMnrV";

static uint32_t letter_bit(char letter)
{
	const char *found = letter ? strchr(order_letters, letter) : NULL;

	return found ? UINT32_C(1) << (found - order_letters) : 0;
}

static bool has_letter(const struct line_order *order, char letter)
{
	return order->letters & letter_bit(letter);
}

void line_keys_init(struct line_keys *keys)
{
	*keys = (struct line_keys){ .separator = -1, .delimiter = '\n' };
}

void line_keys_free(struct line_keys *keys)
{
	free(keys->keys);
	keys->keys = NULL;
}

void line_key_buffer_free(struct line_key_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct line_key_buffer){ 0 };
}

int line_key_buffer_finish(struct line_key_buffer *buffer)
{
	const bool has_failed = buffer->has_failed;

	line_key_buffer_free(buffer);
	return has_failed ? fail(-ENOMEM, "no memory for the key of a line") : 0;
}

/* --- Options --- */

bool line_keys_add_letter(struct line_keys *keys, char letter)
{
	keys->global.letters |= letter_bit(letter);
	if (letter == 'b')
		keys->global.skip_end_blanks = true;
	return letter_bit(letter) != 0;
}

int line_keys_set_separator(struct line_keys *keys, const char *text)
{
	int separator = (unsigned char)text[0];

	if (!text[0])
		return fail(-EINVAL, "empty tab");
	if (text[1]) {
		if (strcmp(text, "\\0") != 0)
			return fail(-EINVAL, "multi-character tab '%s'%s", text,
				    strcmp(text, "\\t") == 0 ? "; a shell writes a tab as $'\\t'" :
							       "");
		separator = '\0';
	}
	if (keys->separator >= 0 && keys->separator != separator)
		return fail(-EINVAL, "incompatible tabs");
	keys->separator = separator;
	return 0;
}

const char *line_number_digits(const char *text)
{
	text += strspn(text, " \t\n\v\f\r");
	return text + (*text == '+');
}

/* Parse a number of a key; huge ones become SIZE_MAX. Returns false if there is none. */
static bool parse_count(const char **text, size_t *ret_count)
{
	const char *p = line_number_digits(*text);
	size_t count = 0;

	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(count, (size_t)10, &count) ||
		    __builtin_add_overflow(count, (size_t)(*p - '0'), &count))
			count = SIZE_MAX / 16;
	*text = p;
	*ret_count = count;
	return true;
}

static int fail_key(const char *text, const char *reason)
{
	return fail(-EINVAL, "%s: invalid field specification '%s'", reason, text);
}

/* Parse the ordering letters of a key's start or end. */
static void parse_letters(const char **text, bool is_end, struct line_order *order)
{
	for (; letter_bit(**text); (*text)++) {
		if (**text != 'b')
			order->letters |= letter_bit(**text);
		else if (is_end)
			order->skip_end_blanks = true;
		else
			order->letters |= letter_bit('b');
	}
}

/*
 * Parse F[.C][LETTERS], the start or the end of a key. At the end, character 0 means the end of the
 * field, as in GNU sort.
 */
static int parse_position(const char *text, const char **p, bool is_end, struct line_key *key)
{
	size_t *field = is_end ? &key->end_field : &key->start_field;
	size_t *character = is_end ? &key->end_char : &key->start_char;

	if (!parse_count(p, field))
		return fail_key(text, is_end ? "invalid number after ','" :
					       "invalid number at field start");
	if ((*field)-- == 0)
		return fail_key(text, "field number is zero");
	if (**p == '.') {
		(*p)++;
		if (!parse_count(p, character))
			return fail_key(text, "invalid number after '.'");
		if (!is_end && (*character)-- == 0)
			return fail_key(text, "character offset is zero");
	}
	parse_letters(p, is_end, &key->order);
	return 0;
}

int line_keys_add(struct line_keys *keys, const char *text)
{
	struct line_key key = { .end_field = SIZE_MAX };
	struct line_key *grown;
	const char *p = text;
	int r = parse_position(text, &p, false, &key);

	if (r == 0 && *p == ',') {
		p++;
		r = parse_position(text, &p, true, &key);
	}
	if (r == 0 && *p == 'R')
		return fail(-EINVAL, "-k %s: random order (R) is not supported", text);
	if (r == 0 && *p)
		return fail_key(text, "stray character in field spec");
	if (r < 0)
		return r;
	grown = reallocarray(keys->keys, keys->n_keys + 1, sizeof *grown);
	if (!grown)
		return fail(-ENOMEM, "no memory for %zu keys", keys->n_keys + 1);
	keys->keys = grown;
	grown[keys->n_keys++] = key;
	return 0;
}

static bool is_default_order(const struct line_order *order)
{
	return !(order->letters & ~letter_bit('r')) && !order->skip_end_blanks;
}

/* Refuse letters that exclude each other. The letter d implies i, which is then not listed. */
static int check_order(const struct line_order *order)
{
	static const char exclusive[] = "ghMn";
	char found[sizeof order_letters] = "";
	unsigned n = has_letter(order, 'd') || has_letter(order, 'i') || has_letter(order, 'V');
	size_t n_found = 0;

	for (const char *letter = exclusive; *letter; letter++)
		n += has_letter(order, *letter);
	if (n <= 1)
		return 0;
	for (const char *letter = order_letters; *letter; letter++)
		if (has_letter(order, *letter) && *letter != 'b' && *letter != 'r' &&
		    !(*letter == 'i' && has_letter(order, 'd')))
			found[n_found++] = *letter;
	return fail(-EINVAL, "options '-%s' are incompatible", found);
}

int line_keys_finish(const struct line_keys *requested, struct line_keys *ret_keys)
{
	const struct line_order *global = &requested->global;
	struct line_key *keys = malloc((requested->n_keys + 1) * sizeof *keys);
	size_t n = requested->n_keys;
	int r = 0;

	if (!keys)
		return fail(-ENOMEM, "no memory for %zu keys", n + 1);
	if (n)
		memcpy(keys, requested->keys, n * sizeof *keys);
	else if (!is_default_order(global))
		keys[n++] = (struct line_key){ .end_field = SIZE_MAX, .order = *global };
	for (size_t i = 0; i < n && r == 0; i++) {
		struct line_order *order = &keys[i].order;

		if (is_default_order(order) && !has_letter(order, 'r'))
			*order = *global;
		r = check_order(order);
	}
	*ret_keys = *requested;
	ret_keys->keys = keys;
	ret_keys->n_keys = n;
	return r;
}

bool line_keys_are_reversed(const struct line_keys *keys)
{
	return has_letter(&keys->global, 'r');
}

/* --- Fields --- */

static bool is_blank(unsigned char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static const unsigned char *skip_blanks(const unsigned char *p, const unsigned char *end)
{
	while (p < end && is_blank(*p))
		p++;
	return p;
}

static const unsigned char *skip_field(const unsigned char *p, const unsigned char *end)
{
	p = skip_blanks(p, end);
	while (p < end && !is_blank(*p))
		p++;
	return p;
}

static const unsigned char *advance(const unsigned char *p, const unsigned char *end, size_t n)
{
	return n < (size_t)(end - p) ? p + n : end;
}

/* Return where the n-th field after `p` begins, which begins a field itself. */
static const unsigned char *skip_fields(const struct line_keys *keys, const unsigned char *p,
					const unsigned char *end, size_t n)
{
	for (size_t i = 0; i < n && p < end; i++) {
		if (keys->separator < 0) {
			p = skip_field(p, end);
		} else {
			p = line_find_byte(p, end, (unsigned char)keys->separator);
			p += p < end;
		}
	}
	return p;
}

/* field: where the field in which the key ends begins */
static const unsigned char *key_end(const struct line_keys *keys, const struct line_key *key,
				    const unsigned char *field, const unsigned char *end)
{
	if (key->end_char == 0)
		return keys->separator < 0 ?
			       skip_field(field, end) :
			       line_find_byte(field, end, (unsigned char)keys->separator);
	if (key->order.skip_end_blanks)
		field = skip_blanks(field, end);
	return advance(field, end, key->end_char);
}

/* Return the text of a key, which is empty if it would end before its start. */
static struct line_view find_key(const struct line_keys *keys, const struct line_key *key,
				 const unsigned char *line, const unsigned char *line_end)
{
	const unsigned char *field = skip_fields(keys, line, line_end, key->start_field);
	const unsigned char *begin = field, *end = line_end;

	if (has_letter(&key->order, 'b'))
		begin = skip_blanks(begin, line_end);
	begin = advance(begin, line_end, key->start_char);
	if (key->end_field != SIZE_MAX) {
		if (key->end_field < key->start_field)
			field = skip_fields(keys, line, line_end, key->end_field);
		else
			field = skip_fields(keys, field, line_end,
					    key->end_field - key->start_field);
		end = key_end(keys, key, field, line_end);
	}
	return (struct line_view){ begin, end > begin ? (size_t)(end - begin) : 0 };
}

/* --- Normalised keys --- */

/* The byte 0 ends a text. So its bytes 0 and 1 are written as ESCAPE and their value plus 1. */
enum { ESCAPE = 1 };

/* The first byte of a decimal number, which is complemented if the number is negative. */
enum {
	DECIMAL_ZERO = 0x80,
	DECIMAL_POSITIVE = 0x81, /* plus the number of integer digits */
	DECIMAL_LONG = 0xff,     /* the number of digits follows in 8 bytes */
};

/* Make room for n more bytes. Returns false if there is none. */
static bool grow(struct line_key_buffer *out, size_t n)
{
	const size_t capacity = 2 * (out->n + n) + 64;
	unsigned char *grown = realloc(out->bytes, capacity + LINE_SLACK_NBYTES);

	if (!grown) {
		out->has_failed = true;
		return false;
	}
	out->bytes = grown;
	out->capacity = capacity;
	return true;
}

static inline void put_byte(struct line_key_buffer *out, unsigned char byte)
{
	if (out->n < out->capacity || grow(out, 1))
		out->bytes[out->n++] = byte;
}

static inline void put_bytes(struct line_key_buffer *out, const unsigned char *bytes, size_t n)
{
	if (n > 0 && (n <= out->capacity - out->n || grow(out, n))) {
		memcpy(out->bytes + out->n, bytes, n);
		out->n += n;
	}
}

/* Append a number of n_bytes, most significant byte first. */
static void put_number(struct line_key_buffer *out, uint64_t number, unsigned n_bytes)
{
	for (unsigned i = n_bytes; i-- > 0;)
		put_byte(out, (unsigned char)(number >> (8 * i)));
}

/* Append a length: one byte if it is short. */
static void put_length(struct line_key_buffer *out, size_t length)
{
	if (length < 255) {
		put_byte(out, (unsigned char)length);
	} else {
		put_byte(out, 255);
		put_number(out, length, 8);
	}
}

static void complement_from(struct line_key_buffer *out, size_t begin)
{
	unsigned char *bytes = out->bytes;
	const size_t n = out->n;

	for (size_t i = begin; i < n; i++)
		bytes[i] = (unsigned char)~bytes[i];
}

static unsigned char fold(unsigned char c)
{
	return c >= 'a' && c <= 'z' ? (unsigned char)(c - 'a' + 'A') : c;
}

static void fold_bytes(unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = fold(bytes[i]);
}

static bool is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Return whether the character is compared: -d and -i ignore some. */
static bool is_compared(const struct line_order *order, unsigned char c)
{
	if (has_letter(order, 'd'))
		return is_digit(c) || is_letter(c) || is_blank(c);
	return !has_letter(order, 'i') || (c >= ' ' && c <= '~');
}

/* Return whether a text has bytes that must be escaped. */
static bool needs_escapes(const unsigned char *p, const unsigned char *end)
{
	const uint64_t low_bits = UINT64_C(0x0101010101010101), high_bits = low_bits << 7;
	uint64_t word;

	for (; (size_t)(end - p) >= sizeof word; p += sizeof word) {
		memcpy(&word, p, sizeof word);
		/* Clearing the lowest bits makes the bytes 0 and 1 zero. Then find a zero byte. */
		word &= ~low_bits;
		if ((word - low_bits) & ~word & high_bits)
			return true;
	}
	while (p < end)
		if (*p++ <= ESCAPE)
			return true;
	return false;
}

/* The functions that may stop after max_nbytes return whether the key is complete. */
static bool put_text(const struct line_order *order, const unsigned char *p,
		     const unsigned char *end, size_t max_nbytes, struct line_key_buffer *out)
{
	const bool folds = has_letter(order, 'f');
	const bool filters = has_letter(order, 'd') || has_letter(order, 'i');
	const unsigned char *stop = end;

	/* A byte of the text that is not filtered makes at least one of the key. */
	if (!filters && out->n <= max_nbytes && (size_t)(end - p) > max_nbytes - out->n)
		stop = p + (max_nbytes - out->n) + 1;
	if (!filters && !needs_escapes(p, stop)) {
		const size_t begin = out->n;

		put_bytes(out, p, (size_t)(stop - p));
		if (folds)
			fold_bytes(out->bytes + begin, out->n - begin);
		p = stop;
	}
	for (; p < stop && out->n <= max_nbytes; p++) {
		if (filters && !is_compared(order, *p))
			continue;
		if (*p <= ESCAPE) {
			put_byte(out, ESCAPE);
			put_byte(out, *p + 1);
		} else {
			put_byte(out, folds ? fold(*p) : *p);
		}
	}
	if (p < end)
		return false;
	put_byte(out, 0);
	return true;
}

/* The digits of a decimal number in a text, without leading and trailing zeros. */
struct decimal {
	bool is_negative, is_zero;
	const unsigned char *integer, *integer_end, *fraction, *fraction_end;
	const unsigned char *end; /* after the number */
};

static struct decimal parse_decimal(const unsigned char *p, const unsigned char *end)
{
	struct decimal number = { 0 };

	p = skip_blanks(p, end);
	if (p < end && *p == '-') {
		number.is_negative = true;
		p++;
	}
	while (p < end && *p == '0')
		p++;
	number.integer = p;
	while (p < end && is_digit(*p))
		p++;
	number.integer_end = number.fraction = number.fraction_end = p;
	if (p < end && *p == '.') {
		number.fraction = ++p;
		for (; p < end && is_digit(*p); p++)
			;
		number.fraction_end = p;
		while (number.fraction_end > number.fraction && number.fraction_end[-1] == '0')
			number.fraction_end--;
	}
	number.end = p;
	number.is_zero = number.integer == number.integer_end &&
			 number.fraction == number.fraction_end;
	return number;
}

/* Return digit i of a number, from its integer part on; 0 after the last one. */
static unsigned char decimal_digit(const struct decimal *number, size_t i)
{
	const size_t n_integer = (size_t)(number->integer_end - number->integer);
	const unsigned char *p = i < n_integer ? number->integer + i :
						 number->fraction + (i - n_integer);

	return i < n_integer || p < number->fraction_end ? (unsigned char)(*p - '0') : 0;
}

/* Put two digits in a byte, so that the first eight bytes decide between most numbers. */
static void put_decimal(const struct decimal *number, struct line_key_buffer *out)
{
	const size_t begin = out->n;
	const size_t n_integer = (size_t)(number->integer_end - number->integer);
	const size_t n_fraction = (size_t)(number->fraction_end - number->fraction);

	if (number->is_zero) {
		put_byte(out, DECIMAL_ZERO);
		return;
	}
	if (n_integer < DECIMAL_LONG - DECIMAL_POSITIVE) {
		put_byte(out, (unsigned char)(DECIMAL_POSITIVE + n_integer));
	} else {
		put_byte(out, DECIMAL_LONG);
		put_number(out, n_integer, 8);
	}
	/* 0 ends the digits. */
	for (size_t i = 0; i < n_integer + n_fraction; i += 2)
		put_byte(out, (unsigned char)(1 + 10 * decimal_digit(number, i) +
					      decimal_digit(number, i + 1)));
	put_byte(out, 0);
	if (number->is_negative)
		complement_from(out, begin);
}

/* -h: the power of 1000 or 1024 that the letter after a number stands for; 0: none. folds: -f */
static int suffix_power(const struct decimal *number, const unsigned char *end, bool folds)
{
	static const char suffixes[] = "KMGTPEZY";
	const char *found;
	char letter;

	if (number->is_zero || number->end == end || !*number->end)
		return 0;
	letter = folds || *number->end == 'k' ? (char)fold(*number->end) : (char)*number->end;
	found = strchr(suffixes, letter);
	return found ? (int)(found - suffixes) + 1 : 0;
}

static void put_human(const struct line_order *order, const unsigned char *p,
		      const unsigned char *end, struct line_key_buffer *out)
{
	const struct decimal number = parse_decimal(p, end);
	const int power = suffix_power(&number, end, has_letter(order, 'f'));

	put_byte(out, (unsigned char)(0x80 + (number.is_negative ? -power : power)));
	put_decimal(&number, out);
}

static void put_month(const unsigned char *p, const unsigned char *end, struct line_key_buffer *out)
{
	static const char months[] = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
	unsigned char month = 0;

	p = skip_blanks(p, end);
	for (unsigned i = 0; end - p >= 3 && i < 12; i++)
		if (fold(p[0]) == (unsigned char)months[3 * i] &&
		    fold(p[1]) == (unsigned char)months[3 * i + 1] &&
		    fold(p[2]) == (unsigned char)months[3 * i + 2])
			month = (unsigned char)(i + 1);
	put_byte(out, month);
}

/* Append the value of a number of -g that is not NaN. */
static void put_long_double(long double value, struct line_key_buffer *out)
{
	const bool is_negative = value < 0;
	long double mantissa;
	int exponent = 0;
	size_t begin;

	if (value == 0) {
		put_byte(out, 0x80);
		return;
	}
	put_byte(out, is_negative ? 0x7f : 0x81);
	begin = out->n;
	if (isinf(value)) {
		put_number(out, UINT16_MAX, 2);
	} else {
		mantissa = frexpl(fabsl(value), &exponent);
		put_number(out, (uint64_t)(exponent + 20000), 2);
		for (int bits = 0; bits < LDBL_MANT_DIG; bits += 32) {
			mantissa = ldexpl(mantissa, 32);
			put_number(out, (uint32_t)mantissa, 4);
			mantissa -= (uint32_t)mantissa;
		}
	}
	if (is_negative)
		complement_from(out, begin);
}

static void put_general(const unsigned char *p, const unsigned char *end,
			struct line_key_buffer *out)
{
	const size_t nbytes = (size_t)(end - p);
	char text[128], *copy = nbytes < sizeof text ? text : malloc(nbytes + 1), *number_end;
	long double value;

	if (!copy) {
		out->has_failed = true;
		return;
	}
	if (nbytes)
		memcpy(copy, p, nbytes);
	copy[nbytes] = '\0';
	value = strtold(copy, &number_end);
	if (number_end == copy) {
		put_byte(out, 0);
	} else if (isnan(value)) {
		put_byte(out, 1);
		put_byte(out, signbit(value) != 0);
	} else {
		put_byte(out, 2);
		put_long_double(value, out);
	}
	if (copy != text)
		free(copy);
}

/*
 * -V: the suffix of a file name is the longest end that matches (\.[A-Za-z~][A-Za-z0-9~]*)*.
 * Returns where it begins.
 */
static const unsigned char *find_suffix(const unsigned char *name, const unsigned char *end)
{
	const unsigned char *suffix = end;
	const unsigned char *p = end;

	while (p > name) {
		/* One element from its end to its dot. */
		while (p > name && (is_digit(p[-1]) || is_letter(p[-1]) || p[-1] == '~'))
			p--;
		if (p == name || p[-1] != '.' || p == suffix || !(is_letter(*p) || *p == '~'))
			break;
		suffix = --p;
	}
	return suffix;
}

/*
 * -V: symbols and numbers in turn. '~' sorts before the end of the name, and that before letters,
 * and these before all others. A missing number is 0.
 */
static bool put_version_part(const unsigned char *p, const unsigned char *end, size_t max_nbytes,
			     struct line_key_buffer *out)
{
	enum { TILDE = 1, END = 2, FIRST_LETTER = 3, FIRST_OTHER = FIRST_LETTER + 'z' - 'A' + 1 };

	for (;;) {
		const unsigned char *digits;

		for (; p < end && !is_digit(*p) && out->n <= max_nbytes; p++) {
			if (*p == '~')
				put_byte(out, TILDE);
			else if (is_letter(*p))
				put_byte(out, (unsigned char)(FIRST_LETTER + *p - 'A'));
			else
				put_number(out, (FIRST_OTHER << 8) + *p, 2);
		}
		if (out->n > max_nbytes)
			return false;
		put_byte(out, END);
		while (p < end && *p == '0')
			p++;
		for (digits = p; p < end && is_digit(*p);)
			p++;
		put_length(out, (size_t)(p - digits));
		put_bytes(out, digits, (size_t)(p - digits));
		if (p == end)
			break;
	}
	put_byte(out, END);
	return true;
}

/*
 * -V: whole names decide between names that are equal without their suffixes. What precedes a
 * suffix may end with a zero or not, and a digit sorts before the dot of a suffix. So names without
 * a suffix come first, then suffixes after a digit, then others: "a" = "a0" < "a0.x" < "a.x".
 */
static bool put_version_suffix(const unsigned char *name, const unsigned char *suffix,
			       const unsigned char *end, size_t max_nbytes,
			       struct line_key_buffer *out)
{
	enum { NO_SUFFIX = 1, AFTER_DIGIT = 2, AFTER_SYMBOL = 3 };

	if (suffix == end) {
		put_byte(out, NO_SUFFIX);
		return true;
	}
	put_byte(out, suffix > name && is_digit(suffix[-1]) ? AFTER_DIGIT : AFTER_SYMBOL);
	return put_version_part(suffix, end, max_nbytes, out);
}

static bool put_version(const struct line_order *order, const unsigned char *p,
			const unsigned char *end, size_t max_nbytes, struct line_key_buffer *out)
{
	struct line_key_buffer filtered = { 0 };
	unsigned char class = 4;
	bool is_complete = true;
	size_t nbytes;

	if (has_letter(order, 'f') || has_letter(order, 'd') || has_letter(order, 'i')) {
		for (const unsigned char *c = p; c < end; c++)
			if (is_compared(order, *c))
				put_byte(&filtered, has_letter(order, 'f') ? fold(*c) : *c);
		out->has_failed |= filtered.has_failed;
		p = filtered.n ? filtered.bytes : end;
		end = p + filtered.n;
	}
	nbytes = (size_t)(end - p);
	if (nbytes == 0)
		class = 0;
	else if (*p == '.')
		class = nbytes == 1 ? 1 : nbytes == 2 && p[1] == '.' ? 2 : 3;
	put_byte(out, class);
	if (class >= 3) {
		const unsigned char *suffix = find_suffix(p, end);

		is_complete = put_version_part(p, suffix, max_nbytes, out) &&
			      put_version_suffix(p, suffix, end, max_nbytes, out);
	}
	line_key_buffer_free(&filtered);
	return is_complete;
}

static bool put_key(const struct line_keys *keys, const struct line_key *key,
		    const unsigned char *line, const unsigned char *line_end, size_t max_nbytes,
		    struct line_key_buffer *out)
{
	const struct line_order *order = &key->order;
	const struct line_view text = find_key(keys, key, line, line_end);
	const unsigned char *p = text.bytes, *end = p + text.nbytes;
	const size_t begin = out->n;
	bool is_complete = true;

	if (has_letter(order, 'n')) {
		const struct decimal number = parse_decimal(p, end);

		put_decimal(&number, out);
	} else if (has_letter(order, 'g')) {
		put_general(p, end, out);
	} else if (has_letter(order, 'h')) {
		put_human(order, p, end, out);
	} else if (has_letter(order, 'M')) {
		put_month(p, end, out);
	} else if (has_letter(order, 'V')) {
		is_complete = put_version(order, p, end, max_nbytes, out);
	} else {
		is_complete = put_text(order, p, end, max_nbytes, out);
	}
	if (has_letter(order, 'r'))
		complement_from(out, begin);
	return is_complete;
}

bool line_keys_normalise_prefix(const struct line_keys *keys, const unsigned char *line,
				size_t nbytes, size_t prefix_nbytes, struct line_key_buffer *out)
{
	out->n = 0;
	for (size_t i = 0; i < keys->n_keys; i++)
		if (out->n > prefix_nbytes ||
		    !put_key(keys, &keys->keys[i], line, line + nbytes, prefix_nbytes, out))
			return false;
	return true;
}

void line_keys_normalise(const struct line_keys *keys, const unsigned char *line, size_t nbytes,
			 struct line_key_buffer *out)
{
	line_keys_normalise_prefix(keys, line, nbytes, SIZE_MAX, out);
}

int line_keys_compare_normalised(const struct line_keys *keys, struct line_view a,
				 struct line_view b, size_t n_shared,
				 struct line_key_buffer scratch[2])
{
	struct line_key_buffer *x = &scratch[0], *y = &scratch[1];
	bool x_is_complete, y_is_complete;
	int order;

	for (size_t prefix_nbytes = n_shared + 64;; prefix_nbytes *= 64) {
		x_is_complete =
			line_keys_normalise_prefix(keys, a.bytes, a.nbytes, prefix_nbytes, x);
		y_is_complete =
			line_keys_normalise_prefix(keys, b.bytes, b.nbytes, prefix_nbytes, y);
		if (x->has_failed || y->has_failed)
			return 0;
		/* No normalised key is the beginning of another one. */
		order = memcmp(x->bytes, y->bytes, x->n < y->n ? x->n : y->n);
		if (order || (x_is_complete && y_is_complete))
			return order;
	}
}

int line_keys_compare(const struct line_keys *keys, struct line_view a, struct line_view b,
		      struct line_key_buffer scratch[2])
{
	int order;

	if (!line_keys_are_plain(keys)) {
		order = line_keys_compare_normalised(keys, a, b, 0, scratch);
		if (order || !line_keys_have_last_resort(keys))
			return order;
	}
	order = line_view_compare(a, b);
	return line_keys_are_reversed(keys) ? -order : order;
}

/* --- As text --- */

/* Write a letter for each ordering option. */
static void format_letters(const struct line_order *order, const char *letters, FILE *stream)
{
	for (; *letters; letters++)
		if (has_letter(order, *letters))
			fputc(*letters, stream);
}

/* Write a position in a line. character 0: the beginning of the field, or its end. */
static void format_position(size_t field, size_t character, FILE *stream)
{
	fprintf(stream, "%zu", field + 1);
	if (character)
		fprintf(stream, ".%zu", character);
}

/* Write a key as users do: "-k3,3n". Only b depends on the position after which it stands. */
static void format_key(const struct line_key *key, FILE *stream)
{
	fputs(" -k", stream);
	format_position(key->start_field, key->start_char ? key->start_char + 1 : 0, stream);
	format_letters(&key->order, "b", stream);
	if (key->end_field != SIZE_MAX) {
		fputc(',', stream);
		format_position(key->end_field, key->end_char, stream);
		if (key->order.skip_end_blanks)
			fputc('b', stream);
	}
	format_letters(&key->order, "dfghiMnrV", stream);
}

char *line_keys_format(const struct line_keys *keys)
{
	char *text = NULL;
	size_t nbytes;
	FILE *stream = open_memstream(&text, &nbytes);

	if (!stream)
		return NULL;
	fputs("--lines", stream);
	if (keys->delimiter == '\0')
		fputs(" -z", stream);
	if (keys->separator >= 0)
		fprintf(stream,
			keys->separator > ' ' && keys->separator < 127 ? " -t%c" : " -t\\%03o",
			keys->separator);
	for (size_t i = 0; i < keys->n_keys; i++)
		format_key(&keys->keys[i], stream);
	if (line_keys_are_reversed(keys))
		fputs(" -r", stream);
	if (keys->stable)
		fputs(" -s", stream);
	if (keys->unique)
		fputs(" -u", stream);
	if (fclose(stream) == 0)
		return text;
	free(text);
	return NULL;
}
