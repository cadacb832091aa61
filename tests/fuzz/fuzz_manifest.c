/*
 * fuzz_manifest - fuzz the manifest of a checkpoint and the payloads of its records
 *
 * For libFuzzer (docs/testing.md). The bytes are parsed twice: as a manifest, where most inputs
 * have wrong checksums, and as records without checksums: a byte for the type, two for the size,
 * and the payload. The state of an accepted manifest must be consistent.
 */
#include <stdlib.h>
#include <string.h>

#include "src/checkpoint/checkpoint_state.h"
#include "tests/support/captured_messages.h"

static void check(bool condition)
{
	if (!condition)
		abort();
}

/* Return an aligned copy for AddressSanitizer. */
static void *copy_bytes(const unsigned char *data, size_t nbytes)
{
	void *copy = malloc(nbytes + 1);

	check(copy != NULL);
	memcpy(copy, data, nbytes);
	return copy;
}

static void check_state(const struct checkpoint_state *state)
{
	for (size_t i = 0; i < state->n_runs; i++) {
		const struct run_index *index = &state->runs[i].index;
		uint64_t n_items = 0;

		for (uint64_t b = 0; b < index->n_blocks; b++)
			n_items += index->blocks[b].n_items;
		check(n_items == index->n_items);
	}
}

static void fuzz_bytes(const unsigned char *data, size_t nbytes)
{
	struct checkpoint_state state = { 0 };
	void *copy = copy_bytes(data, nbytes);
	uint64_t end;

	if (manifest_parse(copy, nbytes, 0, checkpoint_state_visit, &state, &end) == 0)
		check(end <= nbytes);
	checkpoint_state_free(&state);
	free(copy);
}

static void fuzz_records(const unsigned char *data, size_t nbytes)
{
	struct checkpoint_state state = { 0 };
	int r = 0;

	while (nbytes >= 3 && r == 0) {
		struct manifest_record record = { .type = data[0],
						  .nbytes = data[1] | (size_t)data[2] << 8 };
		void *payload;

		data += 3, nbytes -= 3;
		record.nbytes = record.nbytes < nbytes ? record.nbytes : nbytes;
		payload = copy_bytes(data, record.nbytes);
		record.payload = payload;
		r = checkpoint_state_visit(&state, &record);
		data += record.nbytes, nbytes -= record.nbytes;
		free(payload);
	}
	check_state(&state);
	checkpoint_state_free(&state);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	captured_messages_reset(true);
	fuzz_bytes(data, nbytes);
	fuzz_records(data, nbytes);
	return 0;
}
