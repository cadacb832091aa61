#!/bin/sh
# lines - gsort-mpi --lines writes what GNU sort writes, or nothing
#
# Each start of mpirun takes half a second, so there are few. GSORT_SEED repeats the random cases,
# GSORT_ROUNDS makes them more.
. "$(dirname "$0")/testlib.sh"

# sorts N ARGUMENT...: N ranks write what GNU sort writes. $resources: options of gsort-mpi
resources=
sorts() {
	n=$1
	shift
	sort "$@" -o expected
	# They are words.
	# shellcheck disable=SC2086
	ranks "$n" --lines $resources "$@" -o out/x
	as_expected "$n ranks, $resources $*"
}

# refuses_all REGEX ARGUMENT...: several ranks refuse with one line, and the old output stays
refuses_all() {
	regex=$1
	shift
	echo old > out/x
	ranks 3 --lines "$@"
	[ "$status" -eq 2 ] || broken "$*: status $status"
	[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || broken "$*: not one line"
	grep -qE "^gsort: $regex" stderr || broken "$*: does not say $regex"
	[ "$(cat out/x)" = old ] || broken "$*: the output has changed"
	rm out/x
	all_gone "$*"
}

# stays WHAT: the old output is there, and nothing else
stays() {
	[ "$(cat out/x)" = old ] || broken "$1: the output has changed"
	rm -f out/x
	all_gone "$1"
}

# lines N PROGRAM: N lines of text, by awk, the same each time
lines() {
	awk -v n="$1" "BEGIN { for (i = 0; i < n; i++) { s = (s * 48271 + 11) % 2147483647; $2 } }"
}

lines 30000 'print s % 1000 " " s, i' > words
lines 40000 'print s % 7, i' > few
lines 20000 'print "equal"' > equal
: > empty
printf 'b\na' > two

claim "whole lines and keys, in both directions, of one file and of several"
sorts 2 words
sorts 3 -r words few two empty
sorts 4 -k1,1n -k2,2r words few

claim "the first rank's share ends within a line without a newline"
sorts 5 two
sorts 3 two two empty two

claim "empty inputs"
sorts 3 empty
sorts 2 empty empty -u

claim "equal lines are divided, and lines with equal keys keep the order of the input"
sorts 3 equal
sorts 4 -s -k1,1 few few words
sorts 3 -s -k1,1n -r few

claim "-u keeps the first line of each key of all ranks"
sorts 4 -u -k1,1n few words few
sorts 3 -u equal two equal

claim "NUL-terminated lines"
tr '\n' '\0' < words > zero
sorts 3 -z zero

claim "lines longer than a share"
{
	head -c 300000 zero | tr '\0' x
	echo
	cat two
	echo
	head -c 200000 zero | tr '\0' b
} > long
sorts 5 long
sorts 3 long words long -r

claim "spilled runs, merged in passes, with codecs and messages"
lines 300000 'print s, i' > large
resources='-S1M --batch-size=2'
sorts 3 large
resources='-S1M --temp-compress=zstd --shared-memory=off'
sorts 2 -k2,2n large
resources='-S1M --temp-compress=none --parallel=3'
sorts 4 -u -k1.1,1.3 large
resources=

claim "the output may be an input"
cp words out/x
ranks 3 --lines out/x -o out/x
sort words > expected
as_expected "in place"

claim "the header of the first input is in front"
{
	sed -n 1p words
	{ sed 1d words; sed 1d few; } | sort
} > expected
ranks 4 --lines --header empty words few -o out/x
as_expected "--header"
sed -n 1p words > one
cp one expected
ranks 3 --lines --header one -o out/x
as_expected "--header of a file without lines"

claim "--limit is that of all ranks"
sort few words large > sorted
for n in 0 1 30000 100000 369999 400000; do
	head -n "$n" sorted > expected
	ranks 4 --lines -S1M --limit="$n" few words large -o out/x
	as_expected "--limit=$n"
done
sort -u -k1,1 few words | head -n 500 > expected
ranks 3 --lines -u -k1,1 --limit=500 few words -o out/x
as_expected "-u --limit"

claim "ranks share the output in whole stripes"
lines 400000 'print s, s, i' > striped
sorts 5 striped
rm striped large

# finds N ARGUMENT...: N ranks find the disorder that GNU sort finds, or none
finds() {
	n=$1
	shift
	sort "$@" 2> expected
	found=$?
	sed -i 's/^sort: /gsort: /' expected
	ranks "$n" --lines "$@"
	[ "$status" -eq "$found" ] || broken "$n ranks, $*: status $status, not $found"
	grep '^gsort: ' stderr | cmp -s expected - || broken "$n ranks, $*: $(cat stderr)"
	[ ! -s stdout ] || broken "$n ranks, $*: wrote to standard output"
}

claim "-c finds the first disorder of all ranks, also between two, and none in sorted lines"
sort -u few words > sorted
n=$(wc -l < sorted)
finds 3 -c sorted
finds 4 -c -u sorted
finds 2 -c empty
{ cat sorted; sed -n 1,9p words; } > input
finds 3 -c input
finds 3 -C input
# The last line of rank 0 and the first one of rank 1 are equal.
printf 'a\nb\nb\nc\n' > input
finds 2 -c input
finds 2 -c -u input
for line in 1 $((n / 3)) $((n / 2)) $((n - 1)); do
	sed "${line}s/.*/~/" sorted > input
	finds 4 -c input
done
sort -r sorted > input
finds 5 -c -r input
finds 5 -c input

claim "lines of a list of files"
printf 'words\0few\0' > list
sort words few > expected
ranks 2 --lines --files0-from=list -o out/x
as_expected "--files0-from"

claim "the progress is that of all ranks, and printed once"
sort words > expected
ranks 3 --lines --progress=always words -o out/x
grep -q '^final merge: 100 %.* total 100 %' stderr || broken "--progress: $(cat stderr)"
as_expected "--progress"

claim "random files and options"
MPIRUN="$MPIRUN" GSORT_MPI="$GSORT_MPI" python3 "$LINES_RANDOM" --ranks --seed="$seed" \
	--count="${GSORT_ROUNDS:-12}" --large=3 --large-nbytes=1000000 > found 2>&1 ||
	broken "seed $seed: $(cat found)"

claim "what several ranks do not do is refused once, by name"
for option in --explain --split=2 --count,-u --zstd --checkpoint=ck; do
	name=${option%%[=,]*}
	# They are words.
	# shellcheck disable=SC2046
	refuses_all "${name} is not supported with --lines and several ranks" \
		$(echo "$option" | tr , ' ') words -o out/x
done
mkfifo pipe
refuses_all 'standard input is not possible' -o out/x
refuses_all 'standard output is not possible' words
refuses_all 'pipe: several ranks require regular files as input' pipe -o out/x
mkdir directory
refuses_all 'directory: several ranks require regular files' words directory -o out/x
gzip -k few
refuses_all 'few.gz: several ranks require regular files' words few.gz -o out/x
run --lines --split=2 few -o parts
refuses_all 'parts: several ranks require regular files' words parts -o out/x
refuses_all 'parts: several ranks cannot read lines of part files' -m words parts -o out/x
refuses_all 'new.zst: a compressed output is not supported' words -o new.zst
refuses_all 'pipe is not a regular file|--files0-from: pipe' --files0-from=pipe -o out/x
refuses_all 'cannot read: nothing: No such' nothing -o out/x
refuses_all "--shared-memory: 'on'" --shared-memory=on words -o out/x
refuses_all "options '-dn' are incompatible" -d -n words -o out/x
run --lines --timeout=3 words
[ "$status" -eq 2 ] || broken "gsort --timeout: status $status"

claim "one rank sorts as one process"
timeout 60 "$MPIRUN" -np 1 "$GSORT_MPI" --lines --timeout=50 -u -k1,1 < few > out/x 2> stderr
status=$?
sort -u -k1,1 few > expected
as_expected "one rank"

claim "the help has the options of gsort-mpi and is printed once"
ranks 2 --lines --help
[ "$status" -eq 0 ] || broken "--help: status $status"
[ "$(grep -c '^ *--timeout=SECONDS' stdout)" -eq 1 ] || broken "--help: not one --timeout"
launch -np 1 "$GSORT_MPI" --lines --help : -np 2 "$GSORT_MPI" --lines words -o out/x
ends "--help of one rank" '--help.* is given to 1 of 3 ranks'

claim "ranks with different options report the difference once"
launch -np 1 "$GSORT_MPI" --lines words -o out/x : -np 2 "$GSORT_MPI" words -o out/x
ends "--lines of one rank" '--lines is given to 1 of 3 ranks'
launch -np 2 "$GSORT_MPI" --lines words -o out/x : -np 1 "$GSORT_MPI" --lines -n words -o out/x
ends "-n of one rank" 'rank 2, on [^:]*: lines: differs: '
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || broken "-n of one rank: not one line"

claim "a failure of one rank ends all"
launch -np 1 "$GSORT_MPI" --lines words -o out/x : \
	-np 1 "$GSORT_MPI" --lines -S4M -T nowhere words -o out/x
ends "-T" 'rank 1, on [^:]*: nowhere: temporary directory: No such'
launch -np 2 "$GSORT_MPI" --lines -S4M words few -o out/x : \
	-np 1 "$GSORT_MPI" --lines -S4M --temp-limit=1K words few -o out/x
ends "--temp-limit" 'rank 2, on [^:]*: '

claim "a line that is too long for the memory"
awk 'BEGIN { s = "0123456789abcdef"; for (i = 0; i < 17; i++) s = s s; print s; print "a" }' > long
refuses_all '(rank [0-9], on [^:]*: )?long: .* has [0-9]* bytes, .*; use -S [0-9]*M or more' \
	-S4M long -o out/x

claim "an input that changes is noticed, and reported once"
cp words changing
echo old > out/x
begin "" written --lines changing -o out/x
in_time all_stopped 1 written || broken "it has not reached the point"
touch changing
signal_stopped CONT 1 written
[ "$status" -eq 2 ] || broken "changed: status $status"
[ "$(grep -c '^gsort: .*changing: changed after it was read' stderr)" -eq 1 ] ||
	broken "changed: not one message"
stays "changed"

claim "a killed rank ends all, and the old output stays"
for point in sorted written checked; do
	echo old > out/x
	begin "" $point --lines words -o out/x
	signal_stopped KILL 1 $point
	[ "$status" -ne 0 ] || broken "$point: status 0"
	in_time no_process || broken "$point: a rank has not ended"
	stays "$point"
done

claim "a rank that stays stopped is named"
begin "" sorted --lines --timeout=3 words -o out/x
in_time all_stopped 1 sorted || broken "it has not reached the point"
wait_for_end sorted
ends "stopped" 'rank 1 on .* has not answered for 3' 2 9 137
finish
