#!/bin/sh
# strace_faults - gsort with system calls that strace makes fail
#
# Like tests/fault, but with the installed program instead of a test build. GSORT_CALLS is the
# number of calls of each kind that fail, one in each run (default: 2). Skipped (77) if strace
# cannot inject.
. "$(dirname "$0")/testlib.sh"

calls=${GSORT_CALLS:-2}
export ASAN_OPTIONS=detect_leaks=0 # LeakSanitizer needs ptrace, which strace uses

if ! strace -f --seccomp-bpf -qq -e trace=fsync -e inject=fsync:error=EIO true 2> /dev/null; then
	echo 'injected: skipped: no strace that may trace and inject'
	exit 77
fi

generate -n 200000 -o input
cp input untouched
"$GSORT" input -o expected
cp expected sorted
echo 'an older output' > older
n_refused=0 n_survived=0

# run_with_fault FAULT ARGUMENT...: run gsort with an injected fault; the output is complete, or
# nothing changed
run_with_fault() {
	what=$1
	shift
	cp older output
	strace -f --seccomp-bpf -qq -o trace -e trace="${what%%:*}" -e inject="$what" \
		"$GSORT" "$@" > stdout 2> stderr
	status=$?
	case $status in
	0)
		expect_same expected output "$what: status 0"
		n_survived=$((n_survived + 1))
		;;
	2)
		expect_message . "$what"
		if grep -q 'is complete, but its name' stderr; then
			expect_same expected output "$what: output"
		else
			expect_same older output "$what: older output"
		fi
		n_refused=$((n_refused + 1))
		;;
	127) expect_same older output "$what: the loader refused, but the older output" ;;
	*) fail "$what: status $status" ;;
	esac
	expect_same untouched input "$what: input"
	expect_no_temp_files "$what"
}

# count_loader_calls CALL: print how many of these calls the loader makes, which depends on the
# machine
count_loader_calls() {
	strace -f -qq -o trace -e trace="$1" "$GSORT" --version > stdout
	grep -c "$1(" trace
}

# run_with_each_fault CALL ERRNO ARGUMENT...: for each of the first calls after those of the loader,
# one run in which only this call fails, and one in which this and all later ones fail
run_with_each_fault() {
	call=$1
	error=$2
	n=$(($(count_loader_calls "$call") + 1))
	end=$((n + calls))
	shift 2
	while [ "$n" -lt $end ]; do
		run_with_fault "$call:error=$error:when=$n" "$@"
		run_with_fault "$call:error=$error:when=$n+" "$@"
		n=$((n + 1))
	done
}

for mode in '-S64M input' '-S1M --verify --fsync input' '-S1M --batch-size=2 -m sorted'; do
	claim "gsort $mode"
	run_with_each_fault openat EMFILE $mode -o output
	run_with_each_fault pread64 EIO $mode -o output
	run_with_each_fault pwrite64 ENOSPC $mode -o output
	run_with_each_fault pwrite64 EIO $mode -o output
	run_with_each_fault fallocate ENOSPC $mode -o output
	run_with_each_fault fsync,fdatasync EIO $mode -o output
	run_with_each_fault linkat,renameat,renameat2 EACCES $mode -o output
	run_with_each_fault mmap ENOMEM $mode -o output
	run_with_each_fault clone,clone3 EAGAIN $mode -o output
	run_with_each_fault close EIO $mode -o output
done

claim 'system calls that signals interrupt'
for call in openat pread64 pwrite64 fallocate; do
	run_with_fault "$call:error=EINTR:when=$(($(count_loader_calls $call) + 2))+3" -S1M input \
		-o output
	expect_status 0 "$call"
	grep -q INJECTED trace || fail "$call: none was interrupted"
done

claim 'a failed rename after a sort in memory leaves no checkpoint and no temporary file'
run_with_fault renameat,renameat2:error=EBUSY -S64M --checkpoint=ck input -o output
expect_status 2
[ ! -e ck ] || fail 'the checkpoint is left'
[ -z "$(ls -d .gsort-* 2> /dev/null)" ] || fail "left behind: $(ls -d .gsort-*)"

claim '--lines --fsync syncs the lines and their directory'
for options in '' --split=2; do
	strace -f --seccomp-bpf -qq -y -o trace -e trace=fsync,fdatasync "$GSORT" --lines --fsync \
		$options input -o synced 2> stderr
	status=$?
	expect_status 0 "$options"
	grep -q "sync([0-9]*<$PWD/" trace || fail "$options: no file was synced"
	grep -q "fsync([0-9]*<$PWD>)" trace || fail "$options: the directory was not synced"
	rm -r synced
done
sort input > expected
run_with_each_fault fsync,fdatasync EIO --lines --fsync input -o output

echo "$n_refused refused, $n_survived tolerated"
[ "$n_refused" -gt 0 ] || fail 'nothing was refused'

finish
