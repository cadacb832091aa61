#!/bin/sh
# check_gpu_arch_option - -Dgpu_arch=auto selects the local GPUs that the toolkit supports
#
# usage: check_gpu_arch_option.sh SOURCE_ROOT TOOLKIT
#
# The GPUs that are here are said by an nvidia-smi of our own.
set -eu
source=$1 toolkit=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
mkdir "$work/programs"
PATH=$work/programs:$PATH
broken=0

# taken CAPABILITIES EXPECTED: what a build has code for, and the PTX of it
taken() {
	printf '#!/bin/sh\nprintf "%s"\n' "$1" > "$work/programs/nvidia-smi"
	chmod +x "$work/programs/nvidia-smi"
	rm -rf "$work/build"
	meson setup "$work/build" "$source" -Dtests=false -Dmanuals=disabled \
		-Dtoolkit="$toolkit" > "$work/log" || {
		cat "$work/log"
		exit 1
	}
	found=$(grep -oE 'code=(sm|compute)_[0-9]+' "$work/build/build.ninja" | sort -u |
		sed 's/code=//' | tr '\n' ' ')
	[ "$found" = "$2 " ] || {
		echo "BROKEN: GPUs of $1: $found, not $2"
		broken=1
	}
}

taken '9.0\n7.5\n9.0\n' 'compute_90 sm_75 sm_90'
taken '7.0\n' 'compute_90 sm_80 sm_90'
exit $broken
