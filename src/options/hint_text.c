/*
 * hint_text - what helps, in the words of the options (see hint_text.h)
 */
#include "src/options/hint_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* What a person is told for a hint: around the text; after it with the number, if it has one. */
struct words {
	const char *before, *after; /* NULL: nothing */
	bool has_number;
	const char *after_number;
};

static const struct words words_of[N_HINTS] = {
	[HINT_NONE] = { 0 },
	[HINT_LESS_MEMORY] = { .after = "; try a smaller -S" },
	[HINT_LESS_DEVICE_MEMORY] = { .after = "; try a smaller --device-memory, or "
					       "--backend=cpu" },
	[HINT_MEMORY_NEEDED] = { .after = "; it needs -S of at least ",
				 .has_number = true,
				 .after_number = "M" },
	[HINT_TWICE_THE_MEMORY] = { .after = "; use an -S that is twice as large, or a file" },
	[HINT_FEWER_THREADS] = { .after = "; try a smaller --parallel" },
	[HINT_LESS_MEMORY_OR_THREADS] = { .after = "; try a smaller -S or --parallel" },
	[HINT_NO_COMPRESSION] = { .after = "; --temp-compress=none stores it as it is" },
	[HINT_NO_READING] = { .after = "; --shared-memory=off does without" },
	[HINT_NO_PARTIAL] = { .after = "; in place of --partial=keep use drop or error, or an "
				       "output without --zstd that is not called .zst" },
	[HINT_OTHER_TEMPORARY] = { .after = ", or use another directory (-T)" },
	[HINT_MORE_TEMPORARY] = { .after = "; name a directory with more space with -T" },
	[HINT_HIGHER_LIMIT] = { .after = "; use a larger --temp-limit" },
	[HINT_MEMORY_OR_HIGHER_LIMIT] = { .after = "; use a larger -S or --temp-limit" },
	[HINT_MEMORY_OR_TEMPORARY] = { .after = "; use a larger -S or another -T" },
	[HINT_MEMORY_OR_CHECKPOINT] = { .after = "; use a larger -S, or --checkpoint in another "
						 "directory" },
	[HINT_OTHER_CHECKPOINT] = { .after = "; name another directory with --checkpoint" },
	[HINT_TAKE_AS_RECORDS] = { .after = "; --format=raw takes its bytes for records" },
	[HINT_SAY_RECORDS] = { .after = "; if it is records, say which by -t or -R, -t u64 for "
					"example, or by --format=raw" },
	[HINT_SAY_PARTIAL] = { .after = "; --partial=keep or --partial=drop reads those" },
	[HINT_NO_HEADER] = { .after = ": leave out --skip-bytes, and it is read as what it is" },
	[HINT_NO_HEADER_OR_SAY] = { .after = ": leave out --skip-bytes, and it is read as what it "
					     "is, or say by -t what is behind the header" },
	[HINT_BEHIND_HEADER] = { .after = "; leave out what is said of it, or take what is behind "
					  "the header for plain records: --skip-bytes=",
				 .has_number = true,
				 .after_number = " and -t, or -R and -k" },
	[HINT_AS_PLAIN_RECORDS] = { .after = "; --skip-bytes=",
				    .has_number = true,
				    .after_number = " with -t, or -R and -k, takes what is behind "
						    "the header for plain records" },
	[HINT_READ_AS_RECORDS] = { .after = ": read it with --format=raw" },
	[HINT_SHORTER_HEADER] = { .after = " (--skip-bytes)" },
	[HINT_MERGE_PARTS] = { .after = "; gsort -m merges them, and -c checks them" },
	[HINT_MERGE_SORTED] = { .after = "; -m merges files that are sorted already" },
	[HINT_NAME_OUTPUT] = { .after = "; name a file with -o" },
	[HINT_NO_KEY] = { .after = "; leave out -k" },
	[HINT_OTHER_KEYS] = { .after = "; name others by -k" },
	[HINT_NAME_FIELDS] = { .after = "; name them by --fields, or write -k OFFSET:TYPE" },
	[HINT_SAY_SIZE] = { .after = "; -k, --key needs -R, --record-size" },
	[HINT_ABOUT_CHECKPOINT] = { .before = "--checkpoint: " },
	[HINT_ABOUT_DEVICE] = { .before = "--backend=cuda, --gpus: " },
	[HINT_ABOUT_GPUS] = { .before = "--gpus: " },
	[HINT_ABOUT_TRACE] = { .before = "--trace: " },
	[HINT_ABOUT_VERIFYING] = { .before = "--verify: " },
	[HINT_ABOUT_PART] = { .before = "--shard: " },
	[HINT_ABOUT_PART_OF_ARRAY] = { .before = "--shard: ",
				       .after = "; --split writes all part files at once, each "
						"a .npy file" },
	[HINT_BUILD_FOR_GPU] = { .after = "; build with -Dgpu_arch=",
				 .has_number = true,
				 .after_number = " or -Dgpu_arch=all" },
	[HINT_ASSUME_SIZE] = { .after = "; name files, or say it by --assume-size" },
	[HINT_ABOUT_ASSUMED_SIZE] = { .before = "--assume-size: " },
};

/* What a shell can do about a limit, wherever it was met. */
static const char *after_of(const struct message *message, const struct words *words)
{
	if (words->after)
		return words->after;
	return message->kind == MESSAGE_FAILURE && message->code == -EMFILE ?
		       "; ulimit -n raises the limit on open files" :
		       "";
}

void messages_word(const struct message *message, struct message_words *ret_words)
{
	const struct words *words = &words_of[message->hint];

	ret_words->before = words->before ? words->before : "";
	if (words->has_number)
		snprintf(ret_words->after, sizeof ret_words->after, "%s%" PRIu64 "%s", words->after,
			 message->number, words->after_number);
	else
		snprintf(ret_words->after, sizeof ret_words->after, "%s", after_of(message, words));
}
