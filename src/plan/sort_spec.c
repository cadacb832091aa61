/*
 * sort_spec - what follows from what a sort is asked for (see sort_spec.h)
 */
#include "src/plan/sort_spec.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

int spec_layout(const struct sort_spec *spec, struct layout *ret_layout)
{
	const struct layout_request request = {
		.record_nbytes = spec->record_nbytes,
		.keys = spec->keys,
		.n_keys = spec->n_keys,
		.compares = spec->unique || spec->merges || spec->checks || spec->keeps_ties ||
			    spec->parts_at_keys,
		.keeps_records = spec->limit != SORT_SPEC_UNLIMITED,
		.count = spec->count,
		.keys_only = spec->keys_only,
		.index = spec->index,
	};
	const int r = layout_make(&request, ret_layout);

	assert(r == 0 || r == -ENOMEM); /* the rest is the spec's to see to */
	return r;
}

/* Would what an input says of its records be wrong of those that are written? */
static bool counts_anew(const struct sort_spec *spec)
{
	return !spec->checks && !spec->records_only &&
	       (spec->unique || spec->limit != SORT_SPEC_UNLIMITED || spec->count ||
		spec->keys_only || spec->index || spec->n_inputs > 1 || spec->n_parts ||
		spec->n_part_files);
}

struct framing spec_framing(const struct sort_spec *spec)
{
	return (struct framing){
		.record_nbytes = spec->record_nbytes ? spec->record_nbytes : 1,
		.skip_nbytes = spec->skip_nbytes,
		.partial = spec->partial,
		.format = spec->format,
		.is_untyped = spec->said == RECORDS_NOTHING,
		.is_open = spec->said == RECORDS_NOTHING ||
			   (spec->said == RECORDS_CHOICES && !spec->record_nbytes),
		.is_typed = spec->said == RECORDS_TYPE,
		.counts_anew = counts_anew(spec),
		.takes_lists = spec->merges || spec->checks,
	};
}

/* --- records of which the input knows more --- */

/* Keys by their places, which must be what is there. */
static int place_keys(const struct sort_spec *spec, const struct fields *fields, const char *name,
		      struct key **ret_keys)
{
	struct key *keys = calloc(spec->n_keys, sizeof *keys);
	int r = 0;

	if (!keys)
		return fail(-ENOMEM, "%s: no memory for its keys", name);
	for (uint32_t i = 0; i < spec->n_keys && r == 0; i++) {
		keys[i] = spec->keys[i];
		r = fields_place(fields, name, &keys[i]);
	}
	if (r < 0)
		free(keys);
	else
		*ret_keys = keys;
	return r;
}

/* Keys that are what they are. */
static int copy_keys(const struct key *keys, uint32_t n, const char *name, struct key **ret_keys,
		     uint32_t *ret_n_keys)
{
	*ret_keys = calloc(n, sizeof **ret_keys);
	if (!*ret_keys)
		return fail(-ENOMEM, "%s: no memory for its keys", name);
	memcpy(*ret_keys, keys, n * sizeof *keys);
	*ret_n_keys = n;
	return 0;
}

/* The keys that follow from what the input says that is in a record, and from what is asked for. */
static int find_keys(const struct sort_spec *spec, const struct fields *fields, const char *name,
		     struct key **ret_keys, uint32_t *ret_n_keys)
{
	switch (spec->said) {
	case RECORDS_TYPE:
		return fields_choose_typed(fields, &spec->keys[0], name, ret_keys, ret_n_keys);
	case RECORDS_KEYS:
		*ret_n_keys = spec->n_keys;
		return place_keys(spec, fields, name, ret_keys);
	case RECORDS_FIELDS:
		return fail_hint(-EINVAL, HINT_BEHIND_HEADER, fields->header_nbytes,
				 "%s: its header says what a record consists of", name);
	default: /* also of RECORDS_SIZE, as the size is right */
		return fields_choose(fields, spec->choices, spec->n_choices, name, ret_keys,
				     ret_n_keys);
	}
}

/* The same; inputs that are sorted may also say by what, and nothing of what is in a record. */
static int find_keys_of(const struct sort_spec *spec, const struct input *input, const char *name,
			struct key **ret_keys, uint32_t *ret_n_keys)
{
	const struct fields *fields = input_fields(input);
	uint32_t n_keys;
	const struct key *sorted_by = input_keys(input, &n_keys);

