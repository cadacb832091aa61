/*
 * framing_options - the options that say which bytes of a file are records
 *
 *	--skip-bytes=N	--partial=error|keep|drop	--format=auto|npy|raw
 *
 * gsort and gsort-check have the same ones: each has the rows below in its table (option_spec.h),
 * and the members that they fill among its options.
 */
#pragma once

#include "io/input/framing.h"
#include "src/options/option_spec.h"

/* Rows, but for section, help and member: a uint64_t, an enum partial, an enum format_mode. */
#define FRAMING_OPTIONS_ROW_SKIP_BYTES                                                             \
	.name = "skip-bytes", .argument = "N", .parse = option_parse_nbytes,                       \
	.max = FRAMING_OPTIONS_MAX_SKIP_NBYTES
#define FRAMING_OPTIONS_ROW_PARTIAL                                                                \
	.name = "partial", .argument = "error|keep|drop", .parse = option_parse_choice,            \
	.choices = framing_options_partials
#define FRAMING_OPTIONS_ROW_FORMAT                                                                 \
	.name = "format", .argument = "auto|npy|raw", .parse = option_parse_choice,                \
	.choices = framing_options_formats,                                                        \
	.help = "read .npy and zstd files, and refuse other known formats (auto, default); read "  \
		"only .npy (npy); read any bytes as records (raw)"

/* What is skipped is kept in memory, for the output. */
enum { FRAMING_OPTIONS_MAX_SKIP_NBYTES = 16 << 20 };

extern const struct option_choice framing_options_partials[], framing_options_formats[];
