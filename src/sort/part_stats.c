/*
 * part_stats - what is known of each part of an output (see part_stats.h)
 */
#include "src/sort/part_stats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/comm/comm.h"

/* Where the keys stand in what is written: behind a count, or alone, one after the other. */
static void locate_output_keys(struct part_stats_table *table)
{
	const struct sort_spec *spec = table->spec;
	const uint64_t keys_begin = spec->count ? sizeof(uint64_t) : 0;
	uint64_t offset = keys_begin, n_keys_nbytes = 0;

	for (uint32_t i = 0; i < table->n_keys; i++) {
		struct key *key = &table->keys[i];

		*key = spec->keys[i];
		key->offset = spec->keys_only ? offset : keys_begin + key->offset;
		offset += key->nbytes;
		n_keys_nbytes += key->nbytes;
	}
	table->n_key_nbytes = n_keys_nbytes < PART_MANIFEST_MAX_KEY_NBYTES ?
				      (uint32_t)n_keys_nbytes :
				      PART_MANIFEST_MAX_KEY_NBYTES;
}

int part_stats_open(const struct sort_spec *spec, const struct layout *layout,
		    struct part_stats_table *ret_table)
{
	*ret_table = (struct part_stats_table){
		.spec = spec,
		.record_nbytes = layout->output_nbytes,
		.needs_digest = layout->projection.has_count || layout->projection.has_position,
		.n_keys = spec->argsort ? 0 : spec->n_keys,
	};
	pthread_mutex_init(&ret_table->lock, NULL);
	ret_table->keys = calloc(ret_table->n_keys + UINT64_C(1), sizeof *ret_table->keys);
	ret_table->stats = calloc(spec->n_part_files, sizeof *ret_table->stats);
	if (!ret_table->keys || !ret_table->stats)
		return fail(-ENOMEM, "no memory for %u part files", spec->n_part_files);
	locate_output_keys(ret_table);
	return 0;
}

void part_stats_close(struct part_stats_table *table)
{
	if (table->spec)
		pthread_mutex_destroy(&table->lock);
	free(table->keys);
	free(table->stats);
	*table = (struct part_stats_table){ 0 };
}

/* As much of the keys as is kept. */
static void copy_keys(const struct part_stats_table *table, const unsigned char *record,
		      unsigned char *ret_keys)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->n_keys && n < table->n_key_nbytes; i++) {
		const struct key *key = &table->keys[i];
		const uint32_t remaining = table->n_key_nbytes - n;
		const uint32_t nbytes = key->nbytes < remaining ? key->nbytes : remaining;

		memcpy(ret_keys + n, record + key->offset, nbytes);
		n += nbytes;
	}
}

static struct digest digest_part_records(const struct part_stats_table *table,
					 const unsigned char *records, uint64_t n)
{
	struct digest digest = { .n_records = n };

	for (uint64_t i = 0; i < n; i++)
		digest.sum +=
			digest_record(records + i * table->record_nbytes, table->record_nbytes);
	return digest;
}

void part_stats_add(struct part_stats_table *table, uint32_t part_index, uint64_t position,
		    const void *records, uint64_t n, const struct digest *digest)
{
	const unsigned char *first = records, *last = first + (n - 1) * table->record_nbytes;
	const struct digest records_digest =
		digest && !table->needs_digest ? *digest : digest_part_records(table, records, n);
	struct part_stats *stats = &table->stats[part_index];

	pthread_mutex_lock(&table->lock);
	digest_add(&stats->digest, records_digest);
	if (stats->first_end == 0 || position < stats->first_end) {
		stats->first_end = position + 1;
		copy_keys(table, first, stats->first);
	}
	if (position + n > stats->last_end) {
		stats->last_end = position + n;
		copy_keys(table, last, stats->last);
	}
	pthread_mutex_unlock(&table->lock);
}

/* --- of several ranks --- */

/* What one of them knows of a part that it has written to. */
struct indexed_part_stats {
	uint32_t part_index;
	struct part_stats stats;
};

static void merge_part_stats(struct part_stats *sum, const struct part_stats *stats)
{
	digest_add(&sum->digest, stats->digest);
	if (sum->first_end == 0 || stats->first_end < sum->first_end) {
		sum->first_end = stats->first_end;
		memcpy(sum->first, stats->first, sizeof sum->first);
	}
	if (stats->last_end > sum->last_end) {
		sum->last_end = stats->last_end;
		memcpy(sum->last, stats->last, sizeof sum->last);
	}
}

static bool has_part_records(const struct part_stats *stats)
{
	return stats->first_end > 0;
}

/* To tell; returns how many. */
static size_t collect_part_stats(const struct part_stats_table *table,
				 struct indexed_part_stats *ret_stats)
{
	size_t n = 0;

