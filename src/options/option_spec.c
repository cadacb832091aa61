/*
 * option_spec.c - options described by a table (see option_spec.h)
 */
#include "src/options/option_spec.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "io/spill/compression_policy.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"

enum { OPTION_MAX_MEMBER_NBYTES = 256 };

struct option_name option_format_name(const struct option_spec *spec)
{
	struct option_name name;

	if (spec->letter && !spec->name[1])
		snprintf(name.text, sizeof name, "-%c", spec->letter);
	else if (spec->letter)
		snprintf(name.text, sizeof name, "-%c, --%s", spec->letter, spec->name);
	else
		snprintf(name.text, sizeof name, "--%s", spec->name);
	return name;
}

const struct option_spec *option_find(const struct option_table *table, const char *name)
{
	const bool is_letter = name[0] && !name[1];

	for (unsigned i = 0; i < table->n_specs; i++)
		if (strcmp(table->specs[i].name, name) == 0 ||
		    (is_letter && table->specs[i].letter == name[0]))
			return &table->specs[i];
	return NULL;
}

const char *option_word(const struct option_spec *spec, unsigned i,
			char text[static OPTION_WORD_NBYTES])
{
	const struct option_choice *choice = spec->choices;

	if (!spec->argument)
		return NULL;
	if (spec->get_word)
		return spec->get_word(i, text);
	while (choice && choice->word && i--)
		choice++;
	return choice ? choice->word : NULL;
}

/* Return 1 if the argument gives the member its current value. The member is not changed. */
static int parses_to_same_value(const struct option_spec *spec, const char *argument, void *target)
{
	char saved[OPTION_MAX_MEMBER_NBYTES];
	void *member = option_member(spec, target);
	int r;

	if (!spec->member_nbytes)
		return 0;
	assert(spec->member_nbytes <= sizeof saved);
	memcpy(saved, member, spec->member_nbytes);
	r = spec->parse(spec, argument, target);
	if (r == 0)
		r = memcmp(saved, member, spec->member_nbytes) == 0;
	memcpy(member, saved, spec->member_nbytes);
	return r;
}

/*
 * Refuse a second value: the last one would win silently. Different texts may mean the same value
 * (1M and 1024K).
 */
static int check_duplicate(const struct option_spec *spec, const char *first, const char *argument,
			   void *target)
{
	int r = !strcmp(first, argument);

	if (r == 0)
		r = spec->same_value ? spec->same_value(first, argument) :
				       parses_to_same_value(spec, argument, target);
	if (r == 0)
		return fail(-EINVAL, "%s: given twice, as '%s' and as '%s'",
			    option_format_name(spec).text, first, argument);
	return r < 0 ? r : 0;
}

int option_set(const struct option_table *table, const struct option_spec *spec,
	       const char *argument, struct option_arguments *arguments, void *target)
{
	const unsigned row = (unsigned)(spec - table->specs);
	const char **first = &arguments->values[row];
	int r;

	if (!argument)
		argument = spec->default_value;
	if (argument && *first && !spec->repeats && !table->replaces_values) {
		r = check_duplicate(spec, *first, argument, target);
	} else {
		r = spec->parse(spec, argument, target);
		if (r >= 0 && !*first)
			*first = argument;
	}
	if (r >= 0)
		arguments->present |= UINT64_C(1) << row;
	return r;
}

/* Return the row of the first of at most n options that was given, or NULL. */
static const struct option_spec *find_present(const struct option_table *table,
					      const struct option_arguments *arguments,
					      const char *const *names, size_t n)
{
	for (size_t i = 0; i < n && names[i]; i++) {
		const struct option_spec *spec = option_find(table, names[i]);

		assert(spec);
		if (option_is_present(arguments, (unsigned)(spec - table->specs)))
			return spec;
	}
	return NULL;
}

int option_check_conflicts(const struct option_table *table,
			   const struct option_arguments *arguments)
{
	for (unsigned i = 0; i < table->n_conflicts; i++) {
		const struct option_conflict *conflict = &table->conflicts[i];
		const struct option_spec *a =
			find_present(table, arguments, conflict->a, CONFLICT_MAX_A);
		const struct option_spec *b =
			find_present(table, arguments, conflict->b, CONFLICT_MAX_B);

		if (a && b)
			return fail(-EINVAL, "%s and %s cannot be used together: %s",
				    option_format_name(a).text, option_format_name(b).text,
				    conflict->reason);
	}
	for (unsigned row = 0; row < table->n_specs; row++) {
		const struct option_spec *spec = &table->specs[row];

		if (spec->required && option_is_present(arguments, row) &&
		    !find_present(table, arguments, &spec->required, 1))
			return fail(-EINVAL, "%s requires %s", option_format_name(spec).text,
				    option_format_name(option_find(table, spec->required)).text);
	}
	return 0;
}

int option_parse_nothing(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	(void)argument;
	(void)target;
	return 0;
}

int option_parse_flag(const struct option_spec *spec, const char *argument, void *target)
{
	(void)argument;
	*(bool *)option_member(spec, target) = true;
	return 0;
}

int option_parse_value(const struct option_spec *spec, const char *argument, void *target)
{
	(void)argument;
	*(int *)option_member(spec, target) = spec->value;
	return 0;
}

