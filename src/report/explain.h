/*
 * explain.h - what --explain and --debug print: the plan, its estimated time, and the parsed keys
 *
 * The text is for people. Scripts use the JSON to decide whether and where to sort.
 */
#pragma once

#include <jansson.h>
#include <stdio.h>

#include "src/plan/sort_spec.h"
#include "src/sort/sort.h"

void explain_print(const struct explanation *explanation, FILE *stream);

/*
 * Write one JSON object (docs/formats.md). Returns 0, or -ENOMEM after a message. The owner of the
 * stream checks whether it could be written.
 */
int explain_write_json(const struct explanation *explanation, FILE *stream);

/* Receive one row of the plan; both texts are valid during the call only. */
typedef void plan_text_callback(void *context, const char *name, const char *value);

/* Call `callback` for each row of the plan, in reading order. */
void plan_text_for_each(const struct plan *plan, plan_text_callback *callback, void *context);

/*
 * Report each key's offset, type and direction, the layout, and the encoded keys of the first
 * records, line by line (debug_line()). Records of a pipe are not shown: reading would consume
 * them. Returns 0 or a negative errno after a message.
 */
int debug_report_keys(const struct sort_spec *spec, const struct layout *layout,
		      struct input *input);
