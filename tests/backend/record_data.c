/*
 * record_data - records of a described layout (see record_data.h)
 */
#include "tests/backend/record_data.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backend/subject.h"
#include "tests/support/random_keys.h"

enum { MAX_KEYS = 6 };

/* OFFSET:TYPE[:n][:r] */
static struct key parse_key(const char *text)
{
	char type[16] = "";
	unsigned offset = 0;
	struct key key;

	subject_must(sscanf(text, "%u:%15s", &offset, type) == 2 ? 0 : -EINVAL, text);
	if (strlen(type) > 2 && strcmp(type + strlen(type) - 2, ":r") == 0)
		type[strlen(type) - 2] = '\0';
	subject_must(key_parse_type(type, &key), text);
	key.offset = offset;
	key.descending = strlen(text) > 2 && strcmp(text + strlen(text) - 2, ":r") == 0;
	return key;
}

static void describe_key(const struct key *key, char *description, size_t nbytes)
{
	const size_t used = strlen(description);

	snprintf(description + used, nbytes - used, " -k %s", key_format(key).text);
}

static void fill(unsigned char *records, uint64_t n, uint64_t record_nbytes, enum record_dist dist)
{
	for (uint64_t i = 0; i < n; i++) {
		unsigned char *record = records + i * record_nbytes;
		const uint64_t random = random_number(7, i);
		const uint64_t counted = dist == RECORDS_SORTED ? i / 3 : n - i / 3;

		for (uint64_t j = 0; j < record_nbytes; j++)
			record[j] =
				dist == RECORDS_RANDOM ?
					(unsigned char)random_number(i, j) :
				dist == RECORDS_EXTREME ?
					(unsigned char)"\x00\x7f\x80\xff"[random_number(i, j) & 3] :
				dist == RECORDS_BITS ? random_number(i, j) & 1 :
						       0x41;
		if (dist == RECORDS_NEARLY_EQUAL)
			record[random % record_nbytes] = (unsigned char)(random >> 40);
		if (dist == RECORDS_TWO)
			record[record_nbytes - 1] = random & 1;
		for (uint64_t j = 0; dist >= RECORDS_SORTED && j < 8 && j < record_nbytes; j++)
			record[j] = (unsigned char)(counted >> 8 * (7 - j));
	}
}

static void make(const struct layout_params *request, enum record_dist dist, uint64_t n,
		 struct record_data *data)
{
	subject_must(layout_make(request, &data->layout), "layout_make");
	data->n = n;
	data->records = malloc(n * request->record_nbytes + 1);
	subject_must(data->records ? 0 : -ENOMEM, "malloc");
	fill(data->records, n, request->record_nbytes, dist);
	snprintf(data->description, sizeof data->description,
		 "-R %u%s%s%s%s, distribution %d:", (unsigned)request->record_nbytes,
		 request->count ? " --count" : "", request->keys_only ? " --keys-only" : "",
		 request->argsort ? " --argsort" : "", request->keep_last ? " --keep=last" : "",
		 dist);
	for (uint32_t i = 0; i < request->n_keys; i++)
		describe_key(&request->keys[i], data->description, sizeof data->description);
}

void record_data_make(const struct record_layout *described, enum record_dist dist, uint64_t n,
		      struct record_data *ret_data)
{
	struct key keys[MAX_KEYS];
	struct layout_params request = { .record_nbytes = described->record_nbytes,
					 .keys = keys,
					 .force_records = true,
					 .keep_last = described->projections & RECORDS_KEEP_LAST,
					 .count = described->projections & RECORDS_COUNT,
					 .keys_only = described->projections & RECORDS_KEYS_ONLY,
					 .argsort = described->projections & RECORDS_INDEX };

	while (described->keys[request.n_keys]) {
		keys[request.n_keys] = parse_key(described->keys[request.n_keys]);
		request.n_keys++;
	}
	make(&request, dist, n, ret_data);
}

void record_data_make_random(uint64_t record_nbytes, uint64_t seed, uint64_t n,
			     struct record_data *ret_data)
{
	struct key keys[MAX_RANDOM_KEYS];
	const uint64_t random = random_number(seed, record_nbytes);
	const struct layout_params request = {
		.record_nbytes = record_nbytes,
		.keys = keys,
		.n_keys = random_keys(record_nbytes, random, keys),
		.force_records = true,
		.count = random >> 10 & 1,
		.keys_only = (random >> 11 & 3) == 0,
		.argsort = (random >> 13 & 3) == 0,
		.keep_last = random >> 15 & 1,
	};

	make(&request, (enum record_dist)(random >> 20) % N_RECORD_DISTS, n, ret_data);
}

void record_data_free(struct record_data *data)
{
	layout_free(&data->layout);
	free(data->records);
}
