/*
 * test_open_devices - how many devices are opened, and which
 */
#include "src/sort/open_devices.h"

#include <string.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "tests/support/io_fixture.h"
#include "tests/support/captured_messages.h"
#include "tests/support/open_input.h"
#include "tests/support/separate_memory_backend.h"
#include "tests/support/unit_test.h"

enum { N_DEVICES = 4, NONE = -1 };

static struct backend backend; /* with N_DEVICES devices; a test sets the properties of one */
static int missing = NONE, small = NONE;
static unsigned opened[8], sharing[8], n_other_users[8], n_opened;
static struct device_assignment assignment;
static struct job job;
static struct cancellation cancellation;
static const struct layout layout = { .record_nbytes = 8, .resident_nbytes = 8 };

static int open_some(const struct backend_config *config, struct device **ret_device)
{
	if ((int)config->number == missing)
		return (fail)(-EIO, "it is busy");
	assert_ptr_equal(config->cancellation, &cancellation);
	opened[n_opened] = config->number;
	sharing[n_opened] = config->n_sharers;
	n_other_users[n_opened++] = config->n_other_sharers;
	return separate_memory_backend.open(config, ret_device);
}

static void describe_some(const struct device *device, struct device_info *ret_info)
{
	separate_memory_backend.get_info(device, ret_info);
	ret_info->unified = false;
	ret_info->memory_nbytes = 1 << 30;
	if (small >= 0 && job.n_devices > (unsigned)small && job.devices[small].device == device)
		ret_info->memory_nbytes = 100 << 20;
}

static int start(void **state)
{
	const int r = fixture_start(state);

	captured_messages_reset(true);
	backend = separate_memory_backend;
	backend.open = open_some;
	backend.get_info = describe_some;
	missing = small = NONE;
	n_opened = 0;
	assignment = DEVICE_ASSIGNMENT_EXCLUSIVE;
	separate_memory_set_devices(N_DEVICES, false);
	return r;
}

/* Open the devices for an input of that size. */
static int open_on(uint64_t nbytes, const struct sort_spec *spec)
{
	const char *path = fixture_path("input");

	write_file(path, "", 1);
	assert_int_equal(truncate(path, (off_t)nbytes), 0);
	assert_int_equal(input_open(&faulty_calls, &path, 1, 8, &job.input), 0);
	job.layout = &layout;
	job.cancellation = &cancellation;
	job.limit = UINT64_MAX;
	return open_devices(&job, &backend, spec,
			    &(struct open_devices_params){ .n_threads = 1,
							   .input_nbytes = nbytes,
							   .assignment = assignment });
}

static void close_them(void)
{
	close_devices(&job);
	input_close(job.input);
	n_opened = 0;
	job = (struct job){ 0 };
}

/* Open all devices with --gpus=all, of which n can be opened. */
static void check_all(uint32_t n)
{
	assert_int_equal(open_on(8, &(struct sort_spec){ .gpus.all = true }), 0);
	assert_int_equal(job.n_devices, n);
	close_them();
}

/* Check that n devices of 1 GiB are opened for an input of that size by default. */
static void check_default(uint32_t n, uint64_t nbytes, const struct sort_spec *spec)
{
	assert_int_equal(open_on(nbytes, spec), 0);
	assert_int_equal(job.n_devices, n);
	close_them();
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, fixture_finish)

FIXTURE_TEST(devices_opened_hold_the_input)
{
	const uint64_t gib = UINT64_C(1) << 30;

	check_default(1, gib / 8 * 7 - 8, &(struct sort_spec){ 0 });
	check_default(2, gib / 8 * 7 + 8, &(struct sort_spec){ 0 });
	check_default(3, gib / 8 * 7 * 3 - 32, &(struct sort_spec){ 0 });
	check_default(N_DEVICES, gib << 10, &(struct sort_spec){ 0 });
	check_default(1, gib << 10, &(struct sort_spec){ .merge_inputs = true });
	check_default(1, gib << 10, &(struct sort_spec){ .gpus = { .numbers = { 1 }, .n = 1 } });
	missing = N_DEVICES - 1;
	check_default(N_DEVICES - 1, gib << 10, &(struct sort_spec){ 0 });
	separate_memory_set_devices(1, false);
	missing = NONE;
	check_default(1, gib << 10, &(struct sort_spec){ 0 });
}

FIXTURE_TEST(unavailable_device_is_skipped_with_warning)
{
	for (missing = 0; missing < N_DEVICES; missing++) {
		captured_messages_reset(true);
		check_all(N_DEVICES - 1);
		assert_non_null(strstr(captured_messages_warning(), "it is busy; not using it"));
		assert_false(captured_messages_has_error());
	}
}

FIXTURE_TEST(no_available_device_is_an_error)
{
	missing = 0;
	separate_memory_set_devices(1, false);
	assert_int_equal(open_on(8, &(struct sort_spec){ .gpus.all = true }), -EIO);
	assert_string_equal(captured_messages_error(), "it is busy");
	close_them();
}

