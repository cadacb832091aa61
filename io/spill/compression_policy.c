/*
 * compression_policy.c - which codec the blocks of spilled runs get (see compression_policy.h)
 */
#include "io/spill/compression_policy.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "io/codec/codec.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"

/* Windows are stored raw until the codec is measured again. */
enum { PROBE_INTERVAL = 16 };

/* A measurement counts half after this many bytes, encoded or written. */
static const double recent_probe_nbytes = 8 << 20, recent_write_nbytes = 64 << 20;

enum { FAST_ZSTD_LEVEL = 1 };

struct compression {
	/* Constant once anything is stored. */
	bool is_auto;
	enum codec_id codec; /* is_auto: if it pays */
	struct codec_pool codec_contexts;

	pthread_mutex_t lock;
	/* Protected by lock. */
	uint64_t n_planned;                                     /* windows */
	double encoder_input_nbytes, encoded_nbytes, encode_ns; /* decaying */
	double written_nbytes, write_ns;                        /* decaying */
	uint64_t items_nbytes, stored_nbytes, n_encoded_blocks;
};

int compression_max_level(void)
{
	return ZSTD_maxCLevel();
}

int compression_parse_level(const char *text, int *ret_level)
{
	int level = 0;

	for (; *text >= '0' && *text <= '9' && level <= compression_max_level(); text++)
		level = 10 * level + (*text - '0');
	if (*text || level < 1 || level > compression_max_level())
		return -EINVAL;
	*ret_level = level;
	return 0;
}

static int parse_zstd(const char *level, struct compression_params *ret_params)
{
	struct compression_params params = { .mode = COMPRESS_ZSTD,
					     .zstd_level = DEFAULT_ZSTD_LEVEL };

	if (*level && (*level != ':' || compression_parse_level(level + 1, &params.zstd_level) < 0))
		return -EINVAL;
	*ret_params = params;
	return 0;
}

int compression_parse(const char *text, struct compression_params *ret_params)
{
	static const struct {
		const char *word;
		enum compression_mode mode;
	} words[] = { { "auto", COMPRESS_AUTO },
		      { "none", COMPRESS_NONE },
		      { "delta", COMPRESS_DELTA } };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(text, words[i].word) == 0) {
			*ret_params = (struct compression_params){ .mode = words[i].mode };
			return 0;
		}
	return strncmp(text, "zstd", 4) == 0 ? parse_zstd(text + 4, ret_params) : -EINVAL;
}

bool compression_allows_delta(const struct compression_params *params)
{
	return params->mode == COMPRESS_AUTO || params->mode == COMPRESS_DELTA;
}

static enum codec_id codec_for(const struct compression_params *params, bool are_encoded_keys)
{
	if (params->mode == COMPRESS_NONE)
		return CODEC_RAW;
	return compression_allows_delta(params) && are_encoded_keys ? CODEC_DELTA : CODEC_ZSTD;
}

static int zstd_level_for(const struct compression_params *params)
{
	return params->mode == COMPRESS_ZSTD ? params->zstd_level : FAST_ZSTD_LEVEL;
}

size_t compression_context_nbytes(const struct compression_params *params, bool are_encoded_keys,
				  size_t block_nbytes)
{
	if (codec_for(params, are_encoded_keys) != CODEC_ZSTD)
		return 0;
	return codec_context_nbytes(zstd_level_for(params), block_nbytes);
}

int compression_open(const struct compression_params *params, bool are_encoded_keys,
		     struct compression **ret_compression)
{
	struct compression *compression = calloc(1, sizeof *compression);

	if (!compression)
		return fail(
			-ENOMEM,
			"no memory to compress temporary data; --temp-compress=none stores it as "
			"it is");
	compression->is_auto = params->mode == COMPRESS_AUTO;
	compression->codec = codec_for(params, are_encoded_keys);
	codec_pool_init(&compression->codec_contexts, zstd_level_for(params));
	pthread_mutex_init(&compression->lock, NULL);
	*ret_compression = compression;
	return 0;
}

void compression_close(struct compression *compression)
{
	if (!compression)
		return;
	codec_pool_destroy(&compression->codec_contexts);
	pthread_mutex_destroy(&compression->lock);
	free(compression);
}

void compression_always_encode(struct compression *compression)
{
	compression->is_auto = false;
}

int compression_acquire(struct compression *compression, size_t scratch_nbytes,
			struct codec_context **ret_context)
{
	const int r = codec_pool_acquire(&compression->codec_contexts, scratch_nbytes, ret_context);

	return r < 0 ? fail(r, "compression of temporary data: %m; try a smaller -S") : 0;
}

void compression_release(struct compression *compression, struct codec_context *context)
{
	if (context)
		codec_pool_release(&compression->codec_contexts, context);
}

/* Requires the lock. */
static bool encoding_pays(const struct compression *compression)
{
	double encode_ns_per_byte, ratio, write_ns_per_byte;

	if (compression->encoder_input_nbytes == 0 || compression->written_nbytes == 0)
		return false;
	encode_ns_per_byte = compression->encode_ns / compression->encoder_input_nbytes;
	ratio = compression->encoded_nbytes / compression->encoder_input_nbytes;
	write_ns_per_byte = compression->write_ns / compression->written_nbytes;
	return encode_ns_per_byte + ratio * write_ns_per_byte < 0.9 * write_ns_per_byte;
}

struct compression_plan compression_plan_window(struct compression *compression)
{
	struct compression_plan plan = { .codec = CODEC_RAW, .probe_codec = CODEC_RAW };

	if (!compression)
		return plan;
	plan.codec = compression->codec;
	if (!compression->is_auto)
		return plan;
	SCOPED_LOCK(&compression->lock);
	if (!encoding_pays(compression)) {
		plan.codec = CODEC_RAW;
		if (compression->n_planned % PROBE_INTERVAL == 0)
			plan.probe_codec = compression->codec;
	}
	compression->n_planned++;
	return plan;
}

/* The weight of a sum of samples when another one is added. */
static double decay_factor(double sum_nbytes, double recent_nbytes)
{
	return sum_nbytes > recent_nbytes ? 0.5 : 1;
}

void compression_record_sample(struct compression *compression,
			       const struct compression_sample *sample)
{
	double weight;

	if (!compression)
		return;
	SCOPED_LOCK(&compression->lock);
	weight = decay_factor(compression->encoder_input_nbytes, recent_probe_nbytes);
	compression->encoder_input_nbytes =
		weight * compression->encoder_input_nbytes + (double)sample->encoder_input_nbytes;
	compression->encoded_nbytes =
		weight * compression->encoded_nbytes + (double)sample->encoded_nbytes;
	compression->encode_ns = weight * compression->encode_ns + (double)sample->encode_ns;
	weight = decay_factor(compression->written_nbytes, recent_write_nbytes);
	compression->written_nbytes =
		weight * compression->written_nbytes + (double)sample->stored_nbytes;
	compression->write_ns = weight * compression->write_ns + (double)sample->write_ns;
	compression->items_nbytes += sample->items_nbytes;
	compression->stored_nbytes += sample->stored_nbytes;
	compression->n_encoded_blocks += sample->n_encoded_blocks;
}

struct compression_totals compression_totals(struct compression *compression)
{
	SCOPED_LOCK(&compression->lock);
	return (struct compression_totals){
		.codec =
			codecs[compression->n_encoded_blocks ? compression->codec : CODEC_RAW].name,
		.items_nbytes = compression->items_nbytes,
		.stored_nbytes = compression->stored_nbytes,
	};
}
