#!/bin/sh
# run_gpu_tests.sh - test and time the CUDA back end on a machine with a GPU but no build tools
#
# usage: run_gpu_tests.sh --pack BUILD FOLDER
#        run_gpu_tests.sh FOLDER [bench]
#
# --pack runs on the build machine. It copies to FOLDER the programs, their libraries except the
# driver, the scripts of tests/cli and the benchmarks.
#
# The second form runs on the GPU machine. It runs all tests at the same time, except gpu_faults.sh,
# which uses up the memory of the GPU. It prints the ends of the logs (FOLDER/logs), and then
# "failed: none" or the failed tests. With "bench", it then times the kernels and sorts of lines
# with keys. Exits with 0 if no test failed. FOLDER/bench_series.py measures the data of
# docs/pictures.
#
# Environment:
#  GSORT_SECONDS      time of the random configurations (default: 60)
#  FAULTS=--all       make every call of the CUDA runtime fail, instead of a sample
#  SANITIZER_SECONDS  time after which compute-sanitizer is stopped (default: 120)
set -eu

kernels='tests/kernels/test_sort_kernels tests/kernels/test_gather_kernels
	tests/kernels/test_delta_kernels tests/kernels/test_line_kernels
	tests/kernels/check_cuda'
programs="$kernels tests/backend/check_backend tests/fault/sort_under_cuda_faults
	tests/kernels/hold_gpu_memory tests/cli/key_lines src/gsort tools/gsort-gen
	tools/gsort-check tools/gsort-bench-kernels"

