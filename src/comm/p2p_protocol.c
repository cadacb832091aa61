/*
 * p2p_protocol - transfers over a transport (see p2p_protocol.h)
 */
#include "src/comm/p2p_protocol.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "src/base/diagnostics.h"
#include "src/comm/message_header.h"
#include "src/comm/tags.h"
#include "src/comm/transport.h"
#include "src/comm/heartbeat.h"

enum { TAG_ANNOUNCEMENTS };

typedef const char host_name[RANKS_HOST_NBYTES];

/* A message of the transport under way. */
struct move {
	struct transport_request request;
	enum { MOVE_INBOX, MOVE_ANNOUNCEMENT, MOVE_PIECE_OUT, MOVE_PIECE_IN } kind;
	struct ranks_transfer *transfer; /* NULL: nobody waits for it */
	size_t nbytes;
	struct message_header header; /* of INBOX and ANNOUNCEMENT; data follows it */
};

/* A message that has been announced, and that nobody has asked for yet. */
struct announced {
	struct announced *next;
	struct ranks_transfer *own; /* sent by this rank to itself */
	struct message_header header;
	char data[];
};

struct transfers {
	struct ranks_transfer *first, **end;
};

/* Of what is sent, or of what is received. */
struct traffic {
	atomic_uint_least64_t nbytes;      /* data of messages */
	atomic_uint_least64_t wire_nbytes; /* and all that stands in front of it */
};

struct delivery {
	struct transport *transport;
	unsigned rank, size;
	size_t piece_nbytes;
	uint64_t now_ns; /* of the step */
	struct numbers {
		uint64_t n_sent, n_received;
	} * numbers; /* of messages, by rank */
	struct watch watch;
	struct move *inbox;
	struct transfers wanted;     /* receives that nothing has come for */
	struct announced *announced; /* in the order in which they came */
	struct announced **announced_end;
	struct transfers done;
	unsigned n_sending; /* moves */
	struct traffic sent, received;
	host_name *_Atomic hosts;
};

static void transfers_init(struct transfers *transfers)
{
	transfers->first = NULL;
	transfers->end = &transfers->first;
}

static void transfers_add(struct transfers *transfers, struct ranks_transfer *transfer)
{
	transfer->next = NULL;
	*transfers->end = transfer;
	transfers->end = &transfer->next;
}

/* at: the pointer that leads to it. */
static struct ranks_transfer *transfers_remove(struct transfers *transfers,
					       struct ranks_transfer **at)
{
	struct ranks_transfer *transfer = *at;

	*at = transfer->next;
	if (!*at)
		transfers->end = at;
	return transfer;
}

enum { NAME_NBYTES = RANKS_HOST_NBYTES + 24 };

/* "rank 3 on node17" */
static const char *name_of(const struct delivery *delivery, unsigned rank,
			   char text[static NAME_NBYTES])
{
	host_name *hosts = delivery->hosts;

	snprintf(text, NAME_NBYTES, hosts ? "rank %u on %s" : "rank %u", rank,
		 hosts ? hosts[rank] : "");
	return text;
}

static int fail_of(const struct delivery *delivery, int r, unsigned rank, const char *what)
{
	char name[NAME_NBYTES];

	return fail(r, "a message from %s cannot be used: %s", name_of(delivery, rank, name), what);
}

/*
 * A tag for the pieces of a message, so that each finds its place in whatever order they are
 * wanted.
 */
static int tag_of(uint64_t sequence)
{
	return (int)(1 + sequence % (TRANSPORT_TAG_LIMIT - 1));
}

/* room: for what follows the header. NULL: there is no memory. */
static struct move *make_move(int kind, struct ranks_transfer *transfer, size_t nbytes, size_t room)
{
	struct move *move = malloc(sizeof *move + room);

	if (move)
		*move = (struct move){ .kind = kind, .transfer = transfer, .nbytes = nbytes };
	return move;
}

static int fail_memory(void)
{
	return fail(-ENOMEM, "no memory for messages between ranks");
}

