#!/bin/sh
# check_gpu_arch_option.sh - -Dgpu_arch selects the architectures of the kernels
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

# expect VALUE CAPABILITIES CODE: with this value of the option and GPUs of these capabilities, the
# build contains this code
expect() {
	printf '#!/bin/sh\nprintf "%s"\n' "$2" > "$work/programs/nvidia-smi"
	chmod +x "$work/programs/nvidia-smi"
	rm -rf "$work/build"
	meson setup "$work/build" "$source" -Dtests=false -Dmanuals=disabled \
		-Dtoolkit="$toolkit" -Dgpu_arch="$1" > "$work/log" || {
		cat "$work/log"
		exit 1
	}
	found=$(grep -oE 'code=(sm|compute)_[0-9]+' "$work/build/build.ninja" | sort -u |
		sed 's/code=//' | tr '\n' ' ')
	[ "$found" = "$3 " ] || {
		echo "FAIL: -Dgpu_arch=$1, GPUs $2: code for $found; expected $3"
		failed=1
	}
}

expect auto '9.0\n7.5\n9.0\n' 'compute_90 sm_75 sm_90'
expect auto '7.0\n' 'compute_90 sm_80 sm_90'
expect 80,90-virtual '' 'compute_90 sm_80'
exit $failed
