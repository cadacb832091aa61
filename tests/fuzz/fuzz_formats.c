/*
 * fuzz_formats - fuzz format detection with the first bytes of an input
 *
 * For libFuzzer (docs/testing.md). The first byte of an input is flags: a pipe, decompressed
 * content, no type given, a header. Detection must not read outside of the bytes. A refusal is one
 * line that names the file. --format=raw refuses nothing. Decompressed first bytes fit in their
 * buffer.
 */
#include <stdlib.h>
#include <string.h>

#include "io/codec/decoder.h"
#include "io/input/format_detect.h"
#include "io/header/npy.h"
#include "tests/support/captured_messages.h"

enum { IS_PIPE = 1, IS_CONTENT = 2, IS_UNTYPED = 4, HAS_HEADER = 8 };

struct fuzz_input {
	const unsigned char *data;
	size_t nbytes;
};

static void check(bool condition)
{
	if (!condition)
		abort();
}

static int read_at(void *context, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct fuzz_input *input = context;

	check(offset + nbytes <= input->nbytes);
	memcpy(buffer, input->data + offset, nbytes);
	return 0;
}

static void check_refusal(const struct format *format, const struct format_view *view,
			  const struct format_rules *rules)
{
	captured_messages_reset(true);
	check(format_refuse(format, view, rules, "a name", "a name") < 0);
	check(strncmp(captured_messages_error(), "a name: ", 8) == 0);
	for (const char *at = captured_messages_error(); *at; at++)
		check(*at >= ' ' && *at <= '~');
}

/* Check that a .npy header is refused, or is parsed and can be written again. */
static void check_npy(const struct fuzz_input *input)
{
	struct output_header_params params = { .count = true, .keys_only = true };
	struct output_header header;
	struct key *keys;
	uint64_t nbytes;
	struct npy npy;

	if (!npy_parse_prefix(input->data, input->nbytes, &nbytes) || nbytes > input->nbytes)
		return;
	if (npy_parse(input->data, nbytes, "a name", &npy) == 0 &&
	    schema_resolve_keys(&npy.fields, NULL, 0, "a name", &keys, &params.n_keys) == 0) {
		params.keys = keys;
		check(npy_make_header(&npy, &params, &header) == 0);
		output_header_set_count(&header, UINT64_MAX);
		output_header_free(&header);
		free(keys);
	}
	npy_free(&npy);
}

static void check_formats(const struct fuzz_input *input, unsigned flags)
{
	const bool is_pipe = flags & IS_PIPE;
	struct format_rules rules = { .skip_nbytes = flags & HAS_HEADER ? 128 : 0,
				      .is_untyped = flags & IS_UNTYPED };
	const struct format_view view = {
		.head = input->data,
		.head_nbytes = input->nbytes < FORMAT_HEAD_NBYTES ? input->nbytes :
								    FORMAT_HEAD_NBYTES,
		.nbytes = is_pipe ? FORMAT_SIZE_UNKNOWN : input->nbytes,
		.compression = flags & IS_CONTENT ? DECODER_ZSTD : DECODER_NONE,
		.context = (void *)input,
		.read_at = is_pipe ? NULL : read_at,
	};
	const struct format *format;

	check(format_detect(&view, &rules, &format) == 0);
	if (format)
		check_refusal(format, &view, &rules);
	check_npy(input);
	rules.mode = FORMAT_RAW;
	check(format_detect(&view, &rules, &format) == 0 && !format);
}

static void check_content(const struct fuzz_input *input)
{
	unsigned char *content = malloc(FORMAT_HEAD_NBYTES);

	check(content && zstd_preview(input->data, input->nbytes, content,
					   FORMAT_HEAD_NBYTES) <= FORMAT_HEAD_NBYTES);
	free(content);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	struct fuzz_input input;
	unsigned char *copy;

	if (nbytes < 1)
		return 0;
	copy = malloc(nbytes); /* copied for AddressSanitizer */
	check(copy != NULL);
	memcpy(copy, data + 1, nbytes - 1);
	input = (struct fuzz_input){ copy, nbytes - 1 };
	check_formats(&input, data[0]);
	check_content(&input);
	free(copy);
	return 0;
}
