/*
 * test_zst - compressed files: what was written is read at any offset and as a stream, or refused
 */
#include <pthread.h>
#include <xxhash.h>
#include <zlib.h>

#include "io/codec/zst.h"
#include "io/codec/decoder.h"
#include "src/base/thread.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

enum { FRAME = 1 << 20, N = 5 * FRAME / 2 }; /* the writer's frame size; two and a half frames */

/* N bytes. The first frame is slow to compress, so that the others overtake it. */
static unsigned char *content;
static struct file file; /* written and read */
static struct codec_pool zst_codec_pool;

static int start_zst(void **state)
{
	const int r = fixture_start(state);
	uint64_t word;

	content = malloc(N);
	fill_pattern(content, FRAME, 1);
	for (size_t i = 0; i < FRAME; i += sizeof word) {
		memcpy(&word, content + i, sizeof word);
		word &= UINT64_C(0x0f0f0f0f0f0f0f0f);
		memcpy(content + i, &word, sizeof word);
	}
	for (size_t i = FRAME; i < N; i += 4096)
		memset(content + i, (int)(i / 4096), 4096);
	codec_pool_init(&zst_codec_pool, 0);
	return r < 0 ? r :
		       file_open(&faulty_calls, AT_FDCWD, fixture_path("file.zst"),
				 O_RDWR | O_CREAT, 0600, &file);
}

static int finish(void **state)
{
	codec_pool_destroy(&zst_codec_pool);
	file_close(&file);
	free(content);
	return fixture_finish(state);
}

/* --- writing --- */

static int write_to_file(void *context, uint64_t offset, const void *data, size_t nbytes)
{
	(void)context;
	return file_write_at(&file, offset, data, nbytes);
}

static struct zst_writer *open_writer(bool in_order, unsigned n_threads)
{
	const struct zst_sink sink = { .in_order = in_order, .write = write_to_file };
	struct zst_writer *writer;

	assert_int_equal(zst_writer_open("file.zst", &sink, 1, n_threads, &writer), 0);
	return writer;
}

/* Append the content in pieces of various sizes, and finish. Returns the stored size. */
static uint64_t write_content(bool in_order, unsigned n_threads, size_t nbytes)
{
	struct zst_writer *writer = open_writer(in_order, n_threads);
	uint64_t stored_nbytes;
	size_t at = 0;

	for (size_t n = 1; at < nbytes; n = n * 7 % 400009) {
		const size_t step_nbytes = n < nbytes - at ? n : nbytes - at;

		assert_int_equal(zst_writer_append(writer, content + at, step_nbytes), 0);
		at += step_nbytes;
	}
	assert_int_equal(zst_writer_finish(writer), 0);
	stored_nbytes = zst_writer_stored_nbytes(writer);
	zst_writer_close(writer);
	return stored_nbytes;
}

/* --- reading --- */

static struct zst_reader *open_reader(uint64_t stored_nbytes)
{
	struct zst_index index;
	struct zst_reader *reader;

	assert_int_equal(zst_index_read(&file, 0, stored_nbytes, &index), 0);
	assert_int_equal(zst_reader_open("file.zst", index, 0, &zst_codec_pool, &reader), 0);
	return reader;
}

static void assert_reads(struct zst_reader *reader, uint64_t offset, size_t nbytes)
{
	unsigned char *back = guarded_alloc(nbytes);

	assert_int_equal(zst_reader_read_at(reader, &file, offset, back, nbytes), 0);
	assert_memory_equal(back, content + offset, nbytes);
	guarded_free(back, nbytes);
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start_zst, finish)
/* One thread reads: ThreadSanitizer leaves it out (test.sh). */
#define INDEX_TEST(claim) TEST_OF("zst_index", claim, start_zst, finish)

FIXTURE_TEST(any_part_can_be_read)
{
	struct zst_reader *reader = open_reader(write_content(false, 2, N));

	assert_reads(reader, 0, N);
	for (size_t offset = 0; offset < N; offset += 99991)
		for (size_t nbytes = 1; offset + nbytes <= N; nbytes *= 11)
			assert_reads(reader, offset, nbytes);
	assert_reads(reader, FRAME - 1, FRAME + 2);
	assert_reads(reader, N - 1, 1);
	zst_reader_close(reader);
}

FIXTURE_TEST(longer_content_than_there_are_buffers_for_is_written)
{
	struct zst_writer *writer = open_writer(false, 1);

	for (int i = 0; i < 4; i++)
		assert_int_equal(zst_writer_append(writer, content, N), 0);
	assert_int_equal(zst_writer_finish(writer), 0);
	zst_writer_close(writer);
}

