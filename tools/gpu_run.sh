#!/bin/sh
# gpu_run.sh - test and time the kernels on a machine that has a GPU but no build tools
#
# usage: gpu_run.sh FOLDER [bench]
#
# FOLDER holds what `gpu_run.sh --pack BUILD FOLDER` has put there on the machine that builds: the
# test programs, gsort-bench-kernels, and cmocka's library, which need only the driver.
set -eu

if [ "$1" = --pack ]; then
	mkdir -p "$3"
	cp "$2"/tests/kernels/test_sort_kernels "$2"/tests/kernels/test_record_kernels \
		"$2"/tools/gsort-bench-kernels "$3"
	cp "$(ldconfig -p | awk '/libcmocka.so.0/ { print $NF; exit }')" "$3"
	cp "$0" "$3"
	exit 0
fi

folder=$1
export LD_LIBRARY_PATH="$folder"
status=0

for program in test_sort_kernels test_record_kernels; do
	timeout 120 "$folder/$program" || status=1
	for tool in memcheck racecheck; do
		KERNEL_TESTS=short timeout 40 compute-sanitizer --tool "$tool" --error-exitcode 1 \
			"$folder/$program" > "$folder/$tool.log" 2>&1 ||
			{ echo "$program, $tool: status $?"; tail -5 "$folder/$tool.log"; }
		grep 'SUMMARY' "$folder/$tool.log" || true
	done
done
[ "${2:-}" = bench ] || exit $status
for bench in sort merge merge-steps splitters; do
	echo "== $bench"
	timeout 120 "$folder/gsort-bench-kernels" "$bench" --runs=5
done
echo "== distributions"
timeout 120 "$folder/gsort-bench-kernels" distributions --runs=3 --element=8
exit $status
