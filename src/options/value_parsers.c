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

enum { MAX_GPUS = 64, MAX_SHARDS = 1000000 };

int value_parse_nothing(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	(void)argument;
	(void)target;
	return 0;
}

/* Unlike other sizes 0 makes sense: sort in memory or not at all. */
int value_parse_temp_limit(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	char spelling[OPTION_SPELLING_NBYTES];

	return size_parse_option(option_format_name(spec, spelling), argument, SIZE_OF_SPACE,
				 &options->temp_limit_nbytes);
}

int value_parse_temp_compress(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	char spelling[OPTION_SPELLING_NBYTES];

	if (compression_parse(argument, &options->compression) < 0)
		return fail(-EINVAL,
			    "%s: '%s' is none of auto, none, delta, zstd and zstd:LEVEL, "
			    "with a LEVEL from 1 to %d",
			    option_format_name(spec, spelling), argument, compression_max_level());
	return 0;
}

const char *value_temp_compress_word(unsigned i, char text[static OPTION_WORD_NBYTES])
{
	static const char *const modes[] = { "auto", "none", "delta", "zstd" };

	(void)text;
	return i < sizeof modes / sizeof modes[0] ? modes[i] : NULL;
}

int value_parse_zstd(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	char spelling[OPTION_SPELLING_NBYTES];

	if (compression_parse_level(argument, &options->zstd_level) < 0)
		return fail(-EINVAL, "%s: '%s' is no level from 1 to %d",
			    option_format_name(spec, spelling), argument, compression_max_level());
	return 0;
}

int value_parse_temp_dir(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];

	if (!*argument)
		return fail(-EINVAL, "%s: DIR cannot be empty", option_format_name(spec, spelling));
	return options_add_temp_dir(target, argument);
}

/* NAME=RATE, of n characters. */
static int parse_rate(const char *spelling, const char *text, size_t n, struct rank_rates *rates)
{
	const char *equals_sign = memchr(text, '=', n);
	char number[32] = "";
	size_t n_digits;

	if (!equals_sign)
		return fail(-EINVAL, "%s: '%.*s' is no rate, such as disk=2G", spelling, (int)n,
			    text);
	n_digits = n - (size_t)(equals_sign + 1 - text);
	if (n_digits < sizeof number)
		memcpy(number, equals_sign + 1, n_digits);
	for (enum rank_resource link = 0; link < N_RANK_RESOURCES; link++) {
		const char *name = rank_resource_name(link);

		if (strlen(name) == (size_t)(equals_sign - text) &&
		    memcmp(name, text, (size_t)(equals_sign - text)) == 0)
			return size_parse_option(spelling, number, SIZE_OF_DATA,
						 &rates->per_s[link]);
	}
	return fail(-EINVAL, "%s: '%.*s' is none of disk, network, messages and processors",
		    spelling, (int)(equals_sign - text), text);
}

int value_parse_rates(const struct option_spec *spec, const char *argument, void *target)
{
	struct rank_rates rates = { 0 };
	char spelling[OPTION_SPELLING_NBYTES];
	int r = 0;

	option_format_name(spec, spelling);
	for (const char *item = argument; item && r == 0;) {
		const size_t n = strcspn(item, ",");

		r = parse_rate(spelling, item, n, &rates);
		item = item[n] ? item + n + 1 : NULL;
	}
	if (r == 0)
		((struct options *)target)->rank_rates = rates;
	return r;
}

/* One number of a list into *ret_gpu; *at moves behind it and its comma. */
static bool parse_gpu(const char **cursor, unsigned *ret_gpu)
{
	char *end;
	unsigned long gpu;

	if (**cursor < '0' || **cursor > '9')
		return false;
	gpu = strtoul(*cursor, &end, 10);
	if (gpu > INT_MAX || (*end && *end != ',') || (*end == ',' && !end[1]))
		return false;
	*cursor = end + (*end == ',');
	*ret_gpu = (unsigned)gpu;
	return true;
}

/* Digits, and what they are; behind them. */
static bool parse_number(const char **cursor, unsigned long *ret_number)
{
	char *end;

	if (**cursor < '0' || **cursor > '9')
		return false;
	*ret_number = strtoul(*cursor, &end, 10);
	*cursor = end;
	return true;
}

/* The value of --shard. */
struct shard_choice {
	unsigned long shard, n_shards;
};

/* 0, or -EINVAL after a message. */
static int parse_shard(const char *argument, struct shard_choice *ret_choice)
{
	struct shard_choice choice = { 0 };
	const char *cursor = argument;

	if (!parse_number(&cursor, &choice.shard) || *cursor++ != '/' ||
	    !parse_number(&cursor, &choice.n_shards) || *cursor || choice.shard < 1 ||
	    choice.shard > choice.n_shards || choice.n_shards > MAX_SHARDS)
		return fail(-EINVAL,
			    "--shard: '%s' is not K/P, with K from 1 to P, and P at most %d; for "
			    "example 2/8",
			    argument, MAX_SHARDS);
	*ret_choice = choice;
	return 0;
}

int value_parse_shard(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	struct shard_choice choice = { 0 };
	const int r = parse_shard(argument, &choice);

	(void)spec;
	if (r < 0)
		return r;
	options->shard = (unsigned)choice.shard;
	options->n_shards = (unsigned)choice.n_shards;
	return 0;
}

int value_same_shard(const char *first, const char *second)
{
	struct shard_choice a = { 0 }, b = { 0 };
	int r = parse_shard(first, &a);

	if (r == 0)
		r = parse_shard(second, &b);
	return r < 0 ? r : a.shard == b.shard && a.n_shards == b.n_shards;
}

/* What --gpus says. */
struct gpu_list {
	unsigned gpus[MAX_GPUS], n;
	bool all_gpus; /* and none by number */
};

/* 0, or -EINVAL after a message. */
static int parse_gpus(const char *argument, struct gpu_list *ret_list)
{
	struct gpu_list list = { .all_gpus = strcmp(argument, "all") == 0 };
	const char *cursor = list.all_gpus ? "" : argument;

	while (!list.all_gpus && (*cursor || list.n == 0)) {
		if (list.n == MAX_GPUS || !parse_gpu(&cursor, &list.gpus[list.n]))
			return fail(-EINVAL,
				    "--gpus: '%s' is not a list of at most %d device numbers, such "
				    "as 0,1, or 'all'",
				    argument, MAX_GPUS);
		list.n++;
	}
	*ret_list = list;
	return 0;
}

int value_parse_gpus(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	struct gpu_list list = { .n = 0 };
	const int r = parse_gpus(argument, &list);

	(void)spec;
	if (r < 0)
		return r;
	free(options->gpus);
	options->n_gpus = 0;
	options->all_gpus = list.all_gpus;
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
int value_same_gpus(const char *first, const char *second)
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
	return a.n == b.n && a.all_gpus == b.all_gpus;
}
