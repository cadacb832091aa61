/*
 * npy_internal - what the parts of npy share: npy.c, npy_descr.c, npy_names.c, npy_type.c and
 * npy_write.c
 */
#pragma once

#include "io/header/npy.h"
#include "io/header/python_literal.h"

enum { NPY_MOST_DIMENSIONS = 64, NPY_MOST_RECORD_NBYTES = 1 << 30, NPY_TYPE_NBYTES = 64 };

/* What is being understood. */
struct npy_parsing {
	struct python_text text;
	const char *name; /* of the file */
	struct npy *npy;
	struct fields item;
	uint64_t item_nbytes;
	FILE *descr, *tops; /* what comes to those of npy */
	void *names;        /* of the structure that it is in, titles too; of tsearch() */
	bool is_fortran, is_structure;
	uint64_t dims[NPY_MOST_DIMENSIONS];
	size_t n_dims;
};

/* What a field is called: by itself, and with what is around it. */
struct npy_place {
	const char *name;
	uint32_t own_name_at;
	unsigned depth;
};

/* Print what the file of numpy is or has, that cannot be sorted. Returns -EINVAL. */
int npy_refuse(const struct npy_parsing *parsing, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same, where what is behind the header is no records either way. */
int npy_refuse_all(const struct npy_parsing *parsing, const char *what);
int npy_refuse_spelling(const struct npy_parsing *parsing);

/* Print that there is none: errno says why. Returns -errno. */
int npy_fail_memory(const struct npy_parsing *parsing);

/* *ret_string: to be freed. */
int npy_take_string(struct npy_parsing *parsing, char **ret_string);

/* "(3, 4)", "(3,)", "()", "[3]", or a number without brackets. */
int npy_take_shape(struct npy_parsing *parsing, uint64_t *dims, size_t *ret_n);

/* How many items such an array has. */
int npy_multiply(const struct npy_parsing *parsing, const uint64_t *dims, size_t n,
		 uint64_t *ret_product);

/* The type of an item: its fields, and their spelling. */
int npy_take_descr(struct npy_parsing *parsing);

/*
 * 'name', or ('title', 'name'), of a field of the structure at `outer`: spelled, and among the
 * names of that structure. *ret_name: with what is around it; to be freed. The field's own begins
 * at *ret_own_name_at.
 */
int npy_take_names(struct npy_parsing *parsing, const struct npy_place *outer, char **ret_name,
		   uint32_t *ret_own_name_at);

/* The structure has come to its end. */
void npy_forget_names(struct npy_parsing *parsing);

/*
 * Spell a type as numpy writes it, "<f8": the order of bytes, if there is any, a letter and their
 * number. What is given may be a name that numpy only reads, "float64".
 */
void npy_spell_type(const char *given, char type[static NPY_TYPE_NBYTES]);

/*
 * The field of a type that is spelled so. Some types have no bytes, and others (long double) are
 * known by their size only. Returns 0, or -EINVAL after a message.
 */
int npy_parse_type(const struct npy_parsing *parsing, const char *type, struct field *field);

/* The field is so many bytes. */
void npy_set_bytes(struct field *field, uint64_t nbytes);
