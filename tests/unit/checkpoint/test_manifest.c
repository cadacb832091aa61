/*
 * test_manifest - durable records are read back, and nothing else
 */
#include "src/checkpoint/manifest.h"

#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

enum { N_RECORDS = 4, MAX_PAYLOAD_NBYTES = 4096 };

static const size_t payload_nbytes[N_RECORDS] = { 5, 0, 64, 33 };
static struct manifest manifest;

/* The visited records. */
static struct {
	unsigned n;
	bool all_right;
} visited;

static unsigned char payload_byte(unsigned record, size_t i)
{
	return (unsigned char)(record * 16 + i + 1);
}

static int visit(void *context, const struct manifest_record *record)
{
	const unsigned char *payload = record->payload;

	(void)context;
	if (visited.n >= N_RECORDS || record->type != visited.n + 1 ||
	    record->nbytes != payload_nbytes[visited.n] ||
	    (uintptr_t)payload % MANIFEST_ALIGN_NBYTES) {
		visited.all_right = false;
		return 0;
	}
	for (size_t i = 0; i < record->nbytes; i++)
		if (payload[i] != payload_byte(visited.n, i))
			visited.all_right = false;
	visited.n++;
	return 0;
}

static int open_manifest(void)
{
	manifest = (struct manifest){ .path = fixture_path("manifest") };
	return file_open(&faulty_calls, AT_FDCWD, manifest.path, O_RDWR | O_CREAT, 0600,
			 &manifest.file);
}

/* A manifest with all records. */
static int start(void **state)
{
	unsigned char payload[64];
	int r = fixture_start(state);

	if (r == 0)
		r = open_manifest();
	for (unsigned i = 0; i < N_RECORDS && r == 0; i++) {
		for (size_t j = 0; j < payload_nbytes[i]; j++)
			payload[j] = payload_byte(i, j);
		r = manifest_append(&manifest,
				    &(struct manifest_record){ i + 1, payload, payload_nbytes[i] });
	}
	return r < 0 ? r : manifest_sync(&manifest);
}

static int finish(void **state)
{
	file_close(&manifest.file);
	return fixture_finish(state);
}

/* Return the bytes of the manifest. */
static unsigned char *load(uint64_t *ret_nbytes)
{
	static _Alignas(16) unsigned char bytes[MAX_PAYLOAD_NBYTES];

	assert_int_equal(file_size(&manifest.file, ret_nbytes), 0);
	assert_int_equal(file_read_at(&manifest.file, 0, bytes, *ret_nbytes), 0);
	return bytes;
}

/* Returns 0 and the number of records, or an error. */
static int parse(const unsigned char *bytes, size_t nbytes, uint64_t *ret_end)
{
	captured_messages_reset(true);
	visited.n = 0;
	visited.all_right = true;
	return manifest_parse(bytes, nbytes, 0, visit, NULL, ret_end);
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(records_come_back)
{
	uint64_t nbytes, end;
	unsigned char *bytes = load(&nbytes);

	assert_int_equal(parse(bytes, nbytes, &end), 0);
	assert_int_equal(visited.n, N_RECORDS);
	assert_true(visited.all_right);
	assert_int_equal(end, nbytes);
}

/* Other writers may fill the disk. */
FIXTURE_TEST(space_is_reserved_for_next_records)
{
	struct stat status;

	assert_int_equal(fstat(manifest.file.fd, &status), 0);
	assert_int_equal(status.st_size, manifest.end);
	assert_true(status.st_blocks * 512 >= status.st_size + 8192);
}

FIXTURE_TEST(truncated_manifest_keeps_earlier_records)
{
	uint64_t nbytes, end, last_end = 0;
	unsigned char *bytes = load(&nbytes);
	unsigned n = 0;

	for (uint64_t cut = 0; cut < nbytes; cut++) {
		assert_int_equal(parse(bytes, cut, &end), 0);
		assert_true(visited.all_right);
		assert_true(end <= cut && end >= last_end && visited.n >= n);
		last_end = end;
		n = visited.n;
	}
	assert_int_equal(n, N_RECORDS - 1);
}

FIXTURE_TEST(damage_of_any_byte_is_found)
{
	uint64_t nbytes, end, last;
	unsigned char *bytes = load(&nbytes);

	assert_int_equal(parse(bytes, nbytes - 1, &last), 0);
	for (uint64_t at = 0; at < nbytes; at++) {
		int r;

		bytes[at] ^= 0x10;
		r = parse(bytes, nbytes, &end);
		assert_true(visited.all_right);
		if (r == 0) /* it may be incomplete and is ignored */
			assert_true(at >= last && visited.n == N_RECORDS - 1);
		else
			assert_int_equal(r, -EBADMSG);
		bytes[at] ^= 0x10;
	}
}

FIXTURE_TEST(trailing_zeros_are_no_record)
{
	uint64_t nbytes, end;
	unsigned char *bytes = load(&nbytes);

	memset(bytes + nbytes, 0, 100);
	assert_int_equal(parse(bytes, nbytes + 100, &end), 0);
	assert_int_equal(end, nbytes);
	assert_int_equal(visited.n, N_RECORDS);
}

FIXTURE_TEST(foreign_file_is_no_manifest)
{
	uint64_t end;

	assert_int_equal(parse((const unsigned char *)"hello", 5, &end), -EBADMSG);
	assert_int_equal(end, 0);
}

FIXTURE_TEST(append_overwrites_an_unfinished_record)
{
	uint64_t nbytes;

	load(&nbytes);
	assert_int_equal(file_truncate(&manifest.file, nbytes - 1), 0);
	file_close(&manifest.file);
	assert_int_equal(open_manifest(), 0);
	visited.n = 0;
	assert_int_equal(manifest_read(&manifest, visit, NULL), 0);
	assert_int_equal(manifest_truncate(&manifest), 0);
	assert_int_equal(visited.n, N_RECORDS - 1);
	assert_int_equal(manifest_append(&manifest, &(struct manifest_record){ 9, "again", 5 }), 0);
	load(&nbytes);
	assert_int_equal(nbytes, manifest.end);
}

FIXTURE_TEST(failed_cut_names_the_manifest)
{
	faults.ftruncate_errno = EIO;
	assert_int_equal(manifest_truncate(&manifest), -EIO);
	assert_non_null(
		strstr(captured_messages_error(), "manifest: cannot truncate an incomplete"));
}
