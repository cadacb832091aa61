/*
 * file_roles.c - one role for each file of a command (see file_roles.h)
 */
#include "src/options/file_roles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/array.h"
#include "src/base/diagnostics.h"

static bool is_read(const struct file_role *role)
{
	return role->kind == ROLE_INPUT || role->kind == ROLE_NAME_LIST;
}

/* Return whether the role writes from the current offset of an open descriptor. */
static bool writes_to_descriptor(const struct file_role *role)
{
	return !is_read(role) && (!role->path || path_to_descriptor(role->path) >= 0);
}

/* Return whether the role is text, or a report that continues an open stream like text. */
static bool writes_text(const struct file_role *role)
{
	return role->kind == ROLE_MESSAGES ||
	       (role->kind == ROLE_REPORT && writes_to_descriptor(role));
}

static bool is_read_once(mode_t mode)
{
	return S_ISFIFO(mode) || S_ISSOCK(mode);
}

/* Return whether one of the roles is of this kind. */
static bool one_is(const struct file_role *a, const struct file_role *b, enum file_role_kind kind)
{
	return a->kind == kind || b->kind == kind;
}

/* Return whether the table in the header allows both roles for a file of this mode. */
static bool may_share_file(const struct file_role *a, const struct file_role *b, mode_t mode)
{
	if (S_ISCHR(mode))
		return true;
	if (is_read(a) && is_read(b))
		return !is_read_once(mode);
	if (!is_read(a) && !is_read(b))
		return writes_text(a) && writes_text(b) && one_is(a, b, ROLE_MESSAGES);
	/* One is read, and the other one is written. */
	return S_ISSOCK(mode) ||
	       (!S_ISFIFO(mode) && one_is(a, b, ROLE_INPUT) && one_is(a, b, ROLE_OUTPUT));
}

static bool is_standard_error(const struct file_role *role)
{
	return role->kind == ROLE_MESSAGES && role->fd == STDERR_FILENO;
}

/*
 * Return whether a message would overwrite the file. In a file that is written from an open
 * descriptor, a message replaces only output that is missing because of the error.
 */
static bool message_would_overwrite(const struct file_role *a, const struct file_role *b)
{
	return S_ISREG(a->identity.mode) && ((is_standard_error(a) && !writes_to_descriptor(b)) ||
					     (is_standard_error(b) && !writes_to_descriptor(a)));
}

#define ROLE_FORMAT "%s%s%s%s"
#define ROLE_ARGUMENTS(role)                                                                       \
	(role)->name, (role)->path ? " '" : "", (role)->path ? (role)->path : "",                  \
		(role)->path ? "'" : ""

static const char *file_noun(mode_t mode)
{
	return S_ISFIFO(mode) ? "pipe" :
	       S_ISSOCK(mode) ? "socket" :
	       S_ISDIR(mode)  ? "directory" :
				"file";
}

static int check_pair(const struct file_role *a, const struct file_role *b)
{
	const mode_t mode = a->identity.mode;
	/* Reports and text move rather than data. */
	const struct file_role *redirected = a->kind > b->kind ? a : b;

	if (!path_identity_equal(&a->identity, &b->identity) || may_share_file(a, b, mode))
		return 0;
	if (message_would_overwrite(a, b))
		return -EINVAL; /* not reported */
	if (is_read(a) && is_read(b))
		return fail(-EINVAL,
			    ROLE_FORMAT " and " ROLE_FORMAT
					" are the same %s; it can be read only once",
			    ROLE_ARGUMENTS(a), ROLE_ARGUMENTS(b), file_noun(mode));
	return fail(-EINVAL,
		    ROLE_FORMAT " and " ROLE_FORMAT " are the same %s; use another one for %s",
		    ROLE_ARGUMENTS(a), ROLE_ARGUMENTS(b), file_noun(mode), redirected->name);
}

static int check_conflicts(const struct file_roles *roles, const struct file_role *candidate)
{
	int r = 0;

	for (size_t i = 0; i < roles->n && r == 0; i++)
		r = check_pair(&roles->roles[i], candidate);
	return r;
}

/* Refuse to write the running program. Without /proc it is unknown. */
static int check_is_not_program(const struct file_role *role)
{
	struct stat program;

	if (is_read(role) || !role->identity.exists || stat("/proc/self/exe", &program) < 0 ||
	    !file_id_equal(file_id_from_stat(&program), role->identity.identity))
		return 0;
	return fail(-EINVAL, ROLE_FORMAT " is the running program; use another file for %s",
		    ROLE_ARGUMENTS(role), role->name);
}

