/*
 * trial - one run of gsort, and what it must come to (see trial.h)
 */
#include "tests/fault/trial.h"
#include "tests/fault/part_files_check.h"
#include "tests/support/captured_messages.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void trial_complain(const struct trial *trial, const char *format, ...)
{
	va_list arguments;
	char text[1024];

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	dprintf(contents_complaints, "BROKEN: %s: %s: %s\n\tmessage: %s\n", trial->mode->name,
		trial->text, text, messages_last());
}

unsigned count_fds(void)
{
	char unknown[256];

	return count_names("/proc/self/fd", "", unknown);
}

static bool input_is_intact(const struct surroundings *around)
{
	const struct bytes input = around->answers.input;

	return file_holds("input", input.data, input.nbytes);
}

static bool older_is_intact(const struct mode *mode, const struct surroundings *around)
{
	return mode->in_place || (file_holds("output", around->older, sizeof around->older) &&
				  (!mode->has_parts || parts_are_older()));
}

static bool is_right(const struct mode *mode, const struct result *result,
		     const struct surroundings *around)
{
	const struct bytes right = around->answers.right[mode->answer];

	if (mode->has_parts)
		return parts_hold(right);
	if (mode->to_pipe)
		return bytes_hold(result->streamed, right.data, right.nbytes);
	if (mode->is_zst)
		return zst_holds("output", right.data, right.nbytes);
	if (!mode_has_output(mode))
		return older_is_intact(mode, around);
	return file_holds(mode->in_place ? "input" : "output", right.data, right.nbytes);
}

/*
 * Two things can fail when the output is there already, and say so: its name is not on stable
 * storage, or a report about the sort cannot be written.
 */
static bool failed_late(void)
{
	return strstr(messages_last(), "is complete, but") || strstr(messages_last(), "reports/");
}

/* A disk that fails for good leaves what was moved away where it is; the next run puts it back. */
static bool is_left_aside(const struct trial *trial)
{
	return trial->mode->has_parts && trial->fault && trial->fault->point == POINT_RENAME &&
	       strstr(messages_last_warning(), "put back, as it was before");
}

static bool names_lost_device(void)
{
	char name[32];

	snprintf(name, sizeof name, "GPU %d: ", points_lost_device());
	return strstr(messages_last(), name);
}

/* What is wrong with a refusal; NULL: nothing. */
static const char *fault_of_refusal(const struct trial *trial, const struct result *result,
				    const struct surroundings *around)
{
	const struct mode *mode = trial->mode;

	if (!messages_failed() || !*messages_last())
		return "no message";
	if (strstr(messages_last(), "internal error"))
		return "it blames itself";
	if (trial->reason && !strstr(messages_last(), trial->reason))
		return "the message does not say why";
	if (points_lost_device() >= 0 && !names_lost_device())
		return "the message does not say which device was lost";
	if (failed_late() && is_right(mode, result, around))
		return NULL;
	if (!older_is_intact(mode, around) && !is_left_aside(trial))
		return "the older output has changed";
	if (!input_is_intact(around))
		return "the input has changed";
	return NULL;
}

/*
 * A device that cannot be opened is done without, and somebody should know. Of CUDA's nothing is
 * said where there is none, which is what some of these faults look like.
 */
static bool is_without_device_in_silence(const struct trial *trial)
{
	const enum device_shape shape = trial->mode->shape;

	return trial->fault && trial->fault->point == POINT_DEVICE_OPEN &&
	       (shape == SHAPE_UNIFIED || shape == SHAPE_APART) &&
	       !strstr(messages_last_warning(), "; sorting on the CPU") &&
	       !strstr(messages_last_warning(), "; sorting without it");
}

/* With the option of the build that helps. */
static bool is_without_code_in_silence(const struct trial *trial)
{
	return trial->fault && trial->fault->point == POINT_DEVICE_CODE &&
	       (!strstr(messages_last_warning(), "-Dgpu_arch=") ||
		!strstr(messages_last_warning(), " has compute capability ") ||
		!strstr(messages_last_warning(), "; sorting on the CPU"));
}

