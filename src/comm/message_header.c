/*
 * message_header - what stands in front of every message (see message_header.h)
 */
#include "src/comm/message_header.h"

#include <byteswap.h>

#include "io/codec/checksum.h"

enum { MAGIC = 0x47535231 };

static uint64_t compute_message_checksum(struct message_header *header, size_t nbytes)
{
	const uint64_t saved_checksum = header->checksum;
	uint64_t checksum;

	header->checksum = 0;
	checksum = checksum64(header, nbytes);
	header->checksum = saved_checksum;
	return checksum;
}

void message_seal(struct message_header *header)
{
	header->magic = MAGIC;
	header->format = MESSAGE_FORMAT;
	header->checksum = compute_message_checksum(
		header, sizeof *header + message_inline_nbytes(header->nbytes));
}

const char *message_validate(struct message_header *header, size_t nbytes, unsigned from,
			     unsigned to, uint64_t sequence)
{
	if (nbytes < sizeof *header)
		return "it is cut short";
	if (header->magic == bswap_32(MAGIC))
		return "ranks of different byte order cannot work together";
	if (header->magic == MAGIC && header->format != MESSAGE_FORMAT)
		return "ranks of different versions of the program cannot work together";
	if (header->magic != MAGIC || header->kind >= N_MESSAGE_KINDS ||
	    nbytes != sizeof *header + message_inline_nbytes(header->nbytes) ||
	    header->checksum != compute_message_checksum(header, nbytes))
		return "it is damaged";
	if (header->from != from || header->to != to)
		return "it is another's";
	if (header->sequence != sequence)
		return header->sequence < sequence ? "it has come before" : "one before it is lost";
	return NULL;
}
