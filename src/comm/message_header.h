/*
 * message_header - what stands in front of every message, and whether it came as it was sent
 *
 *	| header | up to MESSAGE_INLINE_NBYTES of data |          longer data goes by itself
 *
 * A header names sender, receiver and number, so what was lost, repeated or sent astray is seen;
 * the header's checksum is over itself and what follows it, the data's is over all of the data.
 * Numbers are in the byte order of who sends: another order is seen by the first four bytes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum rank_message_kind {
	MESSAGE_DATA, /* of a transfer */
	MESSAGE_PING, /* do you live? */
	MESSAGE_PONG, /* yes */
	N_MESSAGE_KINDS
};

enum {
	MESSAGE_MAX_NBYTES = 4096, /* of header and data */
	MESSAGE_FORMAT = 1,        /* another one for every change of what is sent */
};

struct message_header {
	uint32_t magic;
	uint32_t format;
	uint32_t kind; /* enum rank_message_kind */
	uint32_t from, to;
	uint32_t tag;
	uint64_t sequence;      /* of messages from `from` to `to`, from 0 */
	uint64_t nbytes;        /* of the data */
	uint64_t data_checksum; /* 0 if the data is in the message */
	uint64_t checksum;      /* of the header, this being 0, and what follows it */
};

enum { MESSAGE_INLINE_NBYTES = MESSAGE_MAX_NBYTES - (int)sizeof(struct message_header) };

/* How much of it follows the header, of a message with nbytes of data? */
static inline size_t message_inline_nbytes(uint64_t nbytes)
{
	return nbytes <= MESSAGE_INLINE_NBYTES ? (size_t)nbytes : 0;
}

/* Complete magic, format and checksum of a header with what follows it. */
void message_seal(struct message_header *header);

/*
 * Is it, with nbytes in all, what `from` has sent to `to` as number `sequence`? NULL, or what is
 * wrong with it, for a message that names who sent it.
 */
const char *message_validate(struct message_header *header, size_t nbytes, unsigned from,
			     unsigned to, uint64_t sequence);
