/*
 * npy_names - what the fields of a structure are called, and their titles (see npy_internal.h)
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
static int keep_name(struct npy_parsing *parsing, const char *name)
{
	char *copy = strdup(name),
	     **found = copy ? tsearch(copy, &parsing->names, compare_names) : NULL;
	const bool is_new = found && *found == copy;

	if (!is_new)
		free(copy);
	if (!found)
		return npy_fail_memory(parsing);
	return is_new ? 0 :
			npy_refuse(parsing,
				   "in which two fields, or titles, of one structure are "
				   "called '%.40s'",
				   name);
}

/* What a field is called, or its title; padding has no name. */
static int note_name(struct npy_parsing *parsing, const struct npy_place *outer, const char *name)
{
	python_put_string(parsing->descr, name);
	if (!*name)
		return 0;
	if (outer->depth == 0)
		fwrite(name, 1, strlen(name) + 1, parsing->tops);
	return keep_name(parsing, name);
}

static int take_title(struct npy_parsing *parsing, const struct npy_place *outer)
{
	char *title;
	int r = npy_take_string(parsing, &title);

	if (r < 0)
		return r;
	fputc('(', parsing->descr);
	r = note_name(parsing, outer, title);
	fputs(", ", parsing->descr);
	free(title);
	return r;
}

/* Behind the '(' of ('title', 'name'); None is no title. */
static int take_titled(struct npy_parsing *parsing, const struct npy_place *outer, char **ret_name)
{
	const bool has_title = !python_take(&parsing->text, "None");
	int r = has_title ? take_title(parsing, outer) : 0;

	if (r == 0 && !python_take(&parsing->text, ","))
		r = npy_refuse_spelling(parsing);
	if (r == 0)
		r = npy_take_string(parsing, ret_name);
	if (r < 0)
		return r;
	r = note_name(parsing, outer, *ret_name);
	fputs(has_title ? ")" : "", parsing->descr);
	if (r == 0 && !python_take(&parsing->text, ")"))
		r = npy_refuse_spelling(parsing);
	if (r < 0)
		free(*ret_name);
	return r;
}

/* 'name', or ('title', 'name'). */
static int take_own_name(struct npy_parsing *parsing, const struct npy_place *outer,
			 char **ret_name)
{
	int r;

	if (python_take(&parsing->text, "("))
		return take_titled(parsing, outer, ret_name);
	r = npy_take_string(parsing, ret_name);
	if (r < 0)
		return r;
	r = note_name(parsing, outer, *ret_name);
	if (r < 0)
		free(*ret_name);
	return r;
}

int npy_take_names(struct npy_parsing *parsing, const struct npy_place *outer, char **ret_name,
		   uint32_t *ret_own_name_at)
{
	char *own;
	int r = take_own_name(parsing, outer, &own);

	if (r < 0)
		return r;
	r = asprintf(ret_name, "%s%s%s", outer->name, *outer->name && *own ? "." : "", own);
	*ret_own_name_at = r < 0 ? 0 : (uint32_t)(strlen(*ret_name) - strlen(own));
	free(own);
	return r < 0 ? npy_fail_memory(parsing) : 0;
}

void npy_forget_names(struct npy_parsing *parsing)
{
	tdestroy(parsing->names, free);
	parsing->names = NULL;
}
