/*
 * framing_options - the options that say which bytes of a file are records (see framing_options.h)
 */
#include "src/options/framing_options.h"

const struct option_choice framing_options_partials[] = {
	{ "error", PARTIAL_ERROR }, { "keep", PARTIAL_KEEP }, { "drop", PARTIAL_DROP }, { 0 }
};

const struct option_choice framing_options_formats[] = {
	{ "auto", FORMAT_AUTO }, { "npy", FORMAT_NPY }, { "raw", FORMAT_RAW }, { 0 }
};
