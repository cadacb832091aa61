/*
 * file_conflicts - each file of a run in one role, unless nothing is written in it (see file_conflicts.h)
 */
#include "src/options/file_conflicts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"

/* A role, and where its file is. */
struct placed {
	const struct role *role;
	const struct place *place;
};

static bool reads(const struct role *role)
{
	return role->kind == ROLE_INPUT || role->kind == ROLE_LIST;
}

/* A text, or a report that goes on where the stream stands, as a text does. */
static bool is_on_stream(const struct role *role)
{
	return role->kind == ROLE_TEXT ||
	       (role->kind == ROLE_REPORT && place_descriptor(role->path) >= 0);
}

/* What one has read of it the other will not find. */
static bool is_read_once(mode_t mode)
{
	return S_ISFIFO(mode) || S_ISSOCK(mode);
}

/* The file, or whatever it is, is the same. May it be? */
static bool may_be_one(const struct role *a, const struct role *b, mode_t mode)
{
	const bool in_and_out = (a->kind == ROLE_INPUT && b->kind == ROLE_OUTPUT) ||
				(b->kind == ROLE_INPUT && a->kind == ROLE_OUTPUT);

	if (reads(a) && reads(b))
		return !is_read_once(mode);
	if (S_ISCHR(mode) || (S_ISSOCK(mode) && reads(a) != reads(b)))
		return true;
	if (in_and_out)
		return !S_ISFIFO(mode);
	return is_on_stream(a) && is_on_stream(b) && (a->kind == ROLE_TEXT || b->kind == ROLE_TEXT);
}

/* Of two roles the one that is asked to go elsewhere: reports and texts before the data. */
static const struct role *which_must_go(const struct role *a, const struct role *b)
{
	return a->kind > b->kind ? a : b;
}

#define ROLE_FORMAT "%s%s%s%s"
#define ROLE_ARGUMENTS(role)                                                                       \
	(role)->name, (role)->path ? " '" : "", (role)->path ? (role)->path : "",                  \
		(role)->path ? "'" : ""

static bool is_standard_error(const struct role *role)
{
	return role->kind == ROLE_TEXT && role->fd == STDERR_FILENO;
}

/* Written from where the caller has it open: a message is no worse there than what was to come. */
static bool goes_on(const struct role *role)
{
	return role->kind != ROLE_INPUT && role->kind != ROLE_LIST &&
	       (!role->path || place_descriptor(role->path) >= 0);
}

/* Is standard error a file of the run, which a message would be written over? */
static bool would_lose(struct placed a, struct placed b)
{
	return S_ISREG(a.place->mode) && ((is_standard_error(a.role) && !goes_on(b.role)) ||
					  (is_standard_error(b.role) && !goes_on(a.role)));
}

static int check_pair(struct placed a, struct placed b)
{
	const mode_t mode = a.place->mode;

	if (place_is_same(a.place, b.place) && !may_be_one(a.role, b.role, mode) &&
	    would_lose(a, b))
		return -EINVAL; /* without a word */
	if (!place_is_same(a.place, b.place) || may_be_one(a.role, b.role, mode))
		return 0;
	if (reads(a.role) && reads(b.role))
		return fail(-EINVAL,
			    ROLE_FORMAT " and " ROLE_FORMAT
					" are the same %s, which can be read only once",
			    ROLE_ARGUMENTS(a.role), ROLE_ARGUMENTS(b.role),
			    S_ISFIFO(mode) ? "pipe" : "socket");
	return fail(-EINVAL,
		    ROLE_FORMAT " and " ROLE_FORMAT " are the same %s; let %s go to another one",
		    ROLE_ARGUMENTS(a.role), ROLE_ARGUMENTS(b.role),
		    S_ISFIFO(mode) ? "pipe" : "file", which_must_go(a.role, b.role)->name);
}

/* What is written would take its place, or damage it. Without /proc it is not known. */
static int check_is_not_program(struct placed placed)
{
	struct stat program;

	if (!placed.place->exists || stat("/proc/self/exe", &program) < 0 ||
	    !file_identity_equal(file_identity_of(&program), placed.place->identity))
		return 0;
	return fail(-EINVAL,
		    ROLE_FORMAT " is the program that is running; let %s go to another file",
		    ROLE_ARGUMENTS(placed.role), placed.role->name);
}

