/*
 * separate_memory_backend.c - the CPU back end with separate memories (see the header)
 *
 * Owners are looked up in a list: there are some hundred of them, in tests that sort little.
 */
#include "src/base/thread.h"
#include "tests/support/separate_memory_backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned device_count = 1;
static bool peer_access_enabled;
static atomic_ulong n_peer_reads;

void separate_memory_set_devices(unsigned n_devices, bool has_peer_access)
{
	device_count = n_devices;
	peer_access_enabled = has_peer_access;
}

unsigned long separate_memory_n_peer_reads(void)
{
	return atomic_load(&n_peer_reads);
}

/* --- Owners of memory, queues and events. Not allocated with malloc(), which tests let fail --- */

enum { MAX_OWNED_OBJECTS = 1 << 14 };

static struct owned_object {
	const char *begin, *end;
	const struct device *owner;
	/* If the object is a device: */
	unsigned number;
	unsigned long n_merges;
} objects[MAX_OWNED_OBJECTS];
static size_t n_objects;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Noreturn void report_misuse(const char *what)
{
	fprintf(stderr, "owned_memory: %s\n", what);
	abort();
}

static void add_object(const struct owned_object *object)
{
	SCOPED_LOCK(&lock);
	if (n_objects == MAX_OWNED_OBJECTS)
		report_misuse("there are too many");
	objects[n_objects++] = *object;
}

static void add_memory(const struct device *owner, const void *begin, size_t nbytes)
{
	add_object(&(struct owned_object){
		.begin = begin, .end = (const char *)begin + nbytes, .owner = owner });
}

static void add_device(const struct device *device, unsigned number)
{
	add_object(&(struct owned_object){ .begin = (const char *)device,
					   .end = (const char *)device + 1,
					   .owner = device,
					   .number = number });
}

static void remove_object(const void *begin)
{
	SCOPED_LOCK(&lock);
	for (size_t i = 0; i < n_objects; i++)
		if (objects[i].begin == begin) {
			objects[i] = objects[--n_objects];
			break;
		}
}

/* Find the owner. NULL: none, or the host. Not instrumented, because each operation calls it. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static const struct device *
owner_of(const void *address)
{
	const struct device *owner = NULL;

	SCOPED_LOCK(&lock);
	for (size_t i = 0; i < n_objects && !owner; i++)
		if ((const char *)address >= objects[i].begin &&
		    (const char *)address < objects[i].end)
			owner = objects[i].owner;
	return owner;
}

/* Find an open device, with the lock held. NULL: none. */
static struct owned_object *find_device(const struct device *device)
{
	for (size_t i = 0; i < n_objects; i++)
		if (objects[i].begin == (const char *)device)
			return &objects[i];
	return NULL;
}

static void count_merge(const struct device_queue *queue)
{
	const struct device *device = owner_of(queue);

	SCOPED_LOCK(&lock);
	find_device(device)->n_merges++;
}

unsigned separate_memory_device_number(const void *object)
{
	const struct device *device = owner_of(object);
	unsigned number;

	SCOPED_LOCK(&lock);
	number = find_device(device)->number;
	return number;
}

unsigned long separate_memory_n_merges(const struct device *device)
{
	SCOPED_LOCK(&lock);
	return find_device(device)->n_merges;
}

/* End the process if operations of the queue may not use the memory. */
static void check_owner(const struct device_queue *queue, const void *memory)
{
	const struct device *owner = memory ? owner_of(memory) : NULL;

	if (owner && owner != owner_of(queue))
		report_misuse("a device works on memory of another");
}

/* End the process if operations of the queue may not read the memory. */
static void check_read(const struct device_queue *queue, const void *memory)
{
	const struct device *owner = memory ? owner_of(memory) : NULL;

	if (!owner || owner == owner_of(queue))
		return;
	if (!peer_access_enabled)
		report_misuse("a device reads memory of another");
	atomic_fetch_add(&n_peer_reads, 1);
}

static void check_slices(const struct device_queue *queue, const struct slice *slices, uint32_t k)
{
	for (uint32_t i = 0; i < k; i++)
		if (slices[i].n)
			check_read(queue, slices[i].elements);
}

/* --- Devices, queues, events --- */

static unsigned separate_n_devices(void)
{
	return device_count;
}

static int separate_open(const struct backend_config *config, struct device **ret_device)
{
	int r = backend_cpu.open(config, ret_device);

	if (r == 0)
		add_device(*ret_device, config->number);
	return r;
}

static void separate_close(struct device *device)
{
	if (device)
		remove_object(device);
	backend_cpu.close(device);
}

static void separate_get_info(const struct device *device, struct device_info *ret_info)
{
	backend_cpu.get_info(device, ret_info);
}

static int separate_alloc(struct device *device, enum memory_kind kind, size_t nbytes,
			  void **ret_memory)
{
	int r = backend_cpu.alloc(device, kind, nbytes, ret_memory);

	if (r == 0 && kind == MEMORY_DEVICE)
		add_memory(device, *ret_memory, nbytes);
	return r;
}

static void separate_free(struct device *device, enum memory_kind kind, void *memory, size_t nbytes)
{
	if (memory && kind == MEMORY_DEVICE && owner_of(memory) != device)
		report_misuse("memory is given back to another device");
	if (memory && kind == MEMORY_DEVICE)
		remove_object(memory);
	backend_cpu.free(device, kind, memory, nbytes);
}

static void separate_discard(struct device *device, void *memory, size_t nbytes)
{
	if (nbytes && owner_of(memory) != device)
		report_misuse("memory of another device is discarded");
	backend_cpu.discard(device, memory, nbytes);
}

