#!/bin/sh
# make_static_lib - make a static library of one object that exports only the public symbols
#
# usage: make_static_lib.sh OBJCOPY AR SYMBOLS_MAP OUTPUT ARCHIVE... -- COMPILER...
#
# Merges the objects of the ARCHIVEs with COMPILER, makes all symbols local that SYMBOLS_MAP does
# not list, and writes the archive OUTPUT. Otherwise internal functions such as fail() would clash
# with functions of a program that links the archive.
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
# Meson makes the names of the archives. They contain no blanks.
"$@" -r -nostdlib -o "$work/gsort.o" -Wl,--whole-archive $archives -Wl,--no-whole-archive
"$objcopy" --keep-global-symbols="$work/names" "$work/gsort.o"
rm -f "$output"
"$ar" rcsD "$output" "$work/gsort.o"
