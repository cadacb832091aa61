#!/bin/sh
# nvcc - compile a file of device code reproducibly
#
# usage: nvcc.sh NVCC OUTPUT ARGUMENT...
#
# nvcc names its temporary files after its process ID. OUTPUT has a symbol with such a name, which is
# removed.
set -eu
nvcc=$1 output=$2
shift 2
"$nvcc" "$@" -o "$output"
objcopy --wildcard --strip-symbol='tmpxft_*' "$output"
