/*
 * spec - what follows from what a sort is asked for (see spec.h)
 */
#include "src/plan/spec.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/messages.h"

int spec_layout(const struct sort_spec *spec, struct layout *ret_layout)
{
	const struct layout_request request = {
		.record_nbytes = spec->record_nbytes,
		.keys = spec->keys,
		.n_keys = spec->n_keys,
		.compares = spec->unique || spec->merges || spec->checks || spec->keeps_ties,
		.keeps_records = spec->limit != SORT_SPEC_UNLIMITED,
		.count = spec->count,
		.keys_only = spec->keys_only,
		.index = spec->index,
	};
	const int r = layout_make(&request, ret_layout);

	assert(r == 0 || r == -ENOMEM); /* the rest is the spec's to see to */
	return r;
}

struct framing spec_framing(const struct sort_spec *spec)
{
	return (struct framing){
		.record_nbytes = spec->record_nbytes,
		.skip_nbytes = spec->skip_nbytes,
		.partial = spec->partial,
		.format = spec->format,
		.is_untyped = spec->is_untyped,
		.is_named = spec->n_choices > 0,
		.takes_lists = spec->merges || spec->checks,
	};
}

/* --- records of which the input knows more --- */

/* -t TYPE, or any other key that is the whole record: is the type that of the field? */
static int check_type(const struct key *key, const struct fields *fields, const char *name)
{
	const struct field *field = &fields->fields[0];
	char given[KEY_TYPE_NBYTES], found[KEY_TYPE_NBYTES];

	if (fields->n != 1 || field->n != 1 || key->nbytes != fields->record_nbytes ||
	    key->kind == KEY_BYTES || field->key.kind == KEY_BYTES)
		return 0;
	if (key->kind == field->key.kind && key->big_endian == field->key.big_endian)
		return 0;
	key_format_type(key, given);
	key_format_type(&field->key, found);
	return fail(-EINVAL, "%s: is of type %s, and not %s: nothing need be said of it", name,
		    found, given);
}

/* Keys that were given: in the order of the input's other numbers, if none was asked for. */
static int order_keys(const struct sort_spec *spec, const struct fields *fields, const char *name,
		      struct key **ret_keys, uint32_t *ret_n_keys)
{
	struct key *keys = calloc(spec->n_keys, sizeof *keys);
	int r;

	if (!keys)
		return fail(-ENOMEM, "%s: no memory for its keys", name);
	for (uint32_t i = 0; i < spec->n_keys; i++) {
		keys[i] = spec->keys[i];
		if (!keys[i].has_order)
			keys[i].numeric = key_has_orders(&keys[i]);
	}
	r = spec->n_keys == 1 ? check_type(&keys[0], fields, name) : 0;
	if (r < 0) {
		free(keys);
		return r;
	}
	*ret_keys = keys;
	*ret_n_keys = spec->n_keys;
	return 0;
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

/* What an input that is sorted says that it is sorted by. */
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

/* The keys of records that the input knows more of. */
static int choose_keys(const struct sort_spec *spec, const struct input *input, const char *name,
		       struct key **ret_keys, uint32_t *ret_n_keys)
{
	const struct fields *fields = input_fields(input);
	uint32_t n_keys;
	const struct key *sorted_by = input_keys(input, &n_keys);

	if (spec->n_choices)
		return fields_choose(fields, spec->choices, spec->n_choices, name, ret_keys,
				     ret_n_keys);
	if (spec->is_untyped && sorted_by)
		return copy_keys(sorted_by, n_keys, name, ret_keys, ret_n_keys);
	if (spec->is_untyped)
		return fields_choose(fields, NULL, 0, name, ret_keys, ret_n_keys);
	if (fields->n == 0)
		return copy_keys(spec->keys, spec->n_keys, name, ret_keys, ret_n_keys);
	return order_keys(spec, fields, name, ret_keys, ret_n_keys);
}

int spec_complete(const struct sort_spec *spec, const struct input *input, const char *name,
		  struct sort_spec *ret_spec, struct key **ret_keys)
{
	const struct fields *fields = input_fields(input);
	struct sort_spec complete = *spec;
	struct key *keys = NULL;
	int r;

	if ((!fields || fields->n == 0) && spec->n_choices)
		return fail(-EINVAL, "%s: has no fields with names, such as %s", name,
			    spec->choices[0].name ? spec->choices[0].name : "that");
	if (fields) {
		r = choose_keys(spec, input, name, &keys, &complete.n_keys);
		if (r < 0)
			return r;
		complete.record_nbytes = fields->record_nbytes;
		complete.keys = keys;
		complete.keeps_ties = fields->are_columns ||
				      (fields->n && *fields->fields[0].name);
		for (uint32_t i = 0; i < complete.n_keys && r == 0; i++) {
			keys[i].descending |= spec->reverse;
			r = check_key(&complete, &keys[i], name);
		}
		if (r < 0) {
			free(keys);
			return r;
		}
	}
	complete.is_untyped = spec->is_untyped && !fields;
	*ret_spec = complete;
	*ret_keys = keys;
	return 0;
}

int spec_look_at(const struct sort_spec *spec, const char *checker, struct looked_at *ret)
{
	struct framing framing = spec_framing(spec);
	int r;

	*ret = (struct looked_at){ 0 };
	framing.checker = checker;
	r = input_open_given(&syscalls_plain, spec->inputs, spec->given_inputs, spec->n_inputs,
			     &framing, &ret->input);
	if (r == 0 && !input_is_settled(ret->input))
		r = input_look_ahead(ret->input, true);
	if (r == 0)
		r = spec_complete(spec, ret->input, spec->inputs[0], &ret->spec, &ret->keys);
	return r < 0 ? r : spec_layout(&ret->spec, &ret->layout);
}

void spec_look_away(struct looked_at *looked_at)
{
	input_close(looked_at->input);
	layout_free(&looked_at->layout);
	free(looked_at->keys);
	*looked_at = (struct looked_at){ 0 };
}
