/*
 * separate_memory_backend - the CPU back end as devices whose memories must not be mixed (see separate_memory_backend.h)
 *
 * Owners are looked up in a list: there are some hundred of them, in tests that sort little.
 */
#include "tests/support/separate_memory_backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned devices_n = 1;
static bool devices_reach;
static atomic_ulong n_reached;

void owned_memory_set(unsigned n_devices, bool reach)
{
	devices_n = n_devices;
	devices_reach = reach;
}

unsigned long owned_memory_n_reached(void)
{
	return atomic_load(&n_reached);
}

/* --- What belongs to whom: memory, lanes, marks. Not by malloc(), which tests let fail --- */

enum { MOST_THINGS = 1 << 14 };

static struct thing {
	const char *begin, *end;
	const struct device *owner;
	/* Of a device, which is its own: */
	unsigned number;
	unsigned long n_merges;
} things[MOST_THINGS];
static size_t n_things;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Noreturn void complain(const char *what)
{
	fprintf(stderr, "owned_memory: %s\n", what);
	abort();
}

static void note_thing(const struct thing *thing)
{
	pthread_mutex_lock(&lock);
	if (n_things == MOST_THINGS)
		complain("there are too many");
	things[n_things++] = *thing;
	pthread_mutex_unlock(&lock);
}

static void note(const struct device *owner, const void *begin, size_t nbytes)
{
	note_thing(&(struct thing){
		.begin = begin, .end = (const char *)begin + nbytes, .owner = owner });
}

static void note_device(const struct device *device, unsigned number)
{
	note_thing(&(struct thing){ .begin = (const char *)device,
				    .end = (const char *)device + 1,
				    .owner = device,
				    .number = number });
}

static void forget(const void *begin)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_things; i++)
		if (things[i].begin == begin) {
			things[i] = things[--n_things];
			break;
		}
	pthread_mutex_unlock(&lock);
}

/* NULL: nobody's, or the host's. */
static const struct device *owner_of(const void *at)
{
	const struct device *owner = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_things && !owner; i++)
		if ((const char *)at >= things[i].begin && (const char *)at < things[i].end)
			owner = things[i].owner;
	pthread_mutex_unlock(&lock);
	return owner;
}

/* Under the lock; NULL: it is not open. */
static struct thing *find_device(const struct device *device)
{
	for (size_t i = 0; i < n_things; i++)
		if (things[i].begin == (const char *)device)
			return &things[i];
	return NULL;
}

static void count_merge(const struct lane *lane)
{
	const struct device *device = owner_of(lane);

	pthread_mutex_lock(&lock);
	find_device(device)->n_merges++;
	pthread_mutex_unlock(&lock);
}

unsigned owned_memory_number_of(const void *thing)
{
	const struct device *device = owner_of(thing);
	unsigned number;

	pthread_mutex_lock(&lock);
	number = find_device(device)->number;
	pthread_mutex_unlock(&lock);
	return number;
}

unsigned long owned_memory_n_merges(const struct device *device)
{
	unsigned long n;

	pthread_mutex_lock(&lock);
	n = find_device(device)->n_merges;
	pthread_mutex_unlock(&lock);
	return n;
}

/* May what the lane does use that memory? */
static void check(const struct lane *lane, const void *memory)
{
	const struct device *owner = memory ? owner_of(memory) : NULL;

	if (owner && owner != owner_of(lane))
		complain("a device works on memory of another");
}

/* May it read that? */
static void check_read(const struct lane *lane, const void *memory)
{
	const struct device *owner = memory ? owner_of(memory) : NULL;

	if (!owner || owner == owner_of(lane))
		return;
	if (!devices_reach)
		complain("a device reads memory of another");
	atomic_fetch_add(&n_reached, 1);
}

static void check_slices(const struct lane *lane, const struct slice *slices, uint32_t k)
{
	for (uint32_t i = 0; i < k; i++)
		if (slices[i].n)
			check_read(lane, slices[i].elements);
}

/* --- Devices, lanes, marks --- */

static unsigned owning_n_devices(void)
{
	return devices_n;
}

static int owning_open(const struct backend_config *config, struct device **ret_device)
{
	int r = backend_cpu.open(config, ret_device);

	if (r == 0)
		note_device(*ret_device, config->number);
	return r;
}

static void owning_close(struct device *device)
{
	if (device)
		forget(device);
	backend_cpu.close(device);
}

static void owning_describe(const struct device *device, struct device_info *ret_info)
{
	backend_cpu.describe(device, ret_info);
}

static int owning_alloc(struct device *device, enum memory kind, size_t nbytes, void **ret_memory)
{
	int r = backend_cpu.alloc(device, kind, nbytes, ret_memory);

	if (r == 0 && kind == MEMORY_DEVICE)
		note(device, *ret_memory, nbytes);
	return r;
}

static void owning_release(struct device *device, enum memory kind, void *memory, size_t nbytes)
{
	if (memory && kind == MEMORY_DEVICE && owner_of(memory) != device)
		complain("memory is given back to another device");
	if (memory && kind == MEMORY_DEVICE)
		forget(memory);
	backend_cpu.release(device, kind, memory, nbytes);
}

static void owning_discard(struct device *device, void *memory, size_t nbytes)
{
	if (nbytes && owner_of(memory) != device)
		complain("memory of another device is discarded");
	backend_cpu.discard(device, memory, nbytes);
}

