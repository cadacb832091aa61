#!/bin/sh
# nvcc - compile a file of device code to the same bytes wherever and whenever that is done
#
# usage: nvcc.sh NVCC OUTPUT ARGUMENT...
#
# nvcc names its temporary files by its process, and the last of them stays in OUTPUT as the name of
# its source.
set -eu
nvcc=$1 output=$2
shift 2
"$nvcc" "$@" -o "$output"
objcopy --wildcard --strip-symbol='tmpxft_*' "$output"