FIXTURE_TEST(failing_write_reaches_the_writer)
{
	struct zst_writer *writer = open_writer(false, 2);
	int r = 0;

	faults.transfer_errno = ENOSPC;
	for (unsigned i = 0; i < 20 && r == 0; i++)
		r = zst_writer_append(writer, content, N);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(zst_writer_finish(writer), -ENOSPC);
	zst_writer_close(writer);
}

FIXTURE_TEST(unfinished_writer_can_be_closed)
{
	struct zst_writer *writer = open_writer(true, 3);

	assert_int_equal(zst_writer_append(writer, content, N), 0);
	zst_writer_close(writer);
	zst_writer_close(NULL);
}

struct reading {
	struct zst_reader *reader;
	pthread_barrier_t *together;
	size_t first, step;
	int r; /* the first error; -EILSEQ: wrong bytes */
};

enum { N_READINGS = 4, N_ROUNDS = FOR_RACES_ONLY ? 5 : 20 };

static void *read_in_steps(void *arg)
{
	struct reading *reading = arg;
	unsigned char back[12345];

	pthread_barrier_wait(reading->together);
	for (size_t at = reading->first; at + sizeof back <= N && reading->r == 0;
	     at += reading->step) {
		reading->r = zst_reader_read_at(reading->reader, &file, at, back, sizeof back);
		if (reading->r == 0 && memcmp(back, content + at, sizeof back) != 0)
			reading->r = -EILSEQ;
	}
	return NULL;
}

/* All threads read the same frame at the same time, with the result `expected`. */
static void assert_all_read(struct zst_reader *reader, int expected)
{
	struct reading readings[N_READINGS];
	pthread_barrier_t together;
	pthread_t threads[N_READINGS];

	pthread_barrier_init(&together, NULL, N_READINGS);
	for (size_t i = 0; i < N_READINGS; i++) {
		readings[i] = (struct reading){ reader, &together, i * 77777, 12345 + i, 0 };
		assert_int_equal(thread_start(read_in_steps, &readings[i], 0, &threads[i]), 0);
	}
	for (size_t i = 0; i < N_READINGS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(readings[i].r, expected);
	}
	pthread_barrier_destroy(&together);
}

FIXTURE_TEST(several_threads_read)
{
	const uint64_t stored_nbytes = write_content(false, 2, N);

	for (unsigned round = 0; round < N_ROUNDS; round++) {
		struct zst_reader *reader = open_reader(stored_nbytes);

		assert_all_read(reader, 0);
		zst_reader_close(reader);
	}
}

/* One thread loads it while the others wait. */
FIXTURE_TEST(failing_read_wakes_all_readers)
{
	const uint64_t stored_nbytes = write_content(false, 2, N);

	for (unsigned round = 0; round < N_ROUNDS; round++) {
		struct zst_reader *reader = open_reader(stored_nbytes);

		faults.transfer_errno = EIO;
		assert_all_read(reader, -EIO);
		faults.transfer_errno = 0;
		assert_all_read(reader, 0);
		zst_reader_close(reader);
	}
}

FIXTURE_TEST(damaged_frame_is_refused_every_time)
{
	const uint64_t nbytes = write_content(false, 2, N);
	struct zst_reader *reader = open_reader(nbytes);
	unsigned char byte, back[10];

	assert_int_equal(file_read_at(&file, nbytes / 2, &byte, 1), 0);
	byte ^= 0x55;
	assert_int_equal(file_write_at(&file, nbytes / 2, &byte, 1), 0);
	for (unsigned i = 0; i < 3; i++) {
		captured_messages_reset(true);
		assert_int_equal(zst_reader_read_at(reader, &file, 100, back, sizeof back),
				 -EBADMSG);
		assert_non_null(strstr(captured_messages_error(), "file.zst: frame 0 of 3"));
		assert_non_null(strstr(captured_messages_error(), "damaged"));
	}
	assert_reads(reader, FRAME, FRAME);
	assert_reads(reader, 2 * FRAME, FRAME / 2);
	zst_reader_close(reader);
}

/* --- the index --- */

static void add_entries(struct zst_index *index, size_t n, uint32_t min_content_nbytes)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(zst_index_add(index, i + 9, min_content_nbytes + i % 3 * 100), 0);
}

FIXTURE_TEST(index_entries_round_trip)
{
	struct zst_index index = { 0 }, back;
	unsigned char *table;
	size_t nbytes;

	add_entries(&index, 1000, 1);
	assert_int_equal(zst_index_format(&index, &table, &nbytes), 0);
	/* The frames themselves are not read. */
	assert_int_equal(file_write_at(&file, 7 + index.frames[1000].stored, table, nbytes), 0);
	assert_int_equal(zst_index_read(&file, 7, index.frames[1000].stored + nbytes, &back), 0);
	assert_int_equal(back.n, 1000);
	assert_memory_equal(back.frames, index.frames, 1001 * sizeof *back.frames);
	assert_null(back.checksums);
	zst_index_free(&back);
	zst_index_free(&index);
	free(table);
}

