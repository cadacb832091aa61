/*
 * compression_policy - which codec the blocks of spilled runs get (see compression_policy.h)
 */
#include "io/spill/compression_policy.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "io/codec/codec_pool.h"
#include "src/base/diagnostics.h"

/* Raw windows from one trial to the next. */
enum { TRIAL_INTERVAL = 16 };

/* What was seen before the last so many bytes, encoded or written, counts less and less. */
static const double recently_tried_nbytes = 8 << 20, recently_written_nbytes = 64 << 20;

enum { FAST_ZSTD_LEVEL = 1 };

struct compression {
	/* Set before anything is stored. */
	bool is_auto;
	enum codec_id codec;        /* always, or if it pays */
	struct codec_pool contexts; /* has a lock of its own */

	pthread_mutex_t lock;
	/* Under the lock. */
	uint64_t n_planned;                             /* windows */
	double tried_nbytes, encoded_nbytes, encode_ns; /* decaying */
	double written_nbytes, write_ns;                /* decaying */
	uint64_t items_nbytes, stored_nbytes, n_encoded_blocks;
};

int compression_most_level(void)
{
	return ZSTD_maxCLevel();
}

int compression_parse_level(const char *text, int *ret_level)
{
	int level = 0;

	for (; *text >= '0' && *text <= '9' && level <= compression_most_level(); text++)
		level = 10 * level + (*text - '0');
	if (*text || level < 1 || level > compression_most_level())
		return -EINVAL;
	*ret_level = level;
	return 0;
}

static int parse_zstd(const char *level, struct compression_choice *ret_choice)
{
	struct compression_choice choice = { .mode = COMPRESS_ZSTD,
					     .zstd_level = DEFAULT_ZSTD_LEVEL };

	if (*level && (*level != ':' || compression_parse_level(level + 1, &choice.zstd_level) < 0))
		return -EINVAL;
	*ret_choice = choice;
	return 0;
}

int compression_parse(const char *text, struct compression_choice *ret_choice)
{
	static const struct {
		const char *word;
		enum compression_mode mode;
	} words[] = { { "auto", COMPRESS_AUTO },
		      { "none", COMPRESS_NONE },
		      { "delta", COMPRESS_DELTA } };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(text, words[i].word) == 0) {
			*ret_choice = (struct compression_choice){ .mode = words[i].mode };
			return 0;
		}
	return strncmp(text, "zstd", 4) == 0 ? parse_zstd(text + 4, ret_choice) : -EINVAL;
}

bool compression_takes_delta(const struct compression_choice *choice)
{
	return choice->mode == COMPRESS_AUTO || choice->mode == COMPRESS_DELTA;
}

static enum codec_id codec_for(const struct compression_choice *choice, bool are_codes)
{
	if (choice->mode == COMPRESS_NONE)
		return CODEC_RAW;
	return compression_takes_delta(choice) && are_codes ? CODEC_DELTA : CODEC_ZSTD;
}

static int zstd_level_for(const struct compression_choice *choice)
{
	return choice->mode == COMPRESS_ZSTD ? choice->zstd_level : FAST_ZSTD_LEVEL;
}

size_t compression_context_nbytes(const struct compression_choice *choice, bool are_codes,
				  size_t block_nbytes)
{
	if (codec_for(choice, are_codes) != CODEC_ZSTD)
		return 0;
	return codec_context_nbytes(zstd_level_for(choice), block_nbytes);
}

int compression_open(const struct compression_choice *choice, bool are_codes,
		     struct compression **ret_compression)
{
	struct compression *compression = calloc(1, sizeof *compression);

	if (!compression)
		return fail_hint(-ENOMEM, HINT_NO_COMPRESSION, 0,
				 "no memory to compress temporary data");
	compression->is_auto = choice->mode == COMPRESS_AUTO;
	compression->codec = codec_for(choice, are_codes);
	codec_pool_init(&compression->contexts, zstd_level_for(choice));
	pthread_mutex_init(&compression->lock, NULL);
	*ret_compression = compression;
	return 0;
}

void compression_close(struct compression *compression)
{
	if (!compression)
		return;
	codec_pool_destroy(&compression->contexts);
	pthread_mutex_destroy(&compression->lock);
	free(compression);
}

void compression_save_space(struct compression *compression)
{
	compression->is_auto = false;
}

int compression_acquire(struct compression *compression, size_t scratch_nbytes,
			struct codec_context **ret_context)
{
	const int r = codec_pool_acquire(&compression->contexts, scratch_nbytes, ret_context);

	return r < 0 ? fail_hint(r, HINT_LESS_MEMORY, 0, "compression of temporary data: %m") : 0;
}

void compression_release(struct compression *compression, struct codec_context *context)
{
	if (context)
		codec_pool_release(&compression->contexts, context);
}

/* Does encoding pay, by what was seen so far? Under the lock. */
static bool pays(const struct compression *compression)
{
	double encode, shrunk, write;

	if (compression->tried_nbytes == 0 || compression->written_nbytes == 0)
		return false;
	encode = compression->encode_ns / compression->tried_nbytes;
	shrunk = compression->encoded_nbytes / compression->tried_nbytes;
	write = compression->write_ns / compression->written_nbytes;
	return encode + shrunk * write < 0.9 * write;
}

struct compression_plan compression_plan_window(struct compression *compression)
{
	struct compression_plan plan = { .codec = CODEC_RAW, .trial = CODEC_RAW };

	if (!compression)
		return plan;
	plan.codec = compression->codec;
	if (!compression->is_auto)
		return plan;
	pthread_mutex_lock(&compression->lock);
	if (!pays(compression)) {
		plan.codec = CODEC_RAW;
		if (compression->n_planned % TRIAL_INTERVAL == 0)
			plan.trial = compression->codec;
	}
	compression->n_planned++;
	pthread_mutex_unlock(&compression->lock);
	return plan;
}

/* What a sum of samples weighs beside one more. */
static double weight(double sum_nbytes, double recent_nbytes)
{
	return sum_nbytes > recent_nbytes ? 0.5 : 1;
}

void compression_note(struct compression *compression, const struct compression_sample *sample)
{
	double kept;

	if (!compression)
		return;
	pthread_mutex_lock(&compression->lock);
	kept = weight(compression->tried_nbytes, recently_tried_nbytes);
	compression->tried_nbytes = kept * compression->tried_nbytes + (double)sample->tried_nbytes;
	compression->encoded_nbytes =
		kept * compression->encoded_nbytes + (double)sample->encoded_nbytes;
	compression->encode_ns = kept * compression->encode_ns + (double)sample->encode_ns;
	kept = weight(compression->written_nbytes, recently_written_nbytes);
	compression->written_nbytes =
		kept * compression->written_nbytes + (double)sample->stored_nbytes;
	compression->write_ns = kept * compression->write_ns + (double)sample->write_ns;
	compression->items_nbytes += sample->items_nbytes;
	compression->stored_nbytes += sample->stored_nbytes;
	compression->n_encoded_blocks += sample->n_encoded_blocks;
	pthread_mutex_unlock(&compression->lock);
}

struct compression_totals compression_totals(struct compression *compression)
{
	struct compression_totals totals;

	pthread_mutex_lock(&compression->lock);
	totals = (struct compression_totals){
		.codec =
			codecs[compression->n_encoded_blocks ? compression->codec : CODEC_RAW].name,
		.items_nbytes = compression->items_nbytes,
		.stored_nbytes = compression->stored_nbytes,
	};
	pthread_mutex_unlock(&compression->lock);
	return totals;
}