/* The one receive for announcements; one at a time, so that they come in their order. */
static int post_inbox(struct delivery *delivery)
{
	struct transport *transport = delivery->transport;

	return transport->ops->receive(transport, TRANSPORT_ANY, TAG_ANNOUNCEMENTS,
				       &delivery->inbox->header, MESSAGE_NBYTES_MOST,
				       &delivery->inbox->request);
}

static void count(struct traffic *traffic, size_t nbytes, size_t wire_nbytes)
{
	atomic_fetch_add_explicit(&traffic->nbytes, nbytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&traffic->wire_nbytes, wire_nbytes, memory_order_relaxed);
}

/* Is anybody missed, as long as it is not done? */
static bool is_watched(const struct delivery *delivery, const struct ranks_transfer *transfer)
{
	return transfer->peer != delivery->rank && !transfer->is_patient;
}

/* As the watch knows who it awaits. */
static unsigned watched_of(const struct delivery *delivery, const struct ranks_transfer *transfer)
{
	return transfer->peer < delivery->size ? transfer->peer : delivery->size;
}

static void look_away(struct delivery *delivery, const struct ranks_transfer *transfer)
{
	if (is_watched(delivery, transfer))
		watch_awaited(&delivery->watch, watched_of(delivery, transfer));
}

static void transfer_done(struct delivery *delivery, struct ranks_transfer *transfer)
{
	look_away(delivery, transfer);
	transfers_add(&delivery->done, transfer);
}

/* Send a header and what follows it. transfer: whom it is a part of, or NULL. */
static int announce(struct delivery *delivery, enum message_kind_of_rank kind, unsigned to,
		    const struct ranks_transfer *about, struct ranks_transfer *transfer)
{
	struct transport *transport = delivery->transport;
	const size_t follows = about ? message_inline_nbytes(about->nbytes) : 0;
	struct move *move =
		make_move(MOVE_ANNOUNCEMENT, transfer, sizeof move->header + follows, follows);
	int r;

	if (!move)
		return fail_memory();
	move->header = (struct message_header){ .kind = kind,
						.from = delivery->rank,
						.to = to,
						.sequence = delivery->numbers[to].n_sent++ };
	if (about) {
		move->header.tag = about->tag;
		move->header.nbytes = about->nbytes;
		move->header.data_checksum = about->checksum;
		memcpy(&move->header + 1, about->data, follows);
	}
	message_seal(&move->header);
	count(&delivery->sent, follows, move->nbytes);
	r = transport->ops->send(transport, (int)to, TAG_ANNOUNCEMENTS, &move->header, move->nbytes,
				 &move->request);
	if (r < 0)
		free(move);
	else
		delivery->n_sending++;
	return r;
}

/* Begin to move all pieces of a transfer to or from `peer`. */
static int move_pieces(struct delivery *delivery, struct ranks_transfer *transfer, unsigned peer,
		       uint64_t sequence)
{
	struct transport *transport = delivery->transport;
	const int tag = tag_of(sequence);

	for (size_t at = 0, n; at < transfer->nbytes; at += n) {
		char *data = transfer->data + at;
		struct move *move;
		int r;

		n = transfer->nbytes - at < delivery->piece_nbytes ? transfer->nbytes - at :
								     delivery->piece_nbytes;
		move = make_move(transfer->is_receive ? MOVE_PIECE_IN : MOVE_PIECE_OUT, transfer, n,
				 0);
		if (!move)
			return fail_memory();
		r = transfer->is_receive ? transport->ops->receive(transport, (int)peer, tag, data,
								   n, &move->request) :
					   transport->ops->send(transport, (int)peer, tag, data, n,
								&move->request);
		if (r < 0) {
			free(move);
			return r;
		}
		transfer->n_moves++;
		delivery->n_sending += !transfer->is_receive;
		count(transfer->is_receive ? &delivery->received : &delivery->sent, n, n);
	}
	return 0;
}

