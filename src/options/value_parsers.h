/*
 * value_parsers - what options of gsort's own take
 *
 * Sizes, words and numbers are taken for any program (option_spec.h), and so is what a record is
 * (record_options.h). The rest is here: a function for a row of the table each, for a struct
 * options.
 */
#pragma once

#include "src/options/option_spec.h"

int value_parse_nothing(const struct option_spec *spec, const char *argument, void *target);
int value_parse_temp_limit(const struct option_spec *spec, const char *argument, void *target);
int value_parse_temp_dir(const struct option_spec *spec, const char *argument, void *target);

/* --temp-compress, and the words of it; and --zstd. */
int value_parse_temp_compress(const struct option_spec *spec, const char *argument, void *target);
const char *value_temp_compress_word(unsigned i, char text[static OPTION_WORD_NBYTES]);
int value_parse_zstd(const struct option_spec *spec, const char *argument, void *target);

/* --shard=2/8. */
int value_parse_shard(const struct option_spec *spec, const char *argument, void *target);
int value_same_shard(const char *first, const char *second);

/* --assume-rates=disk=2G,network=3G */
int value_parse_rates(const struct option_spec *spec, const char *argument, void *target);

/* --gpus=0,1, in any order. */
int value_parse_gpus(const struct option_spec *spec, const char *argument, void *target);
int value_same_gpus(const char *first, const char *second);
