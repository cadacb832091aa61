#!/bin/sh
# gpu_faults - gsort with a GPU that is missing, has no free memory, or fails during the sort
#
# Skipped (77) without a GPU. HOLD_GPU_MEMORY and CUDA_FAULTS are the paths of two programs:
# tests/kernels/hold_gpu_memory.c and tests/fault/sort_under_faults.c, built for CUDA.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/compare_backends.sh"

gsort=$GSORT
generate -n 3000001 -o input
succeeds --backend=cpu -o expected input

# surrounded LINE: from now on $GSORT is a script that runs LINE and then gsort
surrounded() {
	printf '#!/bin/sh\n%s\nexec "%s" "$@"\n' "$1" "$gsort" > surrounded
	chmod +x surrounded
	GSORT=./surrounded
}

# from_pipe ARGUMENT...: sort from a pipe, whose size is unknown; a small file would not use the GPU
from_pipe() {
	rm -f output
	cat input | "$GSORT" -o output "$@" > stdout 2> stderr
	status=$?
	nothing_left "gsort $*, from a pipe"
}

# the_cpu_sorts [REGEX]: without --backend the CPU sorts, silently or with a warning that matches
the_cpu_sorts() {
	from_pipe
	[ "$status" -eq 0 ] || broken "gsort, from a pipe: status $status"
	same expected output 'gsort, from a pipe'
	if [ $# -gt 0 ]; then
		one_line "$1" 'gsort, from a pipe'
	elif [ -s stderr ]; then
		broken 'gsort, from a pipe: not silent'
	fi
}

# sorts_or_refuses REGEX ARGUMENT...: the output is right, or gsort fails with one line
sorts_or_refuses() {
	refusal=$1
	shift
	from_pipe "$@"
	if [ "$status" -eq 0 ]; then
		same expected output "gsort $*"
	else
		[ "$status" -eq 2 ] || broken "gsort $*: status $status"
		[ ! -e output ] || broken "gsort $*: an output"
		one_line "$refusal" "gsort $*"
	fi
}

# take_memory MIB: another program allocates all GPU memory except MIB
take_memory() {
	mkfifo holding holds
	"$HOLD_GPU_MEMORY" "$1" < holding > holds &
	taker=$!
	exec 3> holding
	read -r left < holds || broken 'hold_gpu_memory failed'
	echo "$left"
}

give_memory_back() {
	exec 3>&-
	wait $taker
	rm holding holds
}

claim 'no device'
for devices in '' 99; do
	surrounded "export CUDA_VISIBLE_DEVICES=$devices"
	refuses '--backend=cuda, --gpus: no usable GPU: ' --backend=cuda input
	the_cpu_sorts
done

claim 'no driver'
mkdir broken
echo 'not a library' > broken/libcuda.so.1
surrounded "export LD_LIBRARY_PATH=$work/broken:${LD_LIBRARY_PATH:-}"
refuses '--backend=cuda, --gpus: no usable GPU: ' --backend=cuda input
the_cpu_sorts

claim 'a driver without address space'
surrounded 'ulimit -v 4000000'
refuses 'GPU' --backend=cuda input
from_pipe
[ "$status" -eq 0 ] || broken "status $status"
same expected output 'gsort, from a pipe'
GSORT=$gsort

claim 'a GPU number that does not exist'
refuses 'GPU 99: .*device' --backend=cuda --gpus=99 input

claim 'more memory than the device has'
gives expected --backend=cuda --device-memory=100T input
sorts_or_refuses 'NEVER' --backend=cuda --device-memory=100T -S 64M

claim 'another program has all the memory'
take_memory 16
refuses 'GPU' --backend=cuda input
the_cpu_sorts 'warning: .*sorting on the CPU'
give_memory_back

claim 'another program has most of the memory'
for left in 600 800 1000; do
	take_memory $left
	sorts_or_refuses 'GPU|NVIDIA' --backend=cuda
	sorts_or_refuses 'GPU|NVIDIA' --backend=cuda -S 4M --temp-compress=none
	give_memory_back
done

claim 'the CUDA context fails'
for mode in cuda cuda-spill cuda-merge cuda-packed cuda-records cuda-pairs cuda-long-keys \
	cuda-reports auto; do
	for n in 1 '' ''; do
		"$CUDA_FAULTS" --dies $mode $n > log 2>&1 || broken "$mode: $(cat log)"
	done
done

claim 'the next process can use the GPU'
gives expected --backend=cuda input

finish
