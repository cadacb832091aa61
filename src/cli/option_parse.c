/*
 * option_parse.c - command lines, --help and shell completion (see option_parse.h)
 *
 * getopt_long() keeps its state in global variables. Each command line restarts it, so that a test
 * can parse many. Its own messages are turned off.
 */
#include "src/cli/option_parse.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

enum {
	LONG_BASE = 256, /* getopt's value of long option 0: above all letters */
	SPELLING_NBYTES = 48,
	HELP_COLUMN = 30,    /* first column of the descriptions */
	HELP_END_COLUMN = 80 /* lines end before it */
};

/* The options in the form of getopt_long(). */
struct getopt_tables {
	struct option longs[OPTION_LIST_MAX + 1];
	char letters[2 * OPTION_LIST_MAX + 2];
};

/* An option without a long name has its letter as the name. */
static bool has_long_name(const struct gsort_option *spec)
{
	return spec->name[0] && spec->name[1];
}

static int has_argument(const struct gsort_option *spec)
{
	if (!spec->argument)
		return no_argument;
	return spec->default_value ? optional_argument : required_argument;
}

static void make_getopt_tables(const struct option_list *options, struct getopt_tables *tables)
{
	char *letter = tables->letters;
	unsigned n_longs = 0;

	assert(options->n <= OPTION_LIST_MAX);
	*letter++ = ':'; /* tell a missing argument from an unknown option */
	for (unsigned i = 0; i < options->n; i++) {
		const struct gsort_option *spec = &options->options[i];

		if (has_long_name(spec))
			tables->longs[n_longs++] = (struct option){ .name = spec->name,
								    .has_arg = has_argument(spec),
								    .val = LONG_BASE + (int)i };
		if (!spec->letter)
			continue;
		*letter++ = (char)spec->letter;
		if (spec->argument && !spec->default_value)
			*letter++ = ':';
	}
	*letter = '\0';
	tables->longs[n_longs] = (struct option){ 0 };
}

/* Return the index of the option with this value of getopt; n: unknown. */
static unsigned find_option(const struct option_list *options, int value)
{
	unsigned i = 0;

	if (value >= LONG_BASE)
		return (unsigned)(value - LONG_BASE);
	while (i < options->n && (!value || options->options[i].letter != value))
		i++;
	return i;
}

enum { NAMES_NBYTES = OPTION_LIST_MAX * SPELLING_NBYTES };

/* List the long names that begin with `word` ("--st"): "--stable, --stats". Return their number. */
static unsigned find_abbreviated(const struct option_list *options, const char *word,
				 char names[static NAMES_NBYTES])
{
	const size_t n = strcspn(word + 2, "=");
	unsigned n_names = 0;

	for (unsigned i = 0; i < options->n && n > 0; i++)
		if (has_long_name(&options->options[i]) &&
		    strncmp(options->options[i].name, word + 2, n) == 0)
			names += snprintf(names, SPELLING_NBYTES, "%s--%s", n_names++ ? ", " : "",
					  options->options[i].name);
	return n_names;
}

/* Find an unsupported option by letter or, if that is 0, by word. */
static const struct unsupported_option *
find_unsupported(const struct unsupported_option *unsupported, int letter, const char *word)
{
	const size_t n = letter ? 0 : strcspn(word + 2, "=");

	for (; unsupported && unsupported->name; unsupported++)
		if (unsupported->is_foreign_value)
			continue;
		else if (letter ? unsupported->letter == letter :
				  n > 0 && strncmp(unsupported->name, word + 2, n) == 0)
			return unsupported;
	return NULL;
}

