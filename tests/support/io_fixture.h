/*
 * io_fixture - a directory to work in, and a table of calls that misbehaves as told
 *
 * For test programs of io/, one per program. The faulty calls is the plain one until a member of
 * `faults` says otherwise; fixture_start() resets it, makes the directory and makes fail() quiet.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "io/file/file.h"
#include "src/cli/process_setup.h"
#include "src/lib/signal_hooks.h"
#include "tests/support/captured_messages.h"

extern struct io_faults {
	size_t most_nbytes;       /* that a transfer moves; 0: all */
	unsigned interrupt_every; /* n-th transfer is interrupted; 0: none */
	int transfer_errno;       /* of every transfer, 0: none */
	int place_errno;          /* of every read at failing_offset, 0: none */
	off_t failing_offset;
	const char *marked_directory; /* writes in files that were opened in it ... */
	int marked_errno;             /* ... fail */
	useconds_t marked_delay;      /* ... are slow */
	bool refuses_direct;          /* does not know O_DIRECT */
	bool refuses_nameless;        /* does not know O_TMPFILE */
	int new_errno;                /* of opening with O_EXCL */
	int preallocate_errno, punch_errno, ftruncate_errno, fsync_errno, close_errno, link_errno,
		rename_errno;
	int unlink_errno, setxattr_errno;
	int first_fsync_errno;  /* of the first alone */
	void (*at_fsync)(void); /* called before each; NULL: nothing */
	void (*at_punch)(void); /* the same */

	/* What was seen. */
	atomic_uint n_transfers;
	atomic_uint n_syncs;
	atomic_uint n_punches;
	atomic_ullong most_preallocated_nbytes; /* at once, if one thread does it */
	int marked_fd;                  /* the file in marked_directory */
	int nameless_fd;                /* the last file made with O_TMPFILE */
} faults;

/* -1 with errno, or what the real call says. */
#define FAULTY(error, call) ((error) != 0 ? (errno = (error), -1) : (call))

int faulty_openat(int directory, const char *path, int flags, mode_t mode);

extern struct syscalls faulty_calls;
extern char fixture_directory[64];

int fixture_start(void **state);

/* The path of `name` in the directory; valid for the next 16 calls. */
const char *path_of(const char *name);

/* What is in the directory, hidden names included. */
unsigned count_names(void);

/* Removes the files in the directory; directories in it must be empty. */
int fixture_finish(void **state);

void write_file(const char *path, const void *data, size_t nbytes);

/* Does the file hold exactly these bytes? */
bool file_holds(const char *path, const void *data, size_t nbytes);

/* Bytes that are different wherever one looks. */
void fill_pattern(void *data, size_t nbytes, uint64_t seed);
