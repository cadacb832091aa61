/*
 * format_signatures - how files of other formats are told from records; of format_detect.c only
 */
#pragma once

#include "io/input/format_detect.h"

/* 1: it is one; 0; or what read_at returned. */
typedef int format_look_fn(const struct format_view *view, const struct format_rules *rules);

format_look_fn format_look_zstandard, format_look_gzip, format_look_xz, format_look_bzip2,
	format_look_lz4, format_look_zip, format_look_7z, format_look_parquet, format_look_arrow,
	format_look_sqlite, format_look_hdf5, format_look_npy, format_look_list, format_look_text;

/* Of a file of numpy: what stands in front of its records. */
uint64_t format_npy_header_nbytes(const struct format_view *view);
