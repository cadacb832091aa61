/*
 * fault_run.c - check the outcome of one run of gsort (see fault_run.h)
 */
#include "tests/fault/fault_run.h"
#include "tests/fault/part_files_check.h"
#include "tests/support/captured_messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fault_run_report(const struct fault_run *fault_run, const char *format, ...)
{
	va_list arguments;
	char text[1024];

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	dprintf(test_error_fd, "WRONG: %s: %s: %s\n\tmessage: %s\n", fault_run->scenario->name,
		fault_run->description, text, captured_messages_error());
}

unsigned count_fds(void)
{
	char unknown_name[256];

	return count_directory_entries("/proc/self/fd", "", unknown_name);
}

static bool input_is_intact(const struct test_environment *environment)
{
	const struct byte_buffer input = environment->expected.input;

	return file_contains("input", input.data, input.nbytes) &&
	       file_contains("few", input.data, few_input_n_keys * sizeof(uint64_t));
}

static bool old_output_is_intact(const struct sort_scenario *scenario,
				 const struct test_environment *environment)
{
	return scenario->in_place ||
	       (file_contains("output", environment->old_output, sizeof environment->old_output) &&
		(!scenario->has_part_files || test_part_files_are_old()));
}

static bool is_output_correct(const struct sort_scenario *scenario,
			      const struct fault_run_result *result,
			      const struct test_environment *environment)
{
	const struct byte_buffer expected =
		environment->expected.outputs[scenario->expected_output];

	if (scenario->has_part_files)
		return test_part_files_contain(expected);
	if (scenario->to_pipe)
		return bytes_equal(result->piped_output, expected.data, expected.nbytes);
	if (scenario->output_is_zst)
		return zst_contains("output", expected.data, expected.nbytes);
	if (!sort_scenario_has_output(scenario))
		return old_output_is_intact(scenario, environment);
	return file_contains(scenario->in_place ? "input" : "output", expected.data,
			     expected.nbytes);
}

/*
 * Return whether the error came after the output got its name: its directory could not be synced,
 * or a report could not be written.
 */
static bool failed_after_commit(void)
{
	return strstr(captured_messages_error(), "is complete, but") ||
	       strstr(captured_messages_error(), "reports/");
}

static bool names_lost_device(void)
{
	char name[32];

	snprintf(name, sizeof name, "GPU %d: ", fault_points_lost_device());
	return strstr(captured_messages_error(), name);
}

/* Return the defect of a failed run; NULL: none. */
static const char *find_failure_defect(const struct fault_run *fault_run,
				       const struct fault_run_result *result,
				       const struct test_environment *environment)
{
	const struct sort_scenario *scenario = fault_run->scenario;

	if (!captured_messages_has_error() || !*captured_messages_error())
		return "no message";
	if (strstr(captured_messages_error(), "internal error"))
		return "an internal error was reported";
	if (fault_run->expected_message &&
	    !strstr(captured_messages_error(), fault_run->expected_message))
		return "the message does not name the cause";
	if (fault_points_lost_device() >= 0 && !names_lost_device())
		return "the message does not name the lost device";
	if (failed_after_commit() && is_output_correct(scenario, result, environment))
		return NULL;
	if (!old_output_is_intact(scenario, environment))
		return "the older output has changed";
	if (!input_is_intact(environment))
		return "the input has changed";
	return NULL;
}

/*
 * Return whether a device that could not be opened is ignored without a warning. With CUDA no
 * warning is expected: some of these faults look like a machine without a GPU.
 */
static bool falls_back_silently(const struct fault_run *fault_run)
{
	const enum test_device_kind shape = fault_run->scenario->device_kind;

	return fault_run->fault && fault_run->fault->point == POINT_DEVICE_OPEN &&
	       (shape == TEST_DEVICE_UNIFIED || shape == TEST_DEVICE_SEPARATE) &&
	       !strstr(captured_messages_warning(), "; sorting on the CPU") &&
	       !strstr(captured_messages_warning(), "; not using it");
}

/* Return whether missing kernels are not reported, or without the build option that helps. */
static bool lacks_kernels_silently(const struct fault_run *fault_run)
{
	return fault_run->fault && fault_run->fault->point == POINT_DEVICE_KERNEL_IMAGE &&
	       (!strstr(captured_messages_warning(), "-Dgpu_arch=") ||
		!strstr(captured_messages_warning(), " has compute capability ") ||
		!strstr(captured_messages_warning(), "; sorting on the CPU"));
}

