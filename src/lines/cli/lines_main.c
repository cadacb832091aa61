/*
 * lines_main.c - sort lines of text with the options of GNU sort (see lines_main.h)
 */
#include "src/lines/cli/lines_main.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "include/gsort.h"
#include "src/base/diagnostics.h"
#include "src/base/text.h"
#include "src/cli/cli_main.h"
#include "src/cli/exit_status.h"
#include "src/cli/option_parse.h"
#include "src/cli/print_message.h"
#include "src/cli/process_setup.h"
#include "src/comm/comm.h"
#include "src/lib/process_hooks.h"
#include "src/lines/cli/line_reports.h"
#include "src/lines/line_explain.h"
#include "src/lines/line_options.h"
#include "src/sort/distributed_sort.h"

/* What the command line asks for. */
struct lines_command {
	const struct lines_hooks *hooks;
	struct line_options options;
	char **words; /* the command line without obsolete keys */
};

bool lines_is_requested(int argc, char **argv)
{
	const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;

	name = name ? name + 1 : argc > 0 ? argv[0] : "";
	if (strcmp(name, "sort") == 0 || strcmp(name, "lsort") == 0)
		return true;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--lines") == 0 || strcmp(argv[i], "--line") == 0 ||
		    strcmp(argv[i], "--lin") == 0)
			return true;
	return false;
}

/* An option of GNU sort that is refused. */
static const struct unsupported_option unsupported_line_options[] = {
	{ "random-sort", 'R', "random order is not supported", NULL }, { 0 }
};

static const char *get_word(const void *context, unsigned i, unsigned n, char *text)
{
	(void)context;
	return option_word(&line_option_table.specs[i], n, text);
}

/* List the options; those of gsort-mpi only if it is the program. */
static void list_options(bool with_ranks, struct option_list *ret_options)
{
	const struct option_spec *specs = line_option_table.specs;

	*ret_options = (struct option_list){ .get_word = get_word };
	for (unsigned i = 0; i < line_option_table.n_specs; i++)
		if (with_ranks || specs[i].mpi_support != OPTION_MPI_ONLY)
			ret_options->options[ret_options->n++] =
				(struct gsort_option){ .name = specs[i].name,
						       .argument = specs[i].argument,
						       .default_value = specs[i].default_value,
						       .help = specs[i].help,
						       .section = specs[i].section,
						       .letter = specs[i].letter };
}

/* An obsolete position, F[.C][LETTERS] that counts from 0. Returns what follows the numbers. */
static const char *parse_obsolete(const char *text, unsigned long *ret_field,
				  unsigned long *ret_character)
{
	char *end;

	*ret_field = strtoul(text, &end, 10);
	*ret_character = 0;
	if (*end == '.')
		*ret_character = strtoul(end + 1, &end, 10);
	return end;
}

/*
 * Turn the obsolete key "+POS1 [-POS2]" at argv[i] into words of -k. Returns the number of words
 * that it takes, or 0 if there is none.
 */
static int convert_obsolete_key(int argc, char **argv, int i, char **ret_key)
{
	unsigned long field, character, end_field, end_character;
	const char *letters, *end_letters;
	const bool has_end = i + 1 < argc && argv[i + 1][0] == '-' && argv[i + 1][1] >= '0' &&
			     argv[i + 1][1] <= '9';

	if (argv[i][0] != '+' || argv[i][1] < '0' || argv[i][1] > '9')
		return 0;
	letters = parse_obsolete(argv[i] + 1, &field, &character);
	if (!has_end) {
		if (asprintf(ret_key, "%lu.%lu%s", field + 1, character + 1, letters) < 0)
			*ret_key = NULL;
		return 1;
	}
	end_letters = parse_obsolete(argv[i + 1] + 1, &end_field, &end_character);
	/* -F without characters ends after field F, counted from 1. */
	if (asprintf(ret_key, "%lu.%lu%s,%lu.%lu%s", field + 1, character + 1, letters,
		     end_character ? end_field + 1 : end_field, end_character, end_letters) < 0)
		*ret_key = NULL;
	return 2;
}

/* Return whether the option before a word takes it as its value. */
static bool takes_next_word(const char *word)
{
	for (unsigned i = 0; i < line_option_table.n_specs; i++) {
		const struct option_spec *spec = &line_option_table.specs[i];

		if (spec->argument && !spec->default_value && word[0] == '-' &&
		    ((spec->letter && word[1] == spec->letter && !word[2]) ||
		     (word[1] == '-' && strcmp(word + 2, spec->name) == 0)))
			return true;
	}
	return false;
}

