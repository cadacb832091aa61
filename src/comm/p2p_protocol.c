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

enum { TAG_ENVELOPES };

typedef const char host_name[COMM_HOST_NBYTES];

/* A message of the transport under way. */
struct wire_transfer {
	struct transport_request request;
	enum { WIRE_INBOX, WIRE_ENVELOPE, WIRE_FRAGMENT_OUT, WIRE_FRAGMENT_IN } kind;
	struct comm_transfer *transfer; /* NULL: nobody waits for it */
	size_t nbytes;
	struct message_header header; /* of INBOX and ANNOUNCEMENT; data follows it */
};

/* A message that has been announced, and that nobody has asked for yet. */
struct unexpected_message {
	struct unexpected_message *next;
	struct comm_transfer *self_send; /* sent by this rank to itself */
	struct message_header header;
	char data[];
};

struct transfer_list {
	struct comm_transfer *first, **end;
};

/* Of what is sent, or of what is received. */
struct traffic_counter {
	atomic_uint_least64_t nbytes;      /* data of messages */
	atomic_uint_least64_t wire_nbytes; /* and all that stands in front of it */
};

struct p2p {
	struct transport *transport;
	unsigned rank, size;
	size_t fragment_nbytes;
	uint64_t now_ns; /* of the step */
	struct message_sequence {
		uint64_t n_sent, n_received;
	} * sequences; /* of messages, by rank */
	struct heartbeat heartbeat;
	struct wire_transfer *inbox;
	struct transfer_list posted_receives;  /* receives that nothing has come for */
	struct unexpected_message *unexpected; /* in the order in which they came */
	struct unexpected_message **unexpected_end;
	struct transfer_list completed;
	unsigned n_sending; /* moves */
	struct traffic_counter sent, received;
	host_name *_Atomic hosts;
};

