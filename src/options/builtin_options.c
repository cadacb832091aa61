/*
 * builtin_options - options that are answered at once, and end the parsing (see builtin_options.h)
 */
#include "src/options/builtin_options.h"

const struct option_choice answers_shells[] = {
	{ "bash", SHELL_BASH }, { "zsh", SHELL_ZSH }, { "fish", SHELL_FISH }, { 0 }
};

int answers_take(const struct option_spec *spec, const char *argument, void *target)
{
	struct option_spec choosing = *spec;
	int choice = 0, r = 0;

	(void)target;
	choosing.offset = 0;
	if (spec->choices)
		r = option_take_choice(&choosing, argument, &choice);
	return r < 0 ? r : spec->value + choice;
}

const char *answers_shell(int asked)
{
	const struct option_choice *choice = answers_shells;

	while (choice->word && choice->value != asked - ASKED_FOR_COMPLETION)
		choice++;
	return choice->word;
}
