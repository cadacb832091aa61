/*
 * fake_ranks - ranks that are processes of the test (see fake_ranks.h)
 */
#include "tests/support/fake_ranks.h"

#include <byteswap.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/comm/message_header.h"
#include "src/comm/transport.h"
#include "tests/support/captured_messages.h"

#include <cmocka.h>

enum { STATUS_KILLED = 9 };

/* A message: to be written, or come and wanted by nobody yet. */
struct packet {
	struct packet *next;
	int peer;
	struct transport_request *request; /* of who sends it; NULL: nobody waits */
	size_t nbytes;                     /* of the data */
	int32_t tag;
	char data[]; /* follows the tag in a socket */
};

/* A receive that nothing has come for; or anything that is done. */
struct transfer_entry {
	struct transfer_entry *next;
	int source, tag;
	char *data;
	size_t capacity;
	struct transport_request *request;
};

struct fake_transport {
	struct transport transport;
	struct fake_ranks *fake_ranks;
	int sockets[FAKE_RANKS_MAX];
	bool is_closed[FAKE_RANKS_MAX]; /* nothing more can be read */
	struct packet *outgoing, *arrived;
	struct transfer_entry *receives, *completed;
	bool is_silent;
	uint64_t random;
};

/* The child's own. */
static struct fake_rank_exit *own_exit;