/*
 * Find the option of GNU sort that a word abbreviates, if it could also be one that only gsort has.
 * NULL: there is none, or more than one.
 */
static const struct option_spec *find_gnu_option(const char *word)
{
	const size_t n = strcspn(word, "=");
	const struct option_spec *found = NULL;

	if (strncmp(word, "--", 2) != 0 || n == 2)
		return NULL;
	for (unsigned i = 0; i < line_option_table.n_specs; i++) {
		const struct option_spec *spec = &line_option_table.specs[i];

		if (strncmp(word + 2, spec->name, n - 2) != 0)
			continue;
		if (spec->name[n - 2] == '\0' || (spec->is_of_gnu_sort && found))
			return NULL;
		if (spec->is_of_gnu_sort)
			found = spec;
	}
	return found;
}

/* Return whether a word is an option that only records have, such as --argsort. */
static bool is_record_option(const char *word)
{
	const size_t n = strcspn(word, "=") - 2;
	struct gsort_option option;

	for (unsigned i = 0; i < line_option_table.n_specs; i++)
		if (strncmp(word + 2, line_option_table.specs[i].name, n) == 0)
			return false; /* maybe an abbreviation */
	for (unsigned i = 0; gsort_get_option(i, &option, sizeof option) == 0; i++)
		if (strlen(option.name) == n && strncmp(word + 2, option.name, n) == 0)
			return true;
	return false;
}

/*
 * Write the abbreviated options of GNU sort out, so that the names of other options do not make
 * them ambiguous. Refuse options of records. Returns 0 or a negative errno after a message.
 */
static int complete_option_names(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const struct option_spec *option;
		char *word;

		if (strncmp(argv[i], "--", 2) != 0 || takes_next_word(argv[i - 1]))
			continue;
		if (is_record_option(argv[i]))
			return fail(-EINVAL, "%.*s: not with --lines", (int)strcspn(argv[i], "="),
				    argv[i]);
		option = find_gnu_option(argv[i]);
		if (!option)
			continue;
		if (asprintf(&word, "--%s%s", option->name, argv[i] + strcspn(argv[i], "=")) < 0)
			return fail(-ENOMEM, "no memory for the option %s", argv[i]);
		free(argv[i]);
		argv[i] = word;
	}
	return 0;
}

static int add_word(char **words, int *n, const char *word)
{
	words[*n] = strdup(word);
	if (!words[*n])
		return fail(-ENOMEM, "no memory for the command line");
	(*n)++;
	return 0;
}

/* Return the number of words of the obsolete option "-y[N]" or "-y N", which is ignored. */
static int count_obsolete_option(int argc, char **argv, int i)
{
	if (strncmp(argv[i], "-y", 2) != 0)
		return 0;
	return !argv[i][2] && i + 1 < argc && argv[i + 1][0] >= '0' && argv[i + 1][0] <= '9' ? 2 :
											       1;
}

/*
 * Copy the command line, without obsolete keys. They end at "--", and are accepted as by GNU sort:
 * unless _POSIX2_VERSION is from 200112 to 200808. The caller frees the words. Returns their
 * number, or -ENOMEM after a message.
 */
static int convert_obsolete_keys(int argc, char **argv, char **ret_words)
{
	const char *version = getenv("_POSIX2_VERSION");
	const long posix_version = version ? strtol(version, NULL, 10) : 200809;
	const bool accepts = posix_version < 200112 || posix_version >= 200809;
	int n = 0, i = 1, r;

	r = add_word(ret_words, &n, GSORT_PROGRAM);
	while (r == 0 && i < argc && strcmp(argv[i], "--") != 0) {
		const bool is_value = takes_next_word(argv[i - 1]);
		const int n_ignored = is_value ? 0 : count_obsolete_option(argc, argv, i);
		char *key = NULL;
		const int n_taken =
			accepts && !is_value ? convert_obsolete_key(argc, argv, i, &key) : 0;

		i += n_ignored;
		if (n_ignored > 0)
			continue;
		if (n_taken == 0) {
			r = add_word(ret_words, &n, argv[i++]);
			continue;
		}
		if (!key)
			return fail(-ENOMEM, "no memory for the key %s", argv[i]);
		r = add_word(ret_words, &n, "-k");
		ret_words[n++] = key;
		i += n_taken;
	}
	while (r == 0 && i < argc)
		r = add_word(ret_words, &n, argv[i++]);
	return r < 0 ? r : n;
}

static void free_words(char **words)
{
	for (char **word = words; word && *word; word++)
		free(*word);
	free(words);
}

