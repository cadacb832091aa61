/*
 * file_roles - each file of a run in one role, unless nothing is written in it (see file_roles.h)
 */
#include "src/options/file_roles.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"

/* A role, and where its file is. */
struct located_role {
	const struct file_role *role;
	const struct path_identity *identity;
};

static bool is_read(const struct file_role *role)
{
	return role->kind == ROLE_INPUT || role->kind == ROLE_NAME_LIST;
}

/* A text, or a report that goes on where the stream stands, as a text does. */
static bool writes_to_stream(const struct file_role *role)
{
	return role->kind == ROLE_MESSAGES ||
	       (role->kind == ROLE_REPORT && path_to_descriptor(role->path) >= 0);
}

/* What one has read of it the other will not find. */
static bool is_read_once(mode_t mode)
{
	return S_ISFIFO(mode) || S_ISSOCK(mode);
}

/* The file, or whatever it is, is the same. May it be? */
static bool may_share_file(const struct file_role *a, const struct file_role *b, mode_t mode)
{
	const bool is_input_and_output = (a->kind == ROLE_INPUT && b->kind == ROLE_OUTPUT) ||
					 (b->kind == ROLE_INPUT && a->kind == ROLE_OUTPUT);

	if (is_read(a) && is_read(b))
		return !is_read_once(mode);
	if (S_ISCHR(mode) || (S_ISSOCK(mode) && is_read(a) != is_read(b)))
		return true;
	if (is_input_and_output)
		return !S_ISFIFO(mode);
	return writes_to_stream(a) && writes_to_stream(b) &&
	       (a->kind == ROLE_MESSAGES || b->kind == ROLE_MESSAGES);
}

/* Of two roles the one that is asked to go elsewhere: reports and texts before the data. */
static const struct file_role *role_to_redirect(const struct file_role *a,
						const struct file_role *b)
{
	return a->kind > b->kind ? a : b;
}

#define ROLE_FORMAT "%s%s%s%s"
#define ROLE_ARGUMENTS(role)                                                                       \
	(role)->name, (role)->path ? " '" : "", (role)->path ? (role)->path : "",                  \
		(role)->path ? "'" : ""

static bool is_standard_error(const struct file_role *role)
{
	return role->kind == ROLE_MESSAGES && role->fd == STDERR_FILENO;
}

/* Written from where the caller has it open: a message is no worse there than what was to come. */
static bool writes_to_open_descriptor(const struct file_role *role)
{
	return role->kind != ROLE_INPUT && role->kind != ROLE_NAME_LIST &&
	       (!role->path || path_to_descriptor(role->path) >= 0);
}

/* Is standard error a file of the run, which a message would be written over? */
static bool message_would_overwrite(struct located_role a, struct located_role b)
{
	return S_ISREG(a.identity->mode) &&
	       ((is_standard_error(a.role) && !writes_to_open_descriptor(b.role)) ||
		(is_standard_error(b.role) && !writes_to_open_descriptor(a.role)));
}

static const char *file_noun(mode_t mode)
{
	return S_ISFIFO(mode) ? "pipe" : S_ISDIR(mode) ? "directory" : "file";
}

static int check_pair(struct located_role a, struct located_role b)
{
	const mode_t mode = a.identity->mode;

	if (path_identity_equal(a.identity, b.identity) && !may_share_file(a.role, b.role, mode) &&
	    message_would_overwrite(a, b))
		return -EINVAL; /* without a word */
	if (!path_identity_equal(a.identity, b.identity) || may_share_file(a.role, b.role, mode))
		return 0;
	if (is_read(a.role) && is_read(b.role))
		return fail(-EINVAL,
			    ROLE_FORMAT " and " ROLE_FORMAT
					" are the same %s, which can be read only once",
			    ROLE_ARGUMENTS(a.role), ROLE_ARGUMENTS(b.role),
			    S_ISFIFO(mode) ? "pipe" : "socket");
	return fail(-EINVAL,
		    ROLE_FORMAT " and " ROLE_FORMAT " are the same %s; let %s go to another one",
		    ROLE_ARGUMENTS(a.role), ROLE_ARGUMENTS(b.role), file_noun(mode),
		    role_to_redirect(a.role, b.role)->name);
}

/* What is written would take its place, or damage it. Without /proc it is not known. */
static int check_is_not_program(struct located_role candidate)
{
	struct stat program;

	if (!candidate.identity->exists || stat("/proc/self/exe", &program) < 0 ||
	    !file_id_equal(file_id_from_stat(&program), candidate.identity->identity))
		return 0;
	return fail(-EINVAL,
		    ROLE_FORMAT " is the program that is running; let %s go to another file",
		    ROLE_ARGUMENTS(candidate.role), candidate.role->name);
}

