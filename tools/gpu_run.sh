#!/bin/sh
# gpu_run.sh - test and time the CUDA back end on a machine that has a GPU but no build tools
#
# usage: gpu_run.sh FOLDER [bench]
#
# FOLDER holds what `gpu_run.sh --pack BUILD FOLDER` has put there on the machine that builds: the
# test programs, gsort-bench-kernels, and the libraries that they need besides the driver.
set -eu

programs='tests/kernels/test_sort_kernels tests/kernels/test_record_kernels
	tests/kernels/test_delta_kernels tests/kernels/check_cuda
	tests/backend/check_backend tools/gsort-bench-kernels'

if [ "$1" = --pack ]; then
	mkdir -p "$3"
	for program in $programs; do
		cp "$2/$program" "$3"
		ldd "$2/$program" | awk '/libcmocka|libhwy|libzstd|libxxhash|liburing/ { print $3 }'
	done | sort -u | xargs -I LIBRARY cp LIBRARY "$3"
	cp "$0" "$3"
	exit 0
fi

folder=$1
export LD_LIBRARY_PATH="$folder"
status=0

for program in test_sort_kernels test_record_kernels test_delta_kernels check_cuda; do
	timeout 120 "$folder/$program" > "$folder/log" 2>&1 || status=1
	tail -3 "$folder/log"
	for tool in memcheck racecheck; do
		KERNEL_TESTS=short timeout 40 compute-sanitizer --tool "$tool" --error-exitcode 1 \
			"$folder/$program" > "$folder/log" 2>&1 ||
			{ echo "$program, $tool: status $?"; tail -5 "$folder/log"; }
		grep 'SUMMARY' "$folder/log" || true
	done
done
timeout 200 "$folder/check_backend" cuda > "$folder/log" 2>&1 || status=1
tail -20 "$folder/log"
[ "${2:-}" = bench ] || exit $status
for bench in sort merge merge-steps splitters delta pairs records; do
	echo "== $bench"
	timeout 120 "$folder/gsort-bench-kernels" "$bench" --runs=5
done
echo "== distributions"
timeout 120 "$folder/gsort-bench-kernels" distributions --runs=3 --element=8
exit $status
