/*
 * p2p_protocol - transfers over a transport: announced, matched, moved, checked
 *
 * Each message begins with an announcement (message_header.h), sent with tag 0, in which short
 * data is already. The receiver matches it with what it wants to receive, in the order in which
 * both came, and only then posts receives for the rest, which is sent in pieces with a tag of its
 * own:
 *
 *	sender                                  receiver
 *	tag 0: header, data if short   -->      one receive for tag 0 is always posted
 *	tag t: piece, piece, piece     -->      posted when somebody wants it, to where it belongs
 *
 * So data is never copied but by the transport, what nobody wants yet stays with the sender, and
 * each rank learns from a message's number whether one is missing (t is made from it).
 *
 * Everything is done by one thread, which takes a step from time to time and knows what time it
 * is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/comm/comm.h"

struct p2p;

/*
 * timeout_ns: as in comm_params; piece_nbytes > 0. The transport is borrowed. Returns 0 or a
 * negative errno, said by fail(), as all below.
 */
int p2p_open(struct transport *transport, uint64_t timeout_ns, size_t fragment_nbytes,
	     uint64_t now_ns, struct p2p **ret_p2p);
/* The transport has been closed. NULL is fine. */
void p2p_close(struct p2p *p2p);

/* From now on; everybody's time begins again. */
void p2p_set_timeout(struct p2p *p2p, uint64_t timeout_ns, uint64_t now_ns);

/* Where ranks are, for messages: by rank, borrowed. */
void p2p_set_hosts(struct p2p *p2p, const char (*hosts)[COMM_HOST_NBYTES]);

/* Begin a transfer, of which all is set that comm_send() or comm_receive() is told. */
int p2p_begin(struct p2p *p2p, struct comm_transfer *transfer, uint64_t now_ns);

/* Take what the transport has done, and look who is silent. *ret_progressed: was anything to be
 * done? */
int p2p_progress(struct p2p *p2p, uint64_t now_ns, bool *ret_progressed);

/* Transfers that are done, the first of a list in this order, or NULL; each is told once. */
struct comm_transfer *p2p_take_completed(struct p2p *p2p);

/* Any thread. */
void p2p_get_traffic(const struct p2p *p2p, struct comm_traffic *ret_traffic);

/* Is anything being sent, or awaited? */
bool p2p_is_sending(const struct p2p *p2p);
bool p2p_is_idle(const struct p2p *p2p);

/* Forget receives that nothing has come for. */
void p2p_cancel_receives(struct p2p *p2p);

/* Before a transfer of a send is begun: its checksum. Any thread, as below. */
void p2p_set_checksum(struct comm_transfer *transfer);

/* Does the data of a receive that is done have its checksum? */
int p2p_verify_checksum(const struct p2p *p2p, const struct comm_transfer *transfer);
