/*
 * message_hints - what can be done about what is said, for the front end to word
 *
 * Whoever says a message knows what would help, but not by which words it is asked for: these are
 * options of a command line, members of a struct, a button. So a message carries a hint beside its
 * text, and reads well without it.
 */
#pragma once

enum hint {
	HINT_NONE,

	/* Memory */
	HINT_LESS_MEMORY,        /* take less memory */
	HINT_LESS_DEVICE_MEMORY, /* take less memory of the device, or another device */
	HINT_MEMORY_NEEDED,      /* give at least so many MiB of memory: the number */
	HINT_TWICE_THE_MEMORY,   /* give twice the memory, or an input of known size */
	HINT_FEWER_THREADS,
	HINT_LESS_MEMORY_OR_THREADS,
	HINT_NO_COMPRESSION,     /* store temporary data as it is */
	HINT_NO_SHARED_MEMORY,   /* let all that ranks exchange go by messages */
	HINT_NO_PARTIAL_RECORDS, /* leave incomplete records out, or refuse them; or do not compress
				  */

	/* Temporary space */
	HINT_OTHER_TEMP_DIR,       /* another directory for temporary files */
	HINT_LARGER_TEMP_DIR,      /* a directory for them with more space */
	HINT_HIGHER_TEMP_LIMIT,    /* allow more temporary space */
	HINT_MEMORY_OR_TEMP_LIMIT, /* that, or more memory, so that less is needed */
	HINT_MEMORY_OR_TEMP_DIR,   /* more memory, or another directory for temporary files */
	HINT_MEMORY_OR_CHECKPOINT, /* more memory, or another directory for the checkpoint */
	HINT_OTHER_CHECKPOINT,     /* another directory for the checkpoint */

	/* Inputs and outputs */
	HINT_FORCE_RAW_FORMAT,      /* what is in the file may be records whatever it looks like */
	HINT_SPECIFY_RECORDS,       /* the same, if it is said which records */
	HINT_SPECIFY_TYPE,          /* say what records are: nothing was said */
	HINT_SPECIFY_PARTIAL,       /* say what becomes of what is no whole record */
	HINT_NO_SKIP_BYTES,         /* let the file say itself what is in it */
	HINT_NO_SKIP_BYTES_OR_TYPE, /* or say what is behind the header */
	HINT_READ_AS_RAW,           /* the same of what is written, when it will be read */
	HINT_SKIP_HEADER, /* or take for records what is behind the header, so long: the number */
	HINT_SKIP_HEADER_WITH_TYPE, /* the same, and nothing else would help: the number */
	HINT_SHORTER_HEADER,        /* what is said of the header does not fit */
	HINT_MERGE_OR_CHECK,        /* what is sorted can be merged, and checked */
	HINT_MERGE_SORTED,          /* only files that are sorted can be merged */
	HINT_NAME_OUTPUT,           /* let the output be a file with a name */

	/* Records and keys */
	HINT_NO_KEY,              /* ask for no key: there is only one */
	HINT_OTHER_KEYS,          /* ask for other keys */
	HINT_NAME_FIELDS,         /* say what records consist of */
	HINT_SPECIFY_RECORD_SIZE, /* say how many bytes a record has */

	/* What the message is about: it was asked for, and cannot be had */
	HINT_ABOUT_CHECKPOINT,
	HINT_ABOUT_DEVICE,
	HINT_ABOUT_GPUS,
	HINT_ABOUT_TRACE,
	HINT_ABOUT_VERIFY,
	HINT_ABOUT_ASSUMED_SIZE,
	HINT_ASSUME_SIZE,
	HINT_REPEAT_KEY, /* one option for each key */
	HINT_ABOUT_SHARD,
	HINT_SHARD_OR_SPLIT, /* the same, but all parts could be had at once */

	HINT_BUILD_FOR_GPU, /* a build with code for the GPU: the number, 75 for 7.5 */

	N_HINTS
};
