/*
 * check_packed - sorted elements to the blocks of a run, and back
 */
#include <stdlib.h>
#include <string.h>

#include "tests/backend/check.h"

/* The sorted elements in blocks of block_n, packed by the reference. */
struct packed {
	uint32_t block_n, n_blocks;
	unsigned char *bytes;
	size_t nbytes;
	uint32_t *block_nbytes;
};

static void packed_make(const struct check *check, uint32_t block_n, struct packed *ret_packed)
{
	const struct data *data = check->data;
	struct packed *packed = ret_packed;

	*packed = (struct packed){
		.block_n = block_n,
		.n_blocks = (uint32_t)((data->n + block_n - 1) / block_n),
		.bytes = reference_alloc(data->elements_nbytes),
	};
	packed->block_nbytes = reference_alloc(packed->n_blocks * sizeof(uint32_t));
	check->reference->pack(&(struct pack_op){ .elements = data->sorted,
						  .n = data->n,
						  .element_nbytes = data->layout.element_nbytes,
						  .block_n = block_n,
						  .packed = packed->bytes,
						  .ret_nbytes = packed->block_nbytes });
	for (uint32_t i = 0; i < packed->n_blocks; i++)
		packed->nbytes += packed->block_nbytes[i];
}

static void packed_free(struct packed *packed)
{
	free(packed->bytes);
	free(packed->block_nbytes);
}

static void pack_all(struct check *check, const struct packed *packed)
{
	const struct data *data = check->data;
	uint32_t *sizes = reference_alloc(packed->n_blocks * sizeof *sizes);

	array_set(&check->subject, &check->in, data->sorted, data->elements_nbytes,
		  some_elements_nbytes(data));
	array_set(&check->subject, &check->out, NULL, data->elements_nbytes,
		  some_elements_nbytes(data));
	subject_must(
		device_queue_pack(check->subject.queue,
				  &(struct pack_op){ .elements = array_device(&check->in),
						     .n = data->n,
						     .element_nbytes = data->layout.element_nbytes,
						     .block_n = packed->block_n,
						     .packed = array_device(&check->out),
						     .ret_nbytes = sizes }),
		"pack");
	expect_bytes(check, &check->out, packed->bytes, packed->nbytes, "packed bytes");
	expect(check,
	       packed->n_blocks == 0 ||
		       memcmp(sizes, packed->block_nbytes, packed->n_blocks * sizeof *sizes) == 0,
	       "sizes of %u blocks differ", packed->n_blocks);
	free(sizes);
}

/* Returns the number of the block that is reported as damaged. */
static uint32_t unpack(struct check *check, const struct packed_block *blocks, uint32_t n_blocks)
{
	uint32_t damaged;

	subject_must(
		device_queue_unpack(check->subject.queue,
				    &(struct unpack_op){ .blocks = blocks,
							 .n_blocks = n_blocks,
							 .element_nbytes =
								 check->data->layout.element_nbytes,
							 .ret_damaged = &damaged }),
		"unpack");
	subject_wait(&check->subject);
	return damaged;
}

static void unpack_all(struct check *check, const struct packed *packed)
{
	const struct data *data = check->data;
	const uint32_t element_nbytes = data->layout.element_nbytes;
	struct packed_block *blocks = reference_alloc(packed->n_blocks * sizeof *blocks);
	uint32_t last_packed = UINT32_MAX;
	const char *from;
	char *to;

	array_set(&check->subject, &check->in, packed->bytes, packed->nbytes,
		  some_elements_nbytes(data));
	array_set(&check->subject, &check->out, NULL, data->elements_nbytes,
		  some_elements_nbytes(data));
	from = array_device(&check->in);
	to = array_device(&check->out);
	for (uint32_t i = 0; i < packed->n_blocks; i++) {
		const uint64_t n_left = data->n - (uint64_t)i * packed->block_n;
		const uint32_t n = n_left < packed->block_n ? (uint32_t)n_left : packed->block_n;

		blocks[i] = (struct packed_block){ from, to, packed->block_nbytes[i], n };
		from += blocks[i].packed_nbytes;
		to += (size_t)n * element_nbytes;
		if (blocks[i].packed_nbytes < (size_t)n * element_nbytes)
			last_packed = i;
	}
	expect(check, unpack(check, blocks, packed->n_blocks) == UINT32_MAX,
	       "one of %u good blocks is damaged", packed->n_blocks);
	expect_bytes(check, &check->out, data->sorted, data->elements_nbytes, "elements");
	if (last_packed != UINT32_MAX) {
		blocks[last_packed].packed_nbytes -= 32;
		expect(check, unpack(check, blocks, packed->n_blocks) == last_packed,
		       "block %u of %u is cut, and not found damaged", last_packed,
		       packed->n_blocks);
	}
	expect(check, array_get(&check->subject, &check->out), "written outside of the elements");
	free(blocks);
}

/* Blocks of some lengths: one block, a few, and some with a short last one. */
void check_pack_and_unpack(struct check *check)
{
	const uint32_t n = (uint32_t)check->data->n;
	const uint32_t lengths[] = { n + 1, n / 3 + 1, n / 40 + 1 };

	for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		struct packed packed;

		packed_make(check, lengths[i], &packed);
		pack_all(check, &packed);
		unpack_all(check, &packed);
		packed_free(&packed);
	}
}
