#!/bin/sh
# check_style - how a source file looks
#
# usage: check_style.sh SOURCE_ROOT
#
# check_layers.py says who may include whom. Here: CUDA is known to kernels/ and to one header,
# kinds of layouts and of runs are known to their tables, every module is in the documents, no
# function is too long to be taken in, and a source file looks as all others do. An offence is a
# line.
set -eu
export LC_ALL=C
cd "$1"
tab=$(printf '\t')
offences=$(mktemp)
trap 'rm -f "$offences"' EXIT

sources=$(find examples include io kernels src tools tests -name '*.[ch]' -o -name '*.cc' \
	-o -name '*.cu' -o -name '*.cuh' -o -name '*.inc')
scripts=$(find tests tools -name '*.sh')

# offence CLAIM: what standard input holds contradicts it.
offence() {
	sed "s|^|$1: |" >> "$offences"
}

grep -n 'cuda_runtime' $sources |
	grep -vE '^(kernels/|src/device/cuda/cuda_device\.h:|tools/bench/|tests/kernels/)' |
	offence 'CUDA outside of kernels/, its tests and benchmarks, and cuda_device.h' || true
grep -nE 'include[ '"$tab"']*"' $sources |
	grep -vE '"((include|io|kernels|src|tools|tests)/[^"]*|config\.h)"' |
	offence 'include is not written from the root' || true

# Kinds are rows of tables: others ask what a layout or a run can do (docs/contributing.md).
grep -nE '\bLAYOUT_(CODES|RECORDS|REFERENCES)\b|layout(->|\.)kind\b' $sources |
	grep -vE '^(src/record/|src/device/(device\.h|[a-z]+/backend_[a-z]+\.c):|tests/)' |
	offence 'asks which kind of layout it is' || true
grep -nE 'include "src/(record/kinds|run/run_kind)\.h"' $sources |
	grep -vE '^(src/(record|run)|tests)/' |
	offence 'knows how a kind does it' || true

grep -nE '\brun_stored_file\(' $sources | grep -vE '^(src/(run|checkpoint|exchange)/|tests/)' |
	offence 'asks for the file of a run; only what keeps runs or sends them needs it' || true

# What a process has once is a front end's: its standard streams, environment, signals and end. Of
# the signals, thread.c holds back those of the calling thread; and in the handler of one that ends
# the process, undo.c keeps its files from growing.
process='((v?printf|puts|putchar|perror|_?exit|quick_exit|abort|system|(secure_)?getenv|(un)?setenv'
process="$process|signal|sigaction|sigprocmask|pthread_sigmask|raise|p?kill|alarm|mallopt|umask"
process="$process|chdir|setlocale|setrlimit|prctl)\\(|(stdin|stdout|stderr|environ)[,;)])"
grep -nE "(^|[^a-z_/])$process" $sources |
	grep -vE '^(src/cli|examples|tools|tests)/|^src/base/thread\.c:.*pthread_sigmask' |
	grep -vE '^io/output/undo\.c:.*setrlimit' |
	offence 'only a front end prints, exits, or changes what is of the process' || true
grep -nE 'include <(signal|threads)\.h>' $sources |
	grep -vE '^(src/cli/|tools/|tests/|src/base/thread\.)' |
	offence 'only a front end knows signals' || true
grep -nE '\b(pthread|thrd)_create\b' $sources |
	grep -vE '^(src/base/thread\.c|src/cli/process_setup\.c|tests/)' |
	offence 'a thread whose messages nobody hears: thread_start()' || true

# What a device is, is told in the plan as what follows from it.
grep -nE '(->|\.)unified\b' $sources | grep -vE '^(src/(device|plan)/|tests/)' |
	offence 'asks whether the device is unified' || true

# not_among LIST: the lines of standard input that are not in it.
not_among() {
	grep -vxF -e "$1" || true
}

printf '%s\n' $sources | not_among "$(awk '
FNR == 1 { opens = $0 == "/*" }
FNR == 2 && opens && /^ \* [A-Za-z0-9_.-]+ - ./ { print FILENAME }' $sources)" |
	offence 'does not open with "name - one line"'
printf '%s\n' $scripts | not_among "$(awk '
FNR <= 2 && /^# [A-Za-z0-9_.-]+ - ./ { print FILENAME }' $scripts)" |
	offence 'does not open with "name - one line"'
grep -L '^#pragma once$' $(printf '%s\n' $sources | grep -E '\.(h|cuh)$') |
	offence 'no #pragma once' || true
awk '
{
	n = split($0, parts, "\t")
	for (columns = i = 0; ++i < n;)
		columns += length(parts[i]) - length(parts[i]) % 8 + 8
	if (columns + length(parts[n]) > 100)
		print FILENAME ":" FNR ": " columns + length(parts[n]) " columns"
}' $sources $scripts | offence 'line over 100 columns'
# A function begins with a brace in the first column, and a table does not.
awk '
FNR == 1 || /^\}/ {
	if (FNR > 1 && first && FNR - first - 1 > 80)
		print FILENAME ":" first ": " FNR - first - 1 " lines"
	first = 0
}
/^\{$/ { first = FNR }' $(printf '%s\n' $sources | grep -vE '^(tools|tests)/') |
	offence 'function of more than 80 lines'
wc -l $(printf '%s\n' $sources | grep -v '^tests/') |
	awk '$1 > 1000 && $2 != "total" { print $2 ": " $1 " lines" }' |
	offence 'file of more than 1,000 lines'
# Blank lines of a macro are blanks and a backslash.
grep -nE '^    ' $sources $scripts | grep -vE ':[0-9]+: *\\$' | offence 'indented by blanks' || true
grep -nE "[ $tab]\$" $sources $scripts | offence 'blanks at the end of a line' || true
# -Dprogram_name: messages have the name that the program is built with.
grep -nE '"([^"]*[^-a-zA-Z0-9_./"])?gsort([^-a-zA-Z0-9_.("/][^"]*|-(mpi|check|gen)[^"]*)?"' \
	$(printf '%s\n' $sources | grep -E '^(src|io|kernels)/') | grep -v '#include' |
	grep -vE '^[^:]*:[0-9]+:[[:space:]]*/?[*]' |
	grep -vE '^src/checkpoint/checkpoint_dir.c:.*"gsort (manifest|runs)' |
	offence 'a message that does not use GSORT_PROGRAM' || true
# "| `src/base/` | ... | `status.c` messages ... |": the modules of each folder.
patterns=$(grep '^| `[a-z/]*` |' docs/design.md | grep -oE '`[a-z0-9_*]+\.c`' | tr -d '`')
in_table() {
	for pattern in $patterns; do
		case $1 in
		$pattern) return 0 ;;
		esac
	done
	return 1
}
for file in $(find io src -name '*.c'); do
	in_table "${file##*/}" || echo "$file" | offence 'docs/design.md does not say what it is'
done
find io kernels src tools tests | grep -E '/(util|utils|misc|common|helper|helpers)(\.|$)' |
	offence 'a name that says nothing' || true

sort "$offences"
[ ! -s "$offences" ]