static int check_conflicts(const struct file_roles *roles, struct located_role candidate)
{
	int r = 0;

	for (size_t i = 0; i < roles->n && r == 0; i++)
		r = check_pair((struct located_role){ &roles->roles[i], &roles->identities[i] },
			       candidate);
	return r;
}

static int resolve_role(const struct file_role *role, struct path_identity *ret_identity)
{
	const int r = role->path ? path_identity_resolve(role->path, ret_identity) :
				   path_identity_from_fd(role->fd, ret_identity);

	return r < 0 ? fail(r, "%s: %m", role->path ? role->path : role->name) : 0;
}

static int reserve_role(struct file_roles *roles)
{
	const size_t n = roles->capacity + 16;
	struct path_identity *identities;
	struct file_role *entries;

	if (roles->n < roles->capacity)
		return 0;
	entries = reallocarray(roles->roles, n, sizeof *entries);
	roles->roles = entries ? entries : roles->roles;
	identities = reallocarray(roles->identities, n, sizeof *identities);
	roles->identities = identities ? identities : roles->identities;
	if (!entries || !identities)
		return fail(-ENOMEM, "no memory for the names of %zu files", n);
	roles->capacity = n;
	return 0;
}

/* The place is theirs then. */
static int append_role(struct file_roles *roles, const struct file_role *role,
		       const struct path_identity *identity)
{
	const int r = reserve_role(roles);

	if (r < 0)
		return r;
	roles->roles[roles->n] = *role;
	roles->identities[roles->n] = *identity;
	roles->n++;
	return 0;
}

int file_roles_add(struct file_roles *roles, const struct file_role *role)
{
	struct path_identity identity;
	int r = resolve_role(role, &identity);

	assert(role->kind != ROLE_INPUT);
	if (r < 0)
		return r;
	if (!is_read(role))
		r = check_is_not_program((struct located_role){ role, &identity });
	if (r == 0)
		r = check_conflicts(roles, (struct located_role){ role, &identity });
	if (r == 0)
		r = append_role(roles, role, &identity);
	if (r < 0)
		path_identity_free(&identity);
	return r;
}

int file_roles_add_path(struct file_roles *roles, enum file_role_kind kind, const char *name,
			const char *path)
{
	if (!path)
		return 0;
	return file_roles_add(roles,
			      &(struct file_role){ .kind = kind, .name = name, .path = path });
}

int file_roles_add_list(struct file_roles *roles, const char *path)
{
	if (path && strcmp(path, "-") == 0)
		return file_roles_add(roles,
				      &(struct file_role){ .kind = ROLE_NAME_LIST,
							   .name = "--files0-from, standard input",
							   .fd = STDIN_FILENO });
	return file_roles_add_path(roles, ROLE_NAME_LIST, "--files0-from", path);
}

int file_roles_add_stream(struct file_roles *roles, enum file_role_kind kind, int fd)
{
	const char *name = fd == STDOUT_FILENO ? "standard output" : "standard error";

	return file_roles_add(roles, &(struct file_role){ .kind = kind, .name = name, .fd = fd });
}

/* Of an input that is not there nothing else is to be said later. */
static int fail_missing(const char *path)
{
	return fail(-ENOENT, "%s: cannot open: %m", *path ? path : "''");
}

int file_roles_check_input(struct file_roles *roles, const char *path)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const struct file_role role = { .kind = ROLE_INPUT,
					.name = is_stdin ? "standard input" : "input",
					.path = is_stdin ? NULL : path,
					.fd = STDIN_FILENO };
	struct path_identity identity;
	int r = resolve_role(&role, &identity);

	if (r < 0)
		return r;
	r = identity.exists ? check_conflicts(roles, (struct located_role){ &role, &identity }) :
			      fail_missing(path);
	if (r == 0 && is_read_once(identity.mode)) {
		r = append_role(roles, &role, &identity);
		if (r == 0)
			return 0;
	}
	path_identity_free(&identity);
	return r;
}

void file_roles_free(struct file_roles *roles)
{
	for (size_t i = 0; i < roles->n; i++)
		path_identity_free(&roles->identities[i]);
	free(roles->roles);
	free(roles->identities);
	*roles = (struct file_roles){ 0 };
}

bool file_roles_stream_is_input(const struct input *input, int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 &&
	       input_has_manifest_file(input, file_id_from_stat(&status));
}

int file_roles_check_streams(const struct input *input)
{
	if (file_roles_stream_is_input(input, STDERR_FILENO))
		return -EINVAL; /* without a word */
	return file_roles_stream_is_input(input, STDOUT_FILENO) ?
		       fail(-EINVAL,
			    "standard output is a part file of an input; use another file") :
		       0;
}
