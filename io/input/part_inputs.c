/*
 * part_inputs - inputs that are part manifests (see part_inputs.h)
 */
#include "io/input/part_inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

/* --- reading lists --- */

static int read_list(const struct syscalls *calls, struct input_group *group)
{
	const char *path = group->path;
	struct stat status;
	struct file file;
	char *text = NULL;
	size_t nbytes = 0;
	int r = file_open(calls, AT_FDCWD, path, O_RDONLY, 0, &file);

	if (r < 0)
		return fail(r, "%s: cannot open: %m", path);
	if (fstat(file.fd, &status) < 0)
		r = fail(-errno, "%s: %m", path);
	if (r == 0)
		r = parts_list_read(&file, path, &text, &nbytes);
	file_close(&file);
	if (r == 0)
		r = parts_list_parse(text, nbytes, path, &group->list);
	if (r == 0)
		group->identity = file_identity_of(&status);
	free(text);
	return r;
}

/* --- files --- */

static int fail_memory(const char *path)
{
	return fail(-ENOMEM, "%s: no memory for a part manifest", path);
}

static int add_room(struct input_lists *lists, size_t n, const char *path)
{
	const size_t n_files = lists->n_files + n;
	char **paths = reallocarray(lists->paths, n_files + 1, sizeof *paths);
	struct listed_file *files;
	struct given *given;

	lists->paths = paths ? paths : lists->paths;
	given = reallocarray(lists->given, n_files + 1, sizeof *given);
	lists->given = given ? given : lists->given;
	files = reallocarray(lists->files, n_files + 1, sizeof *files);
	lists->files = files ? files : lists->files;
	return paths && given && files ? 0 : fail_memory(path);
}

static int add_file(struct input_lists *lists, const struct listed_file *file, char *path,
		    struct given given)
{
	if (!path)
		return fail_memory(file->group->path);
	lists->paths[lists->n_files] = path;
	lists->given[lists->n_files] = given;
	lists->files[lists->n_files] = *file;
	lists->n_files++;
	return 0;
}

/* In the directory of the list. */
static char *path_of_part(const char *list, const char *name)
{
	const char *slash = strrchr(list, '/');
	char *path;

	return asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - list) : 0, list, name) < 0 ?
		       NULL :
		       path;
}

static int add_parts(struct input_lists *lists, struct input_group *group)
{
	int r = add_room(lists, group->list.n_parts, group->path);

	for (size_t i = 0; i < group->list.n_parts && r == 0; i++) {
		const struct listed_part *part = &group->list.parts[i];
		const struct listed_file file = { .group = group, .part = part };

		r = add_file(lists, &file, path_of_part(group->path, part->name),
			     (struct given){ .kind = GIVEN_PATH });
	}
	return r;
}

static int add_group(const struct syscalls *calls, struct input_lists *lists, const char *path,
		     struct given given, bool is_list)
{
	struct input_group *group = &lists->groups[lists->n_groups++];
	int r = 0;

	*group = (struct input_group){ .path = path, .first = lists->n_files, .is_list = is_list };
	if (is_list) {
		r = read_list(calls, group);
		if (r == 0)
			r = add_parts(lists, group);
	} else {
		const struct listed_file file = { .group = group };

		r = add_room(lists, 1, path);
		if (r == 0)
			r = add_file(lists, &file, strdup(path), given);
	}
	group->n = lists->n_files - group->first;
	return r;
}

/* --- lists among each other --- */

const struct input_group *input_lists_first(const struct input_lists *lists)
{
	size_t i = 0;

	while (!lists->groups[i].is_list)
		i++;
	return &lists->groups[i];
}

static bool key_is_same(const struct key *a, const struct key *b)
{
	return a->offset == b->offset && a->nbytes == b->nbytes && a->kind == b->kind &&
	       a->big_endian == b->big_endian && a->descending == b->descending &&
	       a->numeric == b->numeric;
}

static bool is_alike(const struct parts_list *a, const struct parts_list *b)
{
	bool is_same = a->record_nbytes == b->record_nbytes && a->n_keys == b->n_keys;

	for (uint32_t i = 0; is_same && i < a->n_keys; i++)
		is_same = key_is_same(&a->keys[i], &b->keys[i]);
	return is_same;
}

static int check_groups(const struct input_lists *lists)
{
	const struct input_group *first = input_lists_first(lists);

	for (size_t i = 0; i < lists->n_groups; i++) {
		const struct input_group *group = &lists->groups[i];

		if (!group->is_list)
			continue;
		if (group->list.n_keys == 0)
			return fail(-EINVAL,
				    "%s: its part files are not sorted: they hold positions",
				    group->path);
		if (!is_alike(&group->list, &first->list))
			return fail(-EINVAL,
				    "%s: its part files have other records, or another order, than "
				    "those of %s",
				    group->path, first->path);
	}
	return 0;
}

int input_lists_open(const struct syscalls *calls, const char *const *paths,
		     const struct given *given, const bool *are_lists, size_t n,
		     struct input_lists **ret_lists)
{
	struct input_lists *lists = calloc(1, sizeof *lists);
	int r = 0;

