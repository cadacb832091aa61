/*
 * part_inputs - directories of part files as inputs (see part_inputs.h)
 */
#include "io/input/part_inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/input/source.h"
#include "config.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"

/* --- reading manifests --- */

/* Find the manifest that a path stands for: itself, or the one in a directory. */
static int find_manifest(const char *path, char **ret_path)
{
	size_t length = strlen(path);
	struct stat status;

	if (stat(path, &status) < 0)
		return fail(-errno, "%s: cannot open: %m", path);
	if (!S_ISDIR(status.st_mode))
		return (*ret_path = strdup(path)) ? 0 : part_manifest_fail_memory(path);
	while (length > 1 && path[length - 1] == '/')
		length--;
	return asprintf(ret_path, "%.*s/" PART_MANIFEST_NAME, (int)length, path) < 0 ?
		       part_manifest_fail_memory(path) :
		       0;
}

static int read_manifest(const struct syscalls *calls, struct input_group *group)
{
	struct stat status;
	struct file file;
	int r = find_manifest(group->path, &group->manifest_path);

	if (r < 0)
		return r;
	r = file_open(calls, AT_FDCWD, group->manifest_path, O_RDONLY, 0, &file);
	if (r < 0)
		return fail(r, "%s: cannot open: %m", group->manifest_path);
	if (fstat(file.fd, &status) < 0)
		r = fail(-errno, "%s: %m", group->manifest_path);
	if (r == 0)
		r = part_manifest_read(&file, group->manifest_path, &group->manifest);
	file_close(&file);
	if (r == 0)
		group->identity = file_id_from_stat(&status);
	return r;
}

/* --- files --- */

static int grow_part_inputs(struct part_inputs *part_inputs, size_t n, const char *path)
{
	const size_t n_files = part_inputs->n_files + n;
	char **paths = reallocarray(part_inputs->paths, n_files + 1, sizeof *paths);
	struct part_input_file *files;
	struct endpoint *endpoints;

	part_inputs->paths = paths ? paths : part_inputs->paths;
	endpoints = reallocarray(part_inputs->endpoints, n_files + 1, sizeof *endpoints);
	part_inputs->endpoints = endpoints ? endpoints : part_inputs->endpoints;
	files = reallocarray(part_inputs->files, n_files + 1, sizeof *files);
	part_inputs->files = files ? files : part_inputs->files;
	return paths && endpoints && files ? 0 : part_manifest_fail_memory(path);
}

static int add_file(struct part_inputs *part_inputs, const struct part_input_file *file, char *path,
		    struct endpoint endpoint)
{
	if (!path)
		return part_manifest_fail_memory(file->group->path);
	part_inputs->paths[part_inputs->n_files] = path;
	part_inputs->endpoints[part_inputs->n_files] = endpoint;
	part_inputs->files[part_inputs->n_files] = *file;
	part_inputs->n_files++;
	return 0;
}

/* A part file is in the directory of its manifest. */
static char *make_part_path(const char *manifest, const char *name)
{
	const char *slash = strrchr(manifest, '/');
	char *path;

	return asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - manifest) : 0, manifest, name) <
			       0 ?
		       NULL :
		       path;
}

static int add_parts(struct part_inputs *part_inputs, struct input_group *group)
{
	int r = grow_part_inputs(part_inputs, group->manifest.n_parts, group->path);

	for (size_t i = 0; i < group->manifest.n_parts && r == 0; i++) {
		const struct manifest_part *part = &group->manifest.parts[i];
		const struct part_input_file file = { .group = group, .part = part };

		r = add_file(part_inputs, &file, make_part_path(group->manifest_path, part->name),
			     (struct endpoint){ .kind = ENDPOINT_PATH });
	}
	return r;
}

static int add_group(const struct syscalls *calls, struct part_inputs *part_inputs,
		     const char *path, struct endpoint endpoint, bool is_manifest)
{
	struct input_group *group = &part_inputs->groups[part_inputs->n_groups++];
	int r = 0;

	*group = (struct input_group){ .path = path,
				       .first = part_inputs->n_files,
				       .is_manifest = is_manifest };
	if (is_manifest) {
		r = read_manifest(calls, group);
		if (r == 0)
			r = add_parts(part_inputs, group);
	} else {
		const struct part_input_file file = { .group = group };

		r = grow_part_inputs(part_inputs, 1, path);
		if (r == 0)
			r = add_file(part_inputs, &file, strdup(path), endpoint);
	}
	group->n = part_inputs->n_files - group->first;
	return r;
}

