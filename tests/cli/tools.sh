#!/bin/sh
# tools - gsort-gen, gsort-check and gsort-bench work as documented
. "$(dirname "$0")/testlib.sh"

# expect_answer STATUS REGEX PROGRAM ARGUMENT...: the program prints one matching line and exits
expect_answer() {
	wanted_status=$1
	wanted_regex=$2
	shift 2
	"$@" > stdout 2> stderr
	status=$?
	expect_status "$wanted_status" "$*"
	grep -qE -e "$wanted_regex" stdout stderr || fail "$*: no '$wanted_regex'"
	[ "$(cat stdout stderr | wc -l)" -eq 1 ] || fail "$*: not one line"
}

# expect_report STATUS TEXT ARGUMENT...: gsort-check exits with STATUS and prints TEXT
expect_report() {
	wanted_status=$1
	printf '%s\n' "$2" > expected
	shift 2
	"$GSORT_CHECK" "$@" > stdout 2> stderr
	status=$?
	expect_status "$wanted_status" "$*"
	diff -u expected stdout || fail "$*: another answer"
}

claim 'a data set does not depend on the kind of output'
generate -n 1000003 -t b3 -o file
"$GSORT_GEN" -n 1000003 -t b3 > stdout
expect_same file stdout 'redirected'
"$GSORT_GEN" -n 1000003 -t b3 | cat > stdout
expect_same file stdout 'through a pipe'
[ "$(wc -c < file)" -eq 3000009 ] || fail "$(wc -c < file) bytes"

claim 'another seed gives another data set'
generate -n 1000 --seed=2 -o other
generate -n 1000 -o file
! cmp -s file other || fail 'the same for two seeds'

claim '-b gives the number of complete records that fit'
generate -b 1000 -t b16 -o file
[ "$(wc -c < file)" -eq 992 ] || fail "$(wc -c < file) bytes"
generate -b 2K -o file
[ "$(wc -c < file)" -eq 2048 ] || fail "$(wc -c < file) bytes"

claim 'parts of the benchmark data are parts of the whole, for any kind of output'
for kind in ascii binary skewed; do
	generate --gensort=$kind -n 20011 -o whole
	generate --gensort=$kind -n 7000 -o part.1
	generate --gensort=$kind -b 7000 -n 13011 -o part.2
	cat part.1 part.2 | cmp -s - whole || fail "$kind: two parts"
	taskset -c 0 "$GSORT_GEN" --gensort=$kind -n 20011 | cmp -s - whole ||
		fail "$kind: one processor, a pipe"
done

claim 'keys have the distribution, in the order of their type'
for keys in '-k 8:f32' '-k 12:i16be:r -k 0:u32' '-k 2:b14' '-k 3:i64:r -k 0:b2' '-k 19:f64be'; do
	generate -R 30 $keys -n 1000 -d sorted -o records
	expect_answer 0 '1000 records, sorted,' "$GSORT_CHECK" -R 30 $keys records
	generate -R 30 $keys -n 1000 -d reversed -o records
	expect_answer 1 'disorder at record 2 and 998 more' "$GSORT_CHECK" -R 30 $keys records
	generate -R 30 $keys -n 1000 -d equal -o records
	expect_answer 0 'sorted, 999 duplicate keys' "$GSORT_CHECK" -R 30 $keys records
	[ "$(xxd -p -c30 records | sort -u | wc -l)" -eq 1000 ] || fail "$keys: records repeat"
done

claim 'keys have a common prefix'
generate -R 40 -k 5:b30 --prefix=20 -n 1000 -o records
[ "$(xxd -p -c40 records | cut -c11-50 | sort -u | wc -l)" -eq 1 ] || fail 'no prefix of 20 bytes'
[ "$(xxd -p -c40 records | cut -c51-52 | sort -u | wc -l)" -gt 200 ] || fail 'a longer prefix'
generate -t b16 --prefix=16 -n 1000 -o records
expect_answer 0 'sorted, 999 duplicate keys' "$GSORT_CHECK" -t b16 records

