/*
 * fuzz_part_manifest - fuzz the parser of part manifests
 *
 * For libFuzzer (docs/testing.md). The names, keys and numbers of an accepted manifest are valid,
 * and formatting and parsing it again gives the same manifest.
 */
#include <stdlib.h>
#include <string.h>

#include "io/input/part_manifest.h"
#include "tests/support/captured_messages.h"

static void check(bool condition)
{
	if (!condition)
		abort();
}

static void check_manifest(const struct part_manifest *manifest)
{
	uint64_t n_records = 0;

	check(manifest->n_parts > 0);
	check((manifest->record_nbytes > 0) == (manifest->content != PART_CONTENT_LINES));
	for (uint32_t i = 0; i < manifest->n_keys; i++)
		check(manifest->keys[i].nbytes > 0 &&
		      manifest->keys[i].offset + manifest->keys[i].nbytes <=
			      manifest->record_nbytes);
	for (size_t i = 0; i < manifest->n_parts; i++) {
		check(*manifest->parts[i].name && !strchr(manifest->parts[i].name, '/'));
		n_records += manifest->parts[i].n_records;
	}
	check(n_records == manifest->n_records);
}

static void check_round_trip(const struct part_manifest *manifest)
{
	struct part_manifest reparsed;
	char *text;

	check(part_manifest_format(manifest, &text) == 0 &&
	      part_manifest_detect(text, strlen(text)));
	check(part_manifest_parse(text, strlen(text), "fuzz", &reparsed) == 0);
	check(reparsed.n_parts == manifest->n_parts && reparsed.n_keys == manifest->n_keys);
	part_manifest_free(&reparsed);
	free(text);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t nbytes)
{
	struct part_manifest manifest;
	char *text = malloc(nbytes + 1); /* for AddressSanitizer */

	check(text != NULL);
	memcpy(text, data, nbytes);
	captured_messages_reset(true);
	part_manifest_detect(text, nbytes);
	if (part_manifest_parse(text, nbytes, "fuzz", &manifest) == 0) {
		check_manifest(&manifest);
		check_round_trip(&manifest);
	}
	part_manifest_free(&manifest);
	free(text);
	return 0;
}
