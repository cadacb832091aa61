/*
 * fake_ranks.c - ranks as child processes of a test (see fake_ranks.h)
 */
#include "tests/support/fake_ranks.h"

#include <byteswap.h>
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/comm/transport.h"
#include "tests/support/captured_messages.h"
#include "tests/support/unit_test.h"

enum { STATUS_KILLED = 9 };

unsigned fake_rank_number;

/* Precedes a message in a socket. */
struct packet_header {
	uint64_t nbytes, tag;
};

/* A message to write, or one that arrived and was not received yet. */
struct packet {
	struct packet *next;
	int peer;
	struct transport_request *request; /* of its send; NULL: it has arrived */
	size_t n_done;                     /* bytes that are written or read, of header and data */
	struct packet_header header;
	char data[]; /* follows the header in a socket */
};

/* A pending receive, or a finished request. */
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
	struct packet *incoming[FAKE_RANKS_MAX]; /* read in part; NULL: none */
	struct transfer_entry *receives, *completed;
	bool is_silent;
	uint64_t random;
};

/* State of the child. */
static struct fake_rank_exit *own_exit;

/* Of gcov, if the build has it: writes the executed lines, as exit() does. */
extern void __gcov_exit(void) __attribute__((weak));

/* Of LeakSanitizer, if the build has it: prints leaks and returns whether there are any. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* Of ThreadSanitizer, which starts a thread of its own with the first of the process. */
extern void __tsan_init(void) __attribute__((weak));

