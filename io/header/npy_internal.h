/*
 * npy_internal - what the parts of npy share: npy.c, npy_descr.c, npy_field_names.c, npy_type.c and
 * npy_write.c
 */
#pragma once

#include "io/header/npy.h"
#include "io/header/python_literal.h"

enum { NPY_MAX_DIMENSIONS = 64, NPY_MAX_RECORD_NBYTES = 1 << 30, NPY_TYPE_NBYTES = 64 };

/* What is being understood. */
struct npy_parser {
	struct python_text text;
	const char *name; /* of the file */
	struct npy *npy;
	struct schema item;
	uint64_t item_nbytes;
	FILE *descr, *top_names; /* what comes to those of npy */
	void *names;             /* of the structure that it is in, titles too; of tsearch() */
	bool is_fortran, is_structure;
	bool has_order, has_shape; /* seen in the dictionary */
	uint64_t dims[NPY_MAX_DIMENSIONS];
	size_t n_dims;
};

/* What a field is called: by itself, and with what is around it. */
struct npy_field_path {
	const char *name;
	uint32_t base_name_offset;
	unsigned depth;
};

/* Print what the file of numpy is or has, that cannot be sorted. Returns -EINVAL. */
int npy_refuse(const struct npy_parser *parser, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same, where what is behind the header is no records either way. */
int npy_refuse_without_hint(const struct npy_parser *parser, const char *reason);
int npy_refuse_syntax(const struct npy_parser *parser);

/* Print that there is none: errno says why. Returns -errno. */
int npy_fail_memory(const struct npy_parser *parser);

/* *ret_string: to be freed. */
int npy_parse_string(struct npy_parser *parser, char **ret_string);

/* "(3, 4)", "(3,)", "()", "[3]", or a number without brackets. */
int npy_parse_shape(struct npy_parser *parser, uint64_t *dims, size_t *ret_n);

/* How many items such an array has. */
int npy_count_items(const struct npy_parser *parser, const uint64_t *dims, size_t n,
		    uint64_t *ret_product);

/* The type of an item: its fields, and their spelling. */
int npy_parse_descr(struct npy_parser *parser);

/*
 * 'name', or ('title', 'name'), of a field of the structure at `outer`: spelled, and among the
 * names of that structure. *ret_name: with what is around it; to be freed. The field's own begins
 * at *ret_base_name_offset.
 */
int npy_parse_field_name(struct npy_parser *parser, const struct npy_field_path *parent,
			 char **ret_name, uint32_t *ret_base_name_offset);

/* The structure has come to its end. */
void npy_clear_names(struct npy_parser *parser);

/*
 * Spell a type as numpy writes it, "<f8": the order of bytes, if there is any, a letter and their
 * number. What is given may be a name that numpy only reads, "float64".
 */
void npy_normalize_type(const char *raw_type, char type[static NPY_TYPE_NBYTES]);

/*
 * The field of a type that is spelled so. Some types have no bytes, and others (long double) are
 * known by their size only. Returns 0, or -EINVAL after a message.
 */
int npy_parse_type(const struct npy_parser *parser, const char *type, struct field *field);

/* The field is so many bytes. */
void npy_set_bytes(struct field *field, uint64_t nbytes);
