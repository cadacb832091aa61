/*
 * p2p_protocol - transfers over a transport: announced, matched, moved, checked
 *
 * Each message begins with an announcement (message_header.h), sent with tag 0, in which short data is
 * already. The receiver matches it with what it wants to receive, in the order in which both came,
 * and only then posts receives for the rest, which is sent in pieces with a tag of its own:
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

struct delivery;

/*
 * stall_ns: as in ranks_settings; piece_nbytes > 0. The transport is borrowed. Returns 0 or a
 * negative errno, said by fail(), as all below.
 */
int delivery_open(struct transport *transport, uint64_t stall_ns, size_t piece_nbytes,
		  uint64_t now_ns, struct delivery **ret_delivery);
/* The transport has been closed. NULL is fine. */
void delivery_close(struct delivery *delivery);

/* From now on; everybody's time begins again. */
void delivery_set_stall(struct delivery *delivery, uint64_t stall_ns, uint64_t now_ns);

/* Where ranks are, for messages: by rank, borrowed. */
void delivery_name(struct delivery *delivery, const char (*hosts)[RANKS_HOST_NBYTES]);

/* Begin a transfer, of which all is set that ranks_send() or ranks_receive() is told. */
int delivery_begin(struct delivery *delivery, struct ranks_transfer *transfer, uint64_t now_ns);

/* Take what the transport has done, and look who is silent. *ret_moved: was anything to be done? */
int delivery_step(struct delivery *delivery, uint64_t now_ns, bool *ret_moved);

/* Transfers that are done, the first of a list in this order, or NULL; each is told once. */
struct ranks_transfer *delivery_take_done(struct delivery *delivery);

/* Any thread. */
void delivery_get_traffic(const struct delivery *delivery, struct ranks_traffic *ret_traffic);

/* Is anything being sent, or awaited? */
bool delivery_sends(const struct delivery *delivery);
bool delivery_is_idle(const struct delivery *delivery);

/* Forget receives that nothing has come for. */
void delivery_forget(struct delivery *delivery);

/* Before a transfer of a send is begun: its checksum. Any thread, as below. */
void delivery_seal(struct ranks_transfer *transfer);

/* Does the data of a receive that is done have its checksum? */
int delivery_check(const struct delivery *delivery, const struct ranks_transfer *transfer);