/* --- comparing manifests --- */

const struct input_group *part_inputs_first_manifest(const struct part_inputs *part_inputs)
{
	size_t i = 0;

	while (!part_inputs->groups[i].is_manifest)
		i++;
	return &part_inputs->groups[i];
}

static bool is_same_key(const struct key *a, const struct key *b)
{
	return a->offset == b->offset && a->nbytes == b->nbytes && a->kind == b->kind &&
	       a->big_endian == b->big_endian && a->descending == b->descending &&
	       a->numeric == b->numeric;
}

static bool is_compatible_manifest(const struct part_manifest *a, const struct part_manifest *b)
{
	bool is_same = a->record_nbytes == b->record_nbytes && a->n_keys == b->n_keys;

	for (uint32_t i = 0; is_same && i < a->n_keys; i++)
		is_same = is_same_key(&a->keys[i], &b->keys[i]);
	return is_same;
}

static int check_groups(const struct part_inputs *part_inputs, bool are_lines)
{
	const struct input_group *first = part_inputs_first_manifest(part_inputs);

	for (size_t i = 0; i < part_inputs->n_groups; i++) {
		const struct input_group *group = &part_inputs->groups[i];

		if (!group->is_manifest)
			continue;
		if ((group->manifest.content == PART_CONTENT_LINES) != are_lines)
			return fail(-EINVAL, "%s: part files hold %s", group->path,
				    are_lines ? "records, not lines" :
						"lines; use " GSORT_PROGRAM " --lines");
		if (are_lines)
			continue;
		if (group->manifest.n_keys == 0)
			return fail(-EINVAL, "%s: part files are not sorted: they hold positions",
				    group->path);
		if (!is_compatible_manifest(&group->manifest, &first->manifest))
			return fail(
				-EINVAL,
				"%s: part files have other records or another order than those of "
				"%s",
				group->path, first->path);
	}
	return 0;
}

int part_inputs_open(const struct syscalls *calls, const char *const *paths,
		     const struct endpoint *endpoints, const bool *are_manifests, size_t n,
		     bool are_lines, struct part_inputs **ret_part_inputs)
{
	struct part_inputs *part_inputs = calloc(1, sizeof *part_inputs);
	int r = 0;

	if (!part_inputs)
		return part_manifest_fail_memory(paths[0]);
	pthread_mutex_init(&part_inputs->lock, NULL);
	part_inputs->groups = calloc(n, sizeof *part_inputs->groups);
	if (!part_inputs->groups)
		r = part_manifest_fail_memory(paths[0]);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_group(calls, part_inputs, paths[i],
			      endpoints ? endpoints[i] : (struct endpoint){ .kind = ENDPOINT_PATH },
			      are_manifests[i]);
	if (r == 0)
		r = check_groups(part_inputs, are_lines);
	if (r < 0) {
		part_inputs_close(part_inputs);
		return r;
	}
	part_inputs->fields.record_nbytes =
		part_inputs_first_manifest(part_inputs)->manifest.record_nbytes;
	*ret_part_inputs = part_inputs;
	return 0;
}

void part_inputs_close(struct part_inputs *part_inputs)
{
	if (!part_inputs)
		return;
	for (size_t i = 0; i < part_inputs->n_groups; i++) {
		part_manifest_free(&part_inputs->groups[i].manifest);
		free(part_inputs->groups[i].manifest_path);
	}
	for (size_t i = 0; i < part_inputs->n_files; i++)
		free(part_inputs->paths[i]);
	free(part_inputs->groups);
	free(part_inputs->paths);
	free(part_inputs->endpoints);
	free(part_inputs->files);
	pthread_mutex_destroy(&part_inputs->lock);
	free(part_inputs);
}

/* --- checking part files against their manifest --- */

