#!/bin/sh
# style - who may include whom, and how a source file looks
#
# usage: style.sh SOURCE_ROOT
#
# The folders are layers (docs/design.md): io/ and kernels/ know only themselves and the leaves,
# src/ reaches CUDA in one file, and nothing below knows the front ends. An offence is a line.
set -eu
export LC_ALL=C
cd "$1"
tab=$(printf '\t')
leaves='src/(status|record|bytes|code|delta|delta_format|digest|key_word)\.h|config\.h'
offences=$(mktemp)
trap 'rm -f "$offences"' EXIT

sources=$(find io kernels src tools tests -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' \
	-o -name '*.cuh' -o -name '*.inc')
scripts=$(find tests tools -name '*.sh')

# offence CLAIM: what standard input holds contradicts it.
offence() {
	sed "s|^|$1: |" >> "$offences"
}

# only LAYER REGEX: files of the layer include nothing of ours but what matches.
only() {
	grep -rnE '^[ '"$tab"']*#[ '"$tab"']*include[ '"$tab"']*"' "$1" | grep -vE "\"($2)\"" |
		offence "$1/ may not know this" || true
}

only io "io/[^\"]*|$leaves"
only kernels "kernels/[^\"]*|$leaves"
only src "(src|io|kernels)/[^\"]*|$leaves"

grep -n 'cuda_runtime' $sources |
	grep -vE '^(kernels/|src/cuda_device\.h:|tools/bench_|tests/kernels/)' |
	offence 'CUDA outside of kernels/, its tests and benchmarks, and src/cuda_device.h' || true
grep -nE 'include[ '"$tab"']*"' $sources |
	grep -vE '"((io|kernels|src|tools|tests)/[^"]*|config\.h)"' |
	offence 'include is not written from the root' || true

for file in $sources; do
	sed -n '1p;2p' "$file" | tr '\n' '~' | grep -qE '^/\*~ \* [A-Za-z0-9_.-]+ - .' ||
		echo "$file" | offence 'does not open with "name - one line"'
	case $file in
	*.h | *.cuh) grep -q '^#pragma once$' "$file" || echo "$file" | offence 'no #pragma once' ;;
	esac
done
for file in $scripts; do
	sed -n '1,2p' "$file" | grep -qE '^# [A-Za-z0-9_.-]+ - .' ||
		echo "$file" | offence 'does not open with "name - one line"'
done
for file in $sources $scripts; do
	expand -t8 "$file" |
		awk -v file="$file" 'length > 100 { print file ":" NR ": " length " columns" }' |
		offence 'line over 100 columns'
done
# Blank lines of a macro are blanks and a backslash.
grep -nE '^    ' $sources $scripts | grep -vE ':[0-9]+: *\\$' | offence 'indented by blanks' || true
grep -nE "[ $tab]\$" $sources $scripts | offence 'blanks at the end of a line' || true
# "| `src/checkpoint*.c` `saver.c` | ... |": the patterns, without folders.
patterns=$(sed -n 's/^| \(`[^|]*`\) |.*/\1/p' docs/design.md | grep -oE '[a-z0-9_*]+\.c')
in_table() {
	for pattern in $patterns; do
		case $1 in
		$pattern) return 0 ;;
		esac
	done
	return 1
}
for file in io/*.c src/*.c; do
	in_table "${file#*/}" || echo "$file" | offence 'docs/design.md does not say what it is'
done
find io kernels src tools tests | grep -E '/(util|utils|misc|common|helper|helpers)(\.|$)' |
	offence 'a name that says nothing' || true

sort "$offences"
[ ! -s "$offences" ]
