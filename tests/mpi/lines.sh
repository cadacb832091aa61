#!/bin/sh
# lines - gsort-mpi --lines writes what GNU sort writes, or nothing
#
# Each start of mpirun takes half a second, so there is one for each claim.
# tests/unit/lines/test_line_ranks.c has more options and faults, and the random cases here combine
# options. GSORT_SEED repeats them, GSORT_ROUNDS makes them more.
. "$(dirname "$0")/testlib.sh"

# compare_with_gnu_sort N ARGUMENT...: N ranks write what GNU sort writes. $resources: options of
# gsort-mpi
resources=
compare_with_gnu_sort() {
	n=$1
	shift
	sort "$@" -o expected
	# They are words.
	# shellcheck disable=SC2086
	run_ranks "$n" --lines $resources "$@" -o out/x
	expect_rank_output "$n ranks, $resources $*"
}

# expect_rank_error REGEX ARGUMENT...: several ranks refuse with one line, and the old output stays
expect_rank_error() {
	regex=$1
	shift
	echo old > out/x
	run_ranks 3 --lines "$@"
	expect_status 2 "$*"
	[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || fail "$*: not one line"
	grep -qE "^gsort: $regex" stderr || fail "$*: does not say $regex"
	[ "$(cat out/x)" = old ] || fail "$*: the output has changed"
	rm out/x
	expect_clean_directory "$*"
}

# expect_kept WHAT: the old output is there, and nothing else
expect_kept() {
	[ "$(cat out/x)" = old ] || fail "$1: the output has changed"
	rm -f out/x
	expect_clean_directory "$1"
}

# print_lines N PROGRAM: N lines of text, by awk, the same each time
print_lines() {
	awk -v n="$1" "BEGIN { for (i = 0; i < n; i++) { s = (s * 48271 + 11) % 2147483647; $2 } }"
}

print_lines 30000 'print s % 1000 " " s, i' > words
print_lines 40000 'print s % 7, i' > few
print_lines 20000 'print "equal"' > equal
: > empty
printf 'b\na' > two

claim "whole lines and keys, in both directions, of one file and of several"
compare_with_gnu_sort 3 -r words few two empty
compare_with_gnu_sort 4 -k1,1n -k2,2r words few

claim "the first rank's share ends within a line without a newline"
compare_with_gnu_sort 5 two

claim "empty inputs"
compare_with_gnu_sort 3 empty

claim "equal lines are divided, and lines with equal keys keep the order of the input"
compare_with_gnu_sort 3 equal
compare_with_gnu_sort 4 -s -k1,1 few few words

claim "-u keeps the first line of each key of all ranks"
compare_with_gnu_sort 4 -u -k1,1n few words few

claim "NUL-terminated lines"
tr '\n' '\0' < words > zero
compare_with_gnu_sort 3 -z zero

claim "lines longer than a share"
{
	head -c 300000 /dev/zero | tr '\0' x
	echo
	cat two
	echo
	head -c 200000 /dev/zero | tr '\0' b
} > long
compare_with_gnu_sort 5 long

claim "spilled runs, merged in passes, with codecs and messages"
print_lines 300000 'print s, i' > large
resources='-S1M --batch-size=2'
compare_with_gnu_sort 3 large
resources='-S1M --temp-compress=zstd --shared-memory=off'
compare_with_gnu_sort 2 -k2,2n large
resources=

claim "the output may be an input"
cp words out/x
run_ranks 3 --lines out/x -o out/x
sort words > expected
expect_rank_output "in place"

claim "the header of the first input is in front"
{
	sed -n 1p words
	{ sed 1d words; sed 1d few; } | sort
} > expected
run_ranks 4 --lines --header empty words few -o out/x
expect_rank_output "--header"
sed -n 1p words > one
cp one expected
run_ranks 3 --lines --header one -o out/x
expect_rank_output "--header of a file without lines"

claim "--limit is that of all ranks"
sort few words large > sorted
head -n 30000 sorted > expected
run_ranks 4 --lines -S1M --limit=30000 few words large -o out/x
expect_rank_output "--limit"

claim "--count counts the lines of all ranks"
compare_with_gsort 4 --lines -S1M -u --count -k1,1n few words large

# compare_parts N ARGUMENT...: N ranks and one process write the same directory of part files
compare_parts() {
	n=$1
	shift
	rm -rf parts
	expect_exit 0 --lines "$@" -o parts
	run_ranks "$n" --lines "$@" -o out/x
	expect_status 0 "$n ranks, $*"
	diff -r parts out/x > differences || fail "$n ranks, $*: $(head -n 5 differences)"
	rm -r out/x
	expect_clean_directory "$*"
}

claim "compressed outputs are those of one process"
print_lines 200000 'print s, s, i' > striped
compare_with_gsort 4 --lines --zstd=1 -S1M -r striped few
compare_with_gsort 3 --lines --zstd empty
sort striped | head -n 70000 > expected
run_ranks 5 --lines --limit=70000 striped -o out/x.zst
zstd -dcq out/x.zst > out/x
rm out/x.zst
expect_rank_output "-o x.zst"

claim "--split: a part file has lines of several ranks, and a rank has several part files"
compare_parts 3 --split=20 -S1M large words
compare_parts 4 --split=3 -u -k1,1n few words
compare_parts 5 --split=4 two

claim "part files as inputs: merged with other files, checked, and compared with the manifest"
run --lines --split=3 striped -o parts
run --lines --split=4 --zstd two -o tiny
sort striped two words > expected
run_ranks 4 --lines -m parts words tiny -o out/x
expect_rank_output "-m of part files"
for path in parts tiny; do
	run_ranks 4 --lines -c "$path"
	expect_status 0 "-c $path"
done
# Two lines become one in the same number of bytes; then only their contents change.
newline=$(head -c 500000 parts/part-0001 | wc -l)
for script in "${newline}{N;s/\n/ /}" "${newline}s/.\$/x/"; do
	sed -i.original "$script" parts/part-0001
	expect_rank_error "parts/part-0001: its lines differ from those listed in parts" \
		-m two parts -o out/x
	mv parts/part-0001.original parts/part-0001
done
expect_rank_error "--header: several ranks cannot read part files" --header -m parts -o out/x
expect_rank_error 'parts: cannot read: Is a directory' words parts -o out/x
rm -r striped large parts tiny

# compare_check N ARGUMENT...: N ranks find the disorder that GNU sort finds, or none
compare_check() {
	n=$1
	shift
	sort "$@" 2> expected
	found=$?
	sed -i 's/^sort: /gsort: /' expected
	run_ranks "$n" --lines "$@"
	expect_status "$found" "$n ranks, $*"
	grep '^gsort: ' stderr | cmp -s expected - || fail "$n ranks, $*: $(cat stderr)"
	[ ! -s stdout ] || fail "$n ranks, $*: wrote to standard output"
}

claim "-c finds the first disorder of all ranks, also between two, and none in sorted lines"
sort -u few words > sorted
n=$(wc -l < sorted)
compare_check 4 -c -u sorted
{ cat sorted; sed -n 1,9p words; } > input
compare_check 3 -C input
# The last line of rank 0 and the first one of rank 1 are equal.
printf 'a\nb\nb\nc\n' > input
compare_check 2 -c input
compare_check 2 -c -u input
sed "$((n / 2))s/.*/~/" sorted > input
compare_check 4 -c input

claim "lines of a list of files"
printf 'words\0few\0' > list
sort words few > expected
run_ranks 2 --lines --files0-from=list -o out/x
expect_rank_output "--files0-from"

claim "the progress is that of all ranks, and printed once"
sort words > expected
run_ranks 3 --lines --progress=always words -o out/x
grep -q '^final merge: 100 %.* total 100 %' stderr || fail "--progress: $(cat stderr)"
expect_rank_output "--progress"

claim "random files and options"
MPIRUN="$MPIRUN" GSORT_MPI="$GSORT_MPI" python3 "$LINES_RANDOM" --ranks --seed="$seed" \
	--count="${GSORT_ROUNDS:-8}" --large=2 --large-nbytes=1000000 > found 2>&1 ||
	fail "seed $seed: $(cat found)"

claim "--explain prints one plan, with the runs of a rank"
run_ranks 3 --lines --explain=json -S4M words few -o out/x
expect_status 0 "--explain"
for number in '"runs_spilled": 1' '"passes": 1' '"partitions": 3'; do
	grep -q "$number" stdout || fail "--explain: not $number: $(cat stdout)"
done
run_ranks 3 --lines --explain -u words -o out/x
[ "$(grep -c '^input .* each of 3 ranks$' stdout)" -eq 1 ] || fail "--explain: $(cat stdout)"
grep -q '^merge passes  *2$' stdout || fail "--explain -u: $(cat stdout)"
expect_clean_directory "--explain"

claim "ranks with several passes take at most the temporary space of the plan"
print_lines 1500000 'print i * 7919 % 1000003' > numbers
set -- -S4M --batch-size=2 --temp-compress=none numbers
run_ranks 3 --lines --explain=json "$@" -o out/x
planned=$(sed -n '/"temporary"/{n;s/[^0-9]//g;p;}' stdout)
run_ranks 3 --lines --stats-json=stats "$@" -o out/x
had=$(sed -n '1,/"ranks"/s/.*"peak_temporary_bytes": \([0-9]*\).*/\1/p' stats)
[ "$had" -gt 0 ] && [ "$had" -le "$planned" ] || fail "planned $planned, had $had"
rm out/x

claim "the CUDA back end, over kernels on the CPU"
MPIRUN="$MPIRUN" GSORT_MPI="$GSORT_MPI_CUDA_ON_CPU" python3 "$LINES_RANDOM" --cuda --ranks \
	--seed="$seed" --count="${GSORT_ROUNDS:-4}" --large=1 --large-nbytes=100000 > found 2>&1 ||
	fail "seed $seed: $(cat found)"

claim "what several ranks do not do is refused once, by name"
mkfifo pipe
expect_rank_error 'standard input is not possible' -o out/x
expect_rank_error 'standard output is not possible' words
expect_rank_error 'pipe: several ranks require regular files as input' pipe -o out/x
gzip -k few
expect_rank_error 'few.gz: several ranks require regular files' words few.gz -o out/x
expect_rank_error 'pipe is not a regular file|--files0-from: pipe' --files0-from=pipe -o out/x
expect_rank_error 'nothing: cannot open: No such' nothing -o out/x
expect_rank_error "--shared-memory: 'on'" --shared-memory=on words -o out/x
expect_exit 2 --lines --timeout=3 words

claim "one rank sorts as one process"
timeout 60 "$MPIRUN" -np 1 "$GSORT_MPI" --lines --timeout=50 -u -k1,1 < few > out/x 2> stderr
status=$?
sort -u -k1,1 few > expected
expect_rank_output "one rank"

claim "the help has the options of gsort-mpi and is printed once"
run_ranks 2 --lines --help
expect_status 0 '--help'
[ "$(grep -c '^ *--timeout=SECONDS' stdout)" -eq 1 ] || fail "--help: not one --timeout"
launch -np 1 "$GSORT_MPI" --lines --help : -np 2 "$GSORT_MPI" --lines words -o out/x
expect_failed "--help of one rank" 'rank 1, on .*: --help is not given here, but on the first rank'

claim "ranks with different options report the difference once"
launch -np 1 "$GSORT_MPI" --lines words -o out/x : -np 2 "$GSORT_MPI" words -o out/x
expect_failed "--lines of one rank" '--lines is given to 1 of 3 ranks'
launch -np 2 "$GSORT_MPI" --lines words -o out/x : -np 1 "$GSORT_MPI" --lines -n words -o out/x
expect_failed "-n of one rank" 'rank 2, on [^:]*: mode: differs: '
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || fail "-n of one rank: not one line"

claim "a failure of one rank ends all"
launch -np 1 "$GSORT_MPI" --lines words -o out/x : \
	-np 1 "$GSORT_MPI" --lines -S4M -T nowhere words -o out/x
expect_failed "-T" 'rank 1, on [^:]*: nowhere: temporary directory: No such'
launch -np 2 "$GSORT_MPI" --lines -S4M words few -o out/x : \
	-np 1 "$GSORT_MPI" --lines -S4M --temp-limit=1K words few -o out/x
expect_failed "--temp-limit" 'rank 2, on [^:]*: '

claim "a line that is too long for the memory"
awk 'BEGIN { s = "0123456789abcdef"; for (i = 0; i < 17; i++) s = s s; print s; print "a" }' > long
expect_rank_error '(rank [0-9], on [^:]*: )?long: .* has [0-9]* bytes, .*; use -S [0-9]*M or more' \
	-S4M long -o out/x

claim "an input that changes is noticed, and reported once"
cp words changing
echo old > out/x
start_ranks "" written --lines changing -o out/x
wait_until are_stopped 1 written || fail "it has not reached the point"
touch changing
signal_stopped CONT 1 written
expect_status 2 'changed'
[ "$(grep -c '^gsort: .*changing: changed after it was read' stderr)" -eq 1 ] ||
	fail "changed: not one message"
expect_kept "changed"

claim "a killed rank ends all, and the old output stays"
echo old > out/x
start_ranks "" checked --lines words -o out/x
kill_stopped 1 checked
expect_kept "killed"

claim "a killed rank leaves no part file"
start_ranks "" written --lines --split=2 words -o out/x
kill_stopped 1 written
expect_clean_directory "part files"

claim "a rank that stays stopped is named"
start_ranks "" sorted --lines --timeout=3 words -o out/x
wait_until are_stopped 1 sorted || fail "it has not reached the point"
wait_for_launcher sorted
expect_failed "stopped" 'rank 1 on .* has not answered for 3' 2 9 137
finish