claim 'wrong arguments of gsort-gen'
expect_answer 2 '^gsort-gen: .*--prefix.* 8 bytes' "$GSORT_GEN" --prefix=9 -o file
expect_answer 2 '^gsort-gen: .*--key.*--record-size' "$GSORT_GEN" -k 0:u8 -o file
expect_answer 2 '^gsort-gen: .*--record-size.*--gensort' "$GSORT_GEN" --gensort=ascii -R 100 -o file
expect_answer 2 '^gsort-gen: .*--key.*--gensort' "$GSORT_GEN" --gensort=ascii -k 0:b10 -o file
expect_answer 2 '^gsort-gen: .*--prefix.*--gensort' "$GSORT_GEN" --gensort=ascii --prefix=2 -o file
expect_answer 2 '^gsort-gen: .*--gensort.*ascii.binary.skewed' "$GSORT_GEN" --gensort=text -o file
expect_answer 2 '^gsort-gen: .*--type.*--gensort' "$GSORT_GEN" --gensort=ascii -t u32 -o file
expect_answer 2 '^gsort-gen: .*--dist.*--gensort' "$GSORT_GEN" --gensort=ascii -d hundred-keys -o \
	file
expect_answer 2 '^gsort-gen: .*--seed.*--gensort' "$GSORT_GEN" --gensort=ascii --seed=2 -o file
expect_answer 2 '^gsort-gen: .*2\^64' "$GSORT_GEN" --gensort=ascii -b 18446744073709551615 -n 2 \
	-o file
expect_answer 2 '^gsort-gen: .*--dist.*random sorted' "$GSORT_GEN" -d gaussian -o file
expect_answer 2 '^gsort-gen: .*--records' "$GSORT_GEN" -n x -o file
expect_answer 2 '^gsort-gen: .*--bytes' "$GSORT_GEN" -b 1x -o file
expect_answer 2 '^gsort-gen: .*--type' "$GSORT_GEN" -t u7 -o file
expect_answer 2 '^gsort-gen: .*--seed' "$GSORT_GEN" --seed=-1 -o file
expect_answer 2 '^gsort-gen: .*together' "$GSORT_GEN" -n 1 -b 8 -o file
expect_answer 2 '^gsort-gen: .*do not fit in a file' "$GSORT_GEN" -n 18446744073709551615 -o file
expect_answer 2 "^gsort-gen: .*'file'" "$GSORT_GEN" file
expect_answer 2 '^gsort-gen: nowhere/file: ' "$GSORT_GEN" -o nowhere/file
expect_answer 2 '^gsort-gen: .*No space' sh -c '"$1" > /dev/full' sh "$GSORT_GEN"
[ "$(wc -c < file)" -eq 2048 ] || fail 'the older file was touched'

claim 'gsort-check prints order, number, duplicates and checksum'
generate -n 1000 -d sorted -o sorted
expect_answer 0 '^sorted: 1000 records, sorted, 0 duplicate keys, checksum [0-9a-f]{16}$' \
	"$GSORT_CHECK" sorted
expect_answer 1 '^sorted: 1000 records, disorder at record 2 and 998 more, ' "$GSORT_CHECK" -r \
	sorted
generate -n 1000 -d equal -o equal
expect_answer 0 ', 999 duplicate keys,' "$GSORT_CHECK" equal
expect_answer 1 'disorder at record 2 and 998 more, 999 duplicate keys,' "$GSORT_CHECK" -u equal
expect_answer 0 '^-: 1000 records, sorted' sh -c '"$1" < sorted' sh "$GSORT_CHECK"
expect_answer 0 '^-: 1000 records, sorted' sh -c 'cat sorted | "$1" -' sh "$GSORT_CHECK"
expect_answer 2 "^gsort-check: '-': standard input can be read only once, not 2 times" \
	sh -c '"$1" - sorted - < equal' sh "$GSORT_CHECK"
expect_answer 2 "^gsort-check: '-': standard input can be read only once, not 2 times" \
	sh -c '"$1" --same-records - - < equal' sh "$GSORT_CHECK"
: > empty
expect_answer 0 '^empty: 0 records, sorted, 0 duplicate keys, checksum 0{16}$' "$GSORT_CHECK" empty
generate -n 1000 -d sorted -t f32be -o floats
expect_answer 0 '1000 records, sorted' "$GSORT_CHECK" -t f32be floats

