/*
 * sort_spec.c - derive keys and layout from a sort spec
 */
#include "src/plan/sort_spec.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/zst.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/system_limits.h"
#include "src/plan/plan.h"

int spec_layout(const struct sort_spec *spec, struct layout *ret_layout)
{
	const struct layout_params request = {
		.record_nbytes = spec->record_nbytes,
		.keys = spec->keys,
		.n_keys = spec->n_keys,
		.needs_equality = spec->unique || spec->merge_inputs || spec->check_only ||
				  spec->preserve_ties || spec->split_by_keys,
		.force_records = spec->limit != SORT_SPEC_UNLIMITED,
		.count = spec->count,
		.keep_last = spec->keep_last,
		.keys_only = spec->keys_only,
		.argsort = spec->argsort,
	};
	const int r = layout_make(&request, ret_layout);

	assert(r == 0 || r == -ENOMEM); /* a valid spec causes no other error */
	return r;
}

_Static_assert((int)INPUT_OVERHEAD_NBYTES == (int)PLAN_OVERHEAD_NBYTES, "one limit");

/* Return whether the headers of the inputs would be wrong for the output. */
static bool changes_record_count(const struct sort_spec *spec)
{
	return !spec->check_only && !spec->omit_header &&
	       (spec->unique || spec->limit != SORT_SPEC_UNLIMITED || spec->count ||
		spec->keys_only || spec->argsort || spec->n_inputs > 1 || spec->n_shards ||
		spec->n_part_files);
}

struct framing spec_framing(const struct sort_spec *spec)
{
	return (struct framing){
		.record_nbytes = spec->record_nbytes ? spec->record_nbytes : 1,
		.skip_nbytes = spec->skip_nbytes,
		.memory_nbytes = spec->memory_nbytes,
		.partial = spec->partial,
		.format = spec->format,
		.is_untyped = spec->record_spec == RECORD_SPEC_NONE,
		.is_size_inferred =
			spec->record_spec == RECORD_SPEC_NONE ||
			(spec->record_spec == RECORD_SPEC_REQUESTS && !spec->record_nbytes),
		.has_type = spec->record_spec == RECORD_SPEC_TYPE,
		.output_differs = changes_record_count(spec),
		.accepts_manifests = spec->merge_inputs || spec->check_only,
	};
}

/* --- Inputs that describe their records --- */

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

/* Copy keys by offset, and check them against the fields of the input. */
static int resolve_key_offsets(const struct sort_spec *spec, const struct schema *fields,
			       const char *name, struct key **ret_keys, uint32_t *ret_n_keys)
{
	int r = copy_keys(spec->keys, spec->n_keys, name, ret_keys, ret_n_keys);

	for (uint32_t i = 0; i < spec->n_keys && r == 0; i++)
		r = schema_check_key(fields, name, &(*ret_keys)[i]);
	if (r < 0)
		free(*ret_keys);
	return r;
}

/* Derive the keys from the fields of the input and the requested keys. */
static int derive_keys(const struct sort_spec *spec, const struct schema *fields, const char *name,
		       struct key **ret_keys, uint32_t *ret_n_keys)
{
	switch (spec->record_spec) {
	case RECORD_SPEC_TYPE:
		return schema_resolve_typed(fields, &spec->keys[0], name, ret_keys, ret_n_keys);
	case RECORD_SPEC_KEYS:
		return resolve_key_offsets(spec, fields, name, ret_keys, ret_n_keys);
	case RECORD_SPEC_FIELDS:
		return fail(-EINVAL,
			    "%s: records are defined by its header; omit -t, -R and -k, or use "
			    "--skip-bytes=%" PRIu64 " with -t, or -R and -k, for plain records",
			    name, fields->header_nbytes);
	default: /* also RECORD_SPEC_SIZE, if the size is right */
		return schema_resolve_keys(fields, spec->key_requests, spec->n_key_requests, name,
					   ret_keys, ret_n_keys);
	}
}

/*
 * Derive the keys for any input: sorted inputs may name the keys that they are sorted by, without
 * fields.
 */