/* Print what is asked for instead of a sort. Returns the exit status. */
static int print_answer(const struct lines_command *command, int answer)
{
	const bool with_ranks = command->hooks->accepts_ranks;
	struct option_list options;

	list_options(with_ranks && answer == BUILTIN_OPTION_HELP, &options);
	if (answer == BUILTIN_OPTION_HELP) {
		printf(with_ranks ?
			       "Usage: mpirun -np N %s-mpi --lines [OPTION]... -o FILE FILE...\n" :
			       "Usage: %s --lines [OPTION]... [FILE]...\n",
		       GSORT_PROGRAM);
		fputs("Sort lines of text as GNU sort does in the C locale.\n", stdout);
		option_print_help(&options, stdout);
		fputs("\nExit status: 0 success; 1 -c or -C found disorder; 2 error, with a "
		      "message.\n",
		      stdout);
	} else if (answer == BUILTIN_OPTION_VERSION) {
		printf("%s %s\n", GSORT_PROGRAM, GSORT_VERSION);
	} else {
		option_print_completion(option_shell_name(answer), "lsort", &options, stdout);
	}
	return fflush(stdout) == 0 ? EXIT_SORTED : EXIT_TROUBLE;
}

static int set_option(void *context, unsigned i, const char *value)
{
	return line_options_set(context, &line_option_table.specs[i], value);
}

/*
 * Returns 0; the positive result of an option that is answered instead of a sort; or a negative
 * errno after a message.
 */
static int parse_words(struct lines_command *command, int argc, char **argv)
{
	struct option_list options;
	struct parsed_command_line parsed;
	int r;

	list_options(true, &options);
	r = option_parse(&options, unsupported_line_options, argc, argv, set_option,
			 &command->options, &parsed);
	if (r < 0 && *parsed.error)
		return fail(r, "%s", parsed.error);
	for (unsigned i = 0; r == 0 && i < parsed.n_operands; i++)
		r = line_options_add_input(&command->options, parsed.operands[i]);
	return r;
}

/* Print the plan. Returns the exit status. */
static int explain(const struct line_options *options)
{
	struct line_plan plan;
	int r;

	r = line_plan_make(process_syscalls(process_get()), &options->params, &plan);
	if (r == 0 && options->explain == EXPLAIN_JSON)
		r = line_plan_write_json(&plan, stdout);
	else if (r == 0)
		line_plan_print(&plan, stdout);
	if (r == 0 && fflush(stdout) != 0)
		r = fail(-errno, "standard output: %m");
	return r < 0 ? EXIT_TROUBLE : EXIT_SORTED;
}

/* Print the disorder that was found. */
static void print_disorder(const struct line_options *options, const struct line_disorder *disorder)
{
	fprintf(stderr, "%s: %s:%llu: disorder: ", GSORT_PROGRAM, options->inputs[0],
		(unsigned long long)disorder->number);
	fwrite(disorder->line, 1, disorder->nbytes, stderr);
	fputc(options->keys.delimiter, stderr);
}

/* A progress line would be between lines of output on a terminal. */
static enum progress_mode progress_mode(const struct lines_command *command)
{
	static const enum progress_mode modes[] = {
		[PROGRESS_OPTION_AUTO] = PROGRESS_AUTO,
		[PROGRESS_OPTION_ALWAYS] = PROGRESS_ALWAYS,
		[PROGRESS_OPTION_NEVER] = PROGRESS_NEVER,
	};
	const bool is_output_shown = !command->options.check && !command->options.params.output &&
				     isatty(STDOUT_FILENO);

	return command->options.progress == PROGRESS_OPTION_AUTO && is_output_shown ?
		       PROGRESS_NEVER :
		       modes[command->options.progress];
}

/* Sort or check, and report. Returns the exit status. */
static int sort_or_check(const struct lines_command *command)
{
	const struct syscalls *calls = process_syscalls(process_get());
	const struct line_options *options = &command->options;
	const struct line_sort_params *params = &options->params;
	const struct line_report_options report_options = { .comm = params->comm,
							    .progress = progress_mode(command),
							    .prints_stats = options->prints_stats,
							    .paths = options->report_paths };
	struct line_disorder disorder = { 0 };
	struct sort_summary summary;
	struct line_reports reports;
	int r = line_reports_open(calls, &report_options, params, &reports);

	if (r == 0) {
		struct line_sort_params with_stats = *params;

		with_stats.stats = reports.stats;
		r = options->check ? line_sort_check(calls, &with_stats, &summary, &disorder) :
				     line_sort_run(calls, &with_stats, &summary);
	}
	if (r == 0)
		r = line_reports_gather_ranks(&reports, &summary);
	line_reports_stop_display(&reports);
	if (r == 0 && disorder.number && disorder.line && options->check == 'c')
		print_disorder(options, &disorder);
	if (r == 0)
		r = line_reports_write(&reports, params, &summary, options->check, disorder.number);
	line_reports_close(&reports);
	free(disorder.line);
	return r < 0 ? EXIT_TROUBLE : disorder.number ? EXIT_DISORDER : EXIT_SORTED;
}