# gensort 1.5 -c of the sort benchmark printed the checksums here and below.
claim 'gsort-check agrees with the validator of the sort benchmark'
keys='-R 100 -k 0:b10'
for kind in ascii:1f5dfb3631a binary:1ea6370b955 skewed:1e96301166b; do
	generate --gensort=${kind%:*} -n 1000 -o unsorted
	xxd -p -c100 unsorted | sort | xxd -r -p > sorted
	expect_report 0 "Records: 1000
Checksum: ${kind#*:}
Duplicate keys: 0
SUCCESS - all records are in order" $keys sorted
done

claim 'every record is counted once with any number of threads'
generate --gensort=ascii -n 100000 -o many
for threads in 1 2 7; do
	"$GSORT_CHECK" $keys --parallel=$threads many > stdout
	expect_line '^Checksum: c34e19c81885$' stdout
done
"$GSORT_CHECK" $keys - < many > stdout
expect_line '^Checksum: c34e19c81885$' stdout
cat many | "$GSORT_CHECK" $keys - > stdout
expect_line '^Checksum: c34e19c81885$' stdout
expect_line '^Records: 100000$' stdout

claim 'two swapped records are found'
{
	head -c 50000 sorted
	tail -c +50101 sorted | head -c 100
	tail -c +50001 sorted | head -c 100
	tail -c +50201 sorted
} > exchanged
expect_report 1 'First unordered record is record 501
Records: 1000
Checksum: 1e96301166b
ERROR - there are 1 unordered records' $keys exchanged
"$GSORT_CHECK" --same-records $keys sorted exchanged || fail "--same-records: status $?"

claim 'a record that replaces its neighbour is found'
{
	head -c 50100 sorted
	tail -c +50001 sorted | head -c 100
	tail -c +50201 sorted
} > doubled
"$GSORT_CHECK" $keys doubled > stdout || fail "status $?"
expect_line '^Duplicate keys: 1$' stdout
expect_line '^Checksum: ' stdout
! grep -q 'Checksum: 1e96301166b' stdout || fail 'the checksum is the same'
expect_answer 1 'sorted: 1000 records' "$GSORT_CHECK" --same-records $keys sorted doubled
"$GSORT_CHECK" -u $keys doubled > stdout
[ $? -eq 1 ] || fail '-u: no disorder'
expect_line '^First unordered record is record 501$' stdout

claim 'a changed byte after the key is found'
{
	head -c 50050 sorted
	printf '\0'
	tail -c +50052 sorted
} > changed
! cmp -s sorted changed || fail 'nothing was changed'
"$GSORT_CHECK" $keys changed > stdout || fail "status $?"
expect_line '^SUCCESS' stdout
! grep -q 'Checksum: 1e96301166b' stdout || fail 'the checksum is the same'
expect_answer 1 'sorted: 1000 records' "$GSORT_CHECK" --same-records $keys sorted changed

claim 'several files are reported separately'
"$GSORT_CHECK" $keys sorted exchanged > stdout
[ $? -eq 1 ] || fail 'one is not sorted'
expect_line '^sorted:$' stdout
expect_line '^exchanged:$' stdout

claim 'the result for different records is one line'
generate -R 64 -k 8:i32be:r -n 1000 -d sorted -o records
expect_answer 0 '^records: 1000 records, sorted, 0 duplicate' "$GSORT_CHECK" -R64 -k8:i32be:r \
	records

claim 'the checksum depends only on the records, not on their order'
generate -n 1000 -d random -o random
"$KEY_LINES" u64 < random | sort | cut -d' ' -f2 | xxd -r -p > shuffled
! cmp -s random shuffled || fail 'nothing was shuffled'
"$GSORT_CHECK" --same-records random shuffled > stdout 2> stderr || fail "--same-records: status $?"
[ ! -s stdout ] && [ ! -s stderr ] || fail '--same-records: not silent'
{ head -c 7992 shuffled; printf 'different'; } | head -c 8000 > changed
expect_answer 1 '^random: 1000 records, ' "$GSORT_CHECK" --same-records random changed
head -c 7992 shuffled > shorter
expect_answer 1 ' 999, ' "$GSORT_CHECK" --same-records random shorter

claim '--same-records compares the first with all others together'
head -c 3200 random > part.1
tail -c +3201 random > part.2
"$GSORT_CHECK" --same-records shuffled part.1 part.2 || fail "status $?"
expect_answer 1 'random' "$GSORT_CHECK" --same-records random part.1 part.1

claim 'gsort-check reads headers, incomplete records, formats and lists like gsort'
generate -n 1000 -d sorted -o sorted
{ printf 'header' && cat sorted && printf 'tail'; } > framed
expect_answer 2 '^gsort-check: framed: .*left over' "$GSORT_CHECK" framed
expect_answer 2 '^gsort-check: framed: .*4 left over' "$GSORT_CHECK" --skip-bytes=6 framed
for partial in keep drop; do
	expect_answer 0 '^framed: 1000 records, sorted' \
		"$GSORT_CHECK" --skip-bytes=6 --partial=$partial framed
	cat framed | "$GSORT_CHECK" --skip-bytes=6 --partial=$partial - > stdout
	expect_line '^-: 1000 records, sorted' stdout
done
expect_answer 2 "^gsort-check: --partial: 'some'" "$GSORT_CHECK" --partial=some framed
expect_answer 2 '^gsort-check: --skip-bytes: .*from 0 to 16777216' "$GSORT_CHECK" --skip-bytes=1G \
	framed
printf 'sorted\0equal' > names
"$GSORT_CHECK" --files0-from=names > stdout || fail "status $?"
"$GSORT_CHECK" sorted equal | cmp - stdout || fail 'another answer from a list'
"$GSORT_CHECK" --files0-from=- < names | cmp - stdout || fail 'from standard input'
expect_answer 2 "^gsort-check: --files0-from: operand 'sorted'" "$GSORT_CHECK" \
	--files0-from=names sorted
expect_answer 2 '^gsort-check: nowhere: ' "$GSORT_CHECK" --files0-from=nowhere

claim '--same-records ignores headers and compares incomplete records that are kept'
{ printf 'HEADER' && cat sorted && printf 'tail'; } > same
{ printf 'header' && cat sorted && printf 'TAIL'; } > other
shape='--skip-bytes=6 --partial=keep'
"$GSORT_CHECK" --same-records $shape framed same || fail "status $?"
expect_answer 1 '^framed: the records are the same, the incomplete' \
	"$GSORT_CHECK" --same-records $shape framed other
"$GSORT_CHECK" --same-records --skip-bytes=6 --partial=drop framed other || fail "status $?"

claim 'gsort-check refuses other formats without --format=raw'
printf '\3757zXZ\000\000\004cccccccccccccccc' > t.xz
expect_answer 2 '^gsort-check: t.xz: is compressed by xz' "$GSORT_CHECK" t.xz
expect_answer 0 '^t.xz: 3 records, ' "$GSORT_CHECK" --format=raw t.xz
printf 'lines\nof a few\nwords\n' > text
expect_answer 2 '^gsort-check: text: is text' "$GSORT_CHECK" text
expect_answer 1 '^text: 21 records, disorder' "$GSORT_CHECK" -t b1 text

# expect_kept REGEX COMMAND: the command is refused, and `mine` does not change, except for a
# message
expect_kept() {
	cp sorted mine
	expect_answer 2 "$1" sh -c "$2
		status=\$?
		tail -c +8001 mine >&2
		head -c 8000 mine > cut
		exit \$status"
	expect_same sorted cut "$2"
}

claim 'results do not overwrite the checked file, and messages do not mix with records'
export GSORT_CHECK GSORT_GEN
ln -s mine soft
expect_kept "standard output and input 'mine' are the same file" '"$GSORT_CHECK" mine >> mine'
expect_kept "standard output and input 'soft' are" '"$GSORT_CHECK" soft >> mine'
expect_kept 'standard output and standard input are the same file' '"$GSORT_CHECK" - < mine >> mine'
expect_kept "standard output and input 'mine'" '"$GSORT_CHECK" --same-records sorted mine 1<> mine'
expect_kept "--files0-from 'mine' and standard output are" \
	'"$GSORT_CHECK" --files0-from=mine >> mine'
expect_kept 'standard output and standard error are the same file' '"$GSORT_GEN" -n 9 >> mine 2>&1'
"$GSORT_CHECK" sorted sorted > both 2>&1 || fail 'standard output and error in one file: refused'
"$GSORT_CHECK" sorted > /dev/null 2>&1 || fail '/dev/null: refused'

claim 'an error message does not overwrite the file that it names'
for command in '"$GSORT_CHECK" mine' '"$GSORT_GEN" -n 9 -o mine'; do
	cp sorted mine
	sh -c "$command 2>> mine"
	status=$?
	expect_status 2 "$command"
	expect_same sorted mine "$command"
done

claim 'wrong arguments of gsort-check'
expect_answer 2 '^gsort-check: missing: ' "$GSORT_CHECK" missing
expect_answer 2 '^gsort-check: random: .*8000' "$GSORT_CHECK" -t b9 random
expect_answer 2 '^gsort-check: .*--type' "$GSORT_CHECK" -t u7 sorted
expect_answer 2 '^gsort-check: .*--same-records' "$GSORT_CHECK" --same-records sorted

# gsort-bench finds the other programs in PATH.
PATH=$(dirname "$GSORT_GEN"):$PATH

claim 'gsort-bench prints its version'
"$GSORT_BENCH" --version > stdout 2> stderr || fail "status $?"
expect_line '^gsort-bench \(gsort\) [0-9.]+$' stdout

claim 'gsort-bench checks and times sorts and leaves no files'
"$GSORT_BENCH" file --size=1M --repeat=1 --gsort="$GSORT" --json=json > stdout 2> stderr ||
	fail "status $?"
expect_line '^ample memory against cp +[0-9.]+ +<= +2\.5' stdout
expect_line '^records: sort against gsort +[0-9.]+ +>= +6' stdout
expect_json json
expect_line '"name": "memory 1/4 against cp", "measured": [0-9.]+, "at_most": 4' json
expect_no_temp_files gsort-bench

claim 'gsort-bench times keys or records alone'
"$GSORT_BENCH" file --only=records --size=1M --repeat=1 --gsort="$GSORT" > stdout 2> stderr ||
	fail "status $?"
expect_line '^records: cp ' stdout
! grep -q '^gsort' stdout || fail 'cases with keys were timed, too'

claim 'gsort-bench does not time wrong results'
printf '#!/bin/sh\ncp "$1" "$3"\n' > copies
chmod +x copies
"$GSORT_BENCH" file --size=1M --repeat=1 --gsort=./copies > stdout 2> stderr
[ $? -eq 2 ] || fail 'unsorted output was accepted'
expect_line 'not sorted' stderr
printf '#!/bin/sh\nhead -c 8 "$1" > "$3"\n' > copies
"$GSORT_BENCH" file --size=1M --repeat=1 --gsort=./copies > stdout 2> stderr
[ $? -eq 2 ] || fail 'incomplete output was accepted'
expect_line 'does not hold the records' stderr
expect_no_temp_files gsort-bench

claim 'gsort-bench explain compares five kinds of sorts and leaves no files'
"$GSORT_BENCH" explain --size=2M --repeat=1 --gsort="$GSORT" > stdout 2> stderr || fail "status $?"
for shape in 'in memory' 'spilled' 'two passes' 'records' 'pipe with a size'; do
	expect_line "^$shape  *[0-9.]* s  *[0-9.]* s  *[0-9.]*\$" stdout
done
expect_no_temp_files 'gsort-bench explain'

claim 'gsort-bench io measures all kinds of I/O and leaves no files'
"$GSORT_BENCH" io --size=4M --request=64K --repeat=1 --json=io.json > stdout 2> stderr ||
	fail "status $?"
expect_line '^read +cold ' stdout
expect_line '^copy twice +cached ' stdout
expect_json io.json
expect_no_temp_files 'gsort-bench io'

finish
