#!/bin/sh
# gpu_faults - gsort with a GPU that is missing, has no free memory, or fails during the sort
#
# Skipped (77) without a GPU. HOLD_GPU_MEMORY and CUDA_FAULTS are the paths of two programs:
# tests/kernels/hold_gpu_memory.c and tests/fault/sort_under_faults.c, built for CUDA.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/compare_backends.sh"

gsort=$GSORT
generate -n 3000001 -o input
expect_success --backend=cpu -o expected input

# wrap_gsort LINE: from now on $GSORT is a script that runs LINE and then gsort
wrap_gsort() {
	printf '#!/bin/sh\n%s\nexec "%s" "$@"\n' "$1" "$gsort" > wrapped
	chmod +x wrapped
	GSORT=./wrapped
}

# run_from_pipe ARGUMENT...: sort from a pipe, whose size is unknown; a small file would not use
# the GPU
run_from_pipe() {
	rm -f output
	cat input | "$GSORT" -o output "$@" > stdout 2> stderr
	status=$?
	expect_no_temp_files "gsort $*, from a pipe"
}

# expect_cpu_fallback [REGEX]: without --backend the CPU sorts, silently or with a warning that
# matches
expect_cpu_fallback() {
	run_from_pipe
	expect_status 0 'gsort, from a pipe'
	expect_same expected output 'gsort, from a pipe'
	if [ $# -gt 0 ]; then
		expect_message "$1" 'gsort, from a pipe'
	elif [ -s stderr ]; then
		fail 'gsort, from a pipe: not silent'
	fi
}

# expect_output_or_error REGEX ARGUMENT...: the output is right, or gsort fails with one line
expect_output_or_error() {
	refusal=$1
	shift
	run_from_pipe "$@"
	if [ "$status" -eq 0 ]; then
		expect_same expected output "gsort $*"
	else
		expect_status 2 "gsort $*"
		[ ! -e output ] || fail "gsort $*: an output"
		expect_message "$refusal" "gsort $*"
	fi
}

# allocate_gpu_memory MIB: another program allocates all GPU memory except MIB
allocate_gpu_memory() {
	mkfifo holding holds
	"$HOLD_GPU_MEMORY" "$1" < holding > holds &
	taker=$!
	exec 3> holding
	read -r left < holds || fail 'hold_gpu_memory failed'
	echo "$left"
}

free_gpu_memory() {
	exec 3>&-
	wait $taker
	rm holding holds
}

claim 'no device'
for devices in '' 99; do
	wrap_gsort "export CUDA_VISIBLE_DEVICES=$devices"
	expect_error '--backend=cuda: no usable GPU: ' --backend=cuda input
	expect_cpu_fallback
done

claim 'no driver'
mkdir broken
echo 'not a library' > broken/libcuda.so.1
wrap_gsort "export LD_LIBRARY_PATH=$work/broken:${LD_LIBRARY_PATH:-}"
expect_error '--backend=cuda: no usable GPU: ' --backend=cuda input
expect_cpu_fallback

claim 'a driver without address space'
wrap_gsort 'ulimit -v 4000000'
expect_error 'GPU' --backend=cuda input
run_from_pipe
expect_status 0
expect_same expected output 'gsort, from a pipe'
GSORT=$gsort

claim 'a GPU number that does not exist'
expect_error 'GPU 99: .*device' --backend=cuda --gpus=99 input

claim 'more memory than the device has'
expect_output expected --backend=cuda --device-memory=100T input
expect_output_or_error 'NEVER' --backend=cuda --device-memory=100T -S 64M

claim 'another program has all the memory'
allocate_gpu_memory 16
expect_error 'GPU' --backend=cuda input
expect_cpu_fallback 'warning: .*sorting on the CPU'
free_gpu_memory

claim 'another program has most of the memory'
for left in 600 800 1000; do
	allocate_gpu_memory $left
	expect_output_or_error 'GPU|NVIDIA' --backend=cuda
	expect_output_or_error 'GPU|NVIDIA' --backend=cuda -S 4M --temp-compress=none
	free_gpu_memory
done

claim 'the CUDA context fails'
for mode in cuda cuda-spill cuda-merge cuda-packed cuda-records cuda-pairs cuda-long-keys \
	cuda-reports auto; do
	for n in 1 '' ''; do
		"$CUDA_FAULTS" --dies $mode $n > log 2>&1 || fail "$mode: $(cat log)"
	done
done

claim 'the next process can use the GPU'
expect_output expected --backend=cuda input

finish
