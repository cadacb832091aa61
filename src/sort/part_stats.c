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
static void place_keys(struct part_notes *notes)
{
	const struct sort_spec *spec = notes->spec;
	const uint64_t begin = spec->count ? sizeof(uint64_t) : 0;
	uint64_t at = begin, n_kept = 0;

	for (uint32_t i = 0; i < notes->n_keys; i++) {
		struct key *key = &notes->keys[i];

		*key = spec->keys[i];
		key->offset = spec->keys_only ? at : begin + key->offset;
		at += key->nbytes;
		n_kept += key->nbytes;
	}
	notes->n_key_nbytes = n_kept < PARTS_MOST_KEY_NBYTES ? (uint32_t)n_kept :
							       PARTS_MOST_KEY_NBYTES;
}

int part_notes_open(const struct sort_spec *spec, const struct layout *layout,
		    struct part_notes *ret_notes)
{
	*ret_notes = (struct part_notes){
		.spec = spec,
		.record_nbytes = layout->output_nbytes,
		.hashes = layout->intake.has_count || layout->intake.has_position,
		.n_keys = spec->index ? 0 : spec->n_keys,
	};
	pthread_mutex_init(&ret_notes->lock, NULL);
	ret_notes->keys = calloc(ret_notes->n_keys + UINT64_C(1), sizeof *ret_notes->keys);
	ret_notes->notes = calloc(spec->n_part_files, sizeof *ret_notes->notes);
	if (!ret_notes->keys || !ret_notes->notes)
		return fail(-ENOMEM, "no memory for %u part files", spec->n_part_files);
	place_keys(ret_notes);
	return 0;
}

void part_notes_close(struct part_notes *notes)
{
	if (notes->spec)
		pthread_mutex_destroy(&notes->lock);
	free(notes->keys);
	free(notes->notes);
	*notes = (struct part_notes){ 0 };
}

/* As much of the keys as is kept. */
static void copy_keys(const struct part_notes *notes, const unsigned char *record,
		      unsigned char *ret_keys)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < notes->n_keys && n < notes->n_key_nbytes; i++) {
		const struct key *key = &notes->keys[i];
		const uint32_t left = notes->n_key_nbytes - n;
		const uint32_t nbytes = key->nbytes < left ? key->nbytes : left;

		memcpy(ret_keys + n, record + key->offset, nbytes);
		n += nbytes;
	}
}

static struct digest digest_of(const struct part_notes *notes, const unsigned char *records,
			       uint64_t n)
{
	struct digest digest = { .n_records = n };

	for (uint64_t i = 0; i < n; i++)
		digest.sum +=
			digest_record(records + i * notes->record_nbytes, notes->record_nbytes);
	return digest;
}

void part_notes_add(struct part_notes *notes, uint32_t part, uint64_t position, const void *records,
		    uint64_t n, const struct digest *digest)
{
	const unsigned char *first = records, *last = first + (n - 1) * notes->record_nbytes;
	const struct digest of_records = digest && !notes->hashes ? *digest :
								    digest_of(notes, records, n);
	struct part_note *note = &notes->notes[part];

	pthread_mutex_lock(&notes->lock);
	digest_add(&note->digest, of_records);
	if (note->first_end == 0 || position < note->first_end) {
		note->first_end = position + 1;
		copy_keys(notes, first, note->first);
	}
	if (position + n > note->last_end) {
		note->last_end = position + n;
		copy_keys(notes, last, note->last);
	}
	pthread_mutex_unlock(&notes->lock);
}

/* --- of several ranks --- */

/* What one of them knows of a part that it has written to. */
struct told_note {
	uint32_t part;
	struct part_note note;
};

static void add_note(struct part_note *sum, const struct part_note *note)
{
	digest_add(&sum->digest, note->digest);
	if (sum->first_end == 0 || note->first_end < sum->first_end) {
		sum->first_end = note->first_end;
		memcpy(sum->first, note->first, sizeof sum->first);
	}
	if (note->last_end > sum->last_end) {
		sum->last_end = note->last_end;
		memcpy(sum->last, note->last, sizeof sum->last);
	}
}

static bool is_known(const struct part_note *note)
{
	return note->first_end > 0;
}