static int identify(struct file_role *role)
{
	const int r = role->path ? path_identity_resolve(role->path, &role->identity) :
				   path_identity_from_fd(role->fd, &role->identity);

	return r < 0 ? fail(r, "%s: %m", role->path ? role->path : role->name) : 0;
}

static int append_role(struct file_roles *roles, const struct file_role *role)
{
	if (!array_reserve(&roles->roles, &roles->capacity, roles->n + 1, sizeof *role))
		return fail(-ENOMEM, "no memory for the names of %zu files", roles->n + 1);
	roles->roles[roles->n++] = *role;
	return 0;
}

static int add_role(struct file_roles *roles, struct file_role role)
{
	int r = identify(&role);

	if (r < 0)
		return r;
	r = check_is_not_program(&role);
	if (r == 0)
		r = check_conflicts(roles, &role);
	if (r == 0)
		r = append_role(roles, &role);
	if (r < 0)
		path_identity_free(&role.identity);
	return r;
}

int file_roles_add_path(struct file_roles *roles, enum file_role_kind kind, const char *name,
			const char *path)
{
	return path ? add_role(roles,
			       (struct file_role){ .kind = kind, .name = name, .path = path }) :
		      0;
}

int file_roles_add_stream(struct file_roles *roles, enum file_role_kind kind, int fd)
{
	const char *name = fd == STDOUT_FILENO ? "standard output" : "standard error";

	return add_role(roles, (struct file_role){ .kind = kind, .name = name, .fd = fd });
}

int file_roles_add_list(struct file_roles *roles, const char *path)
{
	const struct file_role standard_input = { .kind = ROLE_NAME_LIST,
						  .name = "--files0-from, standard input",
						  .fd = STDIN_FILENO };

	return path && strcmp(path, "-") == 0 ?
		       add_role(roles, standard_input) :
		       file_roles_add_path(roles, ROLE_NAME_LIST, "--files0-from", path);
}

int file_roles_check_input(struct file_roles *roles, const char *path)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	struct file_role role = { .kind = ROLE_INPUT,
				  .name = is_stdin ? "standard input" : "input",
				  .path = is_stdin ? NULL : path,
				  .fd = STDIN_FILENO };
	int r = identify(&role);

	if (r < 0)
		return r;
	r = role.identity.exists ? check_conflicts(roles, &role) :
				   fail(-ENOENT, "%s: cannot open: %m", *path ? path : "''");
	if (r == 0 && is_read_once(role.identity.mode)) {
		r = append_role(roles, &role);
		if (r == 0)
			return 0;
	}
	path_identity_free(&role.identity);
	return r;
}

/* Return whether the file is empty, begins like JSON or HTML, or cannot be read. */
static bool may_be_report(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	char first;
	ssize_t n;

	if (fd < 0)
		return true;
	n = read(fd, &first, 1);
	close(fd);
	return n <= 0 || first == '{' || first == '[' || first == '<';
}

int file_roles_check_reports(const struct file_roles *roles)
{
	for (size_t i = 0; i < roles->n; i++) {
		const struct file_role *role = &roles->roles[i];

		if (role->kind == ROLE_REPORT && !writes_to_descriptor(role) &&
		    role->identity.exists && S_ISREG(role->identity.mode) &&
		    !may_be_report(role->path))
			return fail(-EINVAL,
				    ROLE_FORMAT " exists, but is not a report; remove it, or use "
						"another file for %s",
				    ROLE_ARGUMENTS(role), role->name);
	}
	return 0;
}

void file_roles_free(struct file_roles *roles)
{
	for (size_t i = 0; i < roles->n; i++)
		path_identity_free(&roles->roles[i].identity);
	free(roles->roles);
	*roles = (struct file_roles){ 0 };
}

static bool is_part_file(const struct input *input, int fd)
{
	struct stat status;

	return fstat(fd, &status) == 0 &&
	       input_has_manifest_file(input, file_id_from_stat(&status));
}

int file_roles_check_streams(const struct input *input, bool writes_to_stdout)
{
	if (is_part_file(input, STDERR_FILENO))
		return -EINVAL; /* not reported */
	return writes_to_stdout && is_part_file(input, STDOUT_FILENO) ?
		       fail(-EINVAL,
			    "standard output is a part file of an input; use another file") :
		       0;
}

/* --- lists of names --- */

/* The maximum length of a list. A device that never ends must not fill the memory. */
enum { FILES0_MAX_NBYTES = 256 << 20 };