static const char *find_success_defect(const struct fault_run *fault_run,
				       const struct fault_run_result *result,
				       const struct test_environment *environment)
{
	const struct sort_scenario *scenario = fault_run->scenario;

	if (captured_messages_has_error())
		return "an error message, but status 0";
	if (falls_back_silently(fault_run))
		return "no warning about the device that is not used";
	if (lacks_kernels_silently(fault_run))
		return "no warning about the GPU without kernels";
	if (!is_output_correct(scenario, result, environment))
		return "wrong bytes";
	if (!scenario->in_place && !input_is_intact(environment))
		return "the input has changed";
	return NULL;
}

/* Return the name of a new file; "" if there is none. */
static const char *find_leftover_file(const struct fault_run *fault_run, bool refused)
{
	static char known_names[512], unknown_name[256];

	snprintf(known_names, sizeof known_names, "%s . .. output stdout stderr tmp reports %s",
		 input_file_names, fault_run->scenario->has_part_files ? test_part_file_names : "");
	count_directory_entries("tmp/a", " . .. ", unknown_name);
	if (!*unknown_name)
		count_directory_entries("tmp/b", " . .. ", unknown_name);
	/* A failed run leaves its checkpoint for the next run. */
	if (!*unknown_name && !(fault_run->scenario->has_checkpoint && refused))
		count_directory_entries(".", known_names, unknown_name);
	return unknown_name;
}

/* Return whether a file that could not be removed is reported. */
static bool is_leftover_reported(const struct fault_run *fault_run, const char *file)
{
	return fault_run->fault &&
	       (fault_run->fault->point == POINT_UNLINK || fault_run->fault->point == POINT_STAT) &&
	       (strstr(captured_messages_warning(), file) ||
		strstr(captured_messages_error(), file));
}

/* Return the name of what the run left behind; "" if nothing. */
static const char *find_leftover(const struct fault_run *fault_run,
				 const struct fault_run_result *result,
				 const struct test_environment *environment)
{
	const char *file = find_leftover_file(fault_run, result->status == 2);

	if (*file && !is_leftover_reported(fault_run, file))
		return file;
	return count_fds() != environment->n_fds ? "descriptors" :
	       result->balance.n_threads         ? "threads" :
	       result->balance.n_pages           ? "mapped pages" :
	       result->balance.n_device_objects  ? "objects of a device" :
						   "";
}

static const char *find_unexpected_failure(const struct fault_run *fault_run)
{
	return fault_run->expected_outcome == EXPECT_SUCCESS ? "the fault is not tolerated" : NULL;
}

/* Return a defect if the fault was injected and the sort succeeded although it must fail. */
static const char *find_unexpected_success(const struct fault_run *fault_run)
{
	return fault_run->expected_outcome == EXPECT_FAILURE && fault_points_n_injected() > 0 ?
		       "the sort succeeded, but must fail" :
		       NULL;
}

enum run_outcome fault_run_check(const struct fault_run *fault_run,
				 const struct fault_run_result *result,
				 const struct test_environment *environment)
{
	const bool refused = result->status == 2 && fault_run->scenario->status != 2;
	const char *defect, *leftover;

	if (!refused && result->status != fault_run->scenario->status) {
		fault_run_report(fault_run, "status %d", result->status);
		return OUTCOME_WRONG;
	}
	defect = refused ? find_failure_defect(fault_run, result, environment) :
			   find_success_defect(fault_run, result, environment);
	if (!defect && !fault_run->scenario->calibrates)
		defect = refused ? find_unexpected_failure(fault_run) :
				   find_unexpected_success(fault_run);
	if (defect) {
		fault_run_report(fault_run, "status %d: %s", result->status, defect);
		return OUTCOME_WRONG;
	}
	leftover = find_leftover(fault_run, result, environment);
	if (*leftover) {
		fault_run_report(fault_run, "status %d: left behind: %s", result->status, leftover);
		return OUTCOME_WRONG;
	}
	if (fault_run->fault && fault_points_n_injected() == 0)
		return OUTCOME_NOT_REACHED;
	return refused ? OUTCOME_REFUSED : OUTCOME_SUCCEEDED;
}