	if (!lists)
		return fail_memory(paths[0]);
	pthread_mutex_init(&lists->lock, NULL);
	lists->groups = calloc(n, sizeof *lists->groups);
	if (!lists->groups)
		r = fail_memory(paths[0]);
	for (size_t i = 0; i < n && r == 0; i++)
		r = add_group(calls, lists, paths[i],
			      given ? given[i] : (struct given){ .kind = GIVEN_PATH },
			      are_lists[i]);
	if (r == 0)
		r = check_groups(lists);
	if (r < 0) {
		input_lists_close(lists);
		return r;
	}
	lists->fields.record_nbytes = input_lists_first(lists)->list.record_nbytes;
	*ret_lists = lists;
	return 0;
}

void input_lists_close(struct input_lists *lists)
{
	if (!lists)
		return;
	for (size_t i = 0; i < lists->n_groups; i++)
		parts_list_free(&lists->groups[i].list);
	for (size_t i = 0; i < lists->n_files; i++)
		free(lists->paths[i]);
	free(lists->groups);
	free(lists->paths);
	free(lists->given);
	free(lists->files);
	pthread_mutex_destroy(&lists->lock);
	free(lists);
}

/* --- is it what the list says? --- */

int input_lists_check(const struct input_lists *lists, size_t i, const struct source *source)
{
	const struct listed_file *file = &lists->files[i];
	uint64_t nbytes;

	if (!file->part)
		return 0;
	nbytes = file->part->nbytes;
	if (!source->is_file)
		return fail(-EINVAL, "%s: is no part file of %s any more: it is no regular file",
			    source->name, file->group->path);
	if (source->state.nbytes == nbytes)
		return 0;
	return fail(-EIO,
		    "%s: has %" PRIu64 " bytes, and not %" PRIu64 ", as %s says of this part file",
		    source->name, source->state.nbytes, nbytes, file->group->path);
}

static bool is_last_of_list(const struct input_group *group, size_t i)
{
	return i == group->first + group->n - 1;
}

/*
 * What was no whole record of several inputs can have the length of records, and is still none:
 * only the list can tell.
 */
int input_lists_measure(const struct input_lists *lists, size_t i, uint64_t nbytes,
			const struct framing *framing, uint64_t *ret_records_nbytes,
			bool *ret_is_counted)
{
	const struct listed_file *file = lists ? &lists->files[i] : NULL;
	uint64_t wanted;

	*ret_is_counted = file && file->part;
	if (!*ret_is_counted)
		return 0;
	if (__builtin_mul_overflow(file->part->n_records, framing->record_nbytes, &wanted) ||
	    wanted > nbytes || (wanted < nbytes && !is_last_of_list(file->group, i)))
		return fail(-EIO,
			    "%s: has %" PRIu64 " bytes of records, and not the %" PRIu64
			    " records of %" PRIu64 " bytes that %s says this part file has",
			    lists->paths[i], nbytes, file->part->n_records, framing->record_nbytes,
			    file->group->path);
	if (wanted < nbytes && framing->partial == PARTIAL_ERROR)
		return fail_hint(-EINVAL, HINT_SAY_PARTIAL, 0,
				 "%s: ends with %" PRIu64
				 " bytes that are no record: %s says that there are %" PRIu64
				 " records before them",
				 lists->paths[i], nbytes - wanted, file->group->path,
				 file->part->n_records);
	*ret_records_nbytes = wanted;
	return 0;
}

/* The keys of a record, as a list has them. */
static void spell_keys(const struct parts_list *list, const unsigned char *record,
		       char text[static 2 * PARTS_MOST_KEY_NBYTES + 1])
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (uint32_t i = 0; i < list->n_keys; i++)
		for (uint32_t j = 0; j < list->keys[i].nbytes && n < 2 * PARTS_MOST_KEY_NBYTES;
		     j++) {
			const unsigned char byte = record[list->keys[i].offset + j];

			text[n++] = digits[byte >> 4];
			text[n++] = digits[byte & 15];
		}
	text[n] = '\0';
}

int input_lists_check_key(const struct input_lists *lists, size_t i, const void *record,
			  bool is_last)
{
	const struct listed_file *file = &lists->files[i];
	const char *said = is_last ? file->part->last_key : file->part->first_key;
	char found[2 * PARTS_MOST_KEY_NBYTES + 1];

	spell_keys(&file->group->list, record, found);
	if (!said || strcmp(found, said) == 0)
		return 0;
	return fail(-EIO, "%s: its %s key is %s, and not %.128s, as %s says of this part file",
		    lists->paths[i], is_last ? "last" : "first", found, said, file->group->path);
}

int input_lists_note(struct input_lists *lists, size_t i, struct digest digest)
{
	struct listed_file *file = &lists->files[i];
	struct digest read;

	if (!file->part)
		return 0;
	pthread_mutex_lock(&lists->lock);
	digest_add(&file->read, digest);
	read = file->read;
	pthread_mutex_unlock(&lists->lock);
	if (read.n_records != file->part->n_records || read.sum == file->part->checksum)
		return 0;
	return fail(-EIO,
		    "%s: its records have the checksum %016" PRIx64 ", and not %016" PRIx64
		    ", as %s says of this part file",
		    lists->paths[i], read.sum, file->part->checksum, file->group->path);
}

struct digest input_lists_read(struct input_lists *lists, size_t i)
{
	struct digest read;

	pthread_mutex_lock(&lists->lock);
	read = lists->files[i].read;
	pthread_mutex_unlock(&lists->lock);
	return read;
}