/* In what all ranks do together, each does the same, unless they were not asked for the same. */
static const char *why_length_differs(const struct ranks_transfer *transfer)
{
	return transfer->tag == RANKS_TAG_COLLECTIVES ?
		       ": have all ranks been started with the same arguments?" :
		       "";
}

/* What was announced is for this transfer. inline_data: of a short message. */
static int accept_message(struct delivery *delivery, struct ranks_transfer *transfer,
			  const struct message_header *header, const void *inline_data,
			  struct ranks_transfer *own)
{
	char name[NAME_NBYTES];
	int r;

	if (header->nbytes > transfer->capacity ||
	    (header->nbytes < transfer->capacity && !transfer->may_be_shorter))
		return fail(-EMSGSIZE, "%s has sent %" PRIu64 " bytes where %zu were expected%s",
			    name_of(delivery, header->from, name), header->nbytes,
			    transfer->capacity, why_length_differs(transfer));
	transfer->from = header->from;
	transfer->nbytes = (size_t)header->nbytes;
	transfer->checksum = header->data_checksum;
	transfer->is_checked = true;
	if (own) {
		memcpy(transfer->data, own->data, own->nbytes);
		transfer_done(delivery, own);
	} else if (message_inline_nbytes(header->nbytes) == header->nbytes) {
		memcpy(transfer->data, inline_data, transfer->nbytes);
	} else {
		transfer->is_checked = false;
		r = move_pieces(delivery, transfer, header->from, header->sequence);
		return r;
	}
	transfer_done(delivery, transfer);
	return 0;
}

static bool suits(const struct ranks_transfer *transfer, const struct message_header *header)
{
	return transfer->tag == header->tag &&
	       (transfer->peer == RANKS_ANY || transfer->peer == header->from);
}

/* A message has come: give it to the first that wants it, or keep its announcement. */
static int arrive(struct delivery *delivery, const struct message_header *header,
		  const void *inline_data, struct ranks_transfer *own)
{
	const size_t follows = own ? 0 : message_inline_nbytes(header->nbytes);
	struct announced *announced;

	for (struct ranks_transfer **at = &delivery->wanted.first; *at; at = &(*at)->next)
		if (suits(*at, header))
			return accept_message(delivery, transfers_remove(&delivery->wanted, at),
					      header, inline_data, own);
	announced = malloc(sizeof *announced + follows);
	if (!announced)
		return fail_memory();
	*announced = (struct announced){ .own = own, .header = *header };
	if (follows > 0)
		memcpy(announced->data, inline_data, follows);
	*delivery->announced_end = announced;
	delivery->announced_end = &announced->next;
	return 0;
}

static int begin_receive(struct delivery *delivery, struct ranks_transfer *transfer)
{
	for (struct announced **at = &delivery->announced; *at; at = &(*at)->next) {
		struct announced *announced = *at;
		int r;

		if (!suits(transfer, &announced->header))
			continue;
		*at = announced->next;
		if (!*at)
			delivery->announced_end = at;
		r = accept_message(delivery, transfer, &announced->header, announced->data,
				   announced->own);
		free(announced);
		return r;
	}
	transfers_add(&delivery->wanted, transfer);
	return 0;
}

static int send_to_self(struct delivery *delivery, struct ranks_transfer *transfer)
{
	const struct message_header header = { .kind = MESSAGE_DATA,
					       .from = delivery->rank,
					       .to = delivery->rank,
					       .tag = transfer->tag,
					       .nbytes = transfer->nbytes,
					       .data_checksum = transfer->checksum };

	return arrive(delivery, &header, NULL, transfer);
}

static int begin_send(struct delivery *delivery, struct ranks_transfer *transfer)
{
	const uint64_t sequence = delivery->numbers[transfer->peer].n_sent;
	const bool is_whole = message_inline_nbytes(transfer->nbytes) == transfer->nbytes;
	int r;

	/* What is in the announcement has been copied: nobody need wait until that has gone. */
	r = announce(delivery, MESSAGE_DATA, transfer->peer, transfer, is_whole ? NULL : transfer);
	if (r < 0)
		return r;
	if (is_whole) {
		transfer_done(delivery, transfer);
		return 0;
	}
	transfer->n_moves++;
	return move_pieces(delivery, transfer, transfer->peer, sequence);
}

