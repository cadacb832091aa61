#!/bin/sh
# check_musl_build.sh - compile the programs with the headers of musl
#
# usage: check_musl_build.sh SOURCE_ROOT
#
# Checks that nothing depends on glibc. Does not link, because other libraries are installed for
# glibc only; their headers are the same. Without Highway and CUDA. Exits with 77 (skipped) without
# musl-gcc.
set -eu
cd "$1"
command -v musl-gcc > /dev/null || {
	echo 'no musl-gcc: skipped'
	exit 77
}
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
for name in asm asm-generic linux xxhash.h zstd.h zstd_errors.h zlib.h zconf.h jansson.h \
	jansson_config.h; do
	for directory in /usr/include /usr/include/"$(gcc -print-multiarch)"; do
		[ ! -e "$directory/$name" ] || ln -sfn "$directory/$name" "$headers/$name"
	done
done
mkdir "$headers/own"
cat > "$headers/own/config.h" << END
#define GSORT_VERSION "0"
#define GSORT_PROGRAM "gsort"
#define HAVE_CUDA 0
#define HAVE_HIGHWAY 0
END
# shellcheck disable=SC2046
musl-gcc -std=gnu17 -fsyntax-only -Wall -Wextra -Wshadow -Werror -D_GNU_SOURCE \
	-D_FILE_OFFSET_BITS=64 -DHAVE_KERNELS=0 -I. -I"$headers/own" -idirafter "$headers" \
	$(find io src tools -name '*.c' | grep -v -e /cuda -e /mpi/ -e bench_kernel -e gpu_timing)
