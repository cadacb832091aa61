/*
 * value_parsers - what options of gsort's own take
 *
 * Sizes, words and numbers are taken for any program (option_table.h), and so is what a record is
 * (record_options.h). The rest is here: a function for a row of the table each, for a struct
 * options.
 */
#pragma once

#include "src/options/option_table.h"

int argument_take_nothing(const struct option_spec *spec, const char *argument, void *target);
int argument_take_temp_limit(const struct option_spec *spec, const char *argument, void *target);
int argument_take_temp_dir(const struct option_spec *spec, const char *argument, void *target);

/* --temp-compress, and the words of it; and --zstd. */
int argument_take_compress(const struct option_spec *spec, const char *argument, void *target);
const char *argument_compress_mode(unsigned i, char text[static OPTION_WORD_NBYTES]);
int argument_take_zstd(const struct option_spec *spec, const char *argument, void *target);

/* --shard=2/8. */
int argument_take_part(const struct option_spec *spec, const char *argument, void *target);
int argument_means_same_part(const char *first, const char *second);

/* --assume-rates=disk=2G,network=3G */
int argument_take_rates(const struct option_spec *spec, const char *argument, void *target);

/* --gpus=0,1, in any order. */
int argument_take_gpus(const struct option_spec *spec, const char *argument, void *target);
int argument_means_same_gpus(const char *first, const char *second);
