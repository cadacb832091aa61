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
run input -o output --stats-json=/dev/fd/3
[ "$status" -eq 2 ] || broken "--stats-json: status $status"
says '^gsort: /dev/fd/3: ' stderr
same expected output '--stats-json'
rm output
"$GSORT" input -o output --stats 2>&3
status=$?
[ "$status" -eq 2 ] || broken "--stats: status $status"
same expected output '--stats'
exec 3>&-

if ! strace -f -qq -e trace=fsync -e inject=fsync:error=EIO true 2> /dev/null; then
	echo 'committed: what needs strace is skipped: it may not trace and inject'
	finish
fi

# signalled SIGNAL CALL ARGUMENTS: run gsort, which gets the signal during the system call
signalled() {
	what=$1:$2
	strace -f -qq -o trace -e trace="$2" -e inject="$2:signal=$1" \
		"$GSORT" $3 > stdout 2> stderr
	status=$?
}

claim 'a signal during the rename does not end gsort'
for signal in TERM INT HUP PIPE; do
	for call in linkat renameat; do
		for arguments in '-t u64 x -o x' '-u --count -t u64 x -o x --checkpoint=ck'; do
			cp input x
			signalled $signal $call "$arguments"
			[ "$status" -eq 0 ] || broken "$what, $arguments: status $status"
			[ ! -s stderr ] || broken "$what, $arguments: not silent"
			[ ! -e ck ] || broken "$what: the checkpoint is left"
			case $arguments in
			-u*) same expected-counts x "$what, $arguments" ;;
			*) same expected x "$what, $arguments" ;;
			esac
		done
	done
	rm -f output
	signalled $signal linkat 'input -o output'
	[ "$status" -eq 0 ] || broken "$what, a new file: status $status"
	same expected output "$what, a new file"
done

claim 'a signal during a rename that fails ends gsort'
cp input x
strace -f -qq -o trace -e trace=renameat -e inject=renameat:error=EACCES:signal=TERM \
	"$GSORT" -t u64 x -o x > stdout 2> stderr
[ $? -eq 143 ] || broken "status $?"
same input x 'it'
[ -z "$(ls -d .gsort-* 2> /dev/null)" ] || broken "left $(ls -d .gsort-*)"

claim 'after a kill during the removal of the checkpoint, a sort in place is complete'
for when in 1 2; do
	cp input x
	strace -f -qq -o trace -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=$when \
		"$GSORT" -t u64 -u --count x -o x --checkpoint=ck > stdout 2> stderr
	[ $? -eq 137 ] || broken "$when: status $?"
	same expected-counts x "$when: killed"
	[ -e ck/gsort-manifest ] || break # the second kill came after the removal of the manifest
	run -t u64 -u --count x -o x --checkpoint=ck
	[ "$status" -eq 0 ] || broken "$when: status $status"
	one_line 'resuming: x is complete' "$when"
	same expected-counts x "$when: again"
	[ ! -e ck ] || broken "$when: the checkpoint is left"
done

finish
