/*
 * merge_join - print the pairs of records of two files that have equal keys
 *
 * usage: merge_join LEFT RIGHT
 *
 * A record is a key and a value, both unsigned 32-bit numbers. The files may have any order. Two
 * sorts run at the same time, and their sorted streams are joined. Prints one line for each pair:
 * key, left value, right value. Keys may be repeated in LEFT only.
 */
#include <gsort.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct record {
	uint32_t key, value;
};

/* A sorted stream and its next record. */
struct stream {
	struct gsort *sort;
	struct record record;
	int has_record;
};

static void check(const struct stream *stream, int r)
{
	if (r == 0)
		return;
	fprintf(stderr, "merge_join: %s\n", gsort_message(stream->sort));
	exit(1);
}

static void read_next(struct stream *stream)
{
	size_t n_received;

	check(stream, gsort_get(stream->sort, &stream->record, sizeof stream->record, &n_received));
	stream->has_record = n_received > 0;
}

static void open_stream(struct stream *stream, const char *path)
{
	if (gsort_open(&stream->sort) < 0)
		exit(1);
	check(stream, gsort_set_record_size(stream->sort, sizeof stream->record));
	check(stream, gsort_add_key(stream->sort, "0:u32"));
	check(stream, gsort_set_memory(stream->sort, 16 << 20));
	check(stream, gsort_add_input_path(stream->sort, path));
	read_next(stream);
}

int main(int argc, char **argv)
{
	struct stream left = { 0 }, right = { 0 };

	if (argc != 3) {
		fputs("usage: merge_join LEFT RIGHT\n", stderr);
		return 2;
	}
	open_stream(&left, argv[1]);
	open_stream(&right, argv[2]);
	while (left.has_record && right.has_record) {
		if (left.record.key > right.record.key) {
			read_next(&right);
			continue;
		}
		if (left.record.key == right.record.key)
			printf("%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", left.record.key,
			       left.record.value, right.record.value);
		read_next(&left);
	}
	gsort_close(left.sort);
	gsort_close(right.sort);
	return 0;
}
