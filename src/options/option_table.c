/*
 * option_table - options described by a table (see option_table.h)
 */
#include "src/options/option_table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/size.h"

enum { MOST_MEMBER_NBYTES = 256 };

static void *member_of(const struct option_spec *spec, void *target)
{
	return (char *)target + spec->offset;
}

const char *option_spell(const struct option_spec *spec, char text[static OPTION_SPELLING_NBYTES])
{
	if (spec->letter && !spec->name[1])
		snprintf(text, OPTION_SPELLING_NBYTES, "-%c", spec->letter);
	else if (spec->letter)
		snprintf(text, OPTION_SPELLING_NBYTES, "-%c, --%s", spec->letter, spec->name);
	else
		snprintf(text, OPTION_SPELLING_NBYTES, "--%s", spec->name);
	return text;
}

const struct option_spec *option_find(const struct option_table *table, const char *name)
{
	for (unsigned i = 0; i < table->n_specs; i++)
		if (!strcmp(table->specs[i].name, name))
			return &table->specs[i];
	return name[0] && !name[1] ? option_find_letter(table, name[0]) : NULL;
}

const struct option_spec *option_find_letter(const struct option_table *table, int letter)
{
	for (unsigned i = 0; i < table->n_specs; i++)
		if (letter && table->specs[i].letter == letter)
			return &table->specs[i];
	return NULL;
}

const char *option_word(const struct option_spec *spec, unsigned i,
			char text[static OPTION_WORD_NBYTES])
{
	const struct option_choice *choice = spec->choices;

	if (!spec->argument)
		return NULL;
	if (spec->words)
		return spec->words(i, text);
	while (choice && choice->word && i--)
		choice++;
	return choice ? choice->word : NULL;
}

static int refuse_second(const struct option_spec *spec, const char *first, const char *argument)
{
	char spelling[OPTION_SPELLING_NBYTES];

	return fail(-EINVAL, "%s: can be given once only, not as '%s' and as '%s'",
		    option_spell(spec, spelling), first, argument);
}

/* Does it mean the same? The member stays as the first has made it. 1 if so. */
static int try_second(const struct option_spec *spec, const char *argument, void *target)
{
	char before[MOST_MEMBER_NBYTES];
	void *member = member_of(spec, target);
	int r;

	if (!spec->member_nbytes)
		return 0;
	assert(spec->member_nbytes <= sizeof before);
	memcpy(before, member, spec->member_nbytes);
	r = spec->take(spec, argument, target);
	if (r == 0)
		r = memcmp(before, member, spec->member_nbytes) == 0;
	memcpy(member, before, spec->member_nbytes);
	return r;
}

/*
 * Of two different values the last would win in silence. Arguments that differ may be the same
 * value, 1M and 1024K.
 */
static int take_second(const struct option_spec *spec, const char *first, const char *argument,
		       void *target)
{
	int r = !strcmp(first, argument);

	if (r == 0)
		r = spec->means_same ? spec->means_same(first, argument) :
				       try_second(spec, argument, target);
	if (r < 0)
		return r;
	return r ? 0 : refuse_second(spec, first, argument);
}

int option_take(const struct option_table *table, const struct option_spec *spec,
		const char *argument, struct option_arguments *arguments, void *target)
{
	const unsigned row = (unsigned)(spec - table->specs);
	const char **first = &arguments->first[row];
	int r;

	if (!argument)
		argument = spec->otherwise;
	if (argument && *first && !spec->repeats) {
		r = take_second(spec, *first, argument, target);
	} else {
		r = spec->take(spec, argument, target);
		if (r >= 0)
			*first = argument;
	}
	if (r >= 0)
		arguments->given |= UINT64_C(1) << row;
	return r;
}

