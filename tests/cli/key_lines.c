/*
 * key_lines - print binary records as lines that GNU sort sorts by key
 *
 *	key_lines TYPE < records | LC_ALL=C sort -s -k1,1 | key_lines --bytes=2
 *	key_lines BYTES OFFSET:TYPE[:n|:t][:r]... < records | ...
 *
 * are the oracles for gsort -t TYPE and gsort -R BYTES -k ... . A line has four hexadecimal
 * columns: the keys in a form that sorts as text, the record, the keys as in the record, and the
 * position of the record, from 0, as a little-endian number of 8 bytes. --bytes=N prints the N-th
 * column of each line as bytes, like cut and xxd -r -p, in half of their time.
 *
 * The first column is derived from the definition of the types. It shares no code and no method
 * with the encoding of gsort. The most significant byte comes first. A signed number begins with a
 * digit: 0 if it is negative, else 1. Each digit d of a negative float is written as 15 - d,
 * because the order of negative floats is the reverse of their magnitude; so is each digit of a
 * descending key. In numeric order (:n) there is one zero, and a NaN begins with the digit 2.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 64, MAX_NBYTES = 1 << 16 };

struct printed_key {
	size_t offset, nbytes;
	char kind; /* u, i, f, c, t or b */
	unsigned n_fraction_bits;
	bool big_endian, descending, numeric;
};

static size_t record_nbytes;
static struct printed_key keys[MAX_KEYS];
static int n_keys;

/* Parse TYPE or TYPE:r of a key at `offset`. */
static bool add_key(const char *text, size_t offset)
{
	struct printed_key *key = &keys[n_keys++];
	const char *digits = text + strcspn(text, "0123456789");
	const bool is_bool = !strncmp(text, "bool", 4);
	char *end;
	unsigned long n;

	if (!strchr("uifctb", text[0]) || (!*digits && !is_bool))
		return false;
	n = is_bool ? 1 : strtoul(digits, &end, 10);
	if (is_bool)
		end = (char *)text + 4;
	*key = (struct printed_key){ .offset = offset,
				     .n_fraction_bits = 23,
				     .numeric = strstr(end, ":n") ||
						(text[0] == 't' && !strstr(end, ":t")),
				     .kind = is_bool                 ? 'u' :
					     !strncmp(text, "bf", 2) ? 'f' :
								       text[0],
				     .big_endian = !strncmp(end, "be", 2),
				     .descending = strstr(end, ":r") != NULL };
	if (key->kind == 'b')
		key->big_endian = true;
	key->nbytes = is_bool || key->kind == 'b' ? n : n / 8;
	if (key->kind == 'f' && key->nbytes == 2)
		key->n_fraction_bits = text[0] == 'b' ? 7 : 10;
	if (key->nbytes == (key->kind == 'c' ? 16 : 8))
		key->n_fraction_bits = 52;
	return key->nbytes >= 1;
}

static bool parse(int argc, char **argv)
{
	if (argc == 2) {
		if (!add_key(argv[1], 0))
			return false;
		record_nbytes = keys[0].nbytes;
	} else if (argc > 2) {
		record_nbytes = strtoul(argv[1], NULL, 10);
	}
	for (int i = 2; i < argc; i++) {
		const char *colon = strchr(argv[i], ':');

		if (n_keys == MAX_KEYS || !colon || !add_key(colon + 1, strtoul(argv[i], NULL, 10)))
			return false;
	}
	for (int i = 0; i < n_keys; i++)
		if (keys[i].offset + keys[i].nbytes > record_nbytes)
			return false;
	return record_nbytes >= 1 && record_nbytes <= MAX_NBYTES;
}

/* Not printf(), which would take most of the time of some tests. */
static void print_byte(unsigned byte)
{
	static const char digits[] = "0123456789abcdef";

	putchar_unlocked(digits[byte >> 4 & 0xf]);
	putchar_unlocked(digits[byte & 0xf]);
}

static void print_hex(const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		print_byte(bytes[i]);
}

/* Return the i-th byte of the part, most significant first. */
static unsigned byte_of(const struct printed_key *key, const unsigned char *bytes, size_t nbytes,
			size_t i)
{
	return bytes[key->big_endian ? i : nbytes - 1 - i];
}

static bool is_nan(const struct printed_key *key, const unsigned char *bytes, size_t nbytes)
{
	bool exponent = true, fraction = false;

	for (size_t i = 1; i < 8 * nbytes; i++) {
		const bool bit = byte_of(key, bytes, nbytes, i / 8) >> (7 - i % 8) & 1;

		if (i < 8 * nbytes - key->n_fraction_bits)
			exponent &= bit;
		else
			fraction |= bit;
	}
	return exponent && fraction;
}

