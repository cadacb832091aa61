/*
 * kind_codes - layouts of which elements hold all of the key: codes, and references
 *
 * A whole key is a code, and so is an edge.
 */
#include <string.h>

#include "src/record/kinds.h"

static size_t code_nbytes(const struct layout *layout)
{
	(void)layout;
	return sizeof(code_t);
}

static code_t code_beginning(const void *key)
{
	code_t code;

	memcpy(&code, key, sizeof code);
	return code;
}

static void begin_code(code_t beginning, void *key)
{
	memcpy(key, &beginning, sizeof beginning);
}

static void item_code(const struct layout *layout, const void *item, void *key)
{
	begin_code(layout_encode(layout, item), key);
}

static int compare_codes(const struct layout *layout, const void *a, const void *b)
{
	const code_t code_a = code_beginning(a), code_b = code_beginning(b);

	(void)layout;
	return code_a < code_b ? -1 : code_a > code_b;
}

const struct layout_ops layout_ops_codes = {
	.key_nbytes = code_nbytes,
	.record_key = layout_encode,
	.key_beginning = code_beginning,
	.begin_key = begin_code,
	.item_key = item_code,
	.compare_keys = compare_codes,
	.edge_nbytes = code_nbytes,
	.compare_edges = compare_codes,
};