/* To tell; returns how many. */
static size_t collect_notes(const struct part_notes *notes, struct told_note *ret_told)
{
	size_t n = 0;

	for (uint32_t i = 0; i < notes->spec->n_part_files; i++)
		if (is_known(&notes->notes[i])) {
			ret_told[n].part = i;
			ret_told[n++].note = notes->notes[i];
		}
	return n;
}

static int add_told(struct part_notes *notes, const struct told_note *told, size_t n)
{
	memset(notes->notes, 0, notes->spec->n_part_files * sizeof *notes->notes);
	for (size_t i = 0; i < n; i++) {
		if (told[i].part >= notes->spec->n_part_files || !is_known(&told[i].note))
			return fail(-EPROTO, "another rank tells of a part that there is not");
		add_note(&notes->notes[told[i].part], &told[i].note);
	}
	return 0;
}

int part_notes_meet(struct part_notes *notes, struct ranks *ranks)
{
	const unsigned n_ranks = ranks_size(ranks);
	struct told_note *mine = calloc(notes->spec->n_part_files, sizeof *mine);
	size_t *sizes = calloc(n_ranks, sizeof *sizes), nbytes = 0;
	void *all = NULL;
	int r = mine && sizes ? 0 :
				fail(-ENOMEM, "no memory for what %u ranks know of parts", n_ranks);

	if (r == 0)
		r = ranks_gather_all_varying(ranks, mine, collect_notes(notes, mine) * sizeof *mine,
					     &all, sizes);
	for (unsigned i = 0; i < n_ranks && r == 0; i++)
		nbytes += sizes[i];
	if (r == 0)
		r = add_told(notes, all, nbytes / sizeof *mine);
	free(all);
	free(sizes);
	free(mine);
	return r;
}

uint64_t part_notes_n_records(const struct part_notes *notes, uint32_t part)
{
	return notes->notes[part].digest.n_records;
}

/* --- the list --- */

/* As hexadecimal digits; NULL: there are none, or no memory. */
static char *spell(const struct part_notes *notes, const unsigned char *keys)
{
	static const char digits[] = "0123456789abcdef";
	char *text = notes->n_key_nbytes ? malloc(2 * notes->n_key_nbytes + 1) : NULL;

	for (uint32_t i = 0; text && i < notes->n_key_nbytes; i++) {
		text[2 * i] = digits[keys[i] >> 4];
		text[2 * i + 1] = digits[keys[i] & 15];
	}
	if (text)
		text[2 * notes->n_key_nbytes] = '\0';
	return text;
}

static int list_part(const struct part_notes *notes, uint32_t i, const struct part_place *place,
		     struct listed_part *part)
{
	const struct part_note *note = &notes->notes[i];

	*part = (struct listed_part){ .name = strdup(place->name),
				      .nbytes = place->nbytes,
				      .n_records = note->digest.n_records,
				      .checksum = note->digest.sum };
	if (note->digest.n_records) {
		part->first_key = spell(notes, note->first);
		part->last_key = spell(notes, note->last);
	}
	return part->name ? 0 : fail(-ENOMEM, "no memory for a part manifest");
}

int part_notes_list(const struct part_notes *notes, enum parts_content content,
		    const struct part_place *places, char **ret_text)
{
	const struct sort_spec *spec = notes->spec;
	struct parts_list list = {
		.content = content,
		.is_zstd = spec->zstd_level > 0,
		.record_nbytes = notes->record_nbytes,
		.header_nbytes = spec->header_nbytes,
		.keys = malloc((notes->n_keys + UINT64_C(1)) * sizeof *list.keys),
		.n_keys = notes->n_keys,
		.unique = spec->unique,
		.at_keys = spec->parts_at_keys || spec->unique,
		.parts = calloc(spec->n_part_files, sizeof *list.parts),
	};
	int r = list.keys && list.parts ? 0 : fail(-ENOMEM, "no memory for a part manifest");

	if (r == 0)
		memcpy(list.keys, notes->keys, notes->n_keys * sizeof *list.keys);
	for (uint32_t i = 0; i < spec->n_part_files && r == 0; i++) {
		r = list_part(notes, i, &places[i], &list.parts[i]);
		list.n_records += list.parts[i].n_records;
		list.n_parts = i + 1;
	}
	if (r == 0 && parts_list_divides_key(&list))
		r = fail(-EIO, "internal error: a key is in two part files; the "
			       "output was not written");
	if (r == 0)
		r = parts_list_format(&list, ret_text);
	parts_list_free(&list);
	return r;
}
