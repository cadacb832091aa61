/*
 * npy - the header of a .npy file (see npy.h)
 *
 * The text is Python's spelling of a dictionary, always written by the same function of numpy; what
 * is not spelled as that does it is not understood, which costs no more than a worse message.
 */
#include "io/input/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT_NBYTES = 4096, MOST_TYPE_NBYTES = 16, MOST_KEYS_NBYTES = 224, MAGIC_NBYTES = 6 };

/* A type of numpy, '<f8' say. */
struct item_type {
	char order; /* < > or | */
	char kind;
	uint64_t nbytes;
};

/* What is being understood. */
struct parsing {
	const char *at;
	struct npy *npy;
	bool fits;                   /* all keys have a type of gsort, and there is room for them */
	char type[MOST_TYPE_NBYTES]; /* of the first key */
	char keys[MOST_KEYS_NBYTES]; /* " -k 0:u64 -k 8:i64" */
	size_t n_keys, keys_nbytes;
};

/* --- types --- */

/* Units stand behind those of dates, '<M8[ns]'; a pickle's is '|O'. False if it is no type. */
static bool parse_type(const char *text, size_t n, struct item_type *ret_type)
{
	char *end;

	if (n < 2 || !strchr("<>|=", text[0]))
		return false;
	*ret_type = (struct item_type){ .order = text[0], .kind = text[1] };
	ret_type->nbytes = strtoull(text + 2, &end, 10);
	if (ret_type->kind == 'U')
		ret_type->nbytes *= 4;
	return ret_type->kind == 'O' || (ret_type->nbytes > 0 && ret_type->nbytes <= 65536);
}

/* The type of gsort, "u64be" say; "" if there is none. Complex numbers are two of it. */
static void name_type(const struct item_type *type, char name[static MOST_TYPE_NBYTES])
{
	const char *const order = type->order == '>' && type->nbytes > 1 ? "be" : "";
	const uint64_t nbytes = type->kind == 'c' ? type->nbytes / 2 : type->nbytes;
	const bool is_power = nbytes == 1 || nbytes == 2 || nbytes == 4 || nbytes == 8;
	const bool is_float = nbytes == 4 || nbytes == 8;

	name[0] = '\0';
	if (type->kind == 'S')
		snprintf(name, MOST_TYPE_NBYTES, "b%" PRIu64, nbytes);
	else if ((type->kind == 'f' || type->kind == 'c') && is_float)
		snprintf(name, MOST_TYPE_NBYTES, "f%" PRIu64 "%s", 8 * nbytes, order);
	else if ((type->kind == 'u' || type->kind == 'b') && is_power)
		snprintf(name, MOST_TYPE_NBYTES, "u%" PRIu64 "%s", 8 * nbytes, order);
	else if (strchr("imM", type->kind) && is_power)
		snprintf(name, MOST_TYPE_NBYTES, "i%" PRIu64 "%s", 8 * nbytes, order);
}

static void add_key(struct parsing *parsing, uint64_t offset, const char *type)
{
	const size_t room = sizeof parsing->keys - parsing->keys_nbytes;
	const int n = snprintf(parsing->keys + parsing->keys_nbytes, room, " -k %" PRIu64 ":%s",
			       offset, type);

	if (parsing->n_keys++ == 0)
		strcpy(parsing->type, type);
	parsing->fits &= *type && (size_t)n < room;
	parsing->keys_nbytes += (size_t)n < room ? (size_t)n : 0;
}

/* A field, behind those that came before. */
static void add_field(struct parsing *parsing, const struct item_type *type)
{
	char name[MOST_TYPE_NBYTES];

	name_type(type, name);
	parsing->npy->has_objects |= type->kind == 'O';
	if (type->kind != 'V')
		add_key(parsing, parsing->npy->item_nbytes, name);
	if (type->kind == 'c')
		add_key(parsing, parsing->npy->item_nbytes + type->nbytes / 2, name);
	parsing->npy->item_nbytes += type->nbytes;
}

/* --- the text --- */

static bool take(struct parsing *parsing, const char *word)
{
	const size_t n = strlen(word);

	if (strncmp(parsing->at, word, n) != 0)
		return false;
	parsing->at += n;
	return true;
}

