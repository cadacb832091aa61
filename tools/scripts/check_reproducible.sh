#!/bin/sh
# check_reproducible - build the package of `meson dist` in two directories and compare the results
#
# usage: check_reproducible.sh BUILD PACKAGE OPTION...
#
# Packs the checkout of BUILD, builds the package in the directory PACKAGE and in a temporary one
# with the OPTIONs of `meson setup`, and compares all installed files. PACKAGE/build remains. Exits
# with 0 if they are equal, with 1 if a build fails or files differ, and with 77 (skipped) if this
# is not a Git checkout or if it has uncommitted changes.
#
# The result must not depend on the directory. Assertions contain names of source files, so they are
# compared if the OPTIONs enable them. Debug information contains directories, so the OPTIONs must
# disable it; packagers set -ffile-prefix-map.
set -eu
build=$1 package=$2
shift 2
without() {
	echo "check_reproducible.sh: $1"
	exit 77
}
status=$(git status --porcelain 2> /dev/null) || without 'not a Git checkout'
[ -z "$status" ] || without 'uncommitted changes'

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
trap 'exit 99' HUP INT TERM
rm -rf "$package"
mkdir -p "$package" "$elsewhere/one/more"
package=$(realpath "$package")

meson dist -C "$build" --no-tests --formats=gztar > "$elsewhere/log" 2>&1 || {
	cat "$elsewhere/log"
	exit 1
}
# The two paths differ in length and depth.
for place in "$package" "$elsewhere/one/more"; do
	tar xzf "$build"/meson-dist/gsort-*.tar.gz -C "$place" --strip-components=1
	if ! (cd "$place" && meson setup build -Dtests=false "$@" && ninja -C build) \
			> "$elsewhere/log" 2>&1; then
		cat "$elsewhere/log"
		echo 'check_reproducible.sh: the package does not build'
		exit 1
	fi
	DESTDIR=$place/installed meson install -C "$place/build" --no-rebuild > /dev/null
done
rm -r "$build/meson-dist"
diff -r "$package/installed" "$elsewhere/one/more/installed" || {
	echo 'check_reproducible.sh: the two builds differ'
	exit 1
}
echo "$(find "$package/installed" -type f | wc -l) files are equal"
