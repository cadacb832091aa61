/*
 * key_lines - binary records as lines that GNU sort puts in the order of their type
 *
 *	key_lines TYPE < records | LC_ALL=C sort | cut -d' ' -f2 | xxd -r -p
 *
 * is the oracle for gsort -t TYPE. A line is a key in hexadecimal, a blank, and the record in
 * hexadecimal. The key is derived from the definition of the types, and shares neither code nor
 * method with gsort's own encoding: the most significant byte is written first; a number with a
 * sign gets a digit in front, 0 if negative and 1 if not; and of a negative float, whose order is
 * that of its magnitude turned round, every digit d is written as 15 - d.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NBYTES = 64 };

struct type {
	char kind; /* u, i, f or b */
	size_t nbytes;
	bool big_endian;
};

static bool parse_type(const char *text, struct type *ret_type)
{
	char *end;
	const unsigned long n = strtoul(text + 1, &end, 10);

	*ret_type = (struct type){
		.kind = text[0],
		.nbytes = text[0] == 'b' ? n : n / 8,
		.big_endian = text[0] == 'b' || !strcmp(end, "be"),
	};
	return strchr("uifb", text[0]) && ret_type->nbytes >= 1 && ret_type->nbytes <= MAX_NBYTES;
}

static void print_key(const struct type *type, const unsigned char *record)
{
	const size_t top = type->big_endian ? 0 : type->nbytes - 1;
	const bool has_sign = type->kind == 'i' || type->kind == 'f';
	const bool negative = has_sign && record[top] >= 0x80;
	const unsigned char invert = negative && type->kind == 'f' ? 0xff : 0;

	if (has_sign)
		putchar(negative ? '0' : '1');
	for (size_t i = 0; i < type->nbytes; i++)
		printf("%02x", record[type->big_endian ? i : type->nbytes - 1 - i] ^ invert);
}

int main(int argc, char **argv)
{
	unsigned char record[MAX_NBYTES];
	struct type type;
	size_t n;

	if (argc != 2 || !parse_type(argv[1], &type)) {
		fprintf(stderr, "usage: key_lines TYPE < records\n");
		return 2;
	}
	while ((n = fread(record, 1, type.nbytes, stdin)) == type.nbytes) {
		print_key(&type, record);
		putchar(' ');
		for (size_t i = 0; i < type.nbytes; i++)
			printf("%02x", record[i]);
		putchar('\n');
	}
	return n == 0 && !ferror(stdin) && fflush(stdout) == 0 ? 0 : 2;
}
