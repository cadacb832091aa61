#!/bin/sh
# cpu_features - the output does not depend on the vector instructions of the processor
#
# Compares sorts on processors that qemu-user emulates with a sort on this machine. qemu-user has no
# AVX-512, so AVX-512 is tested only if this machine has it. Skipped (77) without qemu-x86_64.
. "$(dirname "$0")/testlib.sh"

command -v qemu-x86_64 > /dev/null && [ "$(uname -m)" = x86_64 ] || {
	echo 'no qemu-x86_64: skipped'
	exit 77
}

# run_on_model MODEL ARGUMENT...: run gsort on an emulated processor; drop the warnings of qemu
run_on_model() {
	on_model=$1
	shift
	qemu-x86_64 -cpu "$on_model" "$GSORT" "$@" > stdout 2> stderr.qemu
	status=$?
	grep -v '^qemu-x86_64: warning' stderr.qemu > stderr
	expect_status 0 "$on_model: gsort $*"
	[ ! -s stderr ] || fail "$on_model: gsort $*: not silent"
}

# compare_models ARGUMENT...: the output is the same on this machine and on every model
compare_models() {
	expect_success -o expected "$@"
	for model in qemu64 Nehalem Haswell Skylake-Server; do
		rm -f output
		run_on_model $model -o output "$@"
		expect_same expected output "$model: gsort $*"
	done
	expect_no_temp_files "gsort $*"
}

claim 'encoded keys of every width'
generate -t u32 -n 10000 -o u32
generate -t f64 -d nan -n 10000 -o f64
generate -t b16 -n 10000 -o b16
compare_models -t u32 u32
compare_models -t f64 f64
compare_models -t b16 b16
compare_models -t b16 -u --temp-compress=delta -S 1M b16 b16 b16

claim 'runs of a merge'
generate -t u64 -n 150000 -o u64
compare_models -S 1M --temp-compress=none u64
compare_models -S 1M --temp-compress=delta -r u64

claim 'records, by short keys and by long ones'
generate -R 24 -k 0:u64 -d hundred-keys -n 10000 -o short
generate -R 40 -k 4:b30 -n 20000 -o long
compare_models -R 24 -k 0:u64 -k 8:i32:r short
compare_models -R 40 -k 4:b30 -S 1M long

claim 'records that stay in the mapped input'
generate -R 100 -k 0:b10 -n 20000 -o mapped
compare_models -R 100 -k 0:b10 mapped

finish