static const char *fault_of_success(const struct trial *trial, const struct result *result,
				    const struct surroundings *around)
{
	const struct mode *mode = trial->mode;

	if (messages_failed())
		return "a message, but no failure";
	if (is_without_device_in_silence(trial))
		return "without a device, in silence";
	if (is_without_code_in_silence(trial))
		return "it is not said which GPU there is no code for";
	if (!is_right(mode, result, around))
		return "wrong bytes";
	if (!mode->in_place && !input_is_intact(around))
		return "the input has changed";
	return NULL;
}

/* A file that was not there before; "" if there is none. */
static const char *left_file(const struct trial *trial, bool refused)
{
	static char known[512], unknown[256];

	snprintf(known, sizeof known, "%s . .. output stdout stderr tmp reports %s", input_names,
		 trial->mode->has_parts ? parts_names : "");
	count_names("tmp/a", " . .. ", unknown);
	if (!*unknown)
		count_names("tmp/b", " . .. ", unknown);
	/* What is kept in a checkpoint is for the next run. */
	if (!*unknown && !(trial->mode->has_checkpoint && refused))
		count_names(".", known, unknown);
	return unknown;
}

/* What cannot be removed stays, but not in silence. */
static bool is_said_to_stay(const struct trial *trial, const char *file)
{
	if (is_left_aside(trial))
		return true;
	if (trial->mode->has_parts && strstr(file, ".backup"))
		file = ".backup beside it is older, and cannot be removed";
	return trial->fault &&
	       (trial->fault->point == POINT_REMOVE || trial->fault->point == POINT_EXAMINE) &&
	       (strstr(messages_last_warning(), file) || strstr(messages_last(), file));
}

/* What is left that was not there before; "" if nothing. */
static const char *left_over(const struct trial *trial, const struct result *result,
			     const struct surroundings *around)
{
	const char *file = left_file(trial, result->status == 2);

	if (*file && !is_said_to_stay(trial, file))
		return file;
	return count_fds() != around->n_fds ? "descriptors" :
	       result->balance.n_threads    ? "threads" :
	       result->balance.n_pages      ? "mapped pages" :
	       result->balance.n_device     ? "what a device gave" :
					      "";
}

static const char *fault_of_failing(const struct trial *trial)
{
	return trial->demand == DEMAND_SUCCESS ? "it need not fail" : NULL;
}

/* Threads take turns: this time there may have been no n-th call. */
static const char *fault_of_succeeding(const struct trial *trial)
{
	return trial->demand == DEMAND_FAILURE && points_n_faults() > 0 ?
		       "it cannot have succeeded" :
		       NULL;
}

enum outcome trial_judge(const struct trial *trial, const struct result *result,
			 const struct surroundings *around)
{
	const bool refused = result->status == 2 && trial->mode->status != 2;
	const char *wrong, *left;

	if (!refused && result->status != trial->mode->status) {
		trial_complain(trial, "status %d", result->status);
		return OUTCOME_BROKEN;
	}
	wrong = refused ? fault_of_refusal(trial, result, around) :
			  fault_of_success(trial, result, around);
	if (!wrong && !trial->mode->measures)
		wrong = refused ? fault_of_failing(trial) : fault_of_succeeding(trial);
	if (wrong) {
		trial_complain(trial, "status %d: %s", result->status, wrong);
		return OUTCOME_BROKEN;
	}
	left = left_over(trial, result, around);
	if (*left) {
		trial_complain(trial, "status %d: left behind: %s", result->status, left);
		return OUTCOME_BROKEN;
	}
	if (trial->fault && points_n_faults() == 0)
		return OUTCOME_UNMET;
	return refused ? OUTCOME_REFUSED : OUTCOME_DONE;
}
