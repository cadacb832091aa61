/*
 * check_queues - memory, lanes and marks
 */
#include <errno.h>
#include <string.h>

#include "tests/backend/check.h"
#include "tests/support/captured_messages.h"
#include "tools/gen/gen.h"

enum { N_CHAINED = 4, CHAINED_RECORDS = 200000 };

void check_alloc(struct check *check)
{
	static const size_t sizes[] = { 1, 4096, 100001, 5 << 20 };
	struct subject *subject = &check->subject;
	void *memory[2][4];

	for (unsigned i = 0; i < 8; i++) {
		void **at = &memory[i / 4][i % 4];
		const enum memory_kind kind = i / 4 ? MEMORY_HOST : MEMORY_DEVICE;

		subject_must(device_alloc(subject->device, kind, sizes[i % 4], at), "alloc");
		expect(check, (uintptr_t)*at % 256 == 0, "not aligned: %p", *at);
		if (kind == MEMORY_HOST)
			memset(*at, 1, sizes[i % 4]);
	}
	for (unsigned i = 0; i < 8; i++)
		device_free(subject->device, i / 4 ? MEMORY_HOST : MEMORY_DEVICE,
			    memory[i / 4][i % 4], sizes[i % 4]);
	device_free(subject->device, MEMORY_DEVICE, NULL, 4096);
}

void check_alloc_of_too_much(struct check *check)
{
	void *memory;

	for (int i = 0; i < 2; i++)
		expect(check,
		       device_alloc(check->subject.device, i ? MEMORY_HOST : MEMORY_DEVICE,
				    (size_t)1 << 60, &memory) == -ENOMEM,
		       "an exbibyte was to be had");
	expect(check, !captured_messages_has_error(), "a message was printed");
}

/* Lanes that sort at the same time, and then each copy what the next one has sorted. */
struct queue_chain {
	struct sort_op_result result;
	struct device_queue *queue;
	struct device_event *sorted, *copied;
	struct array elements, scratch, copy;
	struct data data;
};

static void chain_open(struct check *check, struct queue_chain *chain, uint64_t n)
{
	struct subject *subject = &check->subject;

	data_make(check->reference, "u64", false, n, GEN_RANDOM, &chain->data);
	subject_must(device_queue_open(subject->device, QUEUE_PRIORITY_HIGH, &chain->queue),
		     "device_queue_open");
	subject_must(device_event_open(subject->device, &chain->sorted), "device_event_open");
	subject_must(device_event_open(subject->device, &chain->copied), "device_event_open");
	subject_must(device_event_wait(chain->sorted), "device_event_wait, never set");
}

static void chain_close(struct check *check, struct queue_chain *chain)
{
	struct subject *subject = &check->subject;

	device_queue_close(chain->queue);
	device_event_close(chain->sorted);
	device_event_close(chain->copied);
	array_free(subject, &chain->elements);
	array_free(subject, &chain->scratch);
	array_free(subject, &chain->copy);
	data_free(&chain->data);
}

static void chain_sort(struct check *check, struct queue_chain *chain)
{
	struct subject *subject = &check->subject;
	const struct data *data = &chain->data;

	array_set(subject, &chain->elements, data->elements, data->elements_nbytes, 0);
	array_set(subject, &chain->copy, NULL, data->elements_nbytes, 0);
	array_set(subject, &chain->scratch, NULL,
		  device_sort_scratch_nbytes(subject->device, &data->layout, data->n), 0);
	subject_must(device_queue_record(subject->queue, subject->event), "mark");
	subject_must(device_queue_wait_event(chain->queue, subject->event), "follow");
	subject_must(device_queue_sort(chain->queue,
				       &(struct sort_op){ .layout = &data->layout,
							  .items = array_device(&chain->elements),
							  .n = data->n,
							  .scratch = array_device(&chain->scratch),
							  .ret = &chain->result }),
		     "sort");
	subject_must(device_queue_record(chain->queue, chain->sorted), "mark");
}

static void chain_copy(struct queue_chain *chain, const struct queue_chain *next)
{
	subject_must(device_queue_wait_event(chain->queue, next->sorted), "follow");
	subject_must(device_queue_copy(chain->queue, array_device(&chain->copy),
				       array_device(&next->elements), next->data.elements_nbytes),
		     "copy");
	subject_must(device_queue_record(chain->queue, chain->copied), "mark");
}

void check_queues(struct check *check)
{
	struct queue_chain chains[N_CHAINED] = { 0 };

	for (unsigned i = 0; i < N_CHAINED; i++)
		chain_open(check, &chains[i], CHAINED_RECORDS);
	for (int round = 0; round < 5; round++) {
		for (unsigned i = 0; i < N_CHAINED; i++)
			chain_sort(check, &chains[i]);
		for (unsigned i = 0; i < N_CHAINED; i++)
			chain_copy(&chains[i], &chains[(i + 1) % N_CHAINED]);
		for (unsigned i = 0; i < N_CHAINED; i++) {
			const struct data *data = &chains[(i + 1) % N_CHAINED].data;

			subject_must(device_event_wait(chains[i].copied), "device_event_wait");
			expect_bytes(check, &chains[i].copy, data->sorted, data->elements_nbytes,
				     "elements copied by another lane");
		}
	}
	for (unsigned i = 0; i < N_CHAINED; i++)
		chain_close(check, &chains[i]);
}

void check_queue_close(struct check *check)
{
	struct queue_chain chain = { 0 };

	chain_open(check, &chain, CHAINED_RECORDS);
	chain_sort(check, &chain);
	device_queue_close(chain.queue);
	chain.queue = NULL;
	expect_bytes(check, &chain.elements, chain.data.sorted, chain.data.elements_nbytes,
		     "elements of a closed lane");
	chain_close(check, &chain);
}