FIXTURE_TEST(requested_device_must_open)
{
	missing = 1;
	assert_int_equal(open_on(8, &(struct sort_spec){ .gpus = { .numbers = { 2, 1 }, .n = 2 } }),
			 -EIO);
	close_them();
	assert_string_equal(captured_messages_warning(), "");
}

/* The plan names them, and each knows how many share its memory. */
FIXTURE_TEST(requested_devices_keep_their_order)
{
	static const unsigned n_sharers[] = { 2, 1, 2 };
	const struct sort_spec spec = { .gpus = { .numbers = { 2, 0, 2 }, .n = 3 } };
	struct device_info info;
	char expected[sizeof info.name + 32];

	assert_int_equal(open_on(8, &spec), 0);
	assert_int_equal(job.n_devices, 3);
	assert_memory_equal(opened, spec.gpus.numbers, 3 * sizeof spec.gpus.numbers[0]);
	assert_memory_equal(sharing, n_sharers, sizeof n_sharers);
	device_get_info(job_device(&job), &info);
	snprintf(expected, sizeof expected, "3 x %s (2, 0, 2)", info.name);
	assert_string_equal(job.device_info.name, expected);
	close_them();
}

/* Check which devices rank `place` of n opens, and how often each is opened elsewhere. */
static void check_assignment(unsigned place, unsigned n, const struct sort_spec *spec,
			     const unsigned *numbers, unsigned n_numbers, unsigned n_elsewhere)
{
	assignment = (struct device_assignment){ place, n };
	assert_int_equal(open_on(8, spec), 0);
	assert_int_equal(job.n_devices, n_numbers);
	for (unsigned i = 0; i < n_numbers; i++) {
		assert_int_equal(opened[i], numbers[i]);
		assert_int_equal(n_other_users[i], n_elsewhere);
	}
	close_them();
}

FIXTURE_TEST(several_ranks_share_them_out)
{
	const struct sort_spec usual = { 0 }, all = { .gpus.all = true },
			       list = { .gpus = { .numbers = { 3, 1, 3, 0 }, .n = 4 } };

	check_assignment(0, 2, &usual, &(unsigned){ 0 }, 1, 0);
	check_assignment(1, 2, &usual, &(unsigned){ 2 }, 1, 0);
	check_assignment(0, 2, &all, (unsigned[]){ 0, 1 }, 2, 0);
	check_assignment(1, 2, &all, (unsigned[]){ 2, 3 }, 2, 0);
	check_assignment(2, 3, &all, (unsigned[]){ 2, 3 }, 2, 0);
	check_assignment(3, 8, &all, &(unsigned){ 1 }, 1, 1);
	check_assignment(8, 9, &all, &(unsigned){ 3 }, 1, 1);
	check_assignment(0, 9, &all, &(unsigned){ 0 }, 1, 2);
	check_assignment(0, 4, &list, &(unsigned){ 3 }, 1, 1);
	check_assignment(1, 4, &list, &(unsigned){ 1 }, 1, 0);
	check_assignment(2, 4, &list, &(unsigned){ 3 }, 1, 1);
	check_assignment(3, 5, &list, &(unsigned){ 3 }, 1, 2);
}

FIXTURE_TEST(a_rank_takes_as_many_of_its_own_as_hold_its_part)
{
	const uint64_t gib = UINT64_C(1) << 30;

	assignment = (struct device_assignment){ 1, 2 };
	check_default(1, gib / 8 * 7 - 8, &(struct sort_spec){ 0 });
	check_default(2, gib / 8 * 7 + 8, &(struct sort_spec){ 0 });
	check_default(2, gib << 10, &(struct sort_spec){ 0 });
}

FIXTURE_TEST(shared_device_is_named)
{
	struct device_info info;
	char expected[sizeof info.name + 32];

	assignment = (struct device_assignment){ 1, 2 };
	assert_int_equal(open_on(8, &(struct sort_spec){ 0 }), 0);
	device_get_info(job_device(&job), &info);
	snprintf(expected, sizeof expected, "%s (2)", info.name);
	assert_string_equal(job.device_info.name, expected);
	close_them();
}

FIXTURE_TEST(devices_use_the_smallest_memory)
{
	small = 1;
	check_all(N_DEVICES - 1);
	assert_non_null(strstr(captured_messages_warning(), ": only 100"));
	captured_messages_reset(true);
	assert_int_equal(open_on(8, &(struct sort_spec){ .gpus = { .numbers = { 0, 1 }, .n = 2 } }),
			 0);
	assert_int_equal(job.n_devices, 2);
	assert_int_equal(job.device_info.memory_nbytes, 100 << 20);
	close_them();
}

FIXTURE_TEST(peer_access_is_recorded)
{
	separate_memory_set_devices(3, true);
	assert_int_equal(open_on(8, &(struct sort_spec){ .gpus.all = true }), 0);
	assert_int_equal(job.devices[0].peer_access_mask, 7);
	assert_int_equal(job.devices[1].peer_access_mask, 7);
	assert_int_equal(job.devices[2].peer_access_mask, 7);
	close_them();
}