/*
 * The minimum room for a read. A pipe may be in packet mode, and must not be read in shorter pieces
 * (file.h).
 */
enum { FILES0_MIN_READ_NBYTES = 64 << 10 };

/*
 * Read the whole file, and append a NUL. getdelim() would copy each name once more. Names beyond
 * memory_nbytes are counted, but not kept. *ret_n: number of names; the last one may lack its NUL.
 */
static int read_name_list(int fd, const char *path, uint64_t memory_nbytes, char **ret_text,
			  size_t *ret_nbytes, size_t *ret_n)
{
	size_t nbytes = 0, capacity = 0, n_names = 0, n_read = 0;
	char *text = NULL;
	ssize_t n = 1;
	int r = 0;

	while (n > 0 && n_read < FILES0_MAX_NBYTES) {
		if (!input_names_fit(memory_nbytes, n_names, n_read))
			nbytes = 0;
		if (capacity - nbytes <= FILES0_MIN_READ_NBYTES) {
			char *grown;

			capacity = capacity ? 2 * capacity : 2 * FILES0_MIN_READ_NBYTES;
			grown = realloc(text, capacity);
			if (!grown) {
				r = fail(-ENOMEM, "%s: %m", path);
				goto out;
			}
			text = grown;
		}
		n = read(fd, text + nbytes, capacity - nbytes - 1);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n < 0) {
			r = fail(-errno, "%s: read of file names: %m", path);
			goto out;
		}
		for (const char *end = text + nbytes + n, *c = text + nbytes; c < end; c++)
			n_names += *c == '\0';
		n_read += (size_t)n;
		nbytes += (size_t)n;
	}
	if (n > 0)
		r = fail(-EFBIG, "%s: longer than %d MiB; not a list of file names", path,
			 FILES0_MAX_NBYTES >> 20);
	else
		r = input_check_names(memory_nbytes, n_names, n_read);
	if (r < 0)
		goto out;
	text[nbytes] = '\0';
	*ret_text = text;
	*ret_nbytes = nbytes;
	*ret_n = n_names + (nbytes > 0 && text[nbytes - 1]);
	return 0;
out:
	free(text);
	return r;
}

static int split_names(const char *path, const char *text, const char **names, size_t n)
{
	for (size_t i = 0; i < n; i++, text += strlen(text) + 1) {
		if (!*text)
			return fail(-EINVAL, "%s: file name %zu is empty", path, i + 1);
		if (!strcmp(text, "-")) /* as in GNU sort */
			return fail(-EINVAL,
				    "--files0-from: file name %zu is '-', which is not allowed in "
				    "a list",
				    i + 1);
		names[i] = text;
	}
	return 0;
}

int files0_read(const char *path, uint64_t memory_nbytes, const char ***ret_paths, size_t *ret_n,
		char **ret_text)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	const char **names = NULL;
	char *text = NULL;
	size_t nbytes = 0, n = 0;
	int r;

	if (fd < 0)
		return fail(-errno, "%s: cannot open this list of file names: %m", path);
	r = read_name_list(fd, path, memory_nbytes, &text, &nbytes, &n);
	if (r < 0)
		goto out;
	if (n == 0) {
		r = fail(-EINVAL, "--files0-from: %s: contains no file names", path);
		goto out;
	}
	/*
	 * The text may be lines, as "find" without -print0 and "ls" write them. A single name may
	 * contain newlines if it exists.
	 */
	if (strlen(text) == nbytes && strchr(text, '\n') && access(text, F_OK) < 0) {
		r = fail(-EINVAL,
			 "--files0-from: %s: names end with newlines, not NULs; use find -print0 "
			 "or tr '\\n' '\\0'",
			 path);
		goto out;
	}
	names = calloc(n, sizeof *names);
	r = names ? split_names(path, text, names, n) : fail(-ENOMEM, "%s: %m", path);
	if (r < 0)
		goto out;
	*ret_paths = names;
	*ret_n = n;
	*ret_text = text;
out:
	if (!is_stdin)
		close(fd);
	if (r < 0) {
		free(names);
		free(text);
	}
	return r;
}

int files0_require_regular_file(const char *path)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	struct stat status;

	if (!is_stdin && (stat(path, &status) < 0 || S_ISREG(status.st_mode)))
		return 0;
	return fail(
		-EINVAL,
		"--files0-from: %s is not a regular file; all ranks must be able to read the list",
		is_stdin ? "standard input" : path);
}
