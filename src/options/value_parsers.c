/*
 * value_parsers - what options of gsort's own take (see value_parsers.h)
 */
#include "src/options/value_parsers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/options/options.h"
#include "src/options/options_finalize.h"

enum { MAX_GPUS = 64, MAX_PARTS = 1000000 };

int argument_take_nothing(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	(void)argument;
	(void)target;
	return 0;
}

/* Unlike other sizes 0 makes sense: sort in memory or not at all. */
int argument_take_temp_limit(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	char spelling[OPTION_SPELLING_NBYTES];

	return size_parse_option(option_spell(spec, spelling), argument, SIZE_OF_SPACE,
				 &options->temp_limit_nbytes);
}

int argument_take_compress(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	char spelling[OPTION_SPELLING_NBYTES];

	if (compression_parse(argument, &options->compression) < 0)
		return fail(-EINVAL,
			    "%s: '%s' is none of auto, none, delta, zstd and zstd:LEVEL, "
			    "with a LEVEL from 1 to %d",
			    option_spell(spec, spelling), argument, compression_most_level());
	return 0;
}

const char *argument_compress_mode(unsigned i, char text[static OPTION_WORD_NBYTES])
{
	static const char *const modes[] = { "auto", "none", "delta", "zstd" };

	(void)text;
	return i < sizeof modes / sizeof modes[0] ? modes[i] : NULL;
}

int argument_take_zstd(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	char spelling[OPTION_SPELLING_NBYTES];

	if (compression_parse_level(argument, &options->zstd_level) < 0)
		return fail(-EINVAL, "%s: '%s' is no level from 1 to %d",
			    option_spell(spec, spelling), argument, compression_most_level());
	return 0;
}

int argument_take_temp_dir(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];

	if (!*argument)
		return fail(-EINVAL, "%s: DIR cannot be empty", option_spell(spec, spelling));
	return options_add_temp_dir(target, argument);
}

/* NAME=RATE, of n characters. */
static int take_rate(const char *spelling, const char *text, size_t n, struct rank_rates *rates)
{
	const char *equals = memchr(text, '=', n);
	char number[32] = "";
	size_t n_digits;

	if (!equals)
		return fail(-EINVAL, "%s: '%.*s' is no rate, such as disk=2G", spelling, (int)n,
			    text);
	n_digits = n - (size_t)(equals + 1 - text);
	if (n_digits < sizeof number)
		memcpy(number, equals + 1, n_digits);
	for (enum rank_link link = 0; link < N_RANK_LINKS; link++) {
		const char *name = rank_link_name(link);

		if (strlen(name) == (size_t)(equals - text) &&
		    memcmp(name, text, (size_t)(equals - text)) == 0)
			return size_parse_option(spelling, number, SIZE_OF_DATA,
						 &rates->per_s[link]);
	}
	return fail(-EINVAL, "%s: '%.*s' is none of disk, network, messages and processors",
		    spelling, (int)(equals - text), text);
}

int argument_take_rates(const struct option_spec *spec, const char *argument, void *target)
{
	struct rank_rates rates = { 0 };
	char spelling[OPTION_SPELLING_NBYTES];
	int r = 0;

	option_spell(spec, spelling);
	for (const char *at = argument; at && r == 0;) {
		const size_t n = strcspn(at, ",");

		r = take_rate(spelling, at, n, &rates);
		at = at[n] ? at + n + 1 : NULL;
	}
	if (r == 0)
		((struct options *)target)->rank_rates = rates;
	return r;
}

/* One number of a list into *ret_gpu; *at moves behind it and its comma. */
static bool parse_gpu(const char **at, unsigned *ret_gpu)
{
	char *end;
	unsigned long gpu;

	if (**at < '0' || **at > '9')
		return false;
	gpu = strtoul(*at, &end, 10);
	if (gpu > INT_MAX || (*end && *end != ',') || (*end == ',' && !end[1]))
		return false;
	*at = end + (*end == ',');
	*ret_gpu = (unsigned)gpu;
	return true;
}

/* Digits, and what they are; behind them. */
static bool parse_number(const char **at, unsigned long *ret_number)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*ret_number = strtoul(*at, &end, 10);
	*at = end;
	return true;
}

/* The value of --shard. */
struct part_choice {
	unsigned long part, n_parts;
};

/* 0, or -EINVAL after a message. */
static int parse_part(const char *argument, struct part_choice *ret_choice)
{
	struct part_choice choice = { 0 };
	const char *at = argument;

	if (!parse_number(&at, &choice.part) || *at++ != '/' ||
	    !parse_number(&at, &choice.n_parts) || *at || choice.part < 1 ||
	    choice.part > choice.n_parts || choice.n_parts > MAX_PARTS)
		return fail(-EINVAL,
			    "--shard: '%s' is not K/P, with K from 1 to P, and P at most %d; for "
			    "example 2/8",
			    argument, MAX_PARTS);
	*ret_choice = choice;
	return 0;
}

int argument_take_part(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	struct part_choice choice = { 0 };
	const int r = parse_part(argument, &choice);

	(void)spec;
	if (r < 0)
		return r;
	options->part = (unsigned)choice.part;
	options->n_parts = (unsigned)choice.n_parts;
	return 0;
}

int argument_means_same_part(const char *first, const char *second)
{
	struct part_choice a = { 0 }, b = { 0 };
	int r = parse_part(first, &a);

	if (r == 0)
		r = parse_part(second, &b);
	return r < 0 ? r : a.part == b.part && a.n_parts == b.n_parts;
}

/* What --gpus says. */
struct gpu_list {
	unsigned gpus[MAX_GPUS], n;
	bool all; /* and none by number */
};

/* 0, or -EINVAL after a message. */
static int parse_gpus(const char *argument, struct gpu_list *ret_list)
{
	struct gpu_list list = { .all = strcmp(argument, "all") == 0 };
	const char *at = list.all ? "" : argument;

	while (!list.all && (*at || list.n == 0)) {
		if (list.n == MAX_GPUS || !parse_gpu(&at, &list.gpus[list.n]))
			return fail(-EINVAL,
				    "--gpus: '%s' is not a list of at most %d device numbers, such "
				    "as 0,1, or 'all'",
				    argument, MAX_GPUS);
		list.n++;
	}
	*ret_list = list;
	return 0;
}

int argument_take_gpus(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	struct gpu_list list = { .n = 0 };
	const int r = parse_gpus(argument, &list);

	(void)spec;
	if (r < 0)
		return r;
	free(options->gpus);
	options->n_gpus = 0;
	options->all_gpus = list.all;
	options->gpus = list.n ? malloc(list.n * sizeof *list.gpus) : NULL;
	if (list.n && !options->gpus)
		return fail(-ENOMEM, "--gpus: no memory for %u numbers", list.n);
	if (list.n)
		memcpy(options->gpus, list.gpus, list.n * sizeof *list.gpus);
	options->n_gpus = list.n;
	return 0;
}

static unsigned count_gpu(const struct gpu_list *list, unsigned gpu)
{
	unsigned n = 0;

	for (unsigned i = 0; i < list->n; i++)
		n += list->gpus[i] == gpu;
	return n;
}

/* In whatever order: it says which, and how often, and no more. */
int argument_means_same_gpus(const char *first, const char *second)
{
	struct gpu_list a = { .n = 0 }, b = { .n = 0 };
	int r = parse_gpus(first, &a);

	if (r == 0)
		r = parse_gpus(second, &b);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < a.n; i++)
		if (count_gpu(&a, a.gpus[i]) != count_gpu(&b, a.gpus[i]))
			return 0;
	return a.n == b.n && a.all == b.all;
}