int delivery_begin(struct delivery *delivery, struct ranks_transfer *transfer, uint64_t now_ns)
{
	delivery->now_ns = now_ns;
	if (is_watched(delivery, transfer))
		watch_await(&delivery->watch, watched_of(delivery, transfer), now_ns);
	if (transfer->is_receive)
		return begin_receive(delivery, transfer);
	if (transfer->peer == delivery->rank)
		return send_to_self(delivery, transfer);
	return begin_send(delivery, transfer);
}

/* What is in the inbox was sent by `from`, says the transport. */
static int read_inbox(struct delivery *delivery)
{
	struct message_header *header = &delivery->inbox->header;
	const unsigned from = (unsigned)delivery->inbox->request.peer;
	const char *complaint = message_complaint(header, delivery->inbox->request.nbytes, from,
						  delivery->rank,
						  delivery->numbers[from].n_received);
	int r = 0;

	if (complaint)
		return fail_of(delivery, -EBADMSG, from, complaint);
	delivery->numbers[from].n_received++;
	count(&delivery->received, message_inline_nbytes(header->nbytes),
	      delivery->inbox->request.nbytes);
	watch_heard(&delivery->watch, from, delivery->now_ns);
	if (header->kind == MESSAGE_DATA)
		r = arrive(delivery, header, header + 1, NULL);
	else if (header->kind == MESSAGE_ASK)
		r = announce(delivery, MESSAGE_ANSWER, from, NULL, NULL);
	return r < 0 ? r : post_inbox(delivery);
}

/* The transport has done it. */
static int end_move(struct delivery *delivery, struct move *move)
{
	struct ranks_transfer *transfer = move->transfer;
	const bool is_in = move->kind == MOVE_PIECE_IN;
	int r = 0;

	if (is_in)
		watch_heard(&delivery->watch, transfer->from, delivery->now_ns);
	else
		delivery->n_sending--;
	if (is_in && move->request.nbytes != move->nbytes)
		r = fail_of(delivery, -EBADMSG, transfer->from, "a piece of it is cut short");
	else if (transfer && --transfer->n_moves == 0)
		transfer_done(delivery, transfer);
	free(move);
	return r;
}

static int look_at_silence(struct delivery *delivery, unsigned rank)
{
	const double seconds = (double)delivery->watch.stall_ns / 1e9;
	char name[NAME_NBYTES];

	if (rank == delivery->rank)
		return 0;
	switch (watch_look(&delivery->watch, rank, delivery->now_ns)) {
	case SILENCE_ASK:
		return announce(delivery, MESSAGE_ASK, rank, NULL, NULL);
	case SILENCE_STALL:
		return fail(-ETIMEDOUT,
			    "%s has not answered for %.3g s: "
			    "it is stopped, or the network between is cut",
			    name_of(delivery, rank, name), seconds);
	default:
		return 0;
	}
}

static int look_at_all(struct delivery *delivery)
{
	struct transport *transport = delivery->transport;
	const bool is_time = watch_is_time(&delivery->watch, delivery->now_ns);
	char name[NAME_NBYTES];
	int r = 0;

	for (unsigned rank = 0; rank < delivery->size && r == 0; rank++) {
		if (transport->ops->is_gone && watch_awaits(&delivery->watch, rank) &&
		    transport->ops->is_gone(transport, (int)rank))
			return fail(-EPIPE, "%s is gone", name_of(delivery, rank, name));
		if (is_time)
			r = look_at_silence(delivery, rank);
	}
	return r;
}

int delivery_step(struct delivery *delivery, uint64_t now_ns, bool *ret_moved)
{
	struct transport *transport = delivery->transport;
	struct transport_request *request;
	bool moved = false;
	int r;

	delivery->now_ns = now_ns;
	for (;; moved = true) {
		struct move *move;

		r = transport->ops->take(transport, &request);
		if (r < 0)
			return r;
		if (!request)
			break;
		move = (struct move *)request;
		r = move->kind == MOVE_INBOX ? read_inbox(delivery) : end_move(delivery, move);
		if (r < 0)
			return r;
	}
	*ret_moved = moved;
	return transport->ops->is_gone || !moved ? look_at_all(delivery) : 0;
}

