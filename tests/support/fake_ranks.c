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
struct asked {
	struct asked *next;
	int from, tag;
	char *data;
	size_t capacity;
	struct transport_request *request;
};

struct double_transport {
	struct transport transport;
	struct ranks_double *ranks;
	int sockets[RANKS_DOUBLE_MOST];
	bool ended[RANKS_DOUBLE_MOST]; /* nothing more can be read */
	struct packet *outgoing, *arrived;
	struct asked *asked, *done;
	bool is_silent;
	uint64_t random;
};

/* The child's own. */
static struct ranks_end *own_end;

/* As a process that is killed: ThreadSanitizer's _exit() waits for a second. */
static void leave(int status) __attribute__((noreturn));
static void leave(int status)
{
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

static struct double_transport *double_of(struct transport *transport)
{
	return (struct double_transport *)transport;
}

/* A number below n; 0 if nothing is to be random. */
static unsigned choose(struct double_transport *transport, unsigned n)
{
	if (transport->ranks->seed == 0)
		return 0;
	transport->random = transport->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(transport->random >> 33) % n;
}

static void *allocate(size_t nbytes)
{
	void *memory = calloc(1, nbytes);

	if (!memory)
		leave(1);
	return memory;
}

static void add_packet(struct packet **at, struct packet *packet)
{
	while (*at)
		at = &(*at)->next;
	packet->next = NULL;
	*at = packet;
}

static void add_asked(struct asked **at, struct asked *asked)
{
	while (*at)
		at = &(*at)->next;
	asked->next = NULL;
	*at = asked;
}

static void add_done(struct double_transport *transport, struct transport_request *request,
		     int peer, size_t nbytes)
{
	struct asked *done = allocate(sizeof *done);

	request->peer = peer;
	request->nbytes = nbytes;
	done->request = request;
	add_asked(&transport->done, done);
}

static struct packet *make_packet(int peer, int tag, const void *data, size_t nbytes)
{
	struct packet *packet = allocate(sizeof *packet + nbytes);

	packet->peer = peer;
	packet->tag = tag;
	packet->nbytes = nbytes;
	memcpy(packet->data, data, nbytes);
	return packet;
}

/* Write a packet, of which only nbytes. Is it gone? */
static bool write_packet(const struct double_transport *transport, struct packet *packet,
			 size_t nbytes)
{
	const ssize_t n = send(transport->sockets[packet->peer], &packet->tag,
			       sizeof packet->tag + nbytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	/* Who is gone needs nothing more. */
	return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS);
}

/* As a machine of another byte order would have written it. */
static void turn_header(char *data)
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
static void befall(struct double_transport *transport, struct packet *packet)
{
	const struct ranks_double *ranks = transport->ranks;

	switch (ranks->fault) {
	case RANKS_CUT_INSIDE:
		write_packet(transport, packet, packet->nbytes / 2);
		leave(STATUS_KILLED);
	case RANKS_CUT:
		leave(STATUS_KILLED);
	case RANKS_SHORT:
		packet->nbytes /= 2;
		break;
	case RANKS_REPEATED:
		add_packet(&transport->outgoing,
			   make_packet(packet->peer, packet->tag, packet->data, packet->nbytes));
		break;
	case RANKS_DAMAGED:
		packet->data[ranks->fault_bit / 8] ^= (char)(1 << ranks->fault_bit % 8);
		break;
	case RANKS_FOREIGN:
		turn_header(packet->data);
		break;
	case RANKS_SILENT:
		transport->is_silent = true;
		break;
	case RANKS_HANGING:
		for (;;)
			pause();
	default:
		break;
	}
}

static int double_send(struct transport *base, int to, int tag, const void *data, size_t nbytes,
		       struct transport_request *request)
{
	struct double_transport *transport = double_of(base);
	const struct ranks_double *ranks = transport->ranks;
	struct packet *packet = make_packet(to, tag, data, nbytes);
	const bool is_befallen = ranks->fault != RANKS_FINE &&
				 ranks->fault_rank == (unsigned)base->rank &&
				 ranks->fault_message == own_end->n_sent;

	own_end->n_sent++;
	packet->request = request;
	if (is_befallen)
		befall(transport, packet);
	if (is_befallen && ranks->fault == RANKS_LOST) {
		add_done(transport, request, to, nbytes);
		free(packet);
	} else {
		add_packet(&transport->outgoing, packet);
	}
	return 0;
}

static int double_receive(struct transport *base, int from, int tag, void *data, size_t capacity,
			  struct transport_request *request)
{
	struct asked *asked = allocate(sizeof *asked);

	*asked = (struct asked){ NULL, from, tag, data, capacity, request };
	add_asked(&double_of(base)->asked, asked);
	return 0;
}

/* What is in front of it, to the same rank, has to be written first. */
static bool is_first(const struct packet *first, const struct packet *packet, bool of_tag)
{
	for (; first != packet; first = first->next)
		if (first->peer == packet->peer && (!of_tag || first->tag == packet->tag))
			return false;
	return true;
}

static void write_outgoing(struct double_transport *transport)
{
	struct packet **at = &transport->outgoing;

	while (*at) {
		struct packet *packet = *at;

		if (!is_first(transport->outgoing, packet, false) ||
		    !write_packet(transport, packet, packet->nbytes)) {
			at = &packet->next;
			continue;
		}
		*at = packet->next;
		if (packet->request)
			add_done(transport, packet->request, packet->peer, packet->nbytes);
		free(packet);
	}
}

static void read_incoming(struct double_transport *transport, int peer)
{
	static char room[sizeof(int32_t) + RANKS_DOUBLE_PIECE_NBYTES + 1];
	int32_t tag;
	ssize_t n;

	while (!transport->ended[peer]) {
		n = recv(transport->sockets[peer], room, sizeof room, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n < (ssize_t)sizeof tag) {
			transport->ended[peer] = true;
			return;
		}
		memcpy(&tag, room, sizeof tag);
		add_packet(&transport->arrived,
			   make_packet(peer, tag, room + sizeof tag, (size_t)n - sizeof tag));
	}
}

/* Who wants it, or NULL: the first that does, if nothing like it came before. */
static struct asked **who_wants(struct double_transport *transport, const struct packet *packet)
{
	struct asked **at = &transport->asked;

	if (!is_first(transport->arrived, packet, true))
		return NULL;
	for (; *at; at = &(*at)->next)
		if ((*at)->tag == packet->tag &&
		    ((*at)->from == TRANSPORT_ANY || (*at)->from == packet->peer))
			return at;
	return NULL;
}

static void give(struct double_transport *transport, struct packet **packet_at,
		 struct asked **asked_at)
{
	struct packet *packet = *packet_at;
	struct asked *asked = *asked_at;

	*packet_at = packet->next;
	*asked_at = asked->next;
	if (packet->nbytes > asked->capacity)
		leave(1);
	memcpy(asked->data, packet->data, packet->nbytes);
	add_done(transport, asked->request, packet->peer, packet->nbytes);
	free(packet);
	free(asked);
}

/* One of the messages that could be given to somebody is. */
static void give_one(struct double_transport *transport)
{
	unsigned n = 0, chosen;

	for (struct packet *packet = transport->arrived; packet; packet = packet->next)
		n += who_wants(transport, packet) != NULL;
	if (n == 0)
		return;
	chosen = choose(transport, n);
	for (struct packet **at = &transport->arrived;; at = &(*at)->next) {
		struct asked **wants = who_wants(transport, *at);

		if (wants && chosen-- == 0) {
			give(transport, at, wants);
			return;
		}
	}
}

static int double_take(struct transport *base, struct transport_request **ret_request)
{
	struct double_transport *transport = double_of(base);
	struct asked *done;

	*ret_request = NULL;
	if (transport->is_silent)
		return 0;
	write_outgoing(transport);
	for (int peer = 0; peer < base->size; peer++)
		if (peer != base->rank && choose(transport, 4) == 0)
			read_incoming(transport, peer);
	if (choose(transport, 3) == 0)
		give_one(transport);
	done = transport->done;
	if (!done)
		return 0;
	*ret_request = done->request;
	transport->done = done->next;
	free(done);
	return 0;
}

static bool double_is_gone(struct transport *base, int peer)
{
	struct double_transport *transport = double_of(base);

	if (!transport->ended[peer] || transport->done)
		return false;
	for (struct packet *packet = transport->arrived; packet; packet = packet->next)
		if (packet->peer == peer && who_wants(transport, packet))
			return false;
	return true;
}

static void double_end_all(struct transport *base, int status)
{
	(void)base, (void)status; /* the others see that the sockets are closed */
}

static int double_close(struct transport *base)
{
	struct double_transport *transport = double_of(base);

	for (struct asked *next, *asked = transport->asked; asked; asked = next) {
		next = asked->next;
		free(asked);
	}
	free(transport);
	return 0;
}

static const struct transport_ops ops = {
	.name = "a socket pair",
	.send = double_send,
	.receive = double_receive,
	.take = double_take,
	.is_gone = double_is_gone,
	.end_all = double_end_all,
	.close = double_close,
};

/* What a child is given. */
struct child {
	struct ranks_double *ranks;
	unsigned rank;
	int (*sockets)[RANKS_DOUBLE_MOST];
};

static int double_open(void *argument, struct transport **ret_transport)
{
	const struct child *child = argument;
	struct double_transport *transport = allocate(sizeof *transport);

	transport->transport =
		(struct transport){ &ops, (int)child->rank, (int)child->ranks->size };
	transport->ranks = child->ranks;
	transport->random = child->ranks->seed + child->rank;
	memcpy(transport->sockets, child->sockets[child->rank], sizeof transport->sockets);
	*ret_transport = &transport->transport;
	return 0;
}

/* With the reason, which the test sees. */
static void end_child(int status) __attribute__((noreturn));
static void end_child(int status)
{
	snprintf(own_end->text, sizeof own_end->text, "%s", messages_last());
	leave(status);
}

static void count_before_end(void *context)
{
	(void)context;
	own_end->n_before++;
}

static void allow_reading(bool is_allowed)
{
	prctl(PR_SET_PTRACER, is_allowed ? PR_SET_PTRACER_ANY : 0, 0, 0, 0);
}

static void be_rank(struct child *child) __attribute__((noreturn));
static void be_rank(struct child *child)
{
	struct ranks_settings settings = child->ranks->settings;
	struct ranks *ranks;

	own_end = &child->ranks->ends[child->rank];
	messages_reset(true);
	settings.end = end_child;
	settings.before_end = count_before_end;
	settings.allow_reading = allow_reading;
	settings.version = child->ranks->versions[child->rank];
	for (unsigned other = 0; other < child->ranks->size; other++)
		for (unsigned peer = 0; peer < child->ranks->size; peer++)
			if (other != child->rank && other != peer)
				close(child->sockets[other][peer]);
	own_end->r = ranks_open(&settings, double_open, child, &ranks);
	if (own_end->r < 0)
		end_child(1);
	own_end->r = child->ranks->body(ranks, child->ranks->argument);
	if (own_end->r == 0)
		own_end->r = ranks_close(ranks);
	if (own_end->r < 0)
		ranks_abort(ranks, 2);
	end_child(0);
}

void ranks_double_start(struct ranks_double *ranks)
{
	int sockets[RANKS_DOUBLE_MOST][RANKS_DOUBLE_MOST] = { 0 }, pair[2];

	ranks->ends = mmap(NULL, ranks->size * sizeof *ranks->ends, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(ranks->ends, MAP_FAILED);
	for (unsigned a = 0; a < ranks->size; a++)
		for (unsigned b = 0; b < a; b++) {
			assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
			sockets[a][b] = pair[0];
			sockets[b][a] = pair[1];
		}
	for (unsigned rank = 0; rank < ranks->size; rank++) {
		ranks->ends[rank].r = 1;
		ranks->processes[rank] = fork();
		assert_true(ranks->processes[rank] >= 0);
		if (ranks->processes[rank] == 0)
			be_rank(&(struct child){ ranks, rank, sockets });
	}
	for (unsigned a = 0; a < ranks->size; a++)
		for (unsigned b = 0; b < ranks->size; b++)
			if (a != b)
				close(sockets[a][b]);
}

void ranks_double_join(struct ranks_double *ranks)
{
	int status;

	for (unsigned rank = 0; rank < ranks->size; rank++) {
		assert_int_equal(waitpid(ranks->processes[rank], &status, 0),
				 ranks->processes[rank]);
		ranks->ends[rank].status = WIFEXITED(status) ? WEXITSTATUS(status) :
							       128 + WTERMSIG(status);
	}
}

void ranks_double_run(struct ranks_double *ranks)
{
	ranks_double_start(ranks);
	ranks_double_join(ranks);
}

void ranks_double_assert_fine(const struct ranks_double *ranks)
{
	for (unsigned rank = 0; rank < ranks->size; rank++) {
		const struct ranks_end *end = &ranks->ends[rank];

		if (end->r != 0 || end->status != 0)
			print_message("rank %u of %u: %d: %s\n", rank, ranks->size, end->r,
				      end->text);
		assert_int_equal(end->r, 0);
		assert_int_equal(end->status, 0);
		assert_string_equal(end->text, "");
		assert_int_equal(end->n_before, 0);
	}
}

void ranks_double_forget(struct ranks_double *ranks)
{
	munmap(ranks->ends, ranks->size * sizeof *ranks->ends);
	ranks->ends = NULL;
}