/* As a process that is killed: ThreadSanitizer's _exit() waits for a second. */
static void exit_now(int status) __attribute__((noreturn));
static void exit_now(int status)
{
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

static struct fake_transport *fake_transport_of(struct transport *transport)
{
	return (struct fake_transport *)transport;
}

/* A number below n; 0 if nothing is to be random. */
static unsigned random_below(struct fake_transport *transport, unsigned n)
{
	if (transport->fake_ranks->seed == 0)
		return 0;
	transport->random = transport->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(transport->random >> 33) % n;
}

static void *allocate_or_exit(size_t nbytes)
{
	void *memory = calloc(1, nbytes);

	if (!memory)
		exit_now(1);
	return memory;
}

static void add_packet(struct packet **link, struct packet *packet)
{
	while (*link)
		link = &(*link)->next;
	packet->next = NULL;
	*link = packet;
}

static void append_entry(struct transfer_entry **link, struct transfer_entry *entry)
{
	while (*link)
		link = &(*link)->next;
	entry->next = NULL;
	*link = entry;
}

static void add_completed(struct fake_transport *transport, struct transport_request *request,
			  int peer, size_t nbytes)
{
	struct transfer_entry *entry = allocate_or_exit(sizeof *entry);

	request->peer = peer;
	request->nbytes = nbytes;
	entry->request = request;
	append_entry(&transport->completed, entry);
}

static struct packet *make_packet(int peer, int tag, const void *data, size_t nbytes)
{
	struct packet *packet = allocate_or_exit(sizeof *packet + nbytes);

	packet->peer = peer;
	packet->tag = tag;
	packet->nbytes = nbytes;
	memcpy(packet->data, data, nbytes);
	return packet;
}

/* Write a packet, of which only nbytes. Is it gone? */
static bool write_packet(const struct fake_transport *transport, struct packet *packet,
			 size_t nbytes)
{
	const ssize_t n = send(transport->sockets[packet->peer], &packet->tag,
			       sizeof packet->tag + nbytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	/* Who is gone needs nothing more. */
	return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS);
}

/* As a machine of another byte order would have written it. */
static void swap_header_bytes(char *data)
{
	struct message_header header;

	memcpy(&header, data, sizeof header);
	header = (struct message_header){ .magic = bswap_32(header.magic),
					  .format = bswap_32(header.format),
					  .kind = bswap_32(header.kind),
					  .from = bswap_32(header.from),
					  .to = bswap_32(header.to),
					  .tag = bswap_32(header.tag),
					  .sequence = bswap_64(header.sequence),
					  .nbytes = bswap_64(header.nbytes),
					  .data_checksum = bswap_64(header.data_checksum),
					  .checksum = bswap_64(header.checksum) };
	memcpy(data, &header, sizeof header);
}

/* What befalls this message, if anything. */
static void inject_fault(struct fake_transport *transport, struct packet *packet)
{
	const struct fake_ranks *fake_ranks = transport->fake_ranks;

	switch (fake_ranks->fault) {
	case FAKE_FAULT_EXIT_MIDWAY:
		write_packet(transport, packet, packet->nbytes / 2);
		exit_now(STATUS_KILLED);
	case FAKE_FAULT_EXIT:
		exit_now(STATUS_KILLED);
	case FAKE_FAULT_TRUNCATED:
		packet->nbytes /= 2;
		break;
	case FAKE_FAULT_DUPLICATED:
		add_packet(&transport->outgoing,
			   make_packet(packet->peer, packet->tag, packet->data, packet->nbytes));
		break;
	case FAKE_FAULT_CORRUPTED:
		packet->data[fake_ranks->fault_bit / 8] ^= (char)(1 << fake_ranks->fault_bit % 8);
		break;
	case FAKE_FAULT_BYTE_ORDER:
		swap_header_bytes(packet->data);
		break;
	case FAKE_FAULT_SILENT:
		transport->is_silent = true;
		break;
	case FAKE_FAULT_HANG:
		for (;;)
			pause();
	default:
		break;
	}
}

static int fake_send(struct transport *base, int to, int tag, const void *data, size_t nbytes,
		     struct transport_request *request)
{
	struct fake_transport *transport = fake_transport_of(base);
	const struct fake_ranks *fake_ranks = transport->fake_ranks;
	struct packet *packet = make_packet(to, tag, data, nbytes);
	const bool is_faulty = fake_ranks->fault != FAKE_FAULT_NONE &&
			       fake_ranks->fault_rank == (unsigned)base->rank &&
			       fake_ranks->fault_message == own_exit->n_sent;

	own_exit->n_sent++;
	packet->request = request;
	if (is_faulty)
		inject_fault(transport, packet);
	if (is_faulty && fake_ranks->fault == FAKE_FAULT_LOST) {
		add_completed(transport, request, to, nbytes);
		free(packet);
	} else {
		add_packet(&transport->outgoing, packet);
	}
	return 0;
}

static int fake_receive(struct transport *base, int from, int tag, void *data, size_t capacity,
			struct transport_request *request)
{
	struct transfer_entry *entry = allocate_or_exit(sizeof *entry);

	*entry = (struct transfer_entry){ NULL, from, tag, data, capacity, request };
	append_entry(&fake_transport_of(base)->receives, entry);
	return 0;
}

/* What is in front of it, to the same rank, has to be written first. */
static bool is_first_in_queue(const struct packet *first, const struct packet *packet,
			      bool same_tag_only)
{
	for (; first != packet; first = first->next)
		if (first->peer == packet->peer && (!same_tag_only || first->tag == packet->tag))
			return false;
	return true;
}

static void write_outgoing(struct fake_transport *transport)
{
	struct packet **link = &transport->outgoing;

	while (*link) {
		struct packet *packet = *link;

		if (!is_first_in_queue(transport->outgoing, packet, false) ||
		    !write_packet(transport, packet, packet->nbytes)) {
			link = &packet->next;
			continue;
		}
		*link = packet->next;
		if (packet->request)
			add_completed(transport, packet->request, packet->peer, packet->nbytes);
		free(packet);
	}
}

static void read_incoming(struct fake_transport *transport, int peer)
{
	static char buffer[sizeof(int32_t) + FAKE_RANKS_FRAGMENT_NBYTES + 1];
	int32_t tag;
	ssize_t n;

	while (!transport->is_closed[peer]) {
		n = recv(transport->sockets[peer], buffer, sizeof buffer, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n < (ssize_t)sizeof tag) {
			transport->is_closed[peer] = true;
			return;
		}
		memcpy(&tag, buffer, sizeof tag);
		add_packet(&transport->arrived,
			   make_packet(peer, tag, buffer + sizeof tag, (size_t)n - sizeof tag));
	}
}

/* Who wants it, or NULL: the first that does, if nothing like it came before. */
static struct transfer_entry **find_receive(struct fake_transport *transport,
					    const struct packet *packet)
{
	struct transfer_entry **link = &transport->receives;

	if (!is_first_in_queue(transport->arrived, packet, true))
		return NULL;
	for (; *link; link = &(*link)->next)
		if ((*link)->tag == packet->tag &&
		    ((*link)->source == TRANSPORT_ANY_RANK || (*link)->source == packet->peer))
			return link;
	return NULL;
}

static void deliver_packet(struct fake_transport *transport, struct packet **packet_link,
			   struct transfer_entry **receive_link)
{
	struct packet *packet = *packet_link;
	struct transfer_entry *entry = *receive_link;

	*packet_link = packet->next;
	*receive_link = entry->next;
	if (packet->nbytes > entry->capacity)
		exit_now(1);
	memcpy(entry->data, packet->data, packet->nbytes);
	add_completed(transport, entry->request, packet->peer, packet->nbytes);
	free(packet);
	free(entry);
}

/* One of the messages that could be given to somebody is. */
static void deliver_one_packet(struct fake_transport *transport)
{
	unsigned n = 0, chosen;

	for (struct packet *packet = transport->arrived; packet; packet = packet->next)
		n += find_receive(transport, packet) != NULL;
	if (n == 0)
		return;
	chosen = random_below(transport, n);
	for (struct packet **link = &transport->arrived;; link = &(*link)->next) {
		struct transfer_entry **receive = find_receive(transport, *link);

		if (receive && chosen-- == 0) {
			deliver_packet(transport, link, receive);
			return;
		}
	}
}

static int fake_poll(struct transport *base, struct transport_request **ret_request)
{
	struct fake_transport *transport = fake_transport_of(base);
	struct transfer_entry *entry;

	*ret_request = NULL;
	if (transport->is_silent)
		return 0;
	write_outgoing(transport);
	for (int peer = 0; peer < base->size; peer++)
		if (peer != base->rank && random_below(transport, 4) == 0)
			read_incoming(transport, peer);
	if (random_below(transport, 3) == 0)
		deliver_one_packet(transport);
	entry = transport->completed;
	if (!entry)
		return 0;
	*ret_request = entry->request;
	transport->completed = entry->next;
	free(entry);
	return 0;
}

static bool fake_is_disconnected(struct transport *base, int peer)
{
	struct fake_transport *transport = fake_transport_of(base);

	if (!transport->is_closed[peer] || transport->completed)
		return false;
	for (struct packet *packet = transport->arrived; packet; packet = packet->next)
		if (packet->peer == peer && find_receive(transport, packet))
			return false;
	return true;
}

static void fake_abort_job(struct transport *base, int status)
{
	(void)base, (void)status; /* the others see that the sockets are closed */
}

static int fake_close(struct transport *base)
{
	struct fake_transport *transport = fake_transport_of(base);

	for (struct transfer_entry *next, *entry = transport->receives; entry; entry = next) {
		next = entry->next;
		free(entry);
	}
	free(transport);
	return 0;
}

static const struct transport_ops fake_transport_ops = {
	.name = "a socket pair",
	.send = fake_send,
	.receive = fake_receive,
	.poll = fake_poll,
	.is_disconnected = fake_is_disconnected,
	.abort_job = fake_abort_job,
	.close = fake_close,
};

/* What a child is given. */
struct fake_rank {
	struct fake_ranks *fake_ranks;
	unsigned rank;
	int (*sockets)[FAKE_RANKS_MAX];
};

static int fake_open(void *argument, struct transport **ret_transport)
{
	const struct fake_rank *rank_context = argument;
	struct fake_transport *transport = allocate_or_exit(sizeof *transport);

	transport->transport = (struct transport){ &fake_transport_ops, (int)rank_context->rank,
						   (int)rank_context->fake_ranks->size };
	transport->fake_ranks = rank_context->fake_ranks;
	transport->random = rank_context->fake_ranks->seed + rank_context->rank;
	memcpy(transport->sockets, rank_context->sockets[rank_context->rank],
	       sizeof transport->sockets);
	*ret_transport = &transport->transport;
	return 0;
}

/* With the reason, which the test sees. */
static void exit_rank(int status) __attribute__((noreturn));
static void exit_rank(int status)
{
	snprintf(own_exit->error_text, sizeof own_exit->error_text, "%s",
		 captured_messages_error());
	exit_now(status);
}

static void count_before_abort(void *context)
{
	(void)context;
	own_exit->n_before_abort++;
}

static void allow_peer_access(bool is_allowed)
{
	prctl(PR_SET_PTRACER, is_allowed ? PR_SET_PTRACER_ANY : 0, 0, 0, 0);
}

static void run_rank(struct fake_rank *rank_context) __attribute__((noreturn));
static void run_rank(struct fake_rank *rank_context)
{
	struct comm_params params = rank_context->fake_ranks->params;
	struct comm *comm;

	own_exit = &rank_context->fake_ranks->exits[rank_context->rank];
	captured_messages_reset(true);
	params.exit_process = exit_rank;
	params.before_abort = count_before_abort;
	params.allow_peer_access = allow_peer_access;
	params.version = rank_context->fake_ranks->versions[rank_context->rank];
	for (unsigned rank = 0; rank < rank_context->fake_ranks->size; rank++)
		for (unsigned peer = 0; peer < rank_context->fake_ranks->size; peer++)
			if (rank != rank_context->rank && rank != peer)
				close(rank_context->sockets[rank][peer]);
	own_exit->result = comm_open(&params, fake_open, rank_context, &comm);
	if (own_exit->result < 0)
		exit_rank(1);
	own_exit->result = rank_context->fake_ranks->body(comm, rank_context->fake_ranks->argument);
	if (own_exit->result == 0)
		own_exit->result = comm_close(comm);
	if (own_exit->result < 0)
		comm_abort(comm, 2);
	exit_rank(0);
}

void fake_ranks_start(struct fake_ranks *fake_ranks)
{
	int sockets[FAKE_RANKS_MAX][FAKE_RANKS_MAX] = { 0 }, pair[2];

	fake_ranks->exits = mmap(NULL, fake_ranks->size * sizeof *fake_ranks->exits,
				 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(fake_ranks->exits, MAP_FAILED);
	for (unsigned a = 0; a < fake_ranks->size; a++)
		for (unsigned b = 0; b < a; b++) {
			assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
			sockets[a][b] = pair[0];
			sockets[b][a] = pair[1];
		}
	for (unsigned rank = 0; rank < fake_ranks->size; rank++) {
		fake_ranks->exits[rank].result = 1;
		fake_ranks->pids[rank] = fork();
		assert_true(fake_ranks->pids[rank] >= 0);
		if (fake_ranks->pids[rank] == 0)
			run_rank(&(struct fake_rank){ fake_ranks, rank, sockets });
	}
	for (unsigned a = 0; a < fake_ranks->size; a++)
		for (unsigned b = 0; b < fake_ranks->size; b++)
			if (a != b)
				close(sockets[a][b]);
}

void fake_ranks_join(struct fake_ranks *fake_ranks)
{
	int status;

	for (unsigned rank = 0; rank < fake_ranks->size; rank++) {
		assert_int_equal(waitpid(fake_ranks->pids[rank], &status, 0),
				 fake_ranks->pids[rank]);
		fake_ranks->exits[rank].status = WIFEXITED(status) ? WEXITSTATUS(status) :
								     128 + WTERMSIG(status);
	}
}

void fake_ranks_run(struct fake_ranks *fake_ranks)
{
	fake_ranks_start(fake_ranks);
	fake_ranks_join(fake_ranks);
}

void fake_ranks_assert_success(const struct fake_ranks *fake_ranks)
{
	for (unsigned rank = 0; rank < fake_ranks->size; rank++) {
		const struct fake_rank_exit *rank_exit = &fake_ranks->exits[rank];

		if (rank_exit->result != 0 || rank_exit->status != 0)
			print_message("rank %u of %u: %d: %s\n", rank, fake_ranks->size,
				      rank_exit->result, rank_exit->error_text);
		assert_int_equal(rank_exit->result, 0);
		assert_int_equal(rank_exit->status, 0);
		assert_string_equal(rank_exit->error_text, "");
		assert_int_equal(rank_exit->n_before_abort, 0);
	}
}

void fake_ranks_free(struct fake_ranks *fake_ranks)
{
	munmap(fake_ranks->exits, fake_ranks->size * sizeof *fake_ranks->exits);
	fake_ranks->exits = NULL;
}