FIXTURE_TEST(every_byte_is_found_behind_empty_frames_too)
{
	struct zst_index index = { 0 };

	add_entries(&index, 1000, 0);
	for (uint64_t offset = 0; offset < zst_index_total_nbytes(&index); offset++) {
		const size_t i = zst_index_find(&index, offset);

		assert_true(index.frames[i].content <= offset);
		assert_true(offset < index.frames[i + 1].content);
	}
	zst_index_free(&index);
}

/* Other programs write indexes with checksums. */
FIXTURE_TEST(entries_with_checksums_are_read)
{
	static const unsigned char table[] = { 0x5e, 0x2a, 0x4d, 0x18, 21,   0, 0, 0, /* header */
					       5,    0,    0,    0,    7,    0, 0, 0, /* sizes */
					       1,    2,    3,    4,                   /* checksum */
					       1,    0,    0,    0,    0x80,          /* footer */
					       0xb1, 0xea, 0x92, 0x8f };
	struct zst_index index;

	assert_int_equal(file_write_at(&file, 5, table, sizeof table), 0);
	assert_int_equal(zst_index_read(&file, 0, 5 + sizeof table, &index), 0);
	assert_int_equal(index.n, 1);
	assert_int_equal(index.frames[1].stored, 5);
	assert_int_equal(index.frames[1].content, 7);
	assert_int_equal(index.checksums[0], 0x04030201);
	zst_index_free(&index);
}

/* --- an index is trusted for offsets only --- */

/* Read everything with the index of the file. -ENODATA: it has no usable index. */
static int read_by_index(uint64_t stored_nbytes)
{
	unsigned char *back = malloc(N);
	struct zst_reader *reader;
	struct zst_index index;
	int r = zst_index_read(&file, 0, stored_nbytes, &index);

	captured_messages_reset(true);
	if (r == 0) {
		const uint64_t nbytes = zst_index_total_nbytes(&index);

		assert_int_equal(zst_reader_open("file.zst", index, 0, &zst_codec_pool, &reader),
				 0);
		for (uint64_t at = 0; at < nbytes && r == 0; at += FRAME) {
			const uint64_t n = nbytes - at < FRAME ? nbytes - at : FRAME;

			r = zst_reader_read_at(reader, &file, at, back, n);
			assert_true(r < 0 || (at + n <= N && !memcmp(back, content + at, n)));
		}
		assert_true(r < 0 || nbytes == N);
		zst_reader_close(reader);
	}
	free(back);
	return r;
}

INDEX_TEST(flipped_bit_in_an_index_loses_nothing)
{
	const uint64_t nbytes = write_content(false, 2, N);
	const uint64_t table_nbytes = 8 + 3 * 8 + 9;
	unsigned n_harmless = 0, n_ignored = 0, n_refused = 0;

	assert_int_equal(read_by_index(nbytes), 0);
	for (uint64_t at = nbytes - table_nbytes; at < nbytes; at++) {
		unsigned char byte;

		assert_int_equal(file_read_at(&file, at, &byte, 1), 0);
		for (unsigned bit = 1; bit < 256; bit *= 2) {
			const unsigned char changed = byte ^ (unsigned char)bit;
			int r;

			assert_int_equal(file_write_at(&file, at, &changed, 1), 0);
			r = read_by_index(nbytes);
			n_harmless += r == 0;
			n_ignored += r == -ENODATA;
			n_refused += r == -EBADMSG;
		}
		assert_int_equal(file_write_at(&file, at, &byte, 1), 0);
	}
	assert_int_equal(n_harmless, 2); /* flags without a meaning */
	assert_int_equal(n_harmless + n_ignored + n_refused, 8 * table_nbytes);
	assert_true(n_ignored > 0 && n_refused > 0);
}

/* Overwrite the entry of frame i: its stored and content size. */
static void set_entry(uint64_t stored_nbytes, size_t i, const uint32_t entry[2])
{
	const uint64_t at = stored_nbytes - 9 - 3 * 8 + 8 * i;

	assert_int_equal(file_write_at(&file, at, entry, 8), 0);
}

FIXTURE_TEST(frame_that_the_index_calls_empty_is_not_lost)
{
	const uint64_t nbytes = write_content(false, 2, N);
	struct zst_index index;
	uint32_t stored;

	assert_int_equal(zst_index_read(&file, 0, nbytes, &index), 0);
	stored = (uint32_t)zst_index_stored_nbytes(&index, 1);
	zst_index_free(&index);
	set_entry(nbytes, 1, (const uint32_t[]){ stored, 0 });
	assert_int_equal(read_by_index(nbytes), -ENODATA);
}

