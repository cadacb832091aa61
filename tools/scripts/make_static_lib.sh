#!/bin/sh
# make_static_lib - make the static library one object that exports only public symbols
#
# usage: make_static_lib.sh OBJCOPY AR SYMBOLS_MAP OUTPUT ARCHIVE... -- COMPILER...
#
# Objects of an archive share all global symbols with the program: our fail() or warn() would clash
# with the program's. So the objects are linked to one, and all symbols that are not in SYMBOLS_MAP
# become local.
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
# Names of archives are ours and contain no blanks.
"$@" -r -nostdlib -o "$work/gsort.o" -Wl,--whole-archive $archives -Wl,--no-whole-archive
"$objcopy" --keep-global-symbols="$work/names" "$work/gsort.o"
rm -f "$output"
"$ar" rcsD "$output" "$work/gsort.o"
