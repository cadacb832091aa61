#!/bin/sh
# check_reproducible - what `meson dist` packs is built in another directory, and is the same to
# the byte
#
# usage: check_reproducible.sh BUILD OPTION...
#
# BUILD is a build of a checkout of git without changes, and OPTION what `meson setup` was given for
# it. Ends with status 77, and the reason, where that cannot be: skipped.
#
# Compared are all files that are installed. What a build without optimisation tells about itself
# (file names in assertions) and code of the GPU are among them; information for debuggers, which
# names directories, is not: whoever packs it says -ffile-prefix-map.
set -eu
build=$1
shift
without() {
	echo "check_reproducible.sh: $1"
	exit 77
}
status=$(git status --porcelain 2> /dev/null) || without 'no checkout of git'
[ -z "$status" ] || without 'there are changes that are in no commit'

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
trap 'exit 99' HUP INT TERM
work=$elsewhere/one/more
mkdir -p "$work" "$elsewhere/here" "$elsewhere/there"

meson dist -C "$build" --no-tests --formats=gztar > "$elsewhere/log" 2>&1 || {
	cat "$elsewhere/log"
	exit 1
}
tar xzf "$build"/meson-dist/gsort-*.tar.gz -C "$work"
rm -r "$build/meson-dist"
cd "$work"/gsort-*
if ! meson setup another -Dtests=false "$@" > "$elsewhere/log" 2>&1 ||
		! ninja -C another >> "$elsewhere/log" 2>&1; then
	cat "$elsewhere/log"
	echo 'check_reproducible.sh: what is packed cannot be built'
	exit 1
fi
DESTDIR=$elsewhere/there meson install -C another --no-rebuild > /dev/null
cd - > /dev/null
DESTDIR=$elsewhere/here meson install -C "$build" --no-rebuild > /dev/null
diff -r "$elsewhere/here" "$elsewhere/there" || {
	echo 'check_reproducible.sh: built elsewhere it is not the same'
	exit 1
}
echo "$(find "$elsewhere/here" -type f | wc -l) files are the same"
