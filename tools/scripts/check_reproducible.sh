#!/bin/sh
# check_reproducible - build the package of `meson dist` in two directories and compare the results
#
# usage: check_reproducible.sh BUILD OPTION...
#
# Packs the checkout of BUILD, builds the package in two directories with the OPTIONs of
# `meson setup`, and compares all installed files. Exits with 0 if they are equal, with 1 if a build
# fails or files differ, and with 77 (skipped) if this is not a Git checkout or if it has
# uncommitted changes.
#
# The result must not depend on the directory. Assertions contain names of source files, so they are
# compared if the OPTIONs enable them. Debug information contains directories, so the OPTIONs must
# disable it; packagers set -ffile-prefix-map.
set -eu
build=$1
shift
without() {
	echo "check_reproducible.sh: $1"
	exit 77
}
status=$(git status --porcelain 2> /dev/null) || without 'not a Git checkout'
[ -z "$status" ] || without 'uncommitted changes'

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
trap 'exit 99' HUP INT TERM
mkdir -p "$elsewhere/here" "$elsewhere/one/more"

meson dist -C "$build" --no-tests --formats=gztar > "$elsewhere/log" 2>&1 || {
	cat "$elsewhere/log"
	exit 1
}
package=$(ls "$build"/meson-dist/gsort-*.tar.gz)
# The two paths differ in length and depth.
for place in here one/more; do
	tar xzf "$package" -C "$elsewhere/$place" --strip-components=1
	if ! (cd "$elsewhere/$place" && meson setup build -Dtests=false "$@" && ninja -C build) \
			> "$elsewhere/log" 2>&1; then
		cat "$elsewhere/log"
		echo 'check_reproducible.sh: the package does not build'
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
