/*
 * suggest - what may be meant by a word that there is not
 */
#pragma once

#include <stddef.h>

/* Of n words the one that is so like these nbytes that it may be meant; NULL: none. */
const char *suggest_word(const char *word, size_t nbytes, const char *const *words, unsigned n);
