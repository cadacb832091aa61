#!/bin/sh
# gpu_lines - sort lines on a GPU: cases that lines_random.py rarely generates
# Skipped (77) without a GPU.
. "$(dirname "$0")/testlib.sh"

: > empty
if ! "$GSORT" --lines --backend=cuda empty > found 2> stderr; then
	cat stderr
	exit 77
fi

# compare_with_gnu_sort ARGUMENT...: gsort and GNU sort write the same bytes
compare_with_gnu_sort() {
	sort "$@" > expected || fail "$*: sort failed"
	"$GSORT" --lines --backend=cuda -S 4M "$@" > found 2> stderr || fail "$*: status $?"
	cmp -s expected found || fail "$*: $(cmp expected found 2>&1)"
}

claim 'keys may contain the delimiter and adjacent bytes'
seq 999999980 1000000020 | sort -R > numbers # lengths of 9 and 10 digits are bytes 09 and 0a
compare_with_gnu_sort -n numbers
compare_with_gnu_sort -nr numbers
for byte in 000 001 002 010 011 012 013; do
	for other in 000 001 002 010 011 012 013 x; do
		printf "a%b%b\n\0" "\\0$byte" "\\0$other"
	done
done > bytes
compare_with_gnu_sort -f bytes
compare_with_gnu_sort -k1.2,1.2 -s bytes
compare_with_gnu_sort -z -f bytes
compare_with_gnu_sort -z -k1.2,1.2r -u bytes

claim 'a line with its key may be longer than the buffers'
for n in 1 200000 300000 250000; do
	head -c $n /dev/zero | tr '\0' x
	echo " $n"
done > long
compare_with_gnu_sort -f long bytes numbers
compare_with_gnu_sort -k2n -k1,1r numbers long
compare_with_gnu_sort -k2n -f -u numbers long numbers

claim 'an output of several windows is whole'
seq 40000 > many
compare_with_gnu_sort --parallel=4 -r many

claim 'longer lines are refused by name'
{ echo short; head -c 700000 /dev/zero | tr '\0' x; } > longer
expect_failure 'longer: line 2 has 700000 bytes, too many for the memory; use -S [0-9]*M or more' \
	--lines --backend=cuda -S 4M -f longer
memory=$(sed -n 's/.*; use -S \([0-9]*\)M or more$/\1/p' stderr)
compare_with_gnu_sort -S "${memory}M" -f longer
"$GSORT" --lines --backend=cuda -S "$((memory - 1))M" -f longer > found 2> stderr &&
	fail "-S $((memory - 1))M suffices"
compare_with_gnu_sort -k2n longer
{ echo short; head -c 3000000 /dev/zero | tr '\0' x; } > longest
expect_failure 'longest: line 2 has more than [0-9]* bytes, too many for the memory' \
	--lines --backend=cuda -S 4M -n longest

claim 'shards together are the output'
for shard in 1 2 3; do
	"$GSORT" --lines --backend=cuda -m --shard=$shard/3 -n numbers bytes numbers 2> stderr ||
		fail "shard $shard: status $?"
done > found
sort -n numbers bytes numbers | cmp -s - found || fail 'other bytes'

claim 'statistics count lines without keys'
"$GSORT" --lines --backend=cuda -n numbers --stats-json=json > found 2> stderr || fail "status $?"
grep -q "\"input_bytes\": $(wc -c < numbers)\b" json || fail "$(grep input_bytes json)"
finish