pack() {
	build=$1 folder=$2 source=$(dirname "$0")/../..
	mkdir -p "$folder/cli"
	for program in $programs; do
		cp "$build/$program" "$folder"
		ldd "$build/$program" |
			awk '/lib(cmocka|hwy|zstd|xxhash|z\.|jansson)/ { print $3 }'
	done | sort -u | xargs -I LIBRARY cp LIBRARY "$folder"
	cp "$source"/tests/cli/*.sh "$source"/tests/cli/lines_random.py "$folder/cli"
	cp "$0" "$source"/tools/scripts/bench_series.py "$source"/tools/scripts/bench_gpus.py \
		"$source"/tools/scripts/bench_data.py "$folder"
	cp "$(command -v xxd)" "$folder" # for the reference sorts; not every machine has xxd
}

# job NAME SECONDS COMMAND...: run a command in the background for at most SECONDS
job() {
	name=$1 seconds=$2
	shift 2
	(
		began=$(date +%s) status=0
		timeout "$seconds" "$@" > "$logs/$name.log" 2>&1 || status=$?
		echo "$name: status $status after $(($(date +%s) - began)) s"
		echo "$status" > "$logs/$name.status"
	) &
}

cli_script() {
	job "$1" 400 sh "$folder/cli/$1.sh"
}

# gpu_script N NAME: run a script with GPU N only. With one visible GPU a process starts in half of
# the time.
gpu_script() {
	CUDA_VISIBLE_DEVICES=$1 cli_script "$2"
}

# sanitized PROGRAM TOOL: run a program with compute-sanitizer. Reaching the time limit is not a
# failure.
sanitized() {
	job "$1-$2" 200 sh -c '
		timeout "${SANITIZER_SECONDS:-120}" \
			compute-sanitizer --tool "$1" --error-exitcode 1 "$2"
		status=$?
		[ $status -eq 124 ] || exit $status' sanitized "$2" "$folder/$1"
}

# Time sorts of lines with keys: GNU sort, gsort on the CPU and on the GPU. Compares their outputs.
bench_line_keys() {
	csv=$(mktemp)
	trap 'rm -f "$csv" "$csv".*' EXIT
	for part in $(seq 16); do # 256 MiB each
		"$folder/gsort-gen" -b 97M --seed="$part" | od -An -v -w12 -t u4 |
			tr -s ' ' , | cut -c 2- > "$csv.part-$part" &
	done
	wait
	cat "$csv".part-* > "$csv"
	rm "$csv".part-*
	for keys in '-t, -k1,1n' '-t, -k3,3 -k1,1r'; do
		for program in "sort --parallel=$(nproc) -S 48G" 'gsort --lines --backend=cpu' \
			'gsort --lines --backend=cuda'; do
			began=$(date +%s%N)
			# shellcheck disable=SC2086 # options
			LC_ALL=C $program $keys "$csv" -o "$csv.out"
			echo "$program $keys: $((($(date +%s%N) - began) / 1000000)) ms"
			[ ! -e "$csv.sort" ] || cmp "$csv.sort" "$csv.out"
			[ -e "$csv.sort" ] || mv "$csv.out" "$csv.sort"
		done
		rm "$csv.sort"
	done
}

# Wait for the jobs and print the ends of their logs.
finish_jobs() {
	wait
	for log in "$logs"/*.log; do
		job_name=$(basename "$log" .log)
		case $job_name in
		*-memcheck | *-racecheck) summary=$(grep 'SUMMARY' "$log" || tail -3 "$log") ;;
		*) summary=$(tail -12 "$log") ;;
		esac
		printf -- '--- %s\n%s\n' "$job_name" "$summary"
		[ "$(cat "$logs/$job_name.status")" -eq 0 ] || failed="$failed $job_name"
		mv "$log" "$logs/$job_name.status" "$logs/done"
	done
}

if [ "$1" = --pack ]; then
	pack "$2" "$3"
	exit
fi

folder=$(cd "$1" && pwd)
logs=$folder/logs
failed=
mkdir -p "$logs/done"
export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" PATH="$folder:$PATH"
export GSORT="$folder/gsort" GSORT_GEN="$folder/gsort-gen" KEY_LINES="$folder/key_lines"
export HOLD_GPU_MEMORY="$folder/hold_gpu_memory" CUDA_FAULTS="$folder/sort_under_cuda_faults"
export GSORT_BACKENDS='cpu cuda' GSORT_SECONDS="${GSORT_SECONDS:-60}"

for program in $kernels; do
	program=$(basename "$program")
	job "$program" 120 "$folder/$program"
	KERNEL_TESTS=short sanitized "$program" memcheck
	KERNEL_TESTS=short sanitized "$program" racecheck
done
job check_backend 250 "$folder/check_backend" cuda
job faults 300 "$CUDA_FAULTS" ${FAULTS:-}
last=$(($(nvidia-smi -L | grep -c '^GPU ') - 1))
for seed in 1 2 3; do
	job lines_random-$seed 250 python3 "$folder/cli/lines_random.py" --cuda --seed=$seed \
		--count=60 --large=4
done
# A file that is larger than outputs that are prefaulted, with much and with little memory.
job lines_large 100 sh -c '
	set -e
	file=$(mktemp)
	trap "rm -f $file $file.out" EXIT
	gsort-gen -b 500M | base64 -w 28 > "$file"
	for memory in 200M 2G; do
		gsort --lines --backend=cuda -S $memory "$file" -o "$file.out"
		gsort --lines -c "$file.out"
		[ "$(wc -c < "$file.out")" -eq "$(wc -c < "$file")" ]
	done'
gpu_script 0 backends
gpu_script $last backend_records
gpu_script $last random_scalars
gpu_script $last gpu_lines
gpu_script 0 random_records
cli_script gpu_devices
finish_jobs
cli_script gpu_faults
finish_jobs
echo "failed:${failed:- none}"
if [ "${2:-}" = bench ]; then
	for bench in sort merge merge-steps splitters records; do
		echo "== $bench"
		timeout 120 "$folder/gsort-bench-kernels" "$bench" --runs=5
	done
	echo "== distributions"
	timeout 120 "$folder/gsort-bench-kernels" distributions --runs=3 --element=8
	echo "== lines with keys, $(nproc) processors"
	bench_line_keys
fi
[ -z "$failed" ]
