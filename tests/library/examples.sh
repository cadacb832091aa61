#!/bin/sh
# examples - the programs of examples/ give correct results
#
# usage: examples.sh SOURCE_ROOT
#
# SORT_ARRAY, SORT_LINES, TOP_K, MERGE_JOIN and GSORT_GEN in the environment are the programs.
. "$(dirname "$0")/../cli/testlib.sh"

root=$1

claim "an array larger than the memory limit is sorted"
"$SORT_ARRAY" 1500000 > told 2> stderr || fail "status $?"
grep -q '^1500000 numbers from -' told || fail "$(cat told)"

claim "the largest numbers of a stream are those that sort finds"
generate -n 200000 --seed=3 -o numbers
od -A n -v -t u8 -w8 numbers | tr -d ' ' | sort -rn | head -n 25 > expected
"$TOP_K" 25 < numbers > found 2> stderr || fail "status $?"
cmp -s expected found || fail "$(diff expected found | head -3)"

claim "a CSV file is sorted by a column, and its header stays"
awk 'BEGIN { srand(4); print "name,amount"
	for (i = 0; i < 1000; i++) print "name" i "," int(rand() * 100) }' > table.csv
{ head -n 1 table.csv; tail -n +2 table.csv | sort -s -t, -k2,2n; } > expected
"$SORT_LINES" 2 table.csv table.csv 2> stderr || fail "status $?"
cmp -s expected table.csv || fail "$(diff expected table.csv | head -3)"
"$SORT_LINES" 0 table.csv table.csv 2> stderr && fail "column 0"
grep -q '^sort_lines: .*field number is zero' stderr || fail "$(cat stderr)"

claim "a merge join finds the pairs that join finds"
# Keys of 16 bits, so that some are equal. The right side has each key once.
od -A n -v -t u4 -w8 numbers | awk '{ print $1 % 65536, $2 }' > pairs
head -n 40000 pairs > left.txt
tail -n 50000 pairs | awk '!seen[$1]++' > right.txt
for side in left right; do
	awk '
	function bytes(x, i, text) {
		for (text = ""; i++ < 4; x = int(x / 256))
			text = text sprintf("%02x", x % 256)
		return text
	}
	{ print bytes($1) bytes($2) }' $side.txt | xxd -r -p > $side
done
sort -s -k1,1 left.txt > left.sorted
sort -s -k1,1 right.txt > right.sorted
join left.sorted right.sorted | sort > expected
"$MERGE_JOIN" left right > told 2> stderr || fail "status $?"
sort told > found
[ -s expected ] || fail "there are no pairs"
cmp -s expected found || fail "$(diff expected found | head -3)"
sort -n -s -k1,1 -c told || fail "pairs are not in order"

claim "a merge join with one file prints its usage"
"$MERGE_JOIN" left > told 2> stderr
[ $? -eq 2 ] || fail "another status"
[ ! -s told ] || fail "output: $(cat told)"
grep -q '^usage: merge_join LEFT RIGHT$' stderr || fail "no usage"
finish
