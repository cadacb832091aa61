/*
 * run_resident - a sorted chunk in device memory as a run (see run.h)
 *
 * Its blocks are a view: every so many items, of which the device fetches the first keys. What is
 * merged of it is slices of the memory itself, and what the windows have passed goes back to the
 * system early, a huge page at a time.
 */
#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/run/run_ops.h"

/* So much goes back at once; of a part, which is short, a quarter of it, but not too little. */
enum { DISCARD_NBYTES = 2 << 20, LEAST_DISCARD_NBYTES = 256 << 10 };

struct resident_run {
	struct run run;
	struct device *device;
	uint32_t worker;
	const struct layout *layout;
	char *memory;
	void (*release)(void *owner);
	void *owner;
	uint64_t discard_nbytes;     /* a multiple of that is given back */
	uint64_t n_discarded_nbytes; /* from its start on, given back */
	struct run_strides strides;
};

static struct resident_run *resident(struct run *run)
{
	return (struct resident_run *)run;
}

static const struct resident_run *resident_const(const struct run *run)
{
	return (const struct resident_run *)run;
}

static void resident_close(struct run *run)
{
	struct resident_run *self = resident(run);

	if (self->release)
		self->release(self->owner);
	free(self->strides.first_keys);
	free(self);
}

static uint64_t resident_block_start(const struct run *run, uint64_t i)
{
	return i * resident_const(run)->strides.stride;
}

static code_t resident_first_key(const struct run *run, uint64_t i)
{
	return resident_const(run)->strides.first_keys[i];
}

static const void *resident_memory(const struct run *run)
{
	return resident_const(run)->memory;
}

static uint32_t resident_worker(const struct run *run)
{
	return resident_const(run)->worker;
}

static int resident_sample(struct run *run, struct lane *lane, uint64_t stride)
{
	struct resident_run *self = resident(run);
	int r = run_set_stride(run, stride, &self->strides);

	return r < 0 ? r :
		       lane_sample(lane, &(struct sample_op){
						 .layout = self->layout,
						 .items = self->memory,
						 .n = run->n_items,
						 .stride = stride,
						 .ret_keys = self->strides.first_keys,
					 });
}

static void resident_discard_slice(struct run *run, const struct slice *slice)
{
	struct resident_run *self = resident(run);
	const uint64_t nbytes = run->n_items * self->layout->resident_nbytes;
	uint64_t passed_nbytes;

	/* Of what another worker merges a copy is elsewhere. */
	if (slice->n == 0 || (const char *)slice->elements < self->memory ||
	    (const char *)slice->elements >= self->memory + nbytes)
		return;
	passed_nbytes = (uint64_t)((const char *)slice->elements - self->memory) +
			slice->n * self->layout->resident_nbytes;
	passed_nbytes -= passed_nbytes % self->discard_nbytes;
	if (passed_nbytes <= self->n_discarded_nbytes)
		return;
	device_discard(self->device, self->memory + self->n_discarded_nbytes,
		       passed_nbytes - self->n_discarded_nbytes);
	self->n_discarded_nbytes = passed_nbytes;
}

static int resident_open_part(const struct layout *layout, struct run *run, uint64_t begin,
			      uint64_t end, struct run **ret_part);

static const struct run_kind kind_resident = {
	.close = resident_close,
	.open_part = resident_open_part,
	.block_start = resident_block_start,
	.first_key = resident_first_key,
	.memory = resident_memory,
	.worker = resident_worker,
	.sample = resident_sample,
	.discard_slice = resident_discard_slice,
};

int run_open_resident(const struct job *job, struct residence residence,
		      void (*release)(void *owner), void *owner, struct run **ret_run)
{
	struct resident_run *self = calloc(1, sizeof *self);

	if (!self)
		return fail(-ENOMEM, "no memory for a run");
	*self = (struct resident_run){ .run = { .kind = &kind_resident, .n_items = residence.n },
				       .device = job->workers[residence.worker].device,
				       .worker = residence.worker,
				       .layout = job->layout,
				       .memory = residence.memory,
				       .release = release,
				       .owner = owner,
				       .discard_nbytes = DISCARD_NBYTES };
	*ret_run = &self->run;
	return 0;
}

static uint64_t discard_nbytes(uint64_t part_nbytes)
{
	const uint64_t nbytes = part_nbytes / 4;

	if (nbytes < LEAST_DISCARD_NBYTES)
		return LEAST_DISCARD_NBYTES;
	return nbytes < DISCARD_NBYTES ? nbytes : DISCARD_NBYTES;
}

static int resident_open_part(const struct layout *layout, struct run *run, uint64_t begin,
			      uint64_t end, struct run **ret_part)
{
	struct resident_run *part = malloc(sizeof *part);

	(void)layout;
	if (!part)
		return fail(-ENOMEM, "no memory for a part of a run");
	*part = *resident(run);
	part->run.n_items = end - begin;
	part->run.n_blocks = 0;
	part->memory += begin * part->layout->resident_nbytes;
	part->release = NULL;
	part->discard_nbytes = discard_nbytes(part->run.n_items * part->layout->resident_nbytes);
	part->strides = (struct run_strides){ 0 };
	*ret_part = &part->run;
	return 0;
}
