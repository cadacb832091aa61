/*
 * fuzz_parts_list - any bytes as a part manifest
 *
 * For libFuzzer (docs/testing.md). What is taken for a list is one whose names, keys and numbers
 * can be believed; and written again, it is read as the same.
 */
#include <stdlib.h>
#include <string.h>

#include "io/input/part_manifest.h"
#include "tests/support/captured_messages.h"

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_list(const struct parts_list *list)
{
	uint64_t n_records = 0;

	check(list->n_parts > 0 && list->record_nbytes > 0);
	for (uint32_t i = 0; i < list->n_keys; i++)
		check(list->keys[i].nbytes > 0 &&
		      list->keys[i].offset + list->keys[i].nbytes <= list->record_nbytes);
	for (size_t i = 0; i < list->n_parts; i++) {
		check(parts_list_can_name(list->parts[i].name));
		n_records += list->parts[i].n_records;
	}
	check(n_records == list->n_records);
}

static void check_again(const struct parts_list *list)
{
	struct parts_list again;
	char *text;

	check(parts_list_format(list, &text) == 0 && parts_list_begins(text, strlen(text)));
	check(parts_list_parse(text, strlen(text), "fuzz", &again) == 0);
	check(again.n_parts == list->n_parts && again.n_keys == list->n_keys);
	parts_list_free(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	struct parts_list list;
	char *text = malloc(nbytes + 1); /* ends where the sanitizer knows */

	check(text != NULL);
	memcpy(text, data, nbytes);
	messages_reset(true);
	parts_list_begins(text, nbytes);
	if (parts_list_parse(text, nbytes, "fuzz", &list) == 0) {
		check_list(&list);
		check_again(&list);
	}
	parts_list_free(&list);
	free(text);
	return 0;
}
