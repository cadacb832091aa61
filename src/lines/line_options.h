/*
 * line_options.h - the options of a sort of lines, for the command line and for the library
 *
 * Rows of the table fill a struct options, as those of records do. Its members are those of records
 * and keys of lines:
 *
 *	line_options_init() -> option_set(), options_add_input() -> line_options_finalize()
 */
#pragma once

#include "src/lines/line_sort.h"
#include "src/options/options.h"

extern const struct option_table line_option_table;

/*
 * Turn options that were not set yet into those of lines. Rows fill `keys`, which must outlive the
 * options. The caller frees them.
 */
void line_options_init(struct options *options, struct line_keys *keys);

/*
 * Complete the options, which have no conflicts, and make the keys to sort by, which the caller
 * frees. default_temp_dir: without -T. Returns 0 or a negative errno after a message.
 */
int line_options_finalize(struct options *options, const char *default_temp_dir,
			  struct line_keys *ret_keys);

/* Return the parameters of a sort from options that were completed. */
struct line_sort_params line_options_params(const struct options *options,
					    const struct line_keys *keys, struct stats *stats);