static int set_parse_error(struct parsed_command_line *parsed, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

static int set_parse_error(struct parsed_command_line *parsed, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(parsed->error, sizeof parsed->error, format, args);
	va_end(args);
	return -EINVAL;
}

/* Return the long name that is similar to a word ("--buffersize=1M"); NULL: none. */
static const char *suggest_option(const struct option_list *options, const char *word)
{
	const char *names[OPTION_LIST_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < options->n; i++)
		if (has_long_name(&options->options[i]))
			names[n++] = options->options[i].name;
	return gsort_suggest(word + 2, strcspn(word + 2, "="), names, n);
}

static int set_unknown_option_error(const struct option_list *options,
				    const struct unsupported_option *unsupported, int letter,
				    const char *word, struct parsed_command_line *parsed)
{
	const struct unsupported_option *match = find_unsupported(unsupported, letter, word);
	const char *nearest;
	const char one_letter[] = { '-', (char)letter, '\0' };
	/* Bytes above 0x7f are parts of multibyte characters. */
	const bool is_letter = letter > 0 && letter < 0x80;
	const char *option = is_letter ? one_letter : word;

	if (match)
		return set_parse_error(parsed, "option '%s': %s", option, match->reason);
	nearest = letter ? NULL : suggest_option(options, word);
	return nearest ?
		       set_parse_error(parsed, "unknown option '%s'; did you mean --%s? See --help",
				       option, nearest) :
		       set_parse_error(parsed, "unknown option '%s'; see --help", option);
}

/* Write the names of an option for messages, "-S, --buffer-size", and return `text`. */
static const char *format_option_name(const struct gsort_option *option,
				      char text[static SPELLING_NBYTES])
{
	if (!has_long_name(option))
		snprintf(text, SPELLING_NBYTES, "-%c", option->letter);
	else if (option->letter)
		snprintf(text, SPELLING_NBYTES, "-%c, --%s", option->letter, option->name);
	else
		snprintf(text, SPELLING_NBYTES, "--%s", option->name);
	return text;
}

/* Refuse a value (NULL: none) that has a meaning for other programs only. 0: it has none. */
static int check_foreign_value(const struct gsort_option *option,
			       const struct unsupported_option *unsupported, const char *value,
			       struct parsed_command_line *parsed)
{
	char spelling[SPELLING_NBYTES];

	for (; unsupported && unsupported->name; unsupported++)
		if (unsupported->is_foreign_value && strcmp(unsupported->name, option->name) == 0 &&
		    unsupported->is_foreign_value(value))
			return set_parse_error(parsed, "%s%s%s: %s",
					       format_option_name(option, spelling),
					       value ? "=" : "", value ? value : "",
					       unsupported->reason);
	return 0;
}

/* Report a missing or superfluous value of a known option. */
static int set_option_value_error(const struct gsort_option *option,
				  const struct unsupported_option *unsupported, int code,
				  const char *word, struct parsed_command_line *parsed)
{
	char spelling[SPELLING_NBYTES];

	if (code == ':' && check_foreign_value(option, unsupported, NULL, parsed) < 0)
		return -EINVAL;
	format_option_name(option, spelling);
	return code == ':' ? set_parse_error(parsed, "%s requires an argument, %s; see --help",
					     spelling, option->argument) :
			     set_parse_error(parsed, "%s takes no argument: '%s'", spelling, word);
}

int option_parse(const struct option_list *options, const struct unsupported_option *unsupported,
		 int argc, char **argv, option_callback *callback, void *context,
		 struct parsed_command_line *ret_parsed)
{
	struct getopt_tables tables;
	char names[NAMES_NBYTES];
	const char *word;
	int code, r;

	ret_parsed->error[0] = '\0';
	make_getopt_tables(options, &tables);
	opterr = 0;
	optind = 0; /* glibc: start over */
	while ((code = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
		const bool is_error = code == '?' || code == ':';
		const unsigned i = find_option(options, is_error ? optopt : code);

		if (is_error && i < options->n)
			return set_option_value_error(&options->options[i], unsupported, code,
						      argv[optind - 1], ret_parsed);
		word = argv[optind - 1];
		/* getopt stays at a word of letters until its last letter. */
		if (is_error && optopt && argv[optind] && *argv[optind] == '-' &&
		    strchr(argv[optind], optopt))
			word = argv[optind];
		if (is_error && !optopt && find_abbreviated(options, word, names) > 1)
			return set_parse_error(
				ret_parsed, "option '%s' is ambiguous; use one of %s", word, names);
		if (is_error)
			return set_unknown_option_error(options, unsupported, optopt, word,
							ret_parsed);
		r = optarg ? check_foreign_value(&options->options[i], unsupported, optarg,
						 ret_parsed) :
			     0;
		if (r == 0)
			r = callback(context, i, optarg);
		if (r != 0)
			return r;
	}
	ret_parsed->operands = argv + optind;
	ret_parsed->n_operands = (unsigned)(argc - optind);
	return 0;
}

/* --- Help --- */

/* Print `text` from a column on, and break lines between words. */
static void print_wrapped(const char *text, int column, FILE *stream)
{
	while (*text) {
		const int n = (int)strcspn(text, " ");

		if (column < HELP_COLUMN || column + 1 + n >= HELP_END_COLUMN) {
			if (column >= HELP_COLUMN) {
				fputc('\n', stream);
				column = 0;
			}
			column += fprintf(stream, "%*s", HELP_COLUMN - column, "");
		} else {
			column += fprintf(stream, " ");
		}
		column += fprintf(stream, "%.*s", n, text);
		text += n + (text[n] == ' ');
	}
	fputc('\n', stream);
}

void option_print_help(const struct option_list *options, FILE *stream)
{
	char names[SPELLING_NBYTES];

	for (unsigned i = 0; i < options->n; i++) {
		const struct gsort_option *spec = &options->options[i];
		int column;

		if (spec->section)
			fprintf(stream, "\n%s:\n", spec->section);
		/* Long names are below each other. */
		column = fprintf(stream, spec->letter ? "  %s" : "      %s",
				 format_option_name(spec, names));
		if (spec->argument)
			column += fprintf(stream, spec->default_value ? "[=%s]" : "=%s",
					  spec->argument);
		if (column >= HELP_COLUMN - 1) {
			fputc('\n', stream);
			column = 0;
		}
		print_wrapped(spec->help, column, stream);
	}
}

/* --- Completion. Names and words contain no characters that a shell interprets. --- */

static bool takes_file(const struct gsort_option *spec)
{
	return spec->argument && strcmp(spec->argument, "FILE") == 0;
}

static bool takes_directory(const struct gsort_option *spec)
{
	return spec->argument && strcmp(spec->argument, "DIR") == 0;
}

static bool takes_words(const struct option_list *options, const struct gsort_option *spec)
{
	char text[GSORT_WORD_NBYTES];

	return options->get_word(options->context, (unsigned)(spec - options->options), 0, text) !=
	       NULL;
}

static void print_words(const struct option_list *options, const struct gsort_option *spec,
			FILE *stream)
{
	const unsigned index = (unsigned)(spec - options->options);
	char text[GSORT_WORD_NBYTES];
	const char *word;

	for (unsigned i = 0; (word = options->get_word(options->context, index, i, text)); i++)
		fprintf(stream, "%s%s", i ? " " : "", word);
}

/*
 * Print text for a string in single quotes: `quote` replaces each quote, and a backslash precedes
 * special characters.
 */
static void print_quoted(const char *text, const char *quote, const char *special, FILE *stream)
{
	for (; *text; text++) {
		if (*text == '\'') {
			fputs(quote, stream);
			continue;
		}
		if (strchr(special, *text))
			fputc('\\', stream);
		fputc(*text, stream);
	}
}

/* Print a valid function name: _gsort_check for gsort-check. */
static void print_function(const char *program, FILE *stream)
{
	fputs("_", stream);
	for (; *program; program++)
		fputc(*program == '-' || *program == '.' ? '_' : *program, stream);
}

/* bash: "--name=" completes a value after an equals sign, "--name" or "-n" the next word. */
static void print_bash_case(const struct option_list *options, const struct gsort_option *spec,
			    FILE *stream)
{
	fprintf(stream, "\t--%s=", spec->name);
	if (!spec->default_value)
		fprintf(stream, "|--%s", spec->name);
	if (!spec->default_value && spec->letter)
		fprintf(stream, "|-%c", spec->letter);
	fputs(")\n\t\t", stream);
	if (takes_words(options, spec)) {
		fputs("mapfile -t COMPREPLY < <(compgen -W '", stream);
		print_words(options, spec, stream);
		fputs("' -- \"$cur\") ;;\n", stream);
	} else if (takes_file(spec) || takes_directory(spec)) {
		fprintf(stream,
			"compopt -o filenames\n"
			"\t\tmapfile -t COMPREPLY < <(compgen -%c -- \"$cur\") ;;\n",
			takes_file(spec) ? 'f' : 'd');
	} else {
		fputs("COMPREPLY=() ;;\n", stream);
	}
}

/* Print long names; with "=" if they take a value; in both forms if the value is optional. */
static void print_bash_names(const struct option_list *options, FILE *stream)
{
	for (unsigned i = 0; i < options->n; i++) {
		const struct gsort_option *spec = &options->options[i];

		if (!has_long_name(spec))
			continue;
		fprintf(stream, "%s--%s", i ? " " : "", spec->name);
		if (spec->argument && spec->default_value)
			fprintf(stream, " --%s", spec->name);
		if (spec->argument)
			fputs("=", stream);
	}
}

static void print_bash(const char *program, const struct option_list *options, FILE *stream)
{
	print_function(program, stream);
	fputs("()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\t# An equals sign is a separate word.\n"
	      "\tif [[ $cur == = ]]; then\n"
	      "\t\tcur= option=$option=\n"
	      "\telif [[ $option == = ]]; then\n"
	      "\t\toption=${COMP_WORDS[COMP_CWORD-2]}=\n"
	      "\tfi\n"
	      "\tcase $option in\n",
	      stream);
	for (unsigned i = 0; i < options->n; i++)
		if (options->options[i].argument)
			print_bash_case(options, &options->options[i], stream);
	fputs("\t*)\n"
	      "\t\tif [[ $cur == -* ]]; then\n"
	      "\t\t\tmapfile -t COMPREPLY < <(compgen -W '",
	      stream);
	print_bash_names(options, stream);
	fputs("' -- \"$cur\")\n"
	      "\t\t\t[[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *= ]] && compopt -o nospace\n"
	      "\t\telse\n"
	      "\t\t\tcompopt -o filenames\n"
	      "\t\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	      "\t\tfi ;;\n"
	      "\tesac\n}\ncomplete -F ",
	      stream);
	print_function(program, stream);
	fprintf(stream, " %s\n", program);
}

/* zsh: print the name of an argument and its words: ":TYPE:(u8 u16)". */
static void print_zsh_argument(const struct option_list *options, const struct gsort_option *spec,
			       FILE *stream)
{
	fputs(spec->default_value ? "::" : ":", stream);
	print_quoted(spec->argument, "'\\''", ":\\", stream);
	fputs(":", stream);
	if (takes_words(options, spec)) {
		fputs("(", stream);
		print_words(options, spec, stream);
		fputs(")", stream);
	} else if (takes_file(spec)) {
		fputs("_files", stream);
	} else if (takes_directory(spec)) {
		fputs("_directories", stream);
	}
}

/* Print one name of an option: "--type=", "-t+", or "-c" without a value. */
static void print_zsh_name(const struct option_list *options, const struct gsort_option *spec,
			   bool is_letter, FILE *stream)
{
	const bool has_argument = spec->argument && !(is_letter && spec->default_value);

	fputs("\t\t'", stream);
	if (spec->repeatable)
		fputs("*", stream);
	else if (spec->letter && has_long_name(spec))
		fprintf(stream, "(-%c --%s)", spec->letter, spec->name);
	if (is_letter)
		fprintf(stream, "-%c%s", spec->letter, has_argument ? "+" : "");
	else
		fprintf(stream, "--%s%s", spec->name,
			!has_argument       ? "" :
			spec->default_value ? "=-" :
					      "=");
	fputs("[", stream);
	print_quoted(spec->help ? spec->help : "", "'\\''", "[]:\\", stream);
	fputs("]", stream);
	if (has_argument)
		print_zsh_argument(options, spec, stream);
	fputs("' \\\n", stream);
}

static void print_zsh(const char *program, const struct option_list *options, FILE *stream)
{
	fprintf(stream, "#compdef %s\n\n", program);
	print_function(program, stream);
	fputs("()\n{\n\t_arguments -s -S \\\n", stream);
	for (unsigned i = 0; i < options->n; i++) {
		if (options->options[i].letter)
			print_zsh_name(options, &options->options[i], true, stream);
		if (has_long_name(&options->options[i]))
			print_zsh_name(options, &options->options[i], false, stream);
	}
	fputs("\t\t'*:FILE:_files'\n}\n\n"
	      "# An autoloaded file is the function; a sourced file registers it.\n"
	      "if [ \"$funcstack[1]\" = ",
	      stream);
	print_function(program, stream);
	fputs(" ]; then\n\t", stream);
	print_function(program, stream);
	fputs(" \"$@\"\nelse\n\tcompdef ", stream);
	print_function(program, stream);
	fprintf(stream, " %s\nfi\n", program);
}

static void print_fish_option(const char *program, const struct option_list *options,
			      const struct gsort_option *spec, FILE *stream)
{
	fprintf(stream, "complete -c %s", program);
	if (has_long_name(spec))
		fprintf(stream, " -l %s", spec->name);
	if (spec->letter)
		fprintf(stream, " -s %c", spec->letter);
	if (takes_file(spec))
		fputs(" -r -F", stream);
	else if (spec->argument && !spec->default_value)
		fputs(" -x", stream);
	if (takes_words(options, spec)) {
		fputs(" -a '", stream);
		print_words(options, spec, stream);
		fputs("'", stream);
	} else if (takes_directory(spec)) {
		fputs(" -a '(__fish_complete_directories)'", stream);
	}
	if (spec->help) {
		fputs(" -d '", stream);
		print_quoted(spec->help, "\\'", "\\", stream);
		fputs("'", stream);
	}
	fputs("\n", stream);
}

static void print_fish(const char *program, const struct option_list *options, FILE *stream)
{
	for (unsigned i = 0; i < options->n; i++)
		print_fish_option(program, options, &options->options[i], stream);
}

bool option_print_completion(const char *shell, const char *program,
			     const struct option_list *options, FILE *stream)
{
	static const struct {
		const char *shell;
		void (*print)(const char *, const struct option_list *, FILE *);
	} scripts[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

	for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
		if (strcmp(scripts[i].shell, shell) != 0)
			continue;
		if (scripts[i].print != print_zsh) /* its first line must be #compdef */
			fprintf(stream, "# completion of %s options\n", program);
		scripts[i].print(program, options, stream);
		return true;
	}
	return false;
}