/* Return whether all bits except the sign are 0. */
static bool is_zero(const struct printed_key *key, const unsigned char *bytes, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		if (byte_of(key, bytes, nbytes, i) & (i ? 0xff : 0x7f))
			return false;
	return true;
}

/*
 * Print a NaN in numeric order. All NaN are equal, and come after all numbers. Returns false for
 * other values.
 */
static bool print_nan(const struct printed_key *key, const unsigned char *bytes, size_t nbytes)
{
	const bool is_float = key->kind == 'f' || key->kind == 'c';
	const unsigned char invert = key->descending ? 0xff : 0;

	if (!key->numeric)
		return false;
	if (is_float ? !is_nan(key, bytes, nbytes) :
		       !is_zero(key, bytes, nbytes) || byte_of(key, bytes, nbytes, 0) != 0x80)
		return false;
	printf("%x", 2u ^ (key->descending ? 0xfu : 0));
	for (size_t i = 0; i < nbytes; i++)
		print_byte(invert);
	return true;
}

static void print_number(const struct printed_key *key, const unsigned char *bytes, size_t nbytes)
{
	const bool is_float = key->kind == 'f' || key->kind == 'c';
	const bool has_sign = key->kind == 'i' || key->kind == 't' || is_float;
	const bool is_numeric_zero = key->numeric && is_float && is_zero(key, bytes, nbytes);
	const bool negative = has_sign && !is_numeric_zero &&
			      byte_of(key, bytes, nbytes, 0) >= 0x80;
	unsigned char invert = negative && is_float ? 0xff : 0;

	if (print_nan(key, bytes, nbytes))
		return;
	if (has_sign)
		printf("%x", (negative ? 0u : 1u) ^ (key->descending ? 0xfu : 0));
	if (key->descending)
		invert ^= 0xff;
	for (size_t i = 0; i < nbytes; i++)
		print_byte((is_numeric_zero ? 0 : byte_of(key, bytes, nbytes, i)) ^ invert);
}

/* In numeric order: no NaN, then imaginary NaN, real NaN, both. */
static void print_complex(const struct printed_key *key, const unsigned char *bytes)
{
	const size_t n = key->nbytes / 2;
	const unsigned nans = 2u * is_nan(key, bytes, n) + is_nan(key, bytes + n, n);

	if (key->numeric)
		printf("%x", nans ^ (key->descending ? 0xfu : 0));
	print_number(key, bytes, n);
	print_number(key, bytes + n, n);
}

static void print_key(const struct printed_key *key, const unsigned char *bytes)
{
	if (key->kind == 'c')
		print_complex(key, bytes);
	else
		print_number(key, bytes, key->nbytes);
}

static void print_line(const unsigned char *record, unsigned long long position)
{
	for (int i = 0; i < n_keys; i++)
		print_key(&keys[i], record + keys[i].offset);
	putchar(' ');
	print_hex(record, record_nbytes);
	putchar(' ');
	for (int i = 0; i < n_keys; i++)
		print_hex(record + keys[i].offset, keys[i].nbytes);
	putchar(' ');
	for (int i = 0; i < 8; i++)
		print_byte((unsigned)(position >> 8 * i));
	putchar('\n');
}

/* Return the value of a hexadecimal digit; -1: it is none. */
static int digit_value(int c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Print a column of the lines on standard input as bytes. Returns 2 if it is not hexadecimal. */
static int print_column(unsigned long column)
{
	unsigned long at = 1;
	int c;

	while ((c = getchar_unlocked()) != EOF) {
		if (c == '\n') {
			at = 1;
		} else if (c == ' ') {
			at++;
		} else if (at == column) {
			const int high = digit_value(c), low = digit_value(getchar_unlocked());

			if (high < 0 || low < 0)
				return 2;
			putchar_unlocked(high << 4 | low);
		}
	}
	return !ferror(stdin) && fflush(stdout) == 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const char bytes_option[] = "--bytes=";
	static unsigned char record[MAX_NBYTES];
	unsigned long long position = 0;
	size_t n;

	if (argc == 2 && !strncmp(argv[1], bytes_option, sizeof bytes_option - 1))
		return print_column(strtoul(argv[1] + sizeof bytes_option - 1, NULL, 10));
	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: key_lines TYPE < records\n"
				"       key_lines BYTES OFFSET:TYPE[:r]... < records\n"
				"       key_lines --bytes=N < lines\n");
		return 2;
	}
	while ((n = fread(record, 1, record_nbytes, stdin)) == record_nbytes)
		print_line(record, position++);
	return n == 0 && !ferror(stdin) && fflush(stdout) == 0 ? 0 : 2;
}
