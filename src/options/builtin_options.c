/*
 * builtin_options - options that are answered at once, and end the parsing (see builtin_options.h)
 */
#include "src/options/builtin_options.h"

const struct option_choice builtin_options_shells[] = {
	{ "bash", SHELL_BASH }, { "zsh", SHELL_ZSH }, { "fish", SHELL_FISH }, { 0 }
};

int builtin_options_parse(const struct option_spec *spec, const char *argument, void *target)
{
	struct option_spec choice_spec = *spec;
	int choice = 0, r = 0;

	(void)target;
	choice_spec.offset = 0;
	if (spec->choices)
		r = option_parse_choice(&choice_spec, argument, &choice);
	return r < 0 ? r : spec->value + choice;
}

const char *builtin_options_shell_name(int action)
{
	const struct option_choice *choice = builtin_options_shells;

	while (choice->word && choice->value != action - BUILTIN_OPTION_COMPLETION)
		choice++;
	return choice->word;
}