static bool separate_can_access(struct device *device, struct device *peer)
{
	(void)device, (void)peer;
	return peer_access_enabled;
}

static int separate_queue_open(struct device *device, enum queue_priority priority,
			       struct device_queue **ret_queue)
{
	int r = backend_cpu.queue_open(device, priority, ret_queue);

	if (r == 0)
		add_memory(device, *ret_queue, 1);
	return r;
}

static void separate_queue_close(struct device_queue *queue)
{
	if (queue)
		remove_object(queue);
	backend_cpu.queue_close(queue);
}

static int separate_event_open(struct device *device, struct device_event **ret_event)
{
	int r = backend_cpu.event_open(device, ret_event);

	if (r == 0)
		add_memory(device, *ret_event, 1);
	return r;
}

static void separate_event_close(struct device_event *event)
{
	if (event)
		remove_object(event);
	backend_cpu.event_close(event);
}

static int separate_queue_record(struct device_queue *queue, struct device_event *event)
{
	if (owner_of(event) != owner_of(queue))
		report_misuse("a mark of one device is set in a lane of another");
	return backend_cpu.queue_record(queue, event);
}

static int separate_event_wait(struct device_event *event)
{
	return backend_cpu.event_wait(event);
}

static int separate_queue_wait_event(struct device_queue *queue, struct device_event *event)
{
	return backend_cpu.queue_wait_event(queue, event);
}

/* --- Operations --- */

static int separate_copy(struct device_queue *queue, void *to, const void *from, size_t nbytes)
{
	check_owner(queue, to);
	check_read(queue, from);
	return backend_cpu.copy(queue, to, from, nbytes);
}

static int separate_pack(struct device_queue *queue, const struct pack_op *op)
{
	check_owner(queue, op->elements);
	check_owner(queue, op->packed);
	return backend_cpu.pack(queue, op);
}

static int separate_unpack(struct device_queue *queue, const struct unpack_op *op)
{
	for (uint32_t i = 0; i < op->n_blocks; i++) {
		check_owner(queue, op->blocks[i].packed);
		check_owner(queue, op->blocks[i].elements);
	}
	return backend_cpu.unpack(queue, op);
}

static const struct backend_layout_ops *cpu_layout_ops(const struct layout *layout)
{
	return backend_cpu.ops_by_layout[layout->kind];
}

static int separate_encode(struct device_queue *queue, const struct encode_op *op)
{
	check_owner(queue, op->records);
	check_owner(queue, op->elements);
	return cpu_layout_ops(op->layout)->encode(queue, op);
}

static int separate_decode(struct device_queue *queue, const struct decode_op *op)
{
	check_owner(queue, op->elements);
	check_owner(queue, op->records);
	return cpu_layout_ops(op->layout)->decode(queue, op);
}

static int separate_sort(struct device_queue *queue, const struct sort_op *op)
{
	check_owner(queue, op->records);
	check_owner(queue, op->items);
	check_owner(queue, op->scratch);
	return cpu_layout_ops(op->layout)->sort(queue, op);
}

static int separate_merge(struct device_queue *queue, const struct merge_op *op)
{
	check_slices(queue, op->slices, op->k);
	check_owner(queue, op->out);
	check_owner(queue, op->scratch);
	count_merge(queue);
	return cpu_layout_ops(op->layout)->merge(queue, op);
}

static int separate_unique(struct device_queue *queue, const struct unique_op *op)
{
	check_owner(queue, op->items);
	check_owner(queue, op->buffer);
	check_owner(queue, op->scratch);
	return cpu_layout_ops(op->layout)->unique(queue, op);
}

static int separate_cut(struct device_queue *queue, const struct cut_op *op)
{
	check_slices(queue, op->slices, op->k);
	return cpu_layout_ops(op->layout)->cut(queue, op);
}

static int separate_sample(struct device_queue *queue, const struct sample_op *op)
{
	check_owner(queue, op->items);
	return cpu_layout_ops(op->layout)->sample(queue, op);
}

static size_t separate_sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return cpu_layout_ops(layout)->sort_scratch_nbytes(layout, n);
}

static size_t separate_merge_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	return cpu_layout_ops(layout)->merge_scratch_nbytes(layout, k, n);
}

static const struct backend_layout_ops separate_layout_ops = {
	.encode = separate_encode,
	.decode = separate_decode,
	.sort_scratch_nbytes = separate_sort_scratch_nbytes,
	.sort = separate_sort,
	.merge_scratch_nbytes = separate_merge_scratch_nbytes,
	.merge = separate_merge,
	.unique = separate_unique,
	.cut = separate_cut,
	.sample = separate_sample,
};

static const struct backend_layout_ops *const separate_ops_by_layout[N_LAYOUT_KINDS] = {
	[LAYOUT_KEY_ONLY] = &separate_layout_ops,
	[LAYOUT_INDIRECT] = &separate_layout_ops,
	[LAYOUT_RECORDS] = &separate_layout_ops,
};

const struct backend separate_memory_backend = {
	.name = "owning",
	.ops_by_layout = separate_ops_by_layout,
	.n_devices = separate_n_devices,
	.open = separate_open,
	.close = separate_close,
	.get_info = separate_get_info,
	.alloc = separate_alloc,
	.free = separate_free,
	.discard = separate_discard,
	.can_access = separate_can_access,
	.queue_open = separate_queue_open,
	.queue_close = separate_queue_close,
	.event_open = separate_event_open,
	.event_close = separate_event_close,
	.queue_record = separate_queue_record,
	.event_wait = separate_event_wait,
	.queue_wait_event = separate_queue_wait_event,
	.copy = separate_copy,
	.pack = separate_pack,
	.unpack = separate_unpack,
};