static bool owning_reaches(struct device *device, struct device *other)
{
	(void)device, (void)other;
	return devices_reach;
}

static int owning_lane_open(struct device *device, enum lane_urgency urgency,
			    struct lane **ret_lane)
{
	int r = backend_cpu.lane_open(device, urgency, ret_lane);

	if (r == 0)
		note(device, *ret_lane, 1);
	return r;
}

static void owning_lane_close(struct lane *lane)
{
	if (lane)
		forget(lane);
	backend_cpu.lane_close(lane);
}

static int owning_mark_open(struct device *device, struct mark **ret_mark)
{
	int r = backend_cpu.mark_open(device, ret_mark);

	if (r == 0)
		note(device, *ret_mark, 1);
	return r;
}

static void owning_mark_close(struct mark *mark)
{
	if (mark)
		forget(mark);
	backend_cpu.mark_close(mark);
}

static int owning_mark(struct lane *lane, struct mark *mark)
{
	if (owner_of(mark) != owner_of(lane))
		complain("a mark of one device is set in a lane of another");
	return backend_cpu.mark(lane, mark);
}

static int owning_mark_wait(struct mark *mark)
{
	return backend_cpu.mark_wait(mark);
}

static int owning_follow(struct lane *lane, struct mark *mark)
{
	return backend_cpu.follow(lane, mark);
}

/* --- Operations --- */

static int owning_copy(struct lane *lane, void *to, const void *from, size_t nbytes)
{
	check(lane, to);
	check_read(lane, from);
	return backend_cpu.copy(lane, to, from, nbytes);
}

static int owning_pack(struct lane *lane, const struct pack_op *op)
{
	check(lane, op->elements);
	check(lane, op->packed);
	return backend_cpu.pack(lane, op);
}

static int owning_unpack(struct lane *lane, const struct unpack_op *op)
{
	for (uint32_t i = 0; i < op->n_blocks; i++) {
		check(lane, op->blocks[i].packed);
		check(lane, op->blocks[i].elements);
	}
	return backend_cpu.unpack(lane, op);
}

static const struct backend_kind *kind_of(const struct layout *layout)
{
	return backend_cpu.kinds[layout->kind];
}

static int owning_encode(struct lane *lane, const struct encode_op *op)
{
	check(lane, op->records);
	check(lane, op->elements);
	return kind_of(op->layout)->encode(lane, op);
}

static int owning_decode(struct lane *lane, const struct decode_op *op)
{
	check(lane, op->elements);
	check(lane, op->records);
	return kind_of(op->layout)->decode(lane, op);
}

static int owning_sort(struct lane *lane, const struct sort_op *op)
{
	check(lane, op->records);
	check(lane, op->items);
	check(lane, op->scratch);
	return kind_of(op->layout)->sort(lane, op);
}

static int owning_merge(struct lane *lane, const struct merge_op *op)
{
	check_slices(lane, op->slices, op->k);
	check(lane, op->out);
	check(lane, op->scratch);
	count_merge(lane);
	return kind_of(op->layout)->merge(lane, op);
}

static int owning_unique(struct lane *lane, const struct unique_op *op)
{
	check(lane, op->items);
	check(lane, op->other);
	check(lane, op->scratch);
	return kind_of(op->layout)->unique(lane, op);
}

static int owning_cut(struct lane *lane, const struct cut_op *op)
{
	check_slices(lane, op->slices, op->k);
	return kind_of(op->layout)->cut(lane, op);
}

static int owning_sample(struct lane *lane, const struct sample_op *op)
{
	check(lane, op->items);
	return kind_of(op->layout)->sample(lane, op);
}

static size_t owning_sort_scratch_nbytes(const struct layout *layout, uint64_t n)
{
	return kind_of(layout)->sort_scratch_nbytes(layout, n);
}

static size_t owning_merge_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	return kind_of(layout)->merge_scratch_nbytes(layout, k, n);
}

static const struct backend_kind owning_kind = {
	.encode = owning_encode,
	.decode = owning_decode,
	.sort_scratch_nbytes = owning_sort_scratch_nbytes,
	.sort = owning_sort,
	.merge_scratch_nbytes = owning_merge_scratch_nbytes,
	.merge = owning_merge,
	.unique = owning_unique,
	.cut = owning_cut,
	.sample = owning_sample,
};

static const struct backend_kind *const owning_kinds[N_LAYOUT_KINDS] = {
	[LAYOUT_CODES] = &owning_kind,
	[LAYOUT_REFERENCES] = &owning_kind,
	[LAYOUT_RECORDS] = &owning_kind,
};

const struct backend backend_owning = {
	.name = "owning",
	.kinds = owning_kinds,
	.n_devices = owning_n_devices,
	.open = owning_open,
	.close = owning_close,
	.describe = owning_describe,
	.alloc = owning_alloc,
	.release = owning_release,
	.discard = owning_discard,
	.reaches = owning_reaches,
	.lane_open = owning_lane_open,
	.lane_close = owning_lane_close,
	.mark_open = owning_mark_open,
	.mark_close = owning_mark_close,
	.mark = owning_mark,
	.mark_wait = owning_mark_wait,
	.follow = owning_follow,
	.copy = owning_copy,
	.pack = owning_pack,
	.unpack = owning_unpack,
};
