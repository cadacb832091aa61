#!/bin/sh
# check_reproducible - what `meson dist` packs builds, and the same to the byte in any directory
#
# usage: check_reproducible.sh BUILD OPTION...
#
# Packs the checkout of BUILD, which must have no uncommitted changes, builds the package in two
# directories with the OPTIONs of `meson setup`, and compares all files that are installed. Exits
# with 77, and the reason, if that is not possible: skipped.
#
# Without optimisation the programs name source files in assertions, which is compared as well.
# Debug information names directories and is not compared: packagers set -ffile-prefix-map.
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
mkdir -p "$elsewhere/here" "$elsewhere/one/more"

meson dist -C "$build" --no-tests --formats=gztar > "$elsewhere/log" 2>&1 || {
	cat "$elsewhere/log"
	exit 1
}
package=$(ls "$build"/meson-dist/gsort-*.tar.gz)
# The two differ in the length and the depth of their paths.
for place in here one/more; do
	tar xzf "$package" -C "$elsewhere/$place" --strip-components=1
	if ! (cd "$elsewhere/$place" && meson setup build -Dtests=false "$@" && ninja -C build) \
			> "$elsewhere/log" 2>&1; then
		cat "$elsewhere/log"
		echo 'check_reproducible.sh: the package cannot be built'
		exit 1
	fi
	DESTDIR=$elsewhere/$place/installed meson install -C "$elsewhere/$place/build" \
		--no-rebuild > /dev/null
done
rm -r "$build/meson-dist"
diff -r "$elsewhere/here/installed" "$elsewhere/one/more/installed" || {
	echo 'check_reproducible.sh: the two builds differ'
	exit 1
}
echo "$(find "$elsewhere/here/installed" -type f | wc -l) files are equal"
