/*
 * completion - what a shell needs to complete a program's options (see completion.h)
 *
 * Names and words hold nothing that a shell would understand; helps are quoted as it wants them.
 */
#include "src/cli/completion.h"

#include <string.h>

/* An option without a long name has its letter as its name. */
static bool has_long_name(const struct gsort_option *spec)
{
	return spec->name[0] && spec->name[1];
}

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

/* `text` within '...', with `quote` in place of each quote, and \ before what is in `special`. */
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

/* A name that a shell's function can have: gsort_check for gsort-check. */
static void print_function(const char *program, FILE *stream)
{
	fputs("_", stream);
	for (; *program; program++)
		fputc(*program == '-' || *program == '.' ? '_' : *program, stream);
}

/*
 * bash: "--name=" is what the argument behind an equals sign is of, "--name" or "-n" what the next
 * word is of.
 */
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

/* Long names, with "=" those that want an argument; both ways those that may have one. */
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
	      "\t# An equals sign is a word of its own.\n"
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

/* zsh: ":TYPE:(u8 u16)", what an argument is called and how it is completed. */
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

/* One name of an option: "--type=", "-t+", or "-c" if it takes no argument by this name. */
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
	print_quoted(spec->help, "'\\''", "[]:\\", stream);
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
	      "# Loaded as a function this file is one; sourced it says whose it is.\n"
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
	fputs(" -d '", stream);
	print_quoted(spec->help, "\\'", "\\", stream);
	fputs("'\n", stream);
}

static void print_fish(const char *program, const struct option_list *options, FILE *stream)
{
	for (unsigned i = 0; i < options->n; i++)
		print_fish_option(program, options, &options->options[i], stream);
}

bool completion_print(const char *shell, const char *program, const struct option_list *options,
		      FILE *stream)
{
	static const struct {
		const char *shell;
		void (*print)(const char *, const struct option_list *, FILE *);
	} scripts[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

	for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
		if (strcmp(scripts[i].shell, shell) != 0)
			continue;
		if (scripts[i].print != print_zsh) /* whose first line says what the file is */
			fprintf(stream, "# completion of %s's options\n", program);
		scripts[i].print(program, options, stream);
		return true;
	}
	return false;
}
