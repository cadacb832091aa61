#!/bin/sh
# signals_at_commit - signals during and after the rename of the output do not end the sort
. "$(dirname "$0")/testlib.sh"
export ASAN_OPTIONS=detect_leaks=0 # LeakSanitizer needs ptrace, which strace uses

generate -d hundred-keys -n 300000 -o input
"$GSORT" input -o expected
"$GSORT" -u --count input -o expected-counts

claim 'a report to a pipe without a reader is an error and not a signal'
mkfifo pipe
exec 4<> pipe 3> pipe 4<&- # descriptor 3 is a pipe without a reader
expect_exit 2 input -o output --stats-json=/dev/fd/3
expect_line '^gsort: /dev/fd/3: ' stderr
expect_same expected output '--stats-json'
rm output
"$GSORT" input -o output --stats 2>&3
status=$?
expect_status 2 '--stats'
expect_same expected output '--stats'
exec 3>&-

if ! strace -f -qq -e trace=fsync -e inject=fsync:error=EIO true 2> /dev/null; then
	echo 'committed: what needs strace is skipped: it may not trace and inject'
	finish
fi

# run_with_signal SIGNAL CALL ARGUMENTS: run gsort, which gets the signal during the system call
run_with_signal() {
	what=$1:$2
	strace -f -qq -o trace -e trace="$2" -e inject="$2:signal=$1" "$GSORT" $3 > stdout 2> stderr
	status=$?
}

claim 'a signal during the rename does not end gsort'
for signal in TERM INT HUP PIPE; do
	for call in linkat renameat; do
		for arguments in '-t u64 x -o x' '-u --count -t u64 x -o x --checkpoint=ck'; do
			cp input x
			run_with_signal $signal $call "$arguments"
			expect_status 0 "$what, $arguments"
			[ ! -s stderr ] || fail "$what, $arguments: not silent"
			[ ! -e ck ] || fail "$what: the checkpoint is left"
			case $arguments in
			-u*) expect_same expected-counts x "$what, $arguments" ;;
			*) expect_same expected x "$what, $arguments" ;;
			esac
		done
	done
	rm -f output
	run_with_signal $signal linkat 'input -o output'
	expect_status 0 "$what, a new file"
	expect_same expected output "$what, a new file"
done

claim 'a signal during a rename that fails ends gsort'
cp input x
strace -f -qq -o trace -e trace=renameat -e inject=renameat:error=EACCES:signal=TERM \
	"$GSORT" -t u64 x -o x > stdout 2> stderr
[ $? -eq 143 ] || fail "status $?"
expect_same input x 'it'
[ -z "$(ls -d .gsort-* 2> /dev/null)" ] || fail "left $(ls -d .gsort-*)"

claim 'after a kill during the removal of the checkpoint, a sort in place is complete'
for when in 1 2; do
	cp input x
	strace -f -qq -o trace -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=$when \
		"$GSORT" -t u64 -u --count x -o x --checkpoint=ck > stdout 2> stderr
	[ $? -eq 137 ] || fail "$when: status $?"
	expect_same expected-counts x "$when: killed"
	[ -e ck/gsort-manifest ] || break # the second kill came after the removal of the manifest
	expect_exit 0 -t u64 -u --count x -o x --checkpoint=ck
	expect_message 'resuming: x is complete' "$when"
	expect_same expected-counts x "$when: again"
	[ ! -e ck ] || fail "$when: the checkpoint is left"
done

finish
