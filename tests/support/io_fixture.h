/*
 * io_fixture.h - a temporary directory, and a table of system calls with faults
 *
 * One per process. faulty_calls behaves like the plain table until a member of `faults` is set.
 * fixture_start() resets `faults`, creates the directory and captures messages.
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
#include "src/lib/process_hooks.h"
#include "tests/support/captured_messages.h"

extern struct io_faults {
	size_t max_transfer_nbytes; /* that a transfer moves; 0: all */
	unsigned interrupt_every;   /* n-th transfer is interrupted; 0: none */
	int transfer_errno;         /* of every transfer, 0: none */
	int failing_offset_errno;   /* of every read at failing_offset, 0: none */
	off_t failing_offset;
	const char *faulty_directory;     /* writes in files that were opened in it ... */
	int faulty_write_errno;           /* ... fail */
	useconds_t faulty_write_delay_us; /* ... are slow */
	bool rejects_direct;              /* does not know O_DIRECT */
	bool rejects_tmpfile;             /* does not know O_TMPFILE */
	int create_errno;                 /* of opening with O_EXCL */
	int preallocate_errno, punch_errno, ftruncate_errno, fsync_errno, close_errno, link_errno,
		rename_errno;
	int unlink_errno, mkdir_errno, setxattr_errno;
	int first_fsync_errno;  /* of the first alone */
	void (*on_fsync)(void); /* called before each; NULL: nothing */
	void (*on_punch)(void); /* the same */

	/* What was seen. */
	atomic_uint n_transfers;
	atomic_uint n_syncs;
	atomic_uint n_punches;
	atomic_ullong max_preallocated_nbytes; /* at once, if one thread does it */
	int faulty_fd;                         /* the file in faulty_directory */
	int tmpfile_fd;                        /* the last file made with O_TMPFILE */
} faults;

/* -1 with errno set to the error, or the result of the real call. */
#define FAULTY(error, call) ((error) != 0 ? (errno = (error), -1) : (call))

int faulty_openat(int directory, const char *path, int flags, mode_t mode);

extern struct syscalls faulty_calls;
extern char fixture_directory[64];

int fixture_start(void **state);

#define DIRECTORY_TEST(claim) TEST_WITH(claim, fixture_start, fixture_finish)

/* Return the path of `name` in the directory, valid for the next 16 calls. */
const char *fixture_path(const char *name);

/* Count the entries of the directory, hidden ones included. */
unsigned count_directory_entries(void);

/* Remove everything in the directory. */
void fixture_clear(void);

int fixture_finish(void **state);

void write_file(const char *path, const void *data, size_t nbytes);

/* Write a text to a file in the directory, and make the directories that the file is in. */
void write_text(const char *name, const char *text);

/* Return whether the file contains exactly these bytes. */
bool file_contains(const char *path, const void *data, size_t nbytes);

/* Fill with bytes that differ at all offsets. */
void fill_pattern(void *data, size_t nbytes, uint64_t seed);
