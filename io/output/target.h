/*
 * target - which file an output goes to, and how
 *
 * Three kinds of output come down to two questions: is there a replacement (a regular file with a
 * name), and is it ordered (no writes at offsets)? A regular file that the process was given
 * open, as standard output is, is neither. The null device has no offsets, and no order either.
 */
#pragma once

#include "io/file/endpoint.h"
#include "io/output/atomic_file.h"

struct target {
	const char *name; /* for messages */
	struct file file;
	struct atomic_file *atomic_file; /* NULL: written in place */
	struct rendezvous *rendezvous;   /* there is no file, but a thread; NULL: there is */
	bool is_ordered;
	bool was_direct;   /* it was given with O_DIRECT, and gets it back */
	bool is_null;      /* ordered, but nobody sees in which order */
	uint64_t base;     /* where in the file the output starts, as far as others let it */
	uint64_t old_end;  /* of what was in the file then; 0 if that is new */
	bool is_regular;   /* a regular one */
	bool ends_at_base; /* there is nothing behind that yet */
	bool has_file_id;  /* there is a file of that name already: */
	struct file_id file_id;
};

/* A replacement is the process's own, or of several that write to it (atomic_file.h). */
struct target_params {
	enum { TARGET_PRIVATE, TARGET_SHARED, TARGET_SHARED_EXISTING } kind;
	const char *name;             /* TARGET_SHARED_EXISTING: the hidden name */
	bool is_silent;               /* do not report orphans (orphans.h) */
	struct orphan_owner owner;    /* of a shared file: its owner */
	const struct file *directory; /* as in atomic_file_params */
};

/*
 * path: NULL is standard output. One that stands for a descriptor which the process was given
 * (path_to_descriptor()) is written from where that stands, whatever it leads to. A shared one
 * that is no regular file, and so cannot have a hidden name, is not opened: it has no replacement,
 * which the caller refuses. Returns 0, or a negative errno after a message; file and replacement
 * are the caller's in both cases.
 */
int target_open(const struct syscalls *calls, const char *path, const struct target_params *params,
		struct target *ret_target);

/* The same, to what is given in the place of a path. */
int target_open_endpoint(const struct syscalls *calls, const char *name, struct endpoint endpoint,
			 struct target *ret_target);

/* The same for a text, which goes to a terminal, too, and always in order. */
int target_open_text(const struct syscalls *calls, const char *path, struct target *ret_target);

/* Close its file, as file_close(), as it was given. Closed already is fine. */
int target_close(struct target *target);