struct ranks_transfer *delivery_take_done(struct delivery *delivery)
{
	struct ranks_transfer *first = delivery->done.first;

	transfers_init(&delivery->done);
	return first;
}

bool delivery_sends(const struct delivery *delivery)
{
	return delivery->n_sending > 0;
}

bool delivery_is_idle(const struct delivery *delivery)
{
	for (unsigned rank = 0; rank < delivery->size; rank++)
		if (watch_awaits(&delivery->watch, rank))
			return false;
	return delivery->n_sending == 0;
}

void delivery_forget(struct delivery *delivery)
{
	while (delivery->wanted.first)
		look_away(delivery, transfers_remove(&delivery->wanted, &delivery->wanted.first));
}

void delivery_seal(struct ranks_transfer *transfer)
{
	/* Short data is in the message that has a checksum of its own. */
	if (message_inline_nbytes(transfer->nbytes) != transfer->nbytes)
		transfer->checksum = checksum64(transfer->data, transfer->nbytes);
}

int delivery_check(const struct delivery *delivery, const struct ranks_transfer *transfer)
{
	if (checksum64(transfer->data, transfer->nbytes) != transfer->checksum)
		return fail_of(delivery, -EBADMSG, transfer->from, "its data is damaged");
	return 0;
}

void delivery_get_traffic(const struct delivery *delivery, struct ranks_traffic *ret_traffic)
{
	*ret_traffic = (struct ranks_traffic){
		.sent_nbytes = atomic_load(&delivery->sent.nbytes),
		.received_nbytes = atomic_load(&delivery->received.nbytes),
		.wire_sent_nbytes = atomic_load(&delivery->sent.wire_nbytes),
		.wire_received_nbytes = atomic_load(&delivery->received.wire_nbytes),
	};
}

void delivery_set_stall(struct delivery *delivery, uint64_t stall_ns, uint64_t now_ns)
{
	watch_set_stall(&delivery->watch, stall_ns, now_ns);
}

void delivery_name(struct delivery *delivery, host_name *hosts)
{
	delivery->hosts = hosts;
}

int delivery_open(struct transport *transport, uint64_t stall_ns, size_t piece_nbytes,
		  uint64_t now_ns, struct delivery **ret_delivery)
{
	struct delivery *delivery = calloc(1, sizeof *delivery);
	int r = 0;

	if (!delivery)
		return fail_memory();
	delivery->transport = transport;
	delivery->rank = (unsigned)transport->rank;
	delivery->size = (unsigned)transport->size;
	delivery->piece_nbytes = piece_nbytes;
	transfers_init(&delivery->wanted);
	transfers_init(&delivery->done);
	delivery->announced_end = &delivery->announced;
	delivery->numbers = calloc(delivery->size, sizeof *delivery->numbers);
	if (!delivery->numbers ||
	    watch_init(&delivery->watch, delivery->size, stall_ns, now_ns) < 0)
		r = -ENOMEM;
	delivery->inbox = make_move(MOVE_INBOX, NULL, 0, MESSAGE_INLINE_NBYTES);
	if (!delivery->inbox || r < 0)
		r = fail_memory();
	if (r == 0)
		r = post_inbox(delivery);
	if (r < 0) {
		delivery_close(delivery);
		return r;
	}
	*ret_delivery = delivery;
	return 0;
}

void delivery_close(struct delivery *delivery)
{
	struct announced *next;

	if (!delivery)
		return;
	for (struct announced *announced = delivery->announced; announced; announced = next) {
		next = announced->next;
		free(announced);
	}
	watch_destroy(&delivery->watch);
	free(delivery->numbers);
	free(delivery->inbox);
	free(delivery);
}