static int derive_input_keys(const struct sort_spec *spec, const struct input *input,
			     const char *name, struct key **ret_keys, uint32_t *ret_n_keys)
{
	const struct schema *fields = input_fields(input);
	uint32_t n_keys;
	const struct key *sorted_by = input_keys(input, &n_keys);

	if (spec->record_spec == RECORD_SPEC_NONE && sorted_by)
		return copy_keys(sorted_by, n_keys, name, ret_keys, ret_n_keys);
	if (fields->n == 0 && spec->record_spec != RECORD_SPEC_REQUESTS)
		return copy_keys(spec->keys, spec->n_keys, name, ret_keys, ret_n_keys);
	return derive_keys(spec, fields, name, ret_keys, ret_n_keys);
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

/* Check that the input has fields, if any are requested. */
static int check_key_requests(const struct sort_spec *spec, const struct schema *fields,
			      const char *name)
{
	const char *field_name = key_requests_find_name(spec->key_requests, spec->n_key_requests);

	if (spec->record_spec != RECORD_SPEC_REQUESTS || (fields && (fields->n || !field_name)))
		return 0;
	if (field_name && strchr(field_name, ','))
		return fail(-EINVAL, "%s: has no field with the name %s; repeat -k for each key",
			    name, field_name);
	if (field_name)
		return fail(-EINVAL,
			    "-k, --key=%s: %s has no fields with names; name them by --fields, "
			    "write -k OFFSET:TYPE, or use --lines for lines of text",
			    field_name, name);
	return fail(-EINVAL,
		    "-k, --key needs -R, --record-size: %s does not say how many bytes its "
		    "records have",
		    name);
}

static int resolve_from_input(const struct sort_spec *spec, const struct input *input,
			      const char *name, struct sort_spec *ret_spec, struct key **ret_keys)
{
	const struct schema *fields = input_fields(input);
	struct sort_spec resolved = *spec;
	struct key *keys;
	int r = derive_input_keys(spec, input, name, &keys, &resolved.n_keys);

	if (r < 0)
		return r;
	resolved.record_spec = RECORD_SPEC_KEYS;
	resolved.record_nbytes = fields->record_nbytes;
	resolved.keys = keys;
	resolved.preserve_ties = fields->has_columns || fields->n > 1 ||
				 (fields->n && *fields->fields[0].name);
	for (uint32_t i = 0; i < resolved.n_keys && r == 0; i++) {
		keys[i].descending |= spec->reverse;
		if (keys[i].numeric)
			keys[i].nan_position = (uint8_t)spec->nan_position;
		r = check_key(&resolved, &keys[i], name);
	}
	if (r < 0) {
		free(keys);
		return r;
	}
	*ret_spec = resolved;
	*ret_keys = keys;
	return 0;
}

/* Refuse --nan if no key sorts NaN separately. */
static int check_nan_position(const struct sort_spec *spec)
{
	for (uint32_t i = 0; i < spec->n_keys; i++)
		if (spec->keys[i].numeric)
			return 0;
	return spec->nan_position == KEY_NAN_DEFAULT ?
		       0 :
		       fail(-EINVAL, "--nan requires a key in numpy order, such as f64:numpy");
}

static int resolve_spec(const struct sort_spec *spec, const struct input *input, const char *name,
			struct sort_spec *ret_spec, struct key **ret_keys)
{
	const struct schema *fields = input_fields(input);
	int r = check_key_requests(spec, fields, name);

	if (r < 0)
		return r;
	if (fields)
		return resolve_from_input(spec, input, name, ret_spec, ret_keys);
	*ret_spec = *spec;
	/* RECORD_SPEC_TYPE, and no spec, are plain numbers, which are sorted by their bits. */
	ret_spec->preserve_ties = spec->record_spec == RECORD_SPEC_KEYS ||
				  spec->record_spec == RECORD_SPEC_FIELDS;
	*ret_keys = NULL;
	return 0;
}

int spec_resolve(const struct sort_spec *spec, const struct input *input, const char *name,
		 struct sort_spec *ret_spec, struct key **ret_keys)
{
	int r = resolve_spec(spec, input, name, ret_spec, ret_keys);

	if (r < 0)
		return r;
	r = check_nan_position(ret_spec);
	if (r < 0) {
		free(*ret_keys);
		*ret_keys = NULL;
	}
	return r;
}

int spec_open_inputs(const struct sort_spec *spec, const char *checker,
		     struct input_probe *ret_probe)
{
	struct framing framing = spec_framing(spec);

	*ret_probe = (struct input_probe){ 0 };
	framing.checker = checker;
	return input_open_endpoints(&syscalls_plain, spec->inputs, spec->input_endpoints,
				    spec->n_inputs, &framing, &ret_probe->input);
}

int spec_finish_probe(const struct sort_spec *spec, struct input_probe *probe)
{
	struct input *input = probe->input;
	int r = input_is_resolved(input) ? 0 : input_probe_pipe(input, true);

	if (r == 0)
		r = spec_resolve(spec, input, spec->inputs[0], &probe->spec, &probe->keys);
	return r < 0 ? r : spec_layout(&probe->spec, &probe->layout);
}

void spec_close_probe(struct input_probe *probe)
{
	input_close(probe->input);
	layout_free(&probe->layout);
	free(probe->keys);
	*probe = (struct input_probe){ 0 };
}

/* --- resources --- */

uint64_t spec_memory_nbytes(const struct sort_spec *spec)
{
	if (spec->n_assumed_ranks) /* on other machines */
		return spec->memory_nbytes;
	return u64_min(spec->memory_nbytes, memory_physical_nbytes());
}

unsigned spec_n_threads(const struct sort_spec *spec)
{
	return (unsigned)u64_min(spec->n_threads, plan_max_threads(spec_memory_nbytes(spec)));
}

unsigned spec_n_compressors(const struct sort_spec *spec)
{
	const uint64_t nbytes = spec_memory_nbytes(spec) / 4;
	unsigned n = spec_n_threads(spec);

	while (n > 1 &&
	       (1 + (spec->n_part_files > 1)) * zst_writer_memory_nbytes(spec->zstd_level, n) >
		       nbytes)
		n--;
	return n;
}