static bool writes_full_output(const struct line_options *options)
{
	return !options->check && !options->explain && !options->params.n_shards;
}

/* Returns as parse_words(). */
static int parse_command_line(struct lines_command *command, int argc, char **argv)
{
	const char *directory = getenv("TMPDIR");
	int r, n_words;

	command->words = calloc(2 * (size_t)argc + 2, sizeof *command->words);
	if (!command->words)
		return fail(-ENOMEM, "no memory for the command line");
	n_words = convert_obsolete_keys(argc, argv, command->words);
	r = n_words < 0 ? n_words : complete_option_names(n_words, command->words);
	if (r == 0)
		r = parse_words(command, n_words, command->words);
	if (r == 0)
		r = line_options_finish(&command->options,
					directory && *directory ? directory : "/tmp");
	if (r == 0 && !command->hooks->accepts_ranks && writes_full_output(&command->options))
		launcher_warn();
	return r;
}

/* Check that all ranks print something (--help), or none does. */
static int compare_answers(struct comm *comm, int parsed)
{
	uint64_t n = parsed > 0;
	int r = comm_allreduce_sum(comm, &n, 1);

	if (r == 0 && comm_rank(comm) == 0 && n % comm_size(comm) != 0)
		r = fail(-EINVAL, "--help, --version or --completion is given to %u of %u ranks",
			 (unsigned)n, comm_size(comm));
	return distributed_broadcast_status(comm, r);
}

/* Rank 0 parses its command line first, and reports its errors for all ranks. */
static int parse_of_ranks(struct lines_command *command, int argc, char **argv)
{
	struct comm *comm = command->hooks->comm;
	const bool is_first = comm_rank(comm) == 0;
	int parsed = is_first ? parse_command_line(command, argc, argv) : 0;
	int r = distributed_broadcast_status(comm, parsed);

	if (r == 0 && !is_first)
		parsed = parse_command_line(command, argc, argv);
	if (r < 0 || parsed < 0)
		return r < 0 ? r : parsed;
	r = compare_answers(comm, parsed);
	return r < 0 ? r : parsed;
}

static int run_command(struct lines_command *command, int argc, char **argv)
{
	int r = process_setup();

	if (r < 0) {
		fail(r, "cannot handle signals: %m");
		return EXIT_TROUBLE;
	}
	fatal_signals_install();
	r = command->hooks->comm ? parse_of_ranks(command, argc, argv) :
				   parse_command_line(command, argc, argv);
	if (r > 0) /* rank 0 answers for all ranks */
		return command->hooks->message_prefix ? EXIT_SORTED : print_answer(command, r);
	if (r < 0)
		return EXIT_TROUBLE;
	return command->options.explain ? explain(&command->options) : sort_or_check(command);
}

static void print_diagnostic(void *context, const struct message *message)
{
	const struct lines_hooks *hooks = context;
	const enum gsort_severity severity = message->kind == MESSAGE_ERROR   ? GSORT_ERROR :
					     message->kind == MESSAGE_WARNING ? GSORT_WARNING :
										GSORT_NOTICE;
	char line[QUOTED_NBYTES(MESSAGE_NBYTES)];

	quote_text(message->text, line, sizeof line);
	if (!hooks->message_prefix)
		cli_message(severity, line);
	else if (severity != GSORT_NOTICE)
		cli_message_from(hooks->message_prefix, severity, line);
}

int lines_main(const struct lines_hooks *hooks, int argc, char **argv)
{
	struct lines_command command = { .hooks = hooks };
	struct diagnostics diagnostics;
	int status;

	diagnostics_init(&diagnostics, print_diagnostic, (void *)(uintptr_t)hooks);
	diagnostics_push(&diagnostics);
	line_options_init(&command.options);
	command.options.params.comm = hooks->comm;
	command.options.accepts_ranks = hooks->accepts_ranks;
	status = run_command(&command, argc, argv);
	line_options_free(&command.options);
	free_words(command.words);
	fatal_signals_raise_pending();
	return status;
}