	for (uint32_t i = 0; i < table->spec->n_part_files; i++)
		if (has_part_records(&table->stats[i])) {
			ret_stats[n].part_index = i;
			ret_stats[n++].stats = table->stats[i];
		}
	return n;
}

static int merge_gathered_stats(struct part_stats_table *table,
				const struct indexed_part_stats *gathered, size_t n)
{
	memset(table->stats, 0, table->spec->n_part_files * sizeof *table->stats);
	for (size_t i = 0; i < n; i++) {
		if (gathered[i].part_index >= table->spec->n_part_files ||
		    !has_part_records(&gathered[i].stats))
			return fail(-EPROTO, "another rank tells of a part that there is not");
		merge_part_stats(&table->stats[gathered[i].part_index], &gathered[i].stats);
	}
	return 0;
}

int part_stats_gather(struct part_stats_table *table, struct comm *comm)
{
	const unsigned n_ranks = comm_size(comm);
	struct indexed_part_stats *own_stats = calloc(table->spec->n_part_files, sizeof *own_stats);
	size_t *sizes = calloc(n_ranks, sizeof *sizes), nbytes = 0;
	void *gathered = NULL;
	int r = own_stats && sizes ?
			0 :
			fail(-ENOMEM, "no memory for what %u ranks know of parts", n_ranks);

	if (r == 0)
		r = comm_allgatherv(comm, own_stats,
				    collect_part_stats(table, own_stats) * sizeof *own_stats,
				    &gathered, sizes);
	for (unsigned i = 0; i < n_ranks && r == 0; i++)
		nbytes += sizes[i];
	if (r == 0)
		r = merge_gathered_stats(table, gathered, nbytes / sizeof *own_stats);
	free(gathered);
	free(sizes);
	free(own_stats);
	return r;
}

uint64_t part_stats_n_records(const struct part_stats_table *table, uint32_t part_index)
{
	return table->stats[part_index].digest.n_records;
}

/* --- the list --- */

/* As hexadecimal digits; NULL: there are none, or no memory. */
static char *format_hex_keys(const struct part_stats_table *table, const unsigned char *keys)
{
	static const char digits[] = "0123456789abcdef";
	char *text = table->n_key_nbytes ? malloc(2 * table->n_key_nbytes + 1) : NULL;

	for (uint32_t i = 0; text && i < table->n_key_nbytes; i++) {
		text[2 * i] = digits[keys[i] >> 4];
		text[2 * i + 1] = digits[keys[i] & 15];
	}
	if (text)
		text[2 * table->n_key_nbytes] = '\0';
	return text;
}

static int describe_part_file(const struct part_stats_table *table, uint32_t i,
			      const struct part_file_info *file, struct manifest_part *entry)
{
	const struct part_stats *stats = &table->stats[i];

	*entry = (struct manifest_part){ .name = strdup(file->name),
					 .nbytes = file->nbytes,
					 .n_records = stats->digest.n_records,
					 .checksum = stats->digest.sum };
	if (stats->digest.n_records) {
		entry->first_key = format_hex_keys(table, stats->first);
		entry->last_key = format_hex_keys(table, stats->last);
	}
	return entry->name ? 0 : fail(-ENOMEM, "no memory for a part manifest");
}

int part_stats_format_manifest(const struct part_stats_table *table, enum part_file_content content,
			       const struct part_file_info *files, char **ret_text)
{
	const struct sort_spec *spec = table->spec;
	struct part_manifest list = {
		.content = content,
		.is_zstd = spec->zstd_level > 0,
		.record_nbytes = table->record_nbytes,
		.header_nbytes = spec->header_nbytes,
		.keys = malloc((table->n_keys + UINT64_C(1)) * sizeof *list.keys),
		.n_keys = table->n_keys,
		.unique = spec->unique,
		.split_by_keys = spec->split_by_keys || spec->unique,
		.parts = calloc(spec->n_part_files, sizeof *list.parts),
	};
	int r = list.keys && list.parts ? 0 : fail(-ENOMEM, "no memory for a part manifest");

	if (r == 0)
		memcpy(list.keys, table->keys, table->n_keys * sizeof *list.keys);
	for (uint32_t i = 0; i < spec->n_part_files && r == 0; i++) {
		r = describe_part_file(table, i, &files[i], &list.parts[i]);
		list.n_records += list.parts[i].n_records;
		list.n_parts = i + 1;
	}
	if (r == 0 && part_manifest_splits_key(&list))
		r = fail(-EIO, "internal error: a key is in two part files; the "
			       "output was not written");
	if (r == 0)
		r = part_manifest_format(&list, ret_text);
	part_manifest_free(&list);
	return r;
}