int option_parse_choice(const struct option_spec *spec, const char *argument, void *target)
{
	for (const struct option_choice *choice = spec->choices; choice->word; choice++) {
		if (strcmp(choice->word, argument) != 0)
			continue;
		if (spec->member_nbytes == sizeof(bool))
			*(bool *)option_member(spec, target) = choice->value;
		else
			*(int *)option_member(spec, target) = choice->value;
		return 0;
	}
	return fail(-EINVAL, "%s: '%s' is invalid; use %s", option_format_name(spec).text, argument,
		    spec->argument);
}

int option_parse_text(const struct option_spec *spec, const char *argument, void *target)
{
	if (!*argument)
		return fail(-EINVAL, "%s: %s cannot be empty", option_format_name(spec).text,
			    spec->argument);
	*(const char **)option_member(spec, target) = argument;
	return 0;
}

int option_parse_limit(const struct option_spec *spec, const char *argument, void *target)
{
	return size_parse_option(option_format_name(spec).text, argument, SIZE_OF_SPACE,
				 option_member(spec, target));
}

int option_parse_size(const struct option_spec *spec, const char *argument, void *target)
{
	const int r = option_parse_limit(spec, argument, target);

	return r == 0 && *(uint64_t *)option_member(spec, target) == 0 ?
		       fail(-EINVAL, "%s: '%s': size must be above 0",
			    option_format_name(spec).text, argument) :
		       r;
}

int option_parse_nbytes(const struct option_spec *spec, const char *argument, void *target)
{
	uint64_t nbytes;
	const int r =
		size_parse_option(option_format_name(spec).text, argument, SIZE_OF_DATA, &nbytes);

	if (r < 0)
		return r;
	if (nbytes < spec->min || (spec->max && nbytes > spec->max))
		return fail(-EINVAL, "%s: '%s' is not a size from %" PRIu64 " to %" PRIu64 " bytes",
			    option_format_name(spec).text, argument, spec->min, spec->max);
	*(uint64_t *)option_member(spec, target) = nbytes;
	return 0;
}

const char *option_suffix_hint(const char *argument)
{
	const char *suffix = argument + strspn(argument, "0123456789");

	return suffix > argument && isalpha((unsigned char)*suffix) ?
		       "; suffixes are only for sizes" :
		       "";
}

int option_parse_count(const struct option_spec *spec, const char *argument, void *target)
{
	const size_t n_digits = strspn(argument, "0123456789");
	const uint64_t min = spec->min ? spec->min : 1;
	const uint64_t max = spec->max ? spec->max : UINT_MAX;
	uint64_t n = 0;

	for (const char *digit = argument; *digit && n <= max; digit++)
		n = n * 10 + (uint64_t)(*digit - '0');
	if (!n_digits || argument[n_digits] || n < min || n > max)
		return fail(-EINVAL, "%s: '%s' is not a number from %" PRIu64 " to %" PRIu64 "%s",
			    option_format_name(spec).text, argument, min, max,
			    option_suffix_hint(argument));
	*(unsigned *)option_member(spec, target) = (unsigned)n;
	return 0;
}

int option_parse_number(const struct option_spec *spec, const char *argument, void *target)
{
	uint64_t n = 0;
	bool fits = *argument != '\0';

	for (const char *digit = argument; *digit && fits; digit++)
		fits = *digit >= '0' && *digit <= '9' && !__builtin_mul_overflow(n, 10, &n) &&
		       !__builtin_add_overflow(n, (uint64_t)(*digit - '0'), &n);
	if (spec->max && (!fits || n > spec->max))
		return fail(-EINVAL, "%s: '%s' is not a number from 0 to %" PRIu64 "%s",
			    option_format_name(spec).text, argument, spec->max,
			    option_suffix_hint(argument));
	if (!fits)
		return fail(-EINVAL, "%s: '%s' is not a number from 0 to 2^64 - 1%s",
			    option_format_name(spec).text, argument, option_suffix_hint(argument));
	*(uint64_t *)option_member(spec, target) = n;
	return 0;
}

const struct option_choice option_shells[] = {
	{ "bash", SHELL_BASH }, { "zsh", SHELL_ZSH }, { "fish", SHELL_FISH }, { 0 }
};

int option_parse_builtin(const struct option_spec *spec, const char *argument, void *target)
{
	struct option_spec choice_spec = *spec;
	int choice = 0, r = 0;

	(void)target;
	choice_spec.offset = 0;
	if (spec->choices)
		r = option_parse_choice(&choice_spec, argument, &choice);
	return r < 0 ? r : spec->value + choice;
}

const char *option_shell_name(int result)
{
	const struct option_choice *choice = option_shells;

	while (choice->word && choice->value != result - BUILTIN_OPTION_COMPLETION)
		choice++;
	return choice->word;
}

static bool has_suffix(const char *path, const char *suffix)
{
	const size_t n = strlen(path), n_suffix = strlen(suffix);

	return n > n_suffix && strcmp(path + n - n_suffix, suffix) == 0;
}

int option_find_zstd_level(const char *path, int level)
{
	if (level || !path)
		return level;
	if (has_suffix(path, ".gz"))
		warn("%s: is not compressed; only an output named *.zst is", path);
	return has_suffix(path, ".zst") ? DEFAULT_ZSTD_LEVEL : 0;
}