/* End like a killed process: _exit() of ThreadSanitizer waits for a second. */
static void exit_now(int status) __attribute__((noreturn));
static void exit_now(int status)
{
	if (__gcov_exit)
		__gcov_exit();
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

static struct fake_transport *fake_transport_of(struct transport *transport)
{
	return (struct fake_transport *)transport;
}

/* Return a random number below n, or 0 without a seed. */
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

static struct packet *make_packet(int peer, struct packet_header header)
{
	struct packet *packet = allocate_or_exit(sizeof *packet + header.nbytes);

	packet->peer = peer;
	packet->header = header;
	return packet;
}

/* Write a packet up to a byte. Returns whether it is done; it is if the peer is gone. */
static bool write_packet(const struct fake_transport *transport, struct packet *packet, size_t end)
{
	while (packet->n_done < end) {
		const ssize_t n = send(transport->sockets[packet->peer],
				       (const char *)&packet->header + packet->n_done,
				       end - packet->n_done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS;
		packet->n_done += (size_t)n;
	}
	return true;
}

static size_t packet_nbytes(const struct packet *packet)
{
	return sizeof packet->header + packet->header.nbytes;
}

static int fake_receive(struct transport *base, int from, int tag, void *data, size_t capacity,
			struct transport_request *request)
{
	struct transfer_entry *entry = allocate_or_exit(sizeof *entry);

	*entry = (struct transfer_entry){ NULL, from, tag, data, capacity, request };
	append_entry(&fake_transport_of(base)->receives, entry);
	return 0;
}

/* Earlier packets to the same rank are written first. */
static bool is_first_in_queue(const struct packet *first, const struct packet *packet,
			      bool same_tag_only)
{
	for (; first != packet; first = first->next)
		if (first->peer == packet->peer &&
		    (!same_tag_only || first->header.tag == packet->header.tag))
			return false;
	return true;
}

static void write_outgoing(struct fake_transport *transport)
{
	struct packet **link = &transport->outgoing;

	while (*link) {
		struct packet *packet = *link;

		if (!is_first_in_queue(transport->outgoing, packet, false) ||
		    !write_packet(transport, packet, packet_nbytes(packet))) {
			link = &packet->next;
			continue;
		}
		*link = packet->next;
		add_completed(transport, packet->request, packet->peer, packet->header.nbytes);
		free(packet);
	}
}

/* Return the fault of this message, if any. */
static int inject_fault(struct fake_transport *transport, struct packet *packet)
{
	uint32_t word;

	switch (transport->fake_ranks->fault) {
	case FAKE_FAULT_EXIT_MIDWAY:
		while (transport->outgoing)
			write_outgoing(transport);
		write_packet(transport, packet, packet_nbytes(packet) / 2);
		exit_now(STATUS_KILLED);
	case FAKE_FAULT_EXIT:
		exit_now(STATUS_KILLED);
	case FAKE_FAULT_ERROR:
		return (fail)(-EIO, "a socket pair cannot send a message");
	case FAKE_FAULT_BYTE_ORDER:
		memcpy(&word, packet->data, sizeof word);
		word = bswap_32(word);
		memcpy(packet->data, &word, sizeof word);
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
	return 0;
}

static int fake_send(struct transport *base, int to, int tag, const void *data, size_t nbytes,
		     struct transport_request *request)
{
	struct fake_transport *transport = fake_transport_of(base);
	const struct fake_ranks *fake_ranks = transport->fake_ranks;
	struct packet *packet = make_packet(to, (struct packet_header){ nbytes, (uint64_t)tag });
	int r = 0;

	memcpy(packet->data, data, nbytes);
	if (to == base->rank) {
		add_packet(&transport->arrived, packet);
		add_completed(transport, request, to, nbytes);
		return 0;
	}
	packet->request = request;
	if (fake_ranks->fault != FAKE_FAULT_NONE &&
	    fake_ranks->fault_rank == (unsigned)base->rank &&
	    fake_ranks->fault_message == own_exit->n_sent)
		r = inject_fault(transport, packet);
	own_exit->n_sent++;
	if (r == 0)
		add_packet(&transport->outgoing, packet);
	else
		free(packet);
	return r;
}

/* Read nbytes from a socket, of which *n_done are read. Returns whether all are. */
static bool read_bytes(struct fake_transport *transport, int peer, void *bytes, size_t nbytes,
		       size_t *n_done)
{
	while (*n_done < nbytes) {
		const ssize_t n = recv(transport->sockets[peer], (char *)bytes + *n_done,
				       nbytes - *n_done, MSG_DONTWAIT);

		if (n <= 0) {
			transport->is_closed[peer] = n == 0 ||
						     (errno != EAGAIN && errno != EWOULDBLOCK);
			return false;
		}
		*n_done += (size_t)n;
	}
	return true;
}

static void read_incoming(struct fake_transport *transport, int peer)
{
	struct packet *packet;

	while (!transport->is_closed[peer]) {
		packet = transport->incoming[peer];
		if (!packet) /* its header comes first */
			packet = make_packet(peer, (struct packet_header){ 0 });
		if (packet->n_done < sizeof packet->header &&
		    read_bytes(transport, peer, &packet->header, sizeof packet->header,
			       &packet->n_done)) {
			struct packet *whole = make_packet(peer, packet->header);

			whole->n_done = packet->n_done;
			free(packet);
			packet = whole;
		}
		transport->incoming[peer] = packet;
		if (packet->n_done < sizeof packet->header ||
		    !read_bytes(transport, peer, &packet->header, packet_nbytes(packet),
				&packet->n_done))
			return;
		transport->incoming[peer] = NULL;
		add_packet(&transport->arrived, packet);
	}
}

/* Return the first receive for the packet, or NULL if none or if another packet comes first. */
static struct transfer_entry **find_receive(struct fake_transport *transport,
					    const struct packet *packet)
{
	struct transfer_entry **link = &transport->receives;

	if (!is_first_in_queue(transport->arrived, packet, true))
		return NULL;
	for (; *link; link = &(*link)->next)
		if ((uint64_t)(*link)->tag == packet->header.tag &&
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
	entry->request->is_truncated = packet->header.nbytes > entry->capacity;
	memcpy(entry->data, packet->data,
	       entry->request->is_truncated ? entry->capacity : packet->header.nbytes);
	add_completed(transport, entry->request, packet->peer, packet->header.nbytes);
	free(packet);
	free(entry);
}

/* Deliver one of the messages that have a receive. */
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
	const struct fake_ranks *fake_ranks = transport->fake_ranks;

	while (fake_ranks->fault == FAKE_FAULT_HANG_AT_END &&
	       fake_ranks->fault_rank == (unsigned)base->rank)
		pause();
	for (struct transfer_entry *next, *entry = transport->receives; entry; entry = next) {
		next = entry->next;
		free(entry);
	}
	for (int peer = 0; peer < base->size; peer++)
		free(transport->incoming[peer]);
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

/* Argument of a child. */
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

/* End with the reason, which the test prints. */
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

unsigned fake_rank_n_threads(void)
{
	DIR *threads = opendir("/proc/self/task");
	unsigned n = 0;

	while (threads && readdir(threads))
		n++;
	if (threads)
		closedir(threads);
	return n;
}

/* A thread that was joined may be visible for a moment. */
bool fake_rank_has_threads(unsigned n)
{
	for (unsigned i = 0; i < 10000 && fake_rank_n_threads() > n; i++)
		usleep(1000);
	return fake_rank_n_threads() <= n;
}

static void run_rank(struct fake_rank *rank_context) __attribute__((noreturn));
static void run_rank(struct fake_rank *rank_context)
{
	struct comm_params params = rank_context->fake_ranks->params;
	const unsigned n_threads = fake_rank_n_threads() + (__tsan_init != NULL);
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
	fake_rank_number = rank_context->rank;
	own_exit->result = comm_open(&params, fake_open, rank_context, &comm);
	if (own_exit->result < 0)
		exit_rank(1);
	own_exit->result = rank_context->fake_ranks->body(comm, rank_context->fake_ranks->argument);
	if (own_exit->result == 0)
		own_exit->result = comm_close(comm);
	if (own_exit->result < 0)
		comm_abort(comm, 2);
	exit_rank(!fake_rank_has_threads(n_threads) ||
		  (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check()));
}

void fake_ranks_start(struct fake_ranks *fake_ranks)
{
	int sockets[FAKE_RANKS_MAX][FAKE_RANKS_MAX] = { 0 }, pair[2];

	fake_ranks->exits = mmap(NULL, fake_ranks->size * sizeof *fake_ranks->exits,
				 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(fake_ranks->exits, MAP_FAILED);
	for (unsigned a = 0; a < fake_ranks->size; a++)
		for (unsigned b = 0; b < a; b++) {
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
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

void fake_ranks_succeed(struct fake_ranks *fake_ranks)
{
	fake_ranks_run(fake_ranks);
	fake_ranks_assert_success(fake_ranks);
	fake_ranks_free(fake_ranks);
}

void fake_ranks_free(struct fake_ranks *fake_ranks)
{
	munmap(fake_ranks->exits, fake_ranks->size * sizeof *fake_ranks->exits);
	fake_ranks->exits = NULL;
}

/* --- stripes --- */

/* Bit r of each: rank r has written to this MiB of the output. */
enum { STRIPE_NBYTES = 1 << 20, N_STRIPES = 4 };
static atomic_uint *stripe_writers;

bool fake_rank_writes_output(int fd)
{
	char link[64], path[512] = "";

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof path - 1) > 0 && strstr(path, ".gsort-temp-");
}

void stripe_writers_open(void)
{
	stripe_writers = mmap(NULL, N_STRIPES * sizeof *stripe_writers, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(stripe_writers, MAP_FAILED);
}

ssize_t stripe_writers_pwrite(int fd, const void *data, size_t nbytes, off_t offset)
{
	if (fake_rank_writes_output(fd))
		for (off_t at = offset; at < offset + (off_t)nbytes; at++)
			if (at == offset || at % STRIPE_NBYTES == 0)
				atomic_fetch_or(&stripe_writers[at / STRIPE_NBYTES],
						1u << fake_rank_number);
	return pwrite(fd, data, nbytes, offset);
}

unsigned stripe_writers_close(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < N_STRIPES; i++) {
		n += stripe_writers[i] > 0;
		assert_int_equal(stripe_writers[i] & (stripe_writers[i] - 1), 0);
	}
	munmap(stripe_writers, N_STRIPES * sizeof *stripe_writers);
	return n;
}
