#!/bin/sh
# library_flags - a program is compiled with the pkg-config file of a build, as library.md says
#
# usage: library_flags.sh SOURCE_ROOT BUILD_ROOT COMPILER...
#
# GSORT_GEN in the environment is a program. Skipped without pkg-config.
. "$(dirname "$0")/../cli/testlib.sh"

source_root=$1 build_root=$2
shift 2
command -v pkg-config > /dev/null || exit 77
export PKG_CONFIG_PATH="$build_root/meson-uninstalled"
generate -n 1000 --seed=5 -o numbers
od -A n -v -t u8 -w8 numbers | tr -d ' ' | sort -rn | head -n 7 > expected

# compile COMPILER...: compile the example top_k with $flags
compile() {
	"$@" "$source_root/examples/top_k.c" -o top_k $flags 2> stderr || fail "cannot compile"
}

claim "flags of the shared library compile and link an example"
flags=$(pkg-config --cflags --libs gsort) || fail "pkg-config fails"
compile "$@"
LD_LIBRARY_PATH="$build_root/src" ./top_k 7 < numbers > found 2> stderr || fail "status $?"
cmp -s expected found || fail "$(diff expected found | head -3)"

claim "with -l:libgsort.a, the flags of --static link the archive"
rm -f top_k
flags=$(pkg-config --cflags --static --libs gsort | sed 's/-lgsort/-l:libgsort.a/')
compile "$@"
env -u LD_LIBRARY_PATH ./top_k 7 < numbers > found 2> stderr || fail "status $?"
cmp -s expected found || fail "$(diff expected found | head -3)"
finish