static void transfer_list_init(struct transfer_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static void transfer_list_add(struct transfer_list *list, struct comm_transfer *transfer)
{
	transfer->next = NULL;
	*list->end = transfer;
	list->end = &transfer->next;
}

/* at: the pointer that leads to it. */
static struct comm_transfer *transfer_list_remove(struct transfer_list *list,
						  struct comm_transfer **link)
{
	struct comm_transfer *transfer = *link;

	*link = transfer->next;
	if (!*link)
		list->end = link;
	return transfer;
}

enum { RANK_NAME_NBYTES = COMM_HOST_NBYTES + 24 };

/* "rank 3 on node17" */
static const char *format_rank_name(const struct p2p *p2p, unsigned rank,
				    char ret_text[static RANK_NAME_NBYTES])
{
	host_name *hosts = p2p->hosts;

	snprintf(ret_text, RANK_NAME_NBYTES, hosts ? "rank %u on %s" : "rank %u", rank,
		 hosts ? hosts[rank] : "");
	return ret_text;
}

static int fail_message(const struct p2p *p2p, int r, unsigned rank, const char *problem)
{
	char name[RANK_NAME_NBYTES];

	return fail(r, "a message from %s cannot be used: %s", format_rank_name(p2p, rank, name),
		    problem);
}

/*
 * A tag for the pieces of a message, so that each finds its place in whatever order they are
 * wanted.
 */
static int fragment_tag(uint64_t sequence)
{
	return (int)(1 + sequence % (TRANSPORT_TAG_LIMIT - 1));
}

/* room: for what follows the header. NULL: there is no memory. */
static struct wire_transfer *create_wire_transfer(int kind, struct comm_transfer *transfer,
						  size_t nbytes, size_t extra_nbytes)
{
	struct wire_transfer *wire = malloc(sizeof *wire + extra_nbytes);

	if (wire)
		*wire = (struct wire_transfer){ .kind = kind,
						.transfer = transfer,
						.nbytes = nbytes };
	return wire;
}

static int fail_memory(void)
{
	return fail(-ENOMEM, "no memory for messages between ranks");
}

/* The one receive for announcements; one at a time, so that they come in their order. */
static int post_inbox(struct p2p *p2p)
{
	struct transport *transport = p2p->transport;

	return transport->ops->receive(transport, TRANSPORT_ANY_RANK, TAG_ENVELOPES,
				       &p2p->inbox->header, MESSAGE_MAX_NBYTES,
				       &p2p->inbox->request);
}

static void count_traffic(struct traffic_counter *traffic, size_t nbytes, size_t wire_nbytes)
{
	atomic_fetch_add_explicit(&traffic->nbytes, nbytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&traffic->wire_nbytes, wire_nbytes, memory_order_relaxed);
}

/* Is anybody missed, as long as it is not done? */
static bool is_monitored(const struct p2p *p2p, const struct comm_transfer *transfer)
{
	return transfer->peer != p2p->rank && !transfer->is_unwatched;
}

/* As the watch knows who it awaits. */
static unsigned heartbeat_index(const struct p2p *p2p, const struct comm_transfer *transfer)
{
	return transfer->peer < p2p->size ? transfer->peer : p2p->size;
}

static void stop_monitoring(struct p2p *p2p, const struct comm_transfer *transfer)
{
	if (is_monitored(p2p, transfer))
		heartbeat_end_wait(&p2p->heartbeat, heartbeat_index(p2p, transfer));
}

static void complete_transfer(struct p2p *p2p, struct comm_transfer *transfer)
{
	stop_monitoring(p2p, transfer);
	transfer_list_add(&p2p->completed, transfer);
}

/* Send a header and what follows it. transfer: whom it is a part of, or NULL. */
static int send_envelope(struct p2p *p2p, enum rank_message_kind kind, unsigned to,
			 const struct comm_transfer *payload, struct comm_transfer *transfer)
{
	struct transport *transport = p2p->transport;
	const size_t inline_nbytes = payload ? message_inline_nbytes(payload->nbytes) : 0;
	struct wire_transfer *wire = create_wire_transfer(
		WIRE_ENVELOPE, transfer, sizeof wire->header + inline_nbytes, inline_nbytes);
	int r;

	if (!wire)
		return fail_memory();
	wire->header = (struct message_header){
		.kind = kind, .from = p2p->rank, .to = to, .sequence = p2p->sequences[to].n_sent++
	};
	if (payload) {
		wire->header.tag = payload->tag;
		wire->header.nbytes = payload->nbytes;
		wire->header.data_checksum = payload->checksum;
		memcpy(&wire->header + 1, payload->data, inline_nbytes);
	}
	message_seal(&wire->header);
	count_traffic(&p2p->sent, inline_nbytes, wire->nbytes);
	r = transport->ops->send(transport, (int)to, TAG_ENVELOPES, &wire->header, wire->nbytes,
				 &wire->request);
	if (r < 0)
		free(wire);
	else
		p2p->n_sending++;
	return r;
}

/* Begin to move all pieces of a transfer to or from `peer`. */
static int start_fragments(struct p2p *p2p, struct comm_transfer *transfer, unsigned peer,
			   uint64_t sequence)
{
	struct transport *transport = p2p->transport;
	const int tag = fragment_tag(sequence);

	for (size_t offset = 0, n; offset < transfer->nbytes; offset += n) {
		char *data = transfer->data + offset;
		struct wire_transfer *wire;
		int r;

		n = transfer->nbytes - offset < p2p->fragment_nbytes ? transfer->nbytes - offset :
								       p2p->fragment_nbytes;
		wire = create_wire_transfer(transfer->is_receive ? WIRE_FRAGMENT_IN :
								   WIRE_FRAGMENT_OUT,
					    transfer, n, 0);
		if (!wire)
			return fail_memory();
		r = transfer->is_receive ? transport->ops->receive(transport, (int)peer, tag, data,
								   n, &wire->request) :
					   transport->ops->send(transport, (int)peer, tag, data, n,
								&wire->request);
		if (r < 0) {
			free(wire);
			return r;
		}
		transfer->n_pending++;
		p2p->n_sending += !transfer->is_receive;
		count_traffic(transfer->is_receive ? &p2p->received : &p2p->sent, n, n);
	}
	return 0;
}

/* In what all ranks do together, each does the same, unless they were not asked for the same. */
static const char *length_mismatch_hint(const struct comm_transfer *transfer)
{
	return transfer->tag == COMM_TAG_COLLECTIVES ?
		       ": have all ranks been started with the same arguments?" :
		       "";
}

/* What was announced is for this transfer. inline_data: of a short message. */
static int match_message(struct p2p *p2p, struct comm_transfer *transfer,
			 const struct message_header *header, const void *inline_data,
			 struct comm_transfer *self_send)
{
	char name[RANK_NAME_NBYTES];
	int r;

	if (header->nbytes > transfer->capacity ||
	    (header->nbytes < transfer->capacity && !transfer->may_be_shorter))
		return fail(-EMSGSIZE, "%s has sent %" PRIu64 " bytes where %zu were expected%s",
			    format_rank_name(p2p, header->from, name), header->nbytes,
			    transfer->capacity, length_mismatch_hint(transfer));
	transfer->from = header->from;
	transfer->nbytes = (size_t)header->nbytes;
	transfer->checksum = header->data_checksum;
	transfer->is_checked = true;
	if (self_send) {
		memcpy(transfer->data, self_send->data, self_send->nbytes);
		complete_transfer(p2p, self_send);
	} else if (message_inline_nbytes(header->nbytes) == header->nbytes) {
		memcpy(transfer->data, inline_data, transfer->nbytes);
	} else {
		transfer->is_checked = false;
		r = start_fragments(p2p, transfer, header->from, header->sequence);
		return r;
	}
	complete_transfer(p2p, transfer);
	return 0;
}

static bool matches_envelope(const struct comm_transfer *transfer,
			     const struct message_header *header)
{
	return transfer->tag == header->tag &&
	       (transfer->peer == COMM_ANY_RANK || transfer->peer == header->from);
}

/* A message has come: give it to the first that wants it, or keep its announcement. */
static int handle_envelope(struct p2p *p2p, const struct message_header *header,
			   const void *inline_data, struct comm_transfer *self_send)
{
	const size_t inline_nbytes = self_send ? 0 : message_inline_nbytes(header->nbytes);
	struct unexpected_message *unexpected;

	for (struct comm_transfer **link = &p2p->posted_receives.first; *link;
	     link = &(*link)->next)
		if (matches_envelope(*link, header))
			return match_message(p2p, transfer_list_remove(&p2p->posted_receives, link),
					     header, inline_data, self_send);
	unexpected = malloc(sizeof *unexpected + inline_nbytes);
	if (!unexpected)
		return fail_memory();
	*unexpected = (struct unexpected_message){ .self_send = self_send, .header = *header };
	if (inline_nbytes > 0)
		memcpy(unexpected->data, inline_data, inline_nbytes);
	*p2p->unexpected_end = unexpected;
	p2p->unexpected_end = &unexpected->next;
	return 0;
}

static int begin_receive(struct p2p *p2p, struct comm_transfer *transfer)
{
	for (struct unexpected_message **link = &p2p->unexpected; *link; link = &(*link)->next) {
		struct unexpected_message *unexpected = *link;
		int r;

		if (!matches_envelope(transfer, &unexpected->header))
			continue;
		*link = unexpected->next;
		if (!*link)
			p2p->unexpected_end = link;
		r = match_message(p2p, transfer, &unexpected->header, unexpected->data,
				  unexpected->self_send);
		free(unexpected);
		return r;
	}
	transfer_list_add(&p2p->posted_receives, transfer);
	return 0;
}

static int send_to_self(struct p2p *p2p, struct comm_transfer *transfer)
{
	const struct message_header header = { .kind = MESSAGE_DATA,
					       .from = p2p->rank,
					       .to = p2p->rank,
					       .tag = transfer->tag,
					       .nbytes = transfer->nbytes,
					       .data_checksum = transfer->checksum };

	return handle_envelope(p2p, &header, NULL, transfer);
}

static int begin_send(struct p2p *p2p, struct comm_transfer *transfer)
{
	const uint64_t sequence = p2p->sequences[transfer->peer].n_sent;
	const bool is_eager = message_inline_nbytes(transfer->nbytes) == transfer->nbytes;
	int r;

	/* What is in the announcement has been copied: nobody need wait until that has gone. */
	r = send_envelope(p2p, MESSAGE_DATA, transfer->peer, transfer, is_eager ? NULL : transfer);
	if (r < 0)
		return r;
	if (is_eager) {
		complete_transfer(p2p, transfer);
		return 0;
	}
	transfer->n_pending++;
	return start_fragments(p2p, transfer, transfer->peer, sequence);
}

int p2p_begin(struct p2p *p2p, struct comm_transfer *transfer, uint64_t now_ns)
{
	p2p->now_ns = now_ns;
	if (is_monitored(p2p, transfer))
		heartbeat_begin_wait(&p2p->heartbeat, heartbeat_index(p2p, transfer), now_ns);
	if (transfer->is_receive)
		return begin_receive(p2p, transfer);
	if (transfer->peer == p2p->rank)
		return send_to_self(p2p, transfer);
	return begin_send(p2p, transfer);
}

/* What is in the inbox was sent by `from`, says the transport. */
static int handle_inbox(struct p2p *p2p)
{
	struct message_header *header = &p2p->inbox->header;
	const unsigned from = (unsigned)p2p->inbox->request.peer;
	const char *problem = message_validate(header, p2p->inbox->request.nbytes, from, p2p->rank,
					       p2p->sequences[from].n_received);
	int r = 0;

	if (problem)
		return fail_message(p2p, -EBADMSG, from, problem);
	p2p->sequences[from].n_received++;
	count_traffic(&p2p->received, message_inline_nbytes(header->nbytes),
		      p2p->inbox->request.nbytes);
	heartbeat_record(&p2p->heartbeat, from, p2p->now_ns);
	if (header->kind == MESSAGE_DATA)
		r = handle_envelope(p2p, header, header + 1, NULL);
	else if (header->kind == MESSAGE_PING)
		r = send_envelope(p2p, MESSAGE_PONG, from, NULL, NULL);
	return r < 0 ? r : post_inbox(p2p);
}

/* The transport has done it. */
static int complete_wire_transfer(struct p2p *p2p, struct wire_transfer *wire)
{
	struct comm_transfer *transfer = wire->transfer;
	const bool is_incoming = wire->kind == WIRE_FRAGMENT_IN;
	int r = 0;

	if (is_incoming)
		heartbeat_record(&p2p->heartbeat, transfer->from, p2p->now_ns);
	else
		p2p->n_sending--;
	if (is_incoming && wire->request.nbytes != wire->nbytes)
		r = fail_message(p2p, -EBADMSG, transfer->from, "a piece of it is cut short");
	else if (transfer && --transfer->n_pending == 0)
		complete_transfer(p2p, transfer);
	free(wire);
	return r;
}

static int check_peer_heartbeat(struct p2p *p2p, unsigned rank)
{
	const double seconds = (double)p2p->heartbeat.timeout_ns / 1e9;
	char name[RANK_NAME_NBYTES];

	if (rank == p2p->rank)
		return 0;
	switch (heartbeat_check(&p2p->heartbeat, rank, p2p->now_ns)) {
	case HEARTBEAT_PING:
		return send_envelope(p2p, MESSAGE_PING, rank, NULL, NULL);
	case HEARTBEAT_TIMEOUT:
		return fail(-ETIMEDOUT,
			    "%s has not answered for %.3g s: "
			    "it is stopped, or the network between is cut",
			    format_rank_name(p2p, rank, name), seconds);
	default:
		return 0;
	}
}

static int check_peers(struct p2p *p2p)
{
	struct transport *transport = p2p->transport;
	const bool needs_check = heartbeat_needs_check(&p2p->heartbeat, p2p->now_ns);
	char name[RANK_NAME_NBYTES];
	int r = 0;

	for (unsigned rank = 0; rank < p2p->size && r == 0; rank++) {
		if (transport->ops->is_disconnected &&
		    heartbeat_is_waiting(&p2p->heartbeat, rank) &&
		    transport->ops->is_disconnected(transport, (int)rank))
			return fail(-EPIPE, "%s is gone", format_rank_name(p2p, rank, name));
		if (needs_check)
			r = check_peer_heartbeat(p2p, rank);
	}
	return r;
}

int p2p_progress(struct p2p *p2p, uint64_t now_ns, bool *ret_progressed)
{
	struct transport *transport = p2p->transport;
	struct transport_request *request;
	bool progressed = false;
	int r;

	p2p->now_ns = now_ns;
	for (;; progressed = true) {
		struct wire_transfer *wire;

		r = transport->ops->poll(transport, &request);
		if (r < 0)
			return r;
		if (!request)
			break;
		wire = (struct wire_transfer *)request;
		r = wire->kind == WIRE_INBOX ? handle_inbox(p2p) :
					       complete_wire_transfer(p2p, wire);
		if (r < 0)
			return r;
	}
	*ret_progressed = progressed;
	return transport->ops->is_disconnected || !progressed ? check_peers(p2p) : 0;
}

struct comm_transfer *p2p_take_completed(struct p2p *p2p)
{
	struct comm_transfer *first = p2p->completed.first;

	transfer_list_init(&p2p->completed);
	return first;
}

bool p2p_is_sending(const struct p2p *p2p)
{
	return p2p->n_sending > 0;
}

bool p2p_is_idle(const struct p2p *p2p)
{
	for (unsigned rank = 0; rank < p2p->size; rank++)
		if (heartbeat_is_waiting(&p2p->heartbeat, rank))
			return false;
	return p2p->n_sending == 0;
}

void p2p_cancel_receives(struct p2p *p2p)
{
	while (p2p->posted_receives.first)
		stop_monitoring(p2p, transfer_list_remove(&p2p->posted_receives,
							  &p2p->posted_receives.first));
}

void p2p_set_checksum(struct comm_transfer *transfer)
{
	/* Short data is in the message that has a checksum of its own. */
	if (message_inline_nbytes(transfer->nbytes) != transfer->nbytes)
		transfer->checksum = checksum64(transfer->data, transfer->nbytes);
}

int p2p_verify_checksum(const struct p2p *p2p, const struct comm_transfer *transfer)
{
	if (checksum64(transfer->data, transfer->nbytes) != transfer->checksum)
		return fail_message(p2p, -EBADMSG, transfer->from, "its data is damaged");
	return 0;
}

void p2p_get_traffic(const struct p2p *p2p, struct comm_traffic *ret_traffic)
{
	*ret_traffic = (struct comm_traffic){
		.sent_nbytes = atomic_load(&p2p->sent.nbytes),
		.received_nbytes = atomic_load(&p2p->received.nbytes),
		.wire_sent_nbytes = atomic_load(&p2p->sent.wire_nbytes),
		.wire_received_nbytes = atomic_load(&p2p->received.wire_nbytes),
	};
}

void p2p_set_timeout(struct p2p *p2p, uint64_t timeout_ns, uint64_t now_ns)
{
	heartbeat_set_timeout(&p2p->heartbeat, timeout_ns, now_ns);
}

void p2p_set_hosts(struct p2p *p2p, host_name *hosts)
{
	p2p->hosts = hosts;
}

int p2p_open(struct transport *transport, uint64_t timeout_ns, size_t fragment_nbytes,
	     uint64_t now_ns, struct p2p **ret_p2p)
{
	struct p2p *p2p = calloc(1, sizeof *p2p);
	int r = 0;

	if (!p2p)
		return fail_memory();
	p2p->transport = transport;
	p2p->rank = (unsigned)transport->rank;
	p2p->size = (unsigned)transport->size;
	p2p->fragment_nbytes = fragment_nbytes;
	transfer_list_init(&p2p->posted_receives);
	transfer_list_init(&p2p->completed);
	p2p->unexpected_end = &p2p->unexpected;
	p2p->sequences = calloc(p2p->size, sizeof *p2p->sequences);
	if (!p2p->sequences || heartbeat_init(&p2p->heartbeat, p2p->size, timeout_ns, now_ns) < 0)
		r = -ENOMEM;
	p2p->inbox = create_wire_transfer(WIRE_INBOX, NULL, 0, MESSAGE_INLINE_NBYTES);
	if (!p2p->inbox || r < 0)
		r = fail_memory();
	if (r == 0)
		r = post_inbox(p2p);
	if (r < 0) {
		p2p_close(p2p);
		return r;
	}
	*ret_p2p = p2p;
	return 0;
}

void p2p_close(struct p2p *p2p)
{
	struct unexpected_message *next;

	if (!p2p)
		return;
	for (struct unexpected_message *unexpected = p2p->unexpected; unexpected;
	     unexpected = next) {
		next = unexpected->next;
		free(unexpected);
	}
	heartbeat_destroy(&p2p->heartbeat);
	free(p2p->sequences);
	free(p2p->inbox);
	free(p2p);
}