/* 'quoted', without escapes. */
static bool take_quoted(struct parsing *parsing, const char **ret_text, size_t *ret_n)
{
	const char *end;

	if (!take(parsing, "'"))
		return false;
	end = strchr(parsing->at, '\'');
	if (!end || memchr(parsing->at, '\\', (size_t)(end - parsing->at)))
		return false;
	*ret_text = parsing->at;
	*ret_n = (size_t)(end - parsing->at);
	parsing->at = end + 1;
	return true;
}

/* ('name', '<f8'): fields of several numbers, and fields that have fields, are not understood. */
static bool take_field(struct parsing *parsing)
{
	const char *text;
	struct item_type type;
	size_t n;

	if (!take(parsing, "(") || !take_quoted(parsing, &text, &n) || !take(parsing, ", ") ||
	    !take_quoted(parsing, &text, &n) || !parse_type(text, n, &type) || !take(parsing, ")"))
		return false;
	add_field(parsing, &type);
	return true;
}

static bool take_fields(struct parsing *parsing)
{
	do {
		if (!take_field(parsing))
			return false;
	} while (take(parsing, ", "));
	return take(parsing, "]");
}

/* One number without fields. */
static bool take_plain(struct parsing *parsing)
{
	struct item_type type;
	const char *text;
	size_t n;

	if (!take_quoted(parsing, &text, &n) || !parse_type(text, n, &type))
		return false;
	add_field(parsing, &type);
	return true;
}

static void write_options(const struct parsing *parsing, bool is_plain)
{
	struct npy *npy = parsing->npy;

	if (!parsing->fits || parsing->n_keys == 0 || npy->has_objects)
		return;
	if (is_plain && parsing->n_keys == 1)
		snprintf(npy->options, sizeof npy->options, "-t %s", parsing->type);
	else
		snprintf(npy->options, sizeof npy->options, "-R %" PRIu64 "%s", npy->item_nbytes,
			 parsing->keys);
}

/* {'descr': ..., */
static void parse_description(const char *text, struct npy *npy)
{
	struct parsing parsing = { .npy = npy, .fits = true };
	const char *begin = strstr(text, "'descr': ");
	bool is_plain;

	if (!begin)
		return;
	parsing.at = begin + strlen("'descr': ");
	is_plain = *parsing.at == '\'';
	if (is_plain ? take_plain(&parsing) : take(&parsing, "[") && take_fields(&parsing))
		write_options(&parsing, is_plain);
	else
		npy->item_nbytes = 0;
}

/* 'shape': (1000, 3), */
static unsigned count_dimensions(const char *text)
{
	const char *at = strstr(text, "'shape': (");
	unsigned n = 0;

	if (!at)
		return 0;
	for (at += strlen("'shape': ("); *at && *at != ')'; at++)
		n += *at >= '0' && *at <= '9' && (at[1] < '0' || at[1] > '9');
	return n;
}

bool npy_parse(const unsigned char *bytes, size_t n, struct npy *ret_npy)
{
	struct npy npy = { 0 };
	char text[MOST_TEXT_NBYTES + 1];
	size_t begin, nbytes;

	if (n < 12 || memcmp(bytes, "\x93NUMPY", MAGIC_NBYTES) != 0 || bytes[6] < 1 ||
	    bytes[6] > 3 || bytes[7] != 0)
		return false;
	begin = bytes[6] == 1 ? 10 : 12;
	npy.header_nbytes = begin + bytes[8] + ((uint64_t)bytes[9] << 8);
	if (bytes[6] > 1)
		npy.header_nbytes += ((uint64_t)bytes[10] << 16) + ((uint64_t)bytes[11] << 24);
	nbytes = n < npy.header_nbytes ? n - begin : npy.header_nbytes - begin;
	nbytes = nbytes < MOST_TEXT_NBYTES ? nbytes : MOST_TEXT_NBYTES;
	memcpy(text, bytes + begin, nbytes);
	text[nbytes] = '\0';
	parse_description(text, &npy);
	npy.n_dimensions = count_dimensions(text);
	*ret_npy = npy;
	return true;
}
