#!/bin/sh
# strace_faults - gsort with system calls that strace makes fail
#
# Like tests/fault, but with the installed program instead of a test build. GSORT_CALLS is the
# number of calls of each kind that fail, one in each run (default: 4). Skipped (77) if strace
# cannot inject.
. "$(dirname "$0")/testlib.sh"

calls=${GSORT_CALLS:-4}
export ASAN_OPTIONS=detect_leaks=0 # LeakSanitizer needs ptrace, which strace uses

if ! strace -f -qq -e trace=fsync -e inject=fsync:error=EIO true 2> /dev/null; then
	echo 'injected: skipped: no strace that may trace and inject'
	exit 77
fi

generate -n 200000 -o input
cp input untouched
"$GSORT" input -o expected
cp expected sorted
echo 'an older output' > older
n_refused=0 n_survived=0

# one FAULT ARGUMENT...: run gsort with an injected fault; the output is complete, or nothing
# changed
one() {
	what=$1
	shift
	cp older output
	strace -f -qq -o trace -e trace="${what%%:*}" -e inject="$what" \
		"$GSORT" "$@" > stdout 2> stderr
	status=$?
	case $status in
	0)
		same expected output "$what: status 0"
		n_survived=$((n_survived + 1))
		;;
	2)
		one_line . "$what"
		if grep -q 'is complete, but its name' stderr; then
			same expected output "$what: output"
		else
			same older output "$what: older output"
		fi
		n_refused=$((n_refused + 1))
		;;
	127) same older output "$what: the loader refused, but the older output" ;;
	*) broken "$what: status $status" ;;
	esac
	same untouched input "$what: input"
	nothing_left "$what"
}

# each CALL ERRNO FIRST ARGUMENT...: for each number from FIRST on, one run in which only this call
# fails, and one in which this and all later ones fail. The loader makes earlier calls.
each() {
	call=$1
	error=$2
	n=$3
	end=$(($3 + calls))
	shift 3
	while [ "$n" -lt $end ]; do
		one "$call:error=$error:when=$n" "$@"
		one "$call:error=$error:when=$n+" "$@"
		n=$((n + 1))
	done
}

for mode in '-S64M input' '-S1M --verify --fsync input' '-S1M --batch-size=2 -m sorted'; do
	claim "gsort $mode"
	each openat EMFILE 8 $mode -o output
	each pread64 EIO 5 $mode -o output
	each pwrite64 ENOSPC 1 $mode -o output
	each pwrite64 EIO 1 $mode -o output
	each fallocate ENOSPC 1 $mode -o output
	each fsync,fdatasync EIO 1 $mode -o output
	each linkat,renameat,renameat2 EACCES 1 $mode -o output
	each mmap ENOMEM 40 $mode -o output
	each clone,clone3 EAGAIN 1 $mode -o output
	each close EIO 12 $mode -o output
done

# loaders CALL: print how many of these calls the loader makes, which depends on the machine
loaders() {
	strace -f -qq -o trace -e trace="$1" "$GSORT" --version > stdout
	grep -c "$1(" trace
}

claim 'system calls that signals interrupt'
for call in openat pread64 pwrite64 fallocate; do
	one "$call:error=EINTR:when=$(($(loaders $call) + 2))+3" -S1M input -o output
	[ "$status" -eq 0 ] || broken "$call: status $status"
	grep -q INJECTED trace || broken "$call: none was interrupted"
done

claim 'a failed rename after a sort in memory leaves no checkpoint and no temporary file'
one renameat,renameat2:error=EBUSY -S64M --checkpoint=ck input -o output
[ "$status" -eq 2 ] || broken "status $status"
[ ! -e ck ] || broken 'the checkpoint is left'
[ -z "$(ls -d .gsort-* 2> /dev/null)" ] || broken "left behind: $(ls -d .gsort-*)"

echo "$n_refused refused, $n_survived tolerated"
[ "$n_refused" -gt 0 ] || broken 'nothing was refused'

finish
