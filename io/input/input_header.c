/*
 * input_header - headers and records of the sources of an input (see input.h)
 *
 * The first source that is probed determines the format of all: plain records, perhaps after a
 * header of skip_nbytes, or .npy files with the same records.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/input/input.h"
#include "io/input/input_internal.h"
#include "io/header/npy.h"
#include "src/base/diagnostics.h"

static int fail_memory(const struct input_source *entry)
{
	return fail(-ENOMEM, "%s: no memory for a header of %" PRIu64 " bytes", entry->source.name,
		    entry->header_nbytes);
}

/* --- the format of all sources --- */

/* Adopt the record size of the first source, unless another one was given. */
static int resolve_npy(struct input *input, const struct input_source *entry, struct npy *npy)
{
	struct framing *framing = &input->framing;
	const uint64_t nbytes = npy->fields.record_nbytes;

	if (framing->is_size_inferred || framing->has_type)
		framing->record_nbytes = nbytes;
	if (framing->record_nbytes != nbytes)
		return fail(-EINVAL,
			    "%s: is a .npy file with records of %" PRIu64 " bytes, not %" PRIu64
			    "; omit the record size, or use --skip-bytes=%" PRIu64
			    " with -t, or -R and -k, to read plain records after the header",
			    entry->source.name, nbytes, framing->record_nbytes, npy->header_nbytes);
	input->npy = npy;
	input->owns_npy = true;
	input->is_resolved = true;
	return 0;
}

static int check_npy(const struct input *input, const struct input_source *entry,
		     const struct npy *npy)
{
	if (!input->npy && entry == input->sources) /* another input has resolved the format */
		return fail(-EINVAL,
			    "%s: is a .npy file, but another input is not; all inputs must be, or "
			    "none",
			    entry->source.name);
	if (!input->npy)
		return fail(-EINVAL,
			    "%s: is a .npy file, but an earlier input is not; all inputs must be, "
			    "or none",
			    entry->source.name);
	if (npy_has_same_records(input->npy, npy))
		return 0;
	return fail(-EINVAL,
		    "%s: is a .npy file of other items than the earlier ones: %.200s, (N%s), not "
		    "%.200s, (N%s)%s",
		    entry->source.name, npy->descr, npy->row_shape, input->npy->descr,
		    input->npy->row_shape,
		    strcmp(npy->row_shape, input->npy->row_shape) == 0 ?
			    "; convert it with astype()" :
			    "");
}

/* Takes ownership of `npy`. */
static int resolve_or_check_npy(struct input *input, const struct input_source *entry,
				struct npy *npy)
{
	int r;

	if (!input->is_resolved)
		r = resolve_npy(input, entry, npy);
	else
		r = check_npy(input, entry, npy);
	if (input->npy != npy) {
		npy_free(npy);
		free(npy);
	}
	return r;
}

static int parse_npy_header(struct input *input, struct input_source *entry,
			    const unsigned char *header)
{
	struct npy *npy = calloc(1, sizeof *npy);
	int r;

	if (!npy)
		return fail_memory(entry);
	r = npy_parse(header, entry->header_nbytes, entry->source.name, npy);
	if (r < 0) {
		npy_free(npy);
		free(npy);
		return r;
	}
	entry->declared_n_records = npy->n_records;
	entry->declares_n_records = true;
	return resolve_or_check_npy(input, entry, npy);
}

int input_parse_header(struct input *input, struct input_source *entry,
		       input_read_header_fn *read_bytes)
{
	const bool is_first = entry == input->sources;
	unsigned char *header;
	int r;

	entry->declares_n_records = false;
	entry->header_nbytes = entry->source.header_nbytes;
	if (!entry->header_nbytes) { /* no header defines the records */
		entry->header_nbytes = input->framing.skip_nbytes;
		if (input->framing.format == FORMAT_NPY || input->npy)
			return fail(-EINVAL, "%s: is not a .npy file%s", entry->source.name,
				    input->npy ? ", but an earlier input is" : "");
		input->is_resolved = true;
		if (!entry->header_nbytes)
			return 0;
	}
	if (entry->source.header_nbytes > NPY_MAX_HEADER_NBYTES)
		return fail(-EINVAL,
			    "%s: is a .npy file with a header of %" PRIu64 " bytes, more than %d",
			    entry->source.name, entry->header_nbytes, NPY_MAX_HEADER_NBYTES);
	header = malloc(entry->header_nbytes);
	if (!header)
		return fail_memory(entry);
	r = read_bytes(input, entry, header, entry->header_nbytes);
	if (r == 0 && entry->source.header_nbytes)
		r = parse_npy_header(input, entry, header);
	if (r == 0 && is_first) {
		free(input->header);
		input->header = header;
		return 0;
	}
	free(header);
	return r;
}

int input_check_count(const struct input *input, const struct input_source *entry, uint64_t nbytes)
{
	const uint64_t record_nbytes = input->framing.record_nbytes;
	uint64_t expected_nbytes;
	bool is_truncated;

	if (!entry->declares_n_records)
		return 0;
	is_truncated = __builtin_mul_overflow(entry->declared_n_records, record_nbytes,
					      &expected_nbytes) ||
		       expected_nbytes > nbytes;
	if (!is_truncated && expected_nbytes == nbytes)
		return 0;
	return fail(-EINVAL,
		    "%s: %" PRIu64 " bytes after a header that declares %" PRIu64
		    " records of %" PRIu64 " bytes: %s",
		    entry->source.name, nbytes, entry->declared_n_records, record_nbytes,
		    is_truncated ? "truncated or incomplete" :
				   "followed by other data or another file");
}