int part_inputs_check_size(const struct part_inputs *part_inputs, size_t i,
			   const struct source *source)
{
	const struct part_input_file *file = &part_inputs->files[i];
	uint64_t nbytes;

	if (!file->part)
		return 0;
	nbytes = file->part->nbytes;
	if (!source->is_file)
		return fail(-EINVAL, "%s: is not a regular file, as it was listed in %s",
			    source->name, file->group->path);
	if (source->state.nbytes == nbytes)
		return 0;
	return fail(-EIO, "%s: has %" PRIu64 " bytes, not %" PRIu64 " as listed in %s",
		    source->name, source->state.nbytes, nbytes, file->group->path);
}

/*
 * The incomplete records of several inputs may be as long as records. Only the manifest tells them
 * from records.
 */
int part_inputs_measure(const struct part_inputs *part_inputs, size_t i, uint64_t nbytes,
			const struct framing *framing, uint64_t *ret_records_nbytes,
			bool *ret_is_counted)
{
	const struct part_input_file *file = part_inputs ? &part_inputs->files[i] : NULL;
	uint64_t expected_nbytes;

	*ret_is_counted = file && file->part;
	if (!*ret_is_counted)
		return 0;
	if (__builtin_mul_overflow(file->part->n_records, framing->record_nbytes,
				   &expected_nbytes) ||
	    expected_nbytes > nbytes ||
	    (expected_nbytes < nbytes && i != file->group->first + file->group->n - 1))
		return fail(-EIO,
			    "%s: has %" PRIu64 " bytes of records, not %" PRIu64
			    " records of %" PRIu64 " bytes as listed in %s",
			    part_inputs->paths[i], nbytes, file->part->n_records,
			    framing->record_nbytes, file->group->path);
	if (expected_nbytes < nbytes && framing->partial == PARTIAL_ERROR)
		return fail(-EINVAL,
			    "%s: ends with %" PRIu64 " bytes that are no record: %s lists %" PRIu64
			    " records before them; use --partial=keep or --partial=drop",
			    part_inputs->paths[i], nbytes - expected_nbytes, file->group->path,
			    file->part->n_records);
	*ret_records_nbytes = expected_nbytes;
	return 0;
}

int part_inputs_check_key(const struct part_inputs *part_inputs, size_t i, const void *record,
			  bool is_last)
{
	const struct part_input_file *file = &part_inputs->files[i];
	const char *expected = is_last ? file->part->last_key : file->part->first_key;
	char actual[PART_MANIFEST_KEYS_TEXT_NBYTES];

	part_manifest_format_keys(file->group->manifest.keys, file->group->manifest.n_keys, record,
				  actual);
	if (!expected || strcmp(actual, expected) == 0)
		return 0;
	return fail(-EIO, "%s: its %s key is %s, not %.128s as listed in %s", part_inputs->paths[i],
		    is_last ? "last" : "first", actual, expected, file->group->path);
}

int part_inputs_check_digest(const struct part_inputs *part_inputs, size_t i, struct digest digest)
{
	const struct part_input_file *file = &part_inputs->files[i];
	const struct manifest_part *part = file->part;

	if (!part || (digest.n_records == part->n_records && digest.sum == part->checksum))
		return 0;
	if (file->group->manifest.content == PART_CONTENT_LINES)
		return fail(-EIO, "%s: its lines differ from those listed in %s",
			    part_inputs->paths[i], file->group->path);
	if (digest.n_records != part->n_records)
		return 0;
	return fail(-EIO,
		    "%s: its records have the checksum %016" PRIx64 ", not %016" PRIx64
		    " as listed in %s",
		    part_inputs->paths[i], digest.sum, part->checksum, file->group->path);
}

int part_inputs_add_read_digest(struct part_inputs *part_inputs, size_t i, struct digest digest)
{
	struct part_input_file *file = &part_inputs->files[i];
	struct digest total;

	pthread_mutex_lock(&part_inputs->lock);
	digest_add(&file->read_digest, digest);
	total = file->read_digest;
	pthread_mutex_unlock(&part_inputs->lock);
	return part_inputs_check_digest(part_inputs, i, total);
}

struct digest part_inputs_get_read_digest(struct part_inputs *part_inputs, size_t i)
{
	SCOPED_LOCK(&part_inputs->lock);
	return part_inputs->files[i].read_digest;
}
