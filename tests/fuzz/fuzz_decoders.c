/*
 * fuzz_decoders - fuzz the decoders of stored blocks, .zst files and their seek tables
 *
 * For libFuzzer (docs/testing.md). The first bytes of an input choose the decoder, the size of the
 * items and their number. A decoder must not hang or access memory outside of its buffers. Keys of
 * an accepted delta block can be encoded and decoded again.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/codec/codec.h"
#include "io/codec/zst.h"
#include "io/codec/decoder.h"
#include "src/record/delta_pack.h"
#include "tests/support/captured_messages.h"

enum { MAX_FUZZ_CONTENT_NBYTES = 1 << 20 };

/* Check that encoding and decoding the keys gives the same keys. */
static void check_round_trip(const void *keys, size_t n, uint32_t nbytes)
{
	const size_t capacity = n * nbytes * 2 + 1024;
	unsigned char *encoded = malloc(capacity), *decoded = malloc(n * nbytes + 1);
	const size_t encoded_nbytes = delta_encode(keys, n, nbytes, encoded, capacity);

	if (encoded_nbytes == 0 || delta_decode(encoded, encoded_nbytes, decoded, n, nbytes) < 0 ||
	    memcmp(keys, decoded, n * nbytes) != 0)
		abort();
	free(encoded);
	free(decoded);
}

static void fuzz_block(enum codec_id codec, uint32_t item_nbytes, size_t n,
		       const unsigned char *data, size_t nbytes)
{
	struct codec_items items = { .n = n, .item_nbytes = item_nbytes };
	struct codec_context *context;

	if (codec_context_open(1, &context) < 0)
		return;
	items.items = aligned_alloc(16, (n * item_nbytes + 15) / 16 * 16);
	if (codecs[codec].decode(context, data, nbytes, &items) == 0 && codec == CODEC_DELTA)
		check_round_trip(items.items, n, item_nbytes);
	free(items.items);
	codec_context_close(context);
}

/* Create a file of these bytes. */
static struct file open_data(const unsigned char *data, size_t nbytes)
{
	const int fd = memfd_create("fuzz", 0);

	if (fd < 0 || write(fd, data, nbytes) != (ssize_t)nbytes || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return (struct file){ .calls = &syscalls_plain, .fd = fd };
}

static void fuzz_stream(const struct file *file)
{
	unsigned char *content = malloc(MAX_FUZZ_CONTENT_NBYTES);
	struct decoder *stream;
	size_t nbytes;

	if (decoder_open(DECODER_ZSTD, "fuzz", content, 0, ZSTD_DEFAULT_WINDOW_NBYTES, &stream) ==
	    0) {
		decoder_read(stream, file, -1, content, MAX_FUZZ_CONTENT_NBYTES, &nbytes);
		decoder_close(stream);
	}
	free(content);
}

static void fuzz_index(const struct file *file, size_t nbytes)
{
	unsigned char *content = malloc(MAX_FUZZ_CONTENT_NBYTES);
	struct codec_pool contexts;
	struct zst_reader *reader;
	struct zst_index index;

	codec_pool_init(&contexts, 0);
	if (zst_index_read(file, 0, nbytes, &index) == 0) {
		uint64_t n = zst_index_total_nbytes(&index);

		n = n < MAX_FUZZ_CONTENT_NBYTES ? n : MAX_FUZZ_CONTENT_NBYTES;
		if (zst_index_max_content_nbytes(&index) > ZST_READER_MAX_FRAME_NBYTES)
			zst_index_free(&index);
		else if (zst_reader_open("fuzz", index, 0, &contexts, &reader) == 0) {
			zst_reader_read_at(reader, file, n / 2, content, n - n / 2);
			zst_reader_close(reader);
		}
	}
	codec_pool_destroy(&contexts);
	free(content);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	struct file file;

	captured_messages_reset(true);
	if (nbytes < 3)
		return 0;
	switch (data[0] % 4) {
	case 0:
		fuzz_block(CODEC_DELTA, 4u << data[1] % 3, 1 + data[2] * 3, data + 3, nbytes - 3);
		return 0;
	case 1:
		fuzz_block(CODEC_ZSTD, 1 + data[1], 1 + data[2] * 3, data + 3, nbytes - 3);
		return 0;
	}
	file = open_data(data + 3, nbytes - 3);
	if (data[0] % 4 == 2)
		fuzz_stream(&file);
	else
		fuzz_index(&file, nbytes - 3);
	file_close(&file);
	return 0;
}