static int check_all(const struct roles *roles, struct placed placed)
{
	int r = 0;

	for (size_t i = 0; i < roles->n && r == 0; i++)
		r = check_pair((struct placed){ &roles->roles[i], &roles->places[i] }, placed);
	return r;
}

static int find_place(const struct role *role, struct place *ret_place)
{
	const int r = role->path ? place_of_path(role->path, ret_place) :
				   place_of_descriptor(role->fd, ret_place);

	return r < 0 ? fail(r, "%s: %m", role->path ? role->path : role->name) : 0;
}

static int make_room(struct roles *roles)
{
	const size_t n = roles->n_room + 16;
	struct place *places;
	struct role *all;

	if (roles->n < roles->n_room)
		return 0;
	all = reallocarray(roles->roles, n, sizeof *all);
	roles->roles = all ? all : roles->roles;
	places = reallocarray(roles->places, n, sizeof *places);
	roles->places = places ? places : roles->places;
	if (!all || !places)
		return fail(-ENOMEM, "no memory for the names of %zu files", n);
	roles->n_room = n;
	return 0;
}

/* The place is theirs then. */
static int keep(struct roles *roles, const struct role *role, const struct place *place)
{
	const int r = make_room(roles);

	if (r < 0)
		return r;
	roles->roles[roles->n] = *role;
	roles->places[roles->n] = *place;
	roles->n++;
	return 0;
}

int roles_add(struct roles *roles, const struct role *role)
{
	struct place place;
	int r = find_place(role, &place);

	assert(role->kind != ROLE_INPUT);
	if (r < 0)
		return r;
	if (!reads(role))
		r = check_is_not_program((struct placed){ role, &place });
	if (r == 0)
		r = check_all(roles, (struct placed){ role, &place });
	if (r == 0)
		r = keep(roles, role, &place);
	if (r < 0)
		place_free(&place);
	return r;
}

int roles_add_path(struct roles *roles, enum role_kind kind, const char *name, const char *path)
{
	if (!path)
		return 0;
	return roles_add(roles, &(struct role){ .kind = kind, .name = name, .path = path });
}

int roles_add_list(struct roles *roles, const char *path)
{
	if (path && strcmp(path, "-") == 0)
		return roles_add(roles, &(struct role){ .kind = ROLE_LIST,
							.name = "--files0-from, standard input",
							.fd = STDIN_FILENO });
	return roles_add_path(roles, ROLE_LIST, "--files0-from", path);
}

int roles_add_stream(struct roles *roles, enum role_kind kind, int fd)
{
	const char *name = fd == STDOUT_FILENO ? "standard output" : "standard error";

	return roles_add(roles, &(struct role){ .kind = kind, .name = name, .fd = fd });
}

/* Of an input that is not there nothing else is to be said later. */
static int fail_missing(const char *path)
{
	return fail(-ENOENT, "%s: cannot open: %m", *path ? path : "''");
}

int roles_check_input(struct roles *roles, const char *path)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const struct role role = { .kind = ROLE_INPUT,
				   .name = is_stdin ? "standard input" : "input",
				   .path = is_stdin ? NULL : path,
				   .fd = STDIN_FILENO };
	struct place place;
	int r = find_place(&role, &place);

	if (r < 0)
		return r;
	r = place.exists ? check_all(roles, (struct placed){ &role, &place }) : fail_missing(path);
	if (r == 0 && is_read_once(place.mode)) {
		r = keep(roles, &role, &place);
		if (r == 0)
			return 0;
	}
	place_free(&place);
	return r;
}

void roles_free(struct roles *roles)
{
	for (size_t i = 0; i < roles->n; i++)
		place_free(&roles->places[i]);
	free(roles->roles);
	free(roles->places);
	*roles = (struct roles){ 0 };
}

bool roles_is_listed_stream(const struct input *input, int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 && input_has_listed_file(input, file_identity_of(&status));
}

int roles_check_opened_streams(const struct input *input)
{
	if (roles_is_listed_stream(input, STDERR_FILENO))
		return -EINVAL; /* without a word */
	return roles_is_listed_stream(input, STDOUT_FILENO) ?
		       fail(-EINVAL,
			    "standard output is a part file of an input; use another file") :
		       0;
}
