/*
 * gen_record - records with keys, made of fractions of the range of all keys
 */
#pragma once

#include "tools/gen/gen.h"

/*
 * Write the records [first, first + n), whose keys sort as the fractions do and are equal where the
 * fractions are, as far as the keys are long enough to tell them apart.
 */
void gen_record_store(const struct gen *gen, uint64_t first, const uint128_t *fractions, uint64_t n,
		      void *records);
