#!/bin/sh
# gpu_devices - one GPU that is named several times, and all GPUs, write the bytes of the CPU
# Skipped (77) without a GPU.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/compare_backends.sh"

tiny='--device-memory=4M -S 4M'

# compare_gpus ARGUMENT...: sort `input` with one GPU as two and three devices, and with all GPUs
compare_gpus() {
	expect_success --backend=cpu -o expected "$@" input
	for gpus in 0,0 0,0,0 all; do
		expect_success --gpus=$gpus -o output "$@" input
		expect_same expected output "gsort --gpus=$gpus $*"
	done
}

claim 'one GPU as several devices, and all GPUs'
for n in 0 1 65536 3000001; do
	generate -n $n -d zipf -o input
	compare_gpus
	compare_gpus -u
	compare_gpus --partitions=5
	compare_gpus --device-memory=64M -S 64M
	compare_gpus --device-memory=8M -S 16M
	compare_gpus $tiny --temp-compress=delta --batch-size=2
done
generate -R 24 -n 300007 -k 4:u32 -d zipf -o input
compare_gpus -R24 -k4:u32
compare_gpus -R24 -k4:b20 -u --count
compare_gpus -R24 -k4:u32 $tiny
cat input | "$GSORT" --gpus=0,0 -R24 -k4:u32 > output
expect_same expected output 'from and to a pipe, --gpus=0,0'

finish
