#!/bin/sh
# killed - a signal or a full disk leaves the input, the older output and no litter
. "$(dirname "$0")/prelude.sh"

generate -n 2000000 -o input
cp input untouched
"$GSORT" input -o expected
echo 'an older output' > older

# kill_at SIGNAL NUMBER SECONDS ARGUMENT...: either done, or as if never started. It may be done and
# killed all the same, between its last act and its exit.
kill_at() {
	signal=$1
	number=$2
	moment=$3
	shift 3
	cp older output
	timeout --preserve-status -s "$signal" "$moment" "$GSORT" "$@" > stdout 2> stderr
	status=$?
	case $status in
	0) same expected output "$signal after $moment s: status 0" ;;
	$((128 + number)))
		cmp -s older output || same expected output "$signal after $moment s: output"
		n_killed=$((n_killed + 1))
		;;
	*) broken "$signal after $moment s: status $status" ;;
	esac
	same untouched input "$signal after $moment s: input"
	nothing_left "$signal after $moment s"
	rm -f output stdout stderr
	[ "$(ls -A)" = "$names" ] || broken "$signal after $moment s: left $(ls -A)"
}

names=$(ls -A)
n_killed=0
for moment in 0.002 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.15 0.2; do
	claim 'killed'
	kill_at KILL 9 $moment -S 2M input -o output
	kill_at TERM 15 $moment -S 2M input -o output
	kill_at INT 2 $moment -S 2M input -o output
	kill_at HUP 1 $moment -S 64M input -o output
done
[ $n_killed -gt 5 ] || broken "only $n_killed of 40 were killed in time"

claim 'killed while it replaces its input, which is as it was or sorted'
for moment in 0.01 0.03 0.06 0.1 0.2; do
	cp untouched input
	timeout --preserve-status -s KILL $moment "$GSORT" -S 2M input -o input 2> stderr
	cmp -s untouched input || cmp -s expected input || broken "after $moment s: neither"
	nothing_left "after $moment s"
done
cp untouched input

claim 'after all that it works'
gives expected -S 2M input

claim 'a limit on the size of files'
trap '' XFSZ 2> /dev/null
(
	n_broken=0
	ulimit -f 8000 # blocks of 512 bytes, or of 1 KiB
	refuses 'output: .*File too large' -S 64M input
	[ "$n_broken" -eq 0 ]
) || broken 'see above'

# full KIB ARGUMENT...: gsort in a namespace where `small` is a file system of KIB.
full() {
	kib=$1
	shift
	cp older output
	unshare -m sh -c 'mount -t tmpfs -o size="$1"k none small && shift && "$@"
		status=$?
		[ ! -e small/output ] || cp small/output .
		exit $status' sh "$kib" "$GSORT" "$@" > stdout 2> stderr
	status=$?
}

mkdir small
if unshare -m mount -t tmpfs -o size=1M none small 2> /dev/null; then
	claim 'too little temporary space is known before it starts'
	for kib in 100 4000; do
		full $kib -S 2M -T small input -o output
		[ $status -eq 2 ] || broken "$kib KiB: status $status"
		one_line '^gsort: small: No space.*temporary space' "$kib KiB"
		same older output "$kib KiB: older output"
	done

	claim 'from a pipe it is known when it happens'
	for kib in 100 4000 14000; do
		cat input | full $kib -S 2M -T small -o output
		[ $status -eq 2 ] || broken "$kib KiB: status $status"
		one_line 'small' "$kib KiB"
		same older output "$kib KiB: older output"
	done

	claim "the output's disk is full, at once and at the last block"
	for kib in 4 8000 15624; do
		full $kib -S 64M input -o small/output
		[ $status -eq 2 ] || broken "$kib KiB: status $status"
		one_line 'small/output.*No space' "$kib KiB"
	done
	rm -f output
	full 17000 -S 64M input -o small/output
	[ $status -eq 0 ] || broken "17000 KiB: status $status"
	same expected output "17000 KiB"
fi

finish
