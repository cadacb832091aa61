#!/bin/sh
# check_style.sh - rules for source files that grep and awk can check
#
# usage: check_style.sh SOURCE_ROOT
#
# Prints one line for each violation and exits with 1 if there is any. Checks that
#  - only kernels/ and one header use CUDA;
#  - only tables depend on the kind of a layout or run;
#  - only front ends print, exit, and change process state;
#  - messages use GSORT_PROGRAM as the name of the program;
#  - files and functions are not too long, and files have the required layout;
#  - src/README.md names each module.
# check_layers.py checks includes; check_words.py checks names and documents.
set -eu
export LC_ALL=C
cd "$1"
tab=$(printf '\t')
violations=$(mktemp)
trap 'rm -f "$violations"' EXIT

sources=$(find examples include io kernels src tools tests -name '*.[ch]' -o -name '*.cc' \
	-o -name '*.cu' -o -name '*.cuh' -o -name '*.inc')
scripts=$(find tests tools -name '*.sh')

# violation RULE: report the lines of standard input as violations of a rule
violation() {
	sed "s|^|$1: |" >> "$violations"
}

grep -n 'cuda_runtime' $sources |
	grep -vE '^(kernels/|src/device/cuda/cuda_device\.h:|tools/bench/|tests/kernels/)' |
	violation 'CUDA outside of kernels/, its tests and benchmarks, and cuda_device.h' || true
grep -nE 'include[ '"$tab"']*"' $sources |
	grep -vE '"((include|io|kernels|src|tools|tests)/[^"]*|config\.h)"' |
	violation 'include is not written from the root' || true

# Kinds are rows of tables. Other code uses the functions of the table (docs/contributing.md).
grep -nE '\bLAYOUT_(CODES|RECORDS|REFERENCES)\b|layout(->|\.)kind\b' $sources |
	grep -vE '^(src/record/|src/device/(device\.h|[a-z]+/backend_[a-z]+\.c):|tests/)' |
	violation 'depends on the kind of a layout' || true
grep -nE 'include "src/(record/kinds|run/run_kind)\.h"' $sources |
	grep -vE '^(src/(record|run)|tests)/' |
	violation 'includes the table of a kind' || true

grep -nE '\brun_spilled_file\(' $sources |
	grep -vE '^(src/(run|checkpoint|exchange|lines)/|tests/)' |
	violation 'uses the file of a run; only code that keeps or sends runs may' || true

# Only front ends use standard streams, environment, signals and exit. Exceptions:
#  - thread.c blocks signals in the calling thread;
#  - undo.c limits file sizes in the handler of a fatal signal.
process='((v?printf|puts|putchar|perror|_?exit|quick_exit|abort|system|(secure_)?getenv|(un)?setenv'
process="$process|signal|sigaction|sigprocmask|pthread_sigmask|raise|p?kill|alarm|mallopt|umask"
process="$process|chdir|setlocale|setrlimit|prctl)\\(|(stdin|stdout|stderr|environ)[,;)])"
grep -nE "(^|[^a-z_/])$process" $sources |
	grep -vE '^(src/(cli|lines)|examples|tools|tests)/|^src/base/thread\.c:.*pthread_sigmask' |
	grep -vE '^io/output/undo\.c:.*setrlimit' |
	violation 'only a front end may print, exit or change the state of the process' || true
grep -nE 'include <(signal|threads)\.h>' $sources |
	grep -vE '^(src/cli/|tools/|tests/|src/base/thread\.)' |
	violation 'only a front end may handle signals' || true
grep -nE '\b(pthread|thrd)_create\b' $sources |
	grep -vE '^(src/base/thread\.c|src/cli/process_setup\.c|tests/)' |
	violation 'a thread without the diagnostics of its job; use thread_start()' || true

# Other code uses the decisions of the plan, not unified memory itself.
grep -nE '(->|\.)unified\b' $sources | grep -vE '^(src/(device|plan)/|tests/)' |
	violation 'depends on unified memory; use the plan' || true

# not_among LIST: print the lines of standard input that are not in the list
not_among() {
	grep -vxF -e "$1" || true
}

printf '%s\n' $sources | not_among "$(awk '
FNR == 1 { opens = $0 == "/*" }
FNR == 2 && opens && /^ \* [A-Za-z0-9_.-]+ - ./ { print FILENAME }' $sources)" |
	violation 'does not open with "name - one line"'
printf '%s\n' $scripts | not_among "$(awk '
FNR <= 2 && /^# [A-Za-z0-9_.-]+ - ./ { print FILENAME }' $scripts)" |
	violation 'does not open with "name - one line"'
grep -L '^#pragma once$' $(printf '%s\n' $sources | grep -E '\.(h|cuh)$') |
	violation 'no #pragma once' || true
awk '
{
	n = split($0, parts, "\t")
	for (columns = i = 0; ++i < n;)
		columns += length(parts[i]) - length(parts[i]) % 8 + 8
	if (columns + length(parts[n]) > 100)
		print FILENAME ":" FNR ": " columns + length(parts[n]) " columns"
}' $sources $scripts | violation 'line over 100 columns'
# A line with only a brace begins a function; tables have no such line.
awk '
FNR == 1 || /^\}/ {
	if (FNR > 1 && first && FNR - first - 1 > 80)
		print FILENAME ":" first ": " FNR - first - 1 " lines"
	first = 0
}
/^\{$/ { first = FNR }' $(printf '%s\n' $sources | grep -vE '^(tools|tests)/') |
	violation 'function of more than 80 lines'
wc -l $(printf '%s\n' $sources | grep -v '^tests/') |
	awk '$1 > 1000 && $2 != "total" { print $2 ": " $1 " lines" }' |
	violation 'file of more than 1,000 lines'
# clang-format fills the empty lines of a macro with blanks.
grep -nE '^    ' $sources $scripts | grep -vE ':[0-9]+: *\\$' |
	violation 'indented by blanks' || true
grep -nE "[ $tab]\$" $sources $scripts | violation 'blanks at the end of a line' || true
# -Dprogram_name renames the program, so messages use GSORT_PROGRAM.
grep -nE '"([^"]*[^-a-zA-Z0-9_./"])?gsort([^-a-zA-Z0-9_.("/][^"]*|-(mpi|check|gen)[^"]*)?"' \
	$(printf '%s\n' $sources | grep -E '^(src|io|kernels)/') | grep -v '#include' |
	grep -vE '^[^:]*:[0-9]+:[[:space:]]*/?[*]' |
	grep -vE '^src/checkpoint/checkpoint_dir.c:.*"gsort (manifest|runs)' |
	violation 'a message names gsort; use GSORT_PROGRAM' || true
# The modules of each folder: "| `src/base/` | ... | `adaptive.c` `stats.c` ... |".
patterns=$(grep '^| `[a-z/]*` |' src/README.md | grep -oE '`[a-z0-9_*]+\.c`' | tr -d '`')
in_table() {
	for pattern in $patterns; do
		case $1 in
		$pattern) return 0 ;;
		esac
	done
	return 1
}
for file in $(find io src -name '*.c'); do
	in_table "${file##*/}" || echo "$file" | violation 'src/README.md does not name it'
done
find io kernels src tools tests | grep -E '/(util|utils|misc|common|helper|helpers)(\.|$)' |
	violation 'a name without meaning' || true

sort "$violations"
[ ! -s "$violations" ]
