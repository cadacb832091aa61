/*
 * fuzz_formats - any bytes as the beginning of an input, in every way that it can be seen
 *
 * For libFuzzer (docs/testing.md). The first byte of an input says what is known: the size, the
 * rest of the file, whether it is content, whether a type was given, and a header. Nothing outside
 * of the bytes may be read. What is refused is refused with one line of text, which names the file;
 * raw refuses nothing; and what is decompressed at the beginning has room.
 */
#include <stdlib.h>
#include <string.h>

#include "io/codec/zst_frame.h"
#include "io/input/format_detect.h"
#include "io/header/npy.h"
#include "tests/support/captured_messages.h"

enum { IS_PIPE = 1, IS_CONTENT = 2, IS_UNTYPED = 4, HAS_HEADER = 8 };

struct bytes {
	const unsigned char *data;
	size_t nbytes;
};

static void check(bool holds)
{
	if (!holds)
		abort();
}

static int read_at(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct bytes *bytes = context;

	check(offset + nbytes <= bytes->nbytes);
	memcpy(buffer, bytes->data + offset, nbytes);
	return 0;
}

static void check_refusal(const struct format *format, const struct format_view *view,
			  const struct format_rules *rules)
{
	messages_reset(true);
	check(format_refuse(format, view, rules, "a name", "a name") < 0);
	check(strncmp(messages_last(), "a name: ", 8) == 0);
	for (const char *at = messages_last(); *at; at++)
		check(*at >= ' ' && *at <= '~');
}

/* A header of numpy is understood or refused, and what is understood can be written. */
static void check_npy(const struct bytes *bytes)
{
	struct header_wish wish = { .count = true, .keys_only = true };
	struct header header;
	struct key *keys;
	uint64_t nbytes;
	struct npy npy;

	if (!npy_recognise(bytes->data, bytes->nbytes, &nbytes) || nbytes > bytes->nbytes)
		return;
	if (npy_parse(bytes->data, nbytes, "a name", &npy) == 0 &&
	    fields_choose(&npy.fields, NULL, 0, "a name", &keys, &wish.n_keys) == 0) {
		wish.keys = keys;
		check(npy_make_header(&npy, &wish, &header) == 0);
		header_set_count(&header, UINT64_MAX);
		header_free(&header);
		free(keys);
	}
	npy_free(&npy);
}

static void check_formats(const struct bytes *bytes, unsigned known)
{
	const bool is_pipe = known & IS_PIPE;
	struct format_rules rules = { .skip_nbytes = known & HAS_HEADER ? 128 : 0,
				      .is_untyped = known & IS_UNTYPED };
	const struct format_view view = {
		.head = bytes->data,
		.n_head = bytes->nbytes < FORMAT_HEAD_NBYTES ? bytes->nbytes : FORMAT_HEAD_NBYTES,
		.nbytes = is_pipe ? FORMAT_SIZE_UNKNOWN : bytes->nbytes,
		.is_content = known & IS_CONTENT,
		.context = (void *)bytes,
		.read_at = is_pipe ? NULL : read_at,
	};
	const struct format *format;

	check(format_recognise(&view, &rules, &format) == 0);
	if (format)
		check_refusal(format, &view, &rules);
	check_npy(bytes);
	rules.choice = FORMAT_RAW;
	check(format_recognise(&view, &rules, &format) == 0 && !format);
}

static void check_content(const struct bytes *bytes)
{
	unsigned char *content = malloc(FORMAT_HEAD_NBYTES);

	check(content && zst_frame_begin_content(bytes->data, bytes->nbytes, content,
						 FORMAT_HEAD_NBYTES) <= FORMAT_HEAD_NBYTES);
	free(content);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	struct bytes bytes;
	unsigned char *copy;

	if (nbytes < 1)
		return 0;
	copy = malloc(nbytes); /* with an end that the sanitizer knows */
	check(copy != NULL);
	memcpy(copy, data + 1, nbytes - 1);
	bytes = (struct bytes){ copy, nbytes - 1 };
	check_formats(&bytes, data[0]);
	check_content(&bytes);
	free(copy);
	return 0;
}