/* --- which bytes are records --- */

int input_fail_short(const struct input *input, const struct input_source *entry,
		     uint64_t header_nbytes, uint64_t nbytes)
{
	if (!input->framing.skip_nbytes)
		return fail(-EINVAL,
			    "%s: is truncated: it ends within its header of %" PRIu64
			    " bytes, after %" PRIu64,
			    entry->source.name, header_nbytes, nbytes);
	return fail(-EINVAL,
		    "%s: has %" PRIu64 " bytes, less than the header of %" PRIu64 " (--skip-bytes)",
		    entry->source.name, nbytes, header_nbytes);
}

/* Check that a source has no incomplete record, unless that is allowed. */
static int check_partial(const struct framing *framing, const struct input_source *entry,
			 uint64_t nbytes, uint64_t partial_nbytes)
{
	const char *const after_header = entry->header_nbytes ? " after the header" : "";

	if (partial_nbytes == 0 || framing->partial != PARTIAL_ERROR)
		return 0;
	if (framing->is_untyped)
		return fail(-EINVAL,
			    "%s: %" PRIu64 " bytes%s are not a multiple of the record size %" PRIu64
			    ": %" PRIu64 " left over (default type u64; use -t or -R)",
			    entry->source.name, nbytes, after_header, framing->record_nbytes,
			    partial_nbytes);
	return fail(-EINVAL,
		    "%s: %" PRIu64 " bytes%s are not a whole number of records of %" PRIu64
		    " bytes: %" PRIu64 " left over",
		    entry->source.name, nbytes, after_header, framing->record_nbytes,
		    partial_nbytes);
}

int input_measure(const struct input *input, const struct input_source *entry, uint64_t nbytes,
		  uint64_t *ret_records_nbytes)
{
	const struct framing *framing = &input->framing;
	const uint64_t content_nbytes = nbytes - entry->header_nbytes;
	const uint64_t partial_nbytes = content_nbytes % framing->record_nbytes;
	bool is_counted = false;
	int r;

	if (nbytes < entry->header_nbytes)
		return input_fail_short(input, entry, entry->header_nbytes, nbytes);
	r = part_inputs_measure(input->part_inputs, (size_t)(entry - input->sources),
				content_nbytes, framing, ret_records_nbytes, &is_counted);
	if (r < 0 || is_counted)
		return r;
	*ret_records_nbytes = content_nbytes - partial_nbytes;
	return check_partial(framing, entry, content_nbytes, partial_nbytes);
}

/* --- part manifests --- */

void input_set_part_inputs(struct input *input, struct part_inputs *part_inputs)
{
	input->part_inputs = part_inputs;
	for (size_t i = 0; i < part_inputs->n_files; i++)
		if (part_inputs->files[i].part)
			input->sources[i].source.manifest = &part_inputs->files[i].group->manifest;
}

static int check_manifest_records(const struct input *input, const struct input_group *group)
{
	const struct part_manifest *manifest = &group->manifest;
	const struct framing *framing = &input->framing;

	if (manifest->record_nbytes != framing->record_nbytes)
		return fail(-EINVAL,
			    "%s: records of part files have %" PRIu64 " bytes, not %" PRIu64,
			    group->path, manifest->record_nbytes, framing->record_nbytes);
	if (manifest->content == PART_CONTENT_NPY ||
	    manifest->header_nbytes == framing->skip_nbytes)
		return 0;
	return fail(-EINVAL,
		    "%s: part files begin with a header of %" PRIu64 " bytes, not %" PRIu64
		    " (--skip-bytes)",
		    group->path, manifest->header_nbytes, framing->skip_nbytes);
}

int input_check_manifests(struct input *input)
{
	const struct part_inputs *part_inputs = input->part_inputs;
	const struct input_group *first = part_inputs_first_manifest(part_inputs);
	int r = 0;

	if (input->framing.is_size_inferred)
		input->framing.record_nbytes = first->manifest.record_nbytes;
	for (size_t i = 0; i < part_inputs->n_groups && r == 0; i++)
		if (part_inputs->groups[i].is_manifest)
			r = check_manifest_records(input, &part_inputs->groups[i]);
	return r;
}

/* --- information --- */

void input_resolve(struct input *input)
{
	input->is_resolved = true;
	input->framing.is_resolved = true;
	input->framing.npy = input->npy;
}

bool input_is_resolved(const struct input *input)
{
	return input->is_resolved;
}

const struct schema *input_fields(const struct input *input)
{
	return input->npy         ? &input->npy->fields :
	       input->part_inputs ? &input->part_inputs->fields :
				    NULL;
}

const struct key *input_keys(const struct input *input, uint32_t *ret_n)
{
	const struct part_manifest *manifest =
		input->part_inputs ? &part_inputs_first_manifest(input->part_inputs)->manifest :
				     NULL;

	*ret_n = manifest ? manifest->n_keys : 0;
	return manifest ? manifest->keys : NULL;
}

int input_make_header(const struct input *input, const struct output_header_params *params,
		      struct output_header *ret_header)
{
	const uint64_t nbytes = input->framing.skip_nbytes;

	if (input->npy)
		return npy_make_header(input->npy, params, ret_header);
	*ret_header = (struct output_header){ .bytes = calloc(nbytes + 1, 1), .nbytes = nbytes };
	if (!ret_header->bytes)
		return fail(-ENOMEM, "no memory for a header of %" PRIu64 " bytes", nbytes);
	if (input->header) /* else it has not been read yet, but the size is final */
		memcpy(ret_header->bytes, input->header, nbytes);
	return 0;
}
