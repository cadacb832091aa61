/*
 * format_signatures - how files of other formats are told from records; of format_detect.c only
 */
#pragma once

#include "io/input/format_detect.h"

/* 1: it is one; 0; or what read_at returned. */
typedef int format_detect_fn(const struct format_view *view, const struct format_rules *rules);

format_detect_fn format_detect_zstandard, format_detect_gzip, format_detect_xz, format_detect_bzip2,
	format_detect_lz4, format_detect_zip, format_detect_7z, format_detect_parquet,
	format_detect_arrow, format_detect_sqlite, format_detect_hdf5, format_detect_npy,
	format_detect_manifest, format_detect_text;

/* Of a file of numpy: what stands in front of its records. */
uint64_t format_npy_header_nbytes(const struct format_view *view);