/* Two frames would decode to the expected content, but are not the frame of the index. */
FIXTURE_TEST(entry_of_two_frames_is_refused)
{
	uint64_t nbytes = write_content(false, 2, 3 * FRAME / 2), frames_nbytes;
	struct zst_index index, merged = { 0 };
	unsigned char *table;
	size_t table_nbytes;

	assert_int_equal(zst_index_read(&file, 0, nbytes, &index), 0);
	frames_nbytes = index.frames[2].stored;
	assert_int_equal(zst_index_add(&merged, (uint32_t)frames_nbytes, 3 * FRAME / 2), 0);
	assert_int_equal(zst_index_format(&merged, &table, &table_nbytes), 0);
	assert_int_equal(file_write_at(&file, frames_nbytes, table, table_nbytes), 0);
	assert_int_equal(read_by_index(frames_nbytes + table_nbytes), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "does not match the index"));
	zst_index_free(&index);
	zst_index_free(&merged);
	free(table);
}

/* Replace the index by one with checksums, of which the last one is off by `wrong`. */
static uint64_t add_checksums(uint64_t nbytes, uint32_t wrong)
{
	unsigned char table[8 + 3 * 12 + 9], *to = table + 8;
	struct zst_index index;
	uint64_t end;

	assert_int_equal(zst_index_read(&file, 0, nbytes, &index), 0);
	end = index.frames[3].stored;
	assert_int_equal(file_read_at(&file, end, table, 8), 0);
	memcpy(table + 4, &(uint32_t){ sizeof table - 8 }, 4);
	for (size_t i = 0; i < 3; i++, to += 12) {
		const uint64_t n = zst_index_content_nbytes(&index, i);
		uint32_t entry[3] = { (uint32_t)zst_index_stored_nbytes(&index, i), (uint32_t)n,
				      (uint32_t)XXH64(content + i * FRAME, n, 0) };

		entry[2] += i == 2 ? wrong : 0;
		memcpy(to, entry, sizeof entry);
	}
	memcpy(to, "\3\0\0\0\x80\xb1\xea\x92\x8f", 9);
	assert_int_equal(file_write_at(&file, end, table, sizeof table), 0);
	zst_index_free(&index);
	return end + sizeof table;
}

FIXTURE_TEST(checksums_of_an_index_are_compared)
{
	const uint64_t nbytes = write_content(false, 2, N);

	assert_int_equal(read_by_index(add_checksums(nbytes, 0)), 0);
	write_content(false, 2, N);
	assert_int_equal(read_by_index(add_checksums(nbytes, 1)), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "frame 2 of 3"));
	assert_non_null(strstr(captured_messages_error(), "checksums differ"));
}

/* Otherwise the file would seem to have no content. */
FIXTURE_TEST(table_of_no_frames_is_no_index)
{
	static const unsigned char table[] = { 0x5e, 0x2a, 0x4d, 0x18, 9,    0,    0,    0,   0,
					       0,    0,    0,    0,    0xb1, 0xea, 0x92, 0x8f };
	struct zst_index index;

	assert_int_equal(file_write_at(&file, 0, table, sizeof table), 0);
	assert_int_equal(zst_index_read(&file, 0, sizeof table, &index), -ENODATA);
}

FIXTURE_TEST(part_of_a_file_has_no_index)
{
	const uint64_t nbytes = write_content(false, 1, N);

	for (uint64_t shorter = 0; shorter < nbytes; shorter += 1 + shorter / 8) {
		struct zst_index index;

		assert_int_equal(zst_index_read(&file, 0, shorter, &index), -ENODATA);
	}
}

/* --- streams --- */

FIXTURE_TEST(window_that_is_not_planned_for_is_refused)
{
	static const unsigned char large_window[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 0x98, 1, 0, 0 };
	static const unsigned char skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0 };
	unsigned char head[sizeof skippable + sizeof large_window], back[10];
	struct decoder *stream;
	size_t nbytes;

	memcpy(head, skippable, sizeof skippable);
	memcpy(head + sizeof skippable, large_window, sizeof large_window);
	for (uint64_t limit = UINT64_C(128) << 20; limit <= UINT64_C(512) << 20; limit *= 4) {
		const bool is_refused = limit < UINT64_C(512) << 20;

		assert_int_equal(decoder_open(DECODER_ZSTD, "file.zst", head, sizeof head,
					      ZSTD_MAX_WINDOW_NBYTES, &stream),
				 0);
		decoder_set_max_window(stream, limit);
		assert_int_equal(decoder_read(stream, &file, -1, back, sizeof back, &nbytes),
				 is_refused ? -E2BIG : 0);
		assert_int_equal(decoder_window_nbytes(stream),
				 is_refused ? 0 : UINT64_C(512) << 20);
		decoder_close(stream);
	}
}