	if (spec->said == RECORDS_NOTHING && sorted_by)
		return copy_keys(sorted_by, n_keys, name, ret_keys, ret_n_keys);
	if (fields->n == 0 && spec->said != RECORDS_CHOICES)
		return copy_keys(spec->keys, spec->n_keys, name, ret_keys, ret_n_keys);
	return find_keys(spec, fields, name, ret_keys, ret_n_keys);
}

static int check_key(const struct sort_spec *spec, const struct key *key, const char *name)
{
	if (key->nbytes <= spec->record_nbytes && key->offset <= spec->record_nbytes - key->nbytes)
		return 0;
	return fail(-EINVAL,
		    "%s: a key of %" PRIu32 " bytes at %" PRIu64
		    " reaches past its records of %" PRIu64 " bytes",
		    name, key->nbytes, key->offset, spec->record_nbytes);
}

/* The first that is asked for by a name; NULL: all by their places. */
static const char *find_name(const struct sort_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_choices; i++)
		if (!spec->choices[i].key.nbytes)
			return spec->choices[i].text;
	return NULL;
}

/* Choices are of what the input says; does it? */
static int check_choices(const struct sort_spec *spec, const struct fields *fields,
			 const char *name)
{
	const char *wanted = find_name(spec);

	if (spec->said != RECORDS_CHOICES || (fields && (fields->n || !wanted)))
		return 0;
	if (wanted)
		return fail_hint(-EINVAL, HINT_NAME_FIELDS, 0,
				 "%s: has no fields with names, such as %s", name, wanted);
	return fail_hint(-EINVAL, HINT_SAY_SIZE, 0,
			 "%s: does not say how many bytes its records have", name);
}

static int complete_from(const struct sort_spec *spec, const struct input *input, const char *name,
			 struct sort_spec *ret_spec, struct key **ret_keys)
{
	const struct fields *fields = input_fields(input);
	struct sort_spec complete = *spec;
	struct key *keys;
	int r = find_keys_of(spec, input, name, &keys, &complete.n_keys);

	if (r < 0)
		return r;
	complete.said = RECORDS_KEYS;
	complete.record_nbytes = fields->record_nbytes;
	complete.keys = keys;
	complete.keeps_ties = fields->are_columns || fields->n > 1 ||
			      (fields->n && *fields->fields[0].name);
	for (uint32_t i = 0; i < complete.n_keys && r == 0; i++) {
		keys[i].descending |= spec->reverse;
		r = check_key(&complete, &keys[i], name);
	}
	if (r < 0) {
		free(keys);
		return r;
	}
	*ret_spec = complete;
	*ret_keys = keys;
	return 0;
}

int spec_complete(const struct sort_spec *spec, const struct input *input, const char *name,
		  struct sort_spec *ret_spec, struct key **ret_keys)
{
	const struct fields *fields = input_fields(input);
	int r = check_choices(spec, fields, name);

	if (r < 0)
		return r;
	if (fields)
		return complete_from(spec, input, name, ret_spec, ret_keys);
	*ret_spec = *spec;
	ret_spec->keeps_ties = spec->said == RECORDS_KEYS;
	*ret_keys = NULL;
	return 0;
}

int spec_open_inputs(const struct sort_spec *spec, const char *checker, struct looked_at *ret)
{
	struct framing framing = spec_framing(spec);

	*ret = (struct looked_at){ 0 };
	framing.checker = checker;
	return input_open_given(&syscalls_plain, spec->inputs, spec->given_inputs, spec->n_inputs,
				&framing, &ret->input);
}

int spec_learn(const struct sort_spec *spec, struct looked_at *looked_at)
{
	struct input *input = looked_at->input;
	int r = input_is_settled(input) ? 0 : input_look_ahead(input, true);

	if (r == 0)
		r = spec_complete(spec, input, spec->inputs[0], &looked_at->spec, &looked_at->keys);
	return r < 0 ? r : spec_layout(&looked_at->spec, &looked_at->layout);
}

int spec_look_at(const struct sort_spec *spec, const char *checker, struct looked_at *ret)
{
	const int r = spec_open_inputs(spec, checker, ret);

	return r < 0 ? r : spec_learn(spec, ret);
}

void spec_look_away(struct looked_at *looked_at)
{
	input_close(looked_at->input);
	layout_free(&looked_at->layout);
	free(looked_at->keys);
	*looked_at = (struct looked_at){ 0 };
}
