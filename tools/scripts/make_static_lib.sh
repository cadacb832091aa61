#!/bin/sh
# make_static_lib - the library as an archive of one object, in which only its own names can be seen
#
# usage: make_static_lib.sh OBJCOPY AR SYMBOLS_MAP OUTPUT ARCHIVE... -- COMPILER...
#
# Objects of a library that is linked as an archive share all names with the program: a fail() or
# warn() of ours would be that of the program, too. So they become one, which has no other global
# symbols than those of the list.
set -eu
objcopy=$1 ar=$2 map=$3 output=$4
shift 4
archives=
while [ "$1" != -- ]; do
	archives="$archives $1"
	shift
done
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n 's/^[[:space:]]*\(gsort_[a-z_]*\);$/\1/p' "$map" > "$work/names"
# Names of archives are of the build, and have no blanks.
"$@" -r -nostdlib -o "$work/gsort.o" -Wl,--whole-archive $archives -Wl,--no-whole-archive
"$objcopy" --keep-global-symbols="$work/names" "$work/gsort.o"
rm -f "$output"
"$ar" rcsD "$output" "$work/gsort.o"
