#!/bin/sh
# gpu_devices - one GPU that is named several times, and all GPUs, write the bytes of the CPU
# Skipped (77) without a GPU.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/compare_backends.sh"

tiny='--device-memory=4M -S 4M'

# several ARGUMENT...: sort `input` with one GPU as two and three devices, and with all GPUs
several() {
	succeeds --backend=cpu -o expected "$@" input
	for gpus in 0,0 0,0,0 all; do
		succeeds --gpus=$gpus -o output "$@" input
		same expected output "gsort --gpus=$gpus $*"
	done
}

claim 'one GPU as several devices, and all GPUs'
for n in 0 1 65536 3000001; do
	generate -n $n -d zipf -o input
	several
	several -u
	several --partitions=5
	several --device-memory=64M -S 64M
	several --device-memory=8M -S 16M
	several $tiny --temp-compress=delta --batch-size=2
done
generate -R 24 -n 300007 -k 4:u32 -d zipf -o input
several -R24 -k4:u32
several -R24 -k4:b20 -u --count
several -R24 -k4:u32 $tiny
cat input | "$GSORT" --gpus=0,0 -R24 -k4:u32 > output
same expected output 'from and to a pipe, --gpus=0,0'

finish