int option_check_conflicts(const struct option_table *table,
			   const struct option_arguments *arguments)
{
	char a[OPTION_SPELLING_NBYTES], b[OPTION_SPELLING_NBYTES];

	for (unsigned i = 0; i < table->n_conflicts; i++) {
		const struct option_conflict *conflict = &table->conflicts[i];

		if (arguments->given >> conflict->a & arguments->given >> conflict->b & 1)
			return fail(-EINVAL, "%s and %s cannot be used together: %s",
				    option_spell(&table->specs[conflict->a], a),
				    option_spell(&table->specs[conflict->b], b), conflict->why);
	}
	return 0;
}

int option_take_flag(const struct option_spec *spec, const char *argument, void *target)
{
	(void)argument;
	*(bool *)member_of(spec, target) = true;
	return 0;
}

int option_take_value(const struct option_spec *spec, const char *argument, void *target)
{
	(void)argument;
	*(int *)member_of(spec, target) = spec->value;
	return 0;
}

int option_take_choice(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];

	for (const struct option_choice *choice = spec->choices; choice->word; choice++) {
		if (!strcmp(choice->word, argument)) {
			*(int *)member_of(spec, target) = choice->value;
			return 0;
		}
	}
	return fail(-EINVAL, "%s: '%s' is none of %s", option_spell(spec, spelling), argument,
		    spec->argument);
}

int option_take_text(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];

	if (!*argument)
		return fail(-EINVAL, "%s: %s cannot be empty", option_spell(spec, spelling),
			    spec->argument);
	*(const char **)member_of(spec, target) = argument;
	return 0;
}

int option_take_size(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];
	uint64_t nbytes;
	const int r =
		size_parse_option(option_spell(spec, spelling), argument, SIZE_OF_SPACE, &nbytes);

	if (r < 0)
		return r;
	if (nbytes == 0)
		return fail(-EINVAL, "%s: '%s' is nothing to work with: give a size above 0",
			    spelling, argument);
	*(uint64_t *)member_of(spec, target) = nbytes;
	return 0;
}

int option_take_nbytes(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];
	uint64_t nbytes;
	const int r =
		size_parse_option(option_spell(spec, spelling), argument, SIZE_OF_DATA, &nbytes);

	if (r < 0)
		return r;
	if (nbytes < spec->least || (spec->most && nbytes > spec->most))
		return fail(-EINVAL, "%s: '%s' is not a size from %" PRIu64 " to %" PRIu64 " bytes",
			    spelling, argument, spec->least, spec->most);
	*(uint64_t *)member_of(spec, target) = nbytes;
	return 0;
}

int option_take_count(const struct option_spec *spec, const char *argument, void *target)
{
	const size_t n_digits = strspn(argument, "0123456789");
	const uint64_t least = spec->least ? spec->least : 1;
	const uint64_t most = spec->most ? spec->most : UINT_MAX;
	char spelling[OPTION_SPELLING_NBYTES];
	uint64_t n = 0;

	for (const char *digit = argument; *digit && n <= most; digit++)
		n = n * 10 + (uint64_t)(*digit - '0');
	if (!n_digits || argument[n_digits] || n < least || n > most)
		return fail(-EINVAL, "%s: '%s' is not a number from %" PRIu64 " to %" PRIu64,
			    option_spell(spec, spelling), argument, least, most);
	*(unsigned *)member_of(spec, target) = (unsigned)n;
	return 0;
}

int option_take_number(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];
	uint64_t n = 0;
	bool fits = *argument != '\0';

	for (const char *digit = argument; *digit && fits; digit++)
		fits = *digit >= '0' && *digit <= '9' && !__builtin_mul_overflow(n, 10, &n) &&
		       !__builtin_add_overflow(n, (uint64_t)(*digit - '0'), &n);
	option_spell(spec, spelling);
	if (spec->most && (!fits || n > spec->most))
		return fail(-EINVAL, "%s: '%s' is not a number from 0 to %" PRIu64, spelling,
			    argument, spec->most);
	if (!fits)
		return fail(-EINVAL, "%s: '%s' is not a number from 0 to 2^64 - 1", spelling,
			    argument);
	*(uint64_t *)member_of(spec, target) = n;
	return 0;
}
