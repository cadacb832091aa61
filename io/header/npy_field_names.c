/*
 * npy_field_names - what the fields of a structure are called, and their titles (see
 * npy_internal.h)
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "io/header/npy_internal.h"

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Among the names of its structure, of which numpy wants none to be there twice. */
static int check_unique_name(struct npy_parser *parser, const char *name)
{
	char *copy = strdup(name),
	     **node = copy ? tsearch(copy, &parser->names, compare_names) : NULL;
	const bool is_new = node && *node == copy;

	if (!is_new)
		free(copy);
	if (!node)
		return npy_fail_memory(parser);
	return is_new ? 0 :
			npy_refuse(parser,
				   "in which two fields, or titles, of one structure are "
				   "called '%.40s'",
				   name);
}

/* What a field is called, or its title; padding has no name. */
static int record_field_name(struct npy_parser *parser, const struct npy_field_path *parent,
			     const char *name)
{
	python_write_string(parser->descr, name);
	if (!*name)
		return 0;
	if (parent->depth == 0)
		fwrite(name, 1, strlen(name) + 1, parser->top_names);
	return check_unique_name(parser, name);
}

static int parse_title(struct npy_parser *parser, const struct npy_field_path *parent)
{
	char *title;
	int r = npy_parse_string(parser, &title);

	if (r < 0)
		return r;
	fputc('(', parser->descr);
	r = record_field_name(parser, parent, title);
	fputs(", ", parser->descr);
	free(title);
	return r;
}

/* Behind the '(' of ('title', 'name'); None is no title. */
static int parse_titled_name(struct npy_parser *parser, const struct npy_field_path *parent,
			     char **ret_name)
{
	const bool has_title = !python_accept(&parser->text, "None");
	int r = has_title ? parse_title(parser, parent) : 0;

	if (r == 0 && !python_accept(&parser->text, ","))
		r = npy_refuse_syntax(parser);
	if (r == 0)
		r = npy_parse_string(parser, ret_name);
	if (r < 0)
		return r;
	r = record_field_name(parser, parent, *ret_name);
	fputs(has_title ? ")" : "", parser->descr);
	if (r == 0 && !python_accept(&parser->text, ")"))
		r = npy_refuse_syntax(parser);
	if (r < 0)
		free(*ret_name);
	return r;
}

/* 'name', or ('title', 'name'). */
static int parse_base_name(struct npy_parser *parser, const struct npy_field_path *parent,
			   char **ret_name)
{
	int r;

	if (python_accept(&parser->text, "("))
		return parse_titled_name(parser, parent, ret_name);
	r = npy_parse_string(parser, ret_name);
	if (r < 0)
		return r;
	r = record_field_name(parser, parent, *ret_name);
	if (r < 0)
		free(*ret_name);
	return r;
}

int npy_parse_field_name(struct npy_parser *parser, const struct npy_field_path *parent,
			 char **ret_name, uint32_t *ret_base_name_offset)
{
	char *base_name;
	int r = parse_base_name(parser, parent, &base_name);

	if (r < 0)
		return r;
	r = asprintf(ret_name, "%s%s%s", parent->name, *parent->name && *base_name ? "." : "",
		     base_name);
	*ret_base_name_offset = r < 0 ? 0 : (uint32_t)(strlen(*ret_name) - strlen(base_name));
	free(base_name);
	return r < 0 ? npy_fail_memory(parser) : 0;
}

void npy_clear_names(struct npy_parser *parser)
{
	tdestroy(parser->names, free);
	parser->names = NULL;
}
