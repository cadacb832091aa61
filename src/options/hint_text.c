/*
 * hint_text - what helps, in the words of the options (see hint_text.h)
 */
#include "src/options/hint_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "config.h"

/* What a person is told for a hint: around the text; after it with the number, if it has one. */
struct hint_template {
	const char *prefix, *suffix; /* NULL: nothing */
	bool has_number;
	const char *number_suffix;
};

static const struct hint_template words_of[N_HINTS] = {
	[HINT_NONE] = { 0 },
	[HINT_LESS_MEMORY] = { .suffix = "; try a smaller -S" },
	[HINT_LESS_DEVICE_MEMORY] = { .suffix = "; try a smaller --device-memory, or "
						"--backend=cpu" },
	[HINT_MEMORY_NEEDED] = { .suffix = "; it needs -S of at least ",
				 .has_number = true,
				 .number_suffix = "M" },
	[HINT_TWICE_THE_MEMORY] = { .suffix = "; use an -S that is twice as large, or a file" },
	[HINT_FEWER_THREADS] = { .suffix = "; try a smaller --parallel" },
	[HINT_LESS_MEMORY_OR_THREADS] = { .suffix = "; try a smaller -S or --parallel" },
	[HINT_NO_COMPRESSION] = { .suffix = "; --temp-compress=none stores it as it is" },
	[HINT_NO_SHARED_MEMORY] = { .suffix = "; --shared-memory=off does without" },
	[HINT_NO_PARTIAL_RECORDS] = { .suffix = "; use --partial=drop or error, or an output "
						"that is not compressed" },
	[HINT_OTHER_TEMP_DIR] = { .suffix = ", or use another directory (-T)" },
	[HINT_LARGER_TEMP_DIR] = { .suffix = "; name a directory with more space with -T" },
	[HINT_HIGHER_TEMP_LIMIT] = { .suffix = "; use a larger --temp-limit" },
	[HINT_MEMORY_OR_TEMP_LIMIT] = { .suffix = "; use a larger -S or --temp-limit" },
	[HINT_MEMORY_OR_TEMP_DIR] = { .suffix = "; use a larger -S or another -T" },
	[HINT_MEMORY_OR_CHECKPOINT] = { .suffix = "; use a larger -S, or --checkpoint in another "
						  "directory" },
	[HINT_OTHER_CHECKPOINT] = { .suffix = "; name another directory with --checkpoint" },
	[HINT_FORCE_RAW_FORMAT] = { .suffix = "; --format=raw takes its bytes for records" },
	[HINT_SPECIFY_RECORDS] = { .suffix =
					   "; if it is records, say which by -t or -R, -t u64 for "
					   "example, or by --format=raw" },
	[HINT_SPECIFY_TYPE] = { .suffix = " (default type u64; use -t or -R)" },
	[HINT_SPECIFY_PARTIAL] = { .suffix = "; --partial=keep or --partial=drop reads those" },
	[HINT_NO_SKIP_BYTES] = { .suffix = ": omit --skip-bytes to read the header" },
	[HINT_NO_SKIP_BYTES_OR_TYPE] = { .suffix = ": omit --skip-bytes to read the header, "
						   "or use -t for the data after it" },
	[HINT_SKIP_HEADER] = { .suffix = "; leave out what is said of it, or take what is behind "
					 "the header for plain records: --skip-bytes=",
			       .has_number = true,
			       .number_suffix = " and -t, or -R and -k" },
	[HINT_SKIP_HEADER_WITH_TYPE] = { .suffix = "; --skip-bytes=",
					 .has_number = true,
					 .number_suffix =
						 " with -t, or -R and -k, takes what is behind "
						 "the header for plain records" },
	[HINT_READ_AS_RAW] = { .suffix = ": read it with --format=raw" },
	[HINT_SHORTER_HEADER] = { .suffix = " (--skip-bytes)" },
	[HINT_MERGE_OR_CHECK] = { .suffix = "; " GSORT_PROGRAM
					    " -m merges them, and -c checks them" },
	[HINT_MERGE_SORTED] = { .suffix = "; -m merges files that are sorted already" },
	[HINT_NAME_OUTPUT] = { .suffix = "; name a file with -o" },
	[HINT_NO_KEY] = { .suffix = "; leave out -k" },
	[HINT_OTHER_KEYS] = { .suffix = "; name others by -k" },
	[HINT_REPEAT_KEY] = { .suffix = "; repeat -k for each key" },
	[HINT_NAME_FIELDS] = { .suffix = "; name them by --fields, or write -k OFFSET:TYPE" },
	[HINT_SPECIFY_RECORD_SIZE] = { .suffix = "; -k, --key needs -R, --record-size" },
	[HINT_ABOUT_CHECKPOINT] = { .prefix = "--checkpoint: " },
	[HINT_ABOUT_DEVICE] = { .prefix = "--backend=cuda, --gpus: " },
	[HINT_ABOUT_GPUS] = { .prefix = "--gpus: " },
	[HINT_ABOUT_TRACE] = { .prefix = "--trace: " },
	[HINT_ABOUT_VERIFY] = { .prefix = "--verify: " },
	[HINT_ABOUT_SHARD] = { .prefix = "--shard: " },
	[HINT_SHARD_OR_SPLIT] = { .prefix = "--shard: ",
				  .suffix = "; --split writes all part files at once, each "
					    "a .npy file" },
	[HINT_BUILD_FOR_GPU] = { .suffix = "; build with -Dgpu_arch=",
				 .has_number = true,
				 .number_suffix = " or -Dgpu_arch=all" },
	[HINT_ASSUME_SIZE] = { .suffix = "; name files, or say it by --assume-size" },
	[HINT_ABOUT_ASSUMED_SIZE] = { .prefix = "--assume-size: " },
};

/* What a shell can do about a limit, wherever it was met. */
static const char *suffix_of(const struct message *message, const struct hint_template *template)
{
	if (template->suffix)
		return template->suffix;
	return message->kind == MESSAGE_ERROR && message->error == -EMFILE ?
		       "; ulimit -n raises the limit on open files" :
		       "";
}

void hint_text_get(const struct message *message, struct hint_text *ret_text)
{
	const struct hint_template *template = &words_of[message->hint];

	ret_text->prefix = template->prefix ? template->prefix : "";
	if (template->has_number)
		snprintf(ret_text->suffix, sizeof ret_text->suffix, "%s%" PRIu64 "%s",
			 template->suffix, message->number, template->number_suffix);
	else
		snprintf(ret_text->suffix, sizeof ret_text->suffix, "%s",
			 suffix_of(message, template));
}
