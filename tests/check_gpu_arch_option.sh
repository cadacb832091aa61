#!/bin/sh
# check_gpu_arch_option.sh - -Dgpu_arch=auto selects the GPUs of this machine that CUDA supports
#
# usage: check_gpu_arch_option.sh SOURCE_ROOT TOOLKIT
#
# A fake nvidia-smi lists the GPUs. Prints one line for each wrong build and exits with 1 if there
# is any.
set -eu
source=$1 toolkit=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
mkdir "$work/programs"
PATH=$work/programs:$PATH
failed=0

# expect CAPABILITIES ARCHITECTURES: with GPUs of these capabilities, the build contains code for
# these architectures and PTX for the newest
expect() {
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
		echo "FAIL: GPUs $1: code for $found; expected $2"
		failed=1
	}
}

expect '9.0\n7.5\n9.0\n' 'compute_90 sm_75 sm_90'
expect '7.0\n' 'compute_90 sm_80 sm_90'
exit $failed
