#!/bin/sh
# part_files - --split writes a directory of part files atomically, with the bytes of one output
#
# random_config.sh describes the variables that repeat a run or make it longer.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/random_config.sh"

GSORT_ROUNDS=${GSORT_ROUNDS:-15}
echo "GSORT_SEED=$seed"
mkdir out

# expect_parts N ARGUMENT...: sort to N part files in out/x, whose concatenation is the file
# `expected`
expect_parts() {
	n=$1
	shift
	expect_success --split="$n" "$@" -o out/x
	cat out/x/part-* > together
	expect_same expected together "gsort --split=$n $*"
	[ "$(ls -A out)" = x ] && [ "$(ls -A out/x | wc -l)" -eq $((n + 1)) ] ||
		fail "gsort --split=$n $*: there are $(ls -A out out/x | tr '\n' ' ')"
	expect_json out/x/manifest.json
}

# part_sizes: print the sizes of the shortest and the longest part file
part_sizes() {
	# Names of part files have no special characters.
	# shellcheck disable=SC2012
	ls -l out/x/part-* | awk '
		{ if (!n++ || $5 < least) least = $5; if ($5 > most) most = $5 }
		END { print least, most }'
}

# manifest_values NAME < MANIFEST: print the values of a member, one per line
manifest_values() {
	sed -n "s/^ *\"$1\": \"\\{0,1\\}\\([^\",]*\\).*/\\1/p"
}

generate -n 100000 -t u64 -d hundred-keys -o few
generate -n 100000 -t u64 -o random
generate -n 30000 -R 24 -k 3:b10 -d hundred-keys -o records
generate -n 30000 -R 60 -k 0:b40 --prefix=20 -o long

claim "part files differ by at most a record in length and are those of --shard"
"$GSORT" random -o expected
for options in '' '-S 1M' '-S 1M --partitions=3 --parallel=3' '--partitions=2'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	expect_parts 7 $options random
	[ "$(part_sizes)" = '114280 114288' ] || fail "$options: of $(part_sizes) bytes"
done
"$GSORT" -m --shard=3/7 expected -o part
expect_same part out/x/part-0002 'the third of seven'
"$GSORT" -R 60 -k 0:b40 long -o expected
expect_parts 4 -R 60 -k 0:b40 long
[ "$(part_sizes)" = '450000 450000' ] || fail "keys that begin alike: of $(part_sizes) bytes"

claim "manifest and gsort-check agree about each part file"
expect_parts 3 -R 60 -k 0:b40 -S 2M long
for i in 0 1 2; do
	"$GSORT_CHECK" -R 60 -k 0:b40 out/x/part-000$i > found
	expect_line "$(manifest_values records < out/x/manifest.json | sed -n $((i + \
		2))p) records, sorted" found
	expect_line "checksum $(manifest_values checksum < out/x/manifest.json | sed -n $((i + \
		1))p)\$" found
	[ "$(manifest_values bytes < out/x/manifest.json | sed -n $((i + 1))p)" = \
		"$(wc -c < out/x/part-000$i)" ] || fail "bytes of part $i"
	[ "$(manifest_values first_key < out/x/manifest.json | sed -n $((i + 1))p)" = \
		"$(head -c 40 out/x/part-000$i | xxd -p -c 40)" ] || fail "first key of part $i"
	[ "$(manifest_values last_key < out/x/manifest.json | sed -n $((i + 1))p)" = \
		"$(tail -c 60 out/x/part-000$i | head -c 40 | xxd -p -c 40)" ] ||
		fail "last key of part $i"
done
[ "$(manifest_values gsort_part_manifest < out/x/manifest.json)" = 1 ] || fail "version"
head -c 25 out/x/manifest.json | grep -q gsort_part_manifest ||
	fail "the manifest does not begin with its mark"

# expect_keys_undivided RECORD_BYTES OFFSET BYTES: no key is in two part files
expect_keys_undivided() {
	for i in out/x/part-*; do
		xxd -p -c "$1" "$i" | cut -c "$((2 * $2 + 1))-$((2 * ($2 + $3)))" | uniq
	done | sort | uniq -d > divided
	[ ! -s divided ] || fail "divided: $(head -1 divided)"
}

claim "with --split-by=keys, no key is in two part files"
"$GSORT" few -o expected
for options in '' '-S 1M' '-S 1M --partitions=3 --parallel=2 --temp-compress=delta' \
	'--limit=50000'; do
	# shellcheck disable=SC2086
	"$GSORT" $options few -o expected
	# shellcheck disable=SC2086
	expect_parts 6 --split-by=keys $options few
	expect_keys_undivided 8 0 8
done
"$GSORT" -R 24 -k 3:b10 records -o expected
expect_parts 5 --split-by=keys -R 24 -k 3:b10 --partitions=2 records
expect_keys_undivided 24 3 10
"$GSORT" -R 60 -k 0:b40 long -o expected
expect_parts 3 --split-by=keys -R 60 -k 0:b40 long
expect_keys_undivided 60 0 40

claim "with --split-by=keys, no key is in two part files if records stay in the mapped input"
# Elements contain the position of the record, so no two are equal. They have 8 or 16 bytes. The
# keys have one value, a few, or many.
for key in 3:b1 21:b1 24:b2 20:b5; do
	"$GSORT" -R 60 -k $key long -o expected
	for options in '' --partitions=2 '-S 1M'; do
		# shellcheck disable=SC2086
		expect_parts 3 --split-by=keys $options -R 60 -k $key long
		expect_keys_undivided 60 "${key%%:*}" "${key##*b}"
	done
done
run --split=3 --split-by=keys --stats -R 60 -k 21:b1 long -o out/x
expect_line 'chunks: .* of the mapped input' stderr

claim "floats that are equal in the order of numpy are one key"
# 0.0, -0.0 and two NaN
printf '\0\0\0\0\0\0\0\200\0\0\300\377\0\0\0\0\0\0\0\200\1\0\300\177' > floats
for options in '' -r; do
	# $options may be empty.
	# shellcheck disable=SC2086
	"$GSORT" $options -R 4 -k 0:f32:n floats -o expected
	# shellcheck disable=SC2086
	expect_parts 5 --split-by=keys $options -t f32:n floats
	# shellcheck disable=SC2086
	"$GSORT" -u $options -t f32:n floats -o expected
	for part in out/x/part-*; do
		# shellcheck disable=SC2086
		"$GSORT" -u $options -t f32:n "$part"
	done > found
	expect_same expected found "$options: keys of parts"
done

claim "-u with part files keeps each record once"
for options in '' '-S 1M --partitions=3' '--count' '--count --keys-only --verify' '--limit=1000' \
	'--limit=77 --count'; do
	# shellcheck disable=SC2086
	"$GSORT" -u $options random few random -o expected
	# shellcheck disable=SC2086
	expect_parts 4 -u $options random few random
done
"$GSORT_CHECK" -u out/x/part-0000 > /dev/null 2>&1 # records with counts have another size
"$GSORT" -u few -o expected
expect_parts 9 -u few

claim "an empty input gives empty part files"
: > nothing
: > expected
expect_parts 3 nothing
expect_parts 3 --split-by=keys nothing
expect_parts 3 -u nothing
head -c 16 random > two
"$GSORT" two -o expected
expect_parts 5 two
expect_parts 5 --split-by=keys two

claim "each compressed part file can be decompressed alone"
"$GSORT" few -o expected
for options in '' '--split-by=keys --partitions=2' '-S 1M --parallel=3'; do
	# shellcheck disable=SC2086
	expect_success --zstd --split=3 --verify $options few -o out/x
	for i in 0 1 2; do
		"$GSORT" -m out/x/part-000$i.zst
	done > together
	expect_same expected together "--zstd $options"
done
grep -q '"zstd": true' out/x/manifest.json || fail "it is not said in the manifest"

claim "each part file has the header, and the last one the trailer"
{ printf 'HEADER'; head -c 800 random; printf 'TAIL'; } > framed
head -c 800 random | "$GSORT" > expected
expect_success --skip-bytes=6 --partial=keep --verify --split=3 framed -o out/x
for i in 0 1 2; do
	[ "$(head -c 6 out/x/part-000$i)" = HEADER ] || fail "no header in $i"
	tail -c +7 out/x/part-000$i
done | head -c 800 > together
expect_same expected together framed
[ "$(tail -c 4 out/x/part-0002)" = TAIL ] || fail "no tail"
[ "$(manifest_values header_bytes < out/x/manifest.json)" = 6 ] || fail "no header in the manifest"

claim "a merge, a pipe, several inputs"
"$GSORT" random -o s1
"$GSORT" few -o s2
"$GSORT" -m s1 s2 -o expected
expect_parts 4 -m s1 s2
expect_parts 4 -m --partitions=2 -S 4M --split-by=keys s1 s2
expect_parts 3 random few
"$GSORT" random -o expected
expect_parts 3 < random
# The length of a pipe is unknown.
cat random | expect_parts 3 -S 1M

claim "a sort to fewer part files removes the older ones and keeps files beside the directory"
"$GSORT" random -o expected
expect_parts 7 random
: > out/y
expect_success --split=2 random -o out/x/
[ "$(ls out out/x | tr '\n' ' ')" = 'out: x y  out/x: manifest.json part-0000 part-0001 ' ] ||
	fail "there are $(ls out out/x | tr '\n' ' ')"
rm out/y
expect_parts 3 random
chmod 700 out/x
expect_parts 4 random
[ "$(stat -c %a out/x)" = 700 ] || fail "the directory is open to others now"
rm -r out/x
mkdir out/x
expect_parts 3 random
rm -r out/x
ln -s there out/x
expect_success --split=3 random -o out/x
[ "$(ls out/there | wc -l)" -eq 4 ] && [ -h out/x ] || fail "a link is not followed"
rm -r out
mkdir out
expect_parts 3 random

# expect_kept REGEX ARGUMENT...: the sort fails with one line, and the older directory
# stays
expect_kept() {
	leaves_regex=$1
	shift
	cp -a out before
	expect_failure "$leaves_regex" "$@" -o out/x
	diff -r --no-dereference before out > difference || fail "gsort $*: $(head -3 difference)"
	rm -rf before
	expect_no_temp_files "gsort $*"
}

claim "a failed sort leaves the older directory"
head -c 100 random > odd
expect_kept 'odd: .*not a multiple of the record size' --split=3 odd
expect_kept "input 'out/x/part-0001' is in the output directory 'out/x'" --split=3 out/x/part-0001
expect_kept "--stats-json 'out/x/manifest.json' is in the output directory" --split=3 \
	--stats-json=out/x/manifest.json random
expect_kept "--trace './out/../out/x/t' is in the output directory" --split=3 \
	--trace=./out/../out/x/t random
expect_kept "--checkpoint 'out/x/ck' is in the output directory" --split=3 --checkpoint=out/x/ck \
	random
expect_kept "-o 'out/x' and --checkpoint 'out/x' are the same" --split=3 --checkpoint=out/x random
expect_kept "-o 'out/x' and --report 'out/x' are the same directory" --split=3 --report=out/x random
ln -s out/x/t to-part
expect_kept "--trace 'to-part' is in the output directory" --split=3 --trace=to-part random
expect_kept '--shard.*--split' --split=3 -m --shard=1/2 s1
expect_kept "-o 'out/x' and input 'out/x' are the same directory" -m --split=3 out/x
expect_kept "input 'out/x/manifest.json' is in the output directory" -m --split=3 \
	out/x/manifest.json
for file in out/x/part-*; do
	ln "$file" linked
	expect_kept 'out/x: is a directory that contains an input' --split=3 linked
	rm linked
done
printf 'random\0' > names0
cp names0 out/x/names
expect_kept "files0-from 'out/x/names' is in the output directory" --split=2 \
	--files0-from=out/x/names
expect_kept 'out/x: contains names, which is not one of its part files' --split=3 random
rm out/x/names
mkdir out/x/part-0007
expect_kept 'out/x: contains part-0007' --split=3 random
expect_kept 'out/x: contains part-0007' --explain --split=3 random
rmdir out/x/part-0007
mv out/x/part-0001 aside
ln -s ../../few out/x/part-0001
expect_kept 'out/x: contains part-0001' --split=3 random
rm out/x/part-0001
head -c 8 aside > out/x/part-0001
expect_kept 'out/x: part-0001 has 8 bytes, not [0-9]* as in' --split=3 random
mv aside out/x/part-0001
cp out/x/manifest.json kept-manifest
echo 'a list of mine' > out/x/manifest.json
expect_kept 'out/x/manifest.json: is not a part manifest' --split=3 random
rm out/x/manifest.json
expect_kept 'out/x: contains part-000[0-2]' --split=3 random
rm -r out/x
echo mine > out/x
expect_kept 'out/x: exists, and is no directory of part files' --split=3 random
rm -r out
mkdir out
for wrong in 0 1001 x 1/2; do
	expect_error "--split: '$wrong'" --split=$wrong random
done
expect_error "--split-by: 'key'" --split=2 --split-by=key random
for unit in records keys; do
	expect_error "--split-by requires --split" --split-by=$unit random
done
run --split=2 random
expect_message '--split requires -o' 'to standard output'
run --split=2 -c s1
expect_message '--split cannot be used' '-c'
run --split=2 random -o nowhere/x
expect_message 'nowhere/x: .*No such file' 'nowhere'
run --split=2 random -o /
expect_message '/: not a name for a new directory' 'the root'
if [ "$(id -u)" -ne 0 ]; then
	mkdir closed
	chmod 555 closed
	run --split=2 random -o closed/x
	expect_message 'closed/x: .*Permission denied' 'a directory that cannot be written'
fi

mkfifo pipe
generate -n 300000 --seed=2 -o second
"$GSORT" --split=3 random -o out/x
cp -a out three

# change_during_sort REGEX COMMAND: the command runs in out/ after gsort has read its first input
# and looked at the older directory. The sort fails, and nothing but the change of the command
# remains.
change_during_sort() {
	rm -rf out
	cp -a three out
	"$GSORT" --split=2 random pipe -o out/x 2> stderr &
	process=$!
	exec 3> pipe
	cat second >&3 2> /dev/null
	(cd out && eval "$2")
	hidden=$(ls -dA out/.gsort-temp-*)
	cp -a out before
	rm -r "before/${hidden#out/}"
	exec 3>&-
	wait $process
	[ $? -eq 2 ] || fail "$2: status not 2"
	expect_message "$1" "$2"
	diff -r --no-dereference before out > difference || fail "$2: $(head -3 difference)"
	rm -rf before
}

claim "an older directory that changes during the sort is not replaced"
change_during_sort 'out/x: has changed during the sort' 'echo mine > x/mine'
change_during_sort 'out/x: has changed during the sort' 'rm x/part-0001'
change_during_sort 'out/x: has changed during the sort' 'rm x/part-0002; mkdir x/part-0002'
change_during_sort 'out/x: part-0002 changed' 'echo more >> x/part-0002'
change_during_sort 'out/x: part-0002 changed' \
	'touch -r x/part-0002 time; printf X | dd of=x/part-0002 conv=notrunc 2> dd
	touch -r time x/part-0002'
change_during_sort 'out/x: another program replaced this file' 'mv x y; mkdir x'
change_during_sort 'out/x: another program replaced this file' 'mv x y; echo mine > x'
rm -rf pipe out three
mkdir out

claim "the limit of open files is raised for many part files, if allowed"
"$GSORT" random -o expected
(
	ulimit -S -n 64
	expect_parts 300 random
)
(
	ulimit -n 64
	expect_failure 'few.parts(/.*)?: .*Too many open files' --split=300 random -o few.parts
)
[ ! -e few.parts ] && [ -z "$(ls -A | grep gsort-temp)" ] || fail 'some are left'

claim "a sort that is killed at any time leaves the older or the new directory"
"$GSORT" random -o expected
rm -rf out
mkdir out
"$GSORT" --split=5 few -o out/x
cp -a out/x older
begin=$(date +%s%N)
"$GSORT" --split=3 -S 1M random -o timed
milliseconds=$((($(date +%s%N) - begin) / 1000000 + 1))
rm -r timed
# signal_sort SIGNAL: end a sort at a random time; the directory is the older one or the new one
signal_sort() {
	pick_below $((milliseconds + 5))
	"$GSORT" --split=3 -S 1M random -o out/x 2> stderr &
	process=$!
	sleep "0.$(printf '%03d' "$picked")"
	kill -"$1" $process 2> /dev/null
	wait $process 2> /dev/null
	if ! diff -r older out/x > /dev/null; then
		[ "$(ls -A out/x | wc -l)" -eq 4 ] || fail "SIG$1 after $picked ms: a mixture"
		cat out/x/part-* > together
		expect_same expected together "SIG$1 after $picked ms"
		"$GSORT" -c out/x || fail "SIG$1 after $picked ms: not as the manifest says"
		rm -rf out/x
		cp -a older out/x
	fi
	rm -rf tmp/*
}
for i in $(seq "${GSORT_KILLS:-8}"); do
	signal_sort KILL
	rm -rf out/.gsort-temp-*
	signal_sort TERM
	[ "$(ls -A out)" = x ] || fail "SIGTERM after $picked ms leaves $(ls -A out)"
done

claim "orphans of a killed sort are reported and kept"
mkdir out/.gsort-temp-0123456789abcdef
echo half > out/.gsort-temp-0123456789abcdef/part-0000
for arguments in '-t u64 random -o out/plain' '--lines random -o out/plain' \
	'-t u64 random -o out/plain --trace=out/trace' '-t u64 random --split=3 -o out/x'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	expect_exit 0 $arguments
	expect_message '.gsort-temp-0123456789abcdef in the same directory was left by a gsort' \
		"$arguments"
	rm -f out/plain out/trace
done
[ "$(ls -A out | tr '\n' ' ')" = '.gsort-temp-0123456789abcdef x ' ] ||
	fail "there are $(ls -A out)"
rm -r out/.gsort*

claim "with random options, the part files together are the output"
round=0
while more_rounds $round; do
	pick random few records long
	input=$picked
	case $input in
	records) options='-R 24 -k 3:b10' ;;
	long) options='-R 60 -k 0:b40' ;;
	*) options='-t u64' ;;
	esac
	pick '' '' -u -r '--limit=9999' '-u --limit=3' '--argsort' '--keys-only' '-u --count'
	options="$options $picked"
	pick 1 2 3 5 16 33
	n=$picked
	pick '' '' --split-by=keys --verify '--split-by=keys --verify'
	mode=$picked
	case $options in *--argsort*) mode=${mode%--verify} ;; esac
	pick_resources
	# Word splitting is intended.
	# shellcheck disable=SC2086
	"$GSORT" $options $input -o expected
	# shellcheck disable=SC2086
	expect_parts $n $options $mode $resources $input
	round=$((round + 1))
done

# --- directories as inputs ---

rm -rf out lists
mkdir lists
"$GSORT" --split=4 random -o lists/a
"$GSORT" --zstd --split=3 --split-by=keys few -o lists/b
"$GSORT" random few -o expected
"$GSORT" few -o few-sorted

claim "a directory is one sorted input, and so is its manifest"
expect_output expected -m lists/a/manifest.json lists/b/
expect_success -c lists/a/manifest.json
expect_output expected -m lists/a lists/b
expect_output expected -m -S 3M --partitions=2 few-sorted lists/a
expect_output expected -m --batch-size=2 -S 2M lists/b lists/a
expect_success -c lists/a
expect_success -c lists/b
run -m --stats lists/a lists/b -o output
expect_line '^runs: 2,' stderr
cat few-sorted | expect_output expected -m lists/a -
mkfifo fifo
"$GSORT" -m few-sorted > fifo &
expect_output expected -m fifo lists/a
rm fifo
"$GSORT_CHECK" lists/a lists/b > found
expect_line '^lists/a: 100000 records, sorted, 0 duplicate keys' found
expect_line '^lists/b: 100000 records, sorted, 99900 duplicate keys' found
"$GSORT_CHECK" --same-records lists/a random || fail "not the same records"
"$GSORT_CHECK" --same-records few lists/b || fail "not the same records, compressed"
"$GSORT" -m --split=5 lists/a lists/b -o lists/c
expect_success -c lists/c
for k in 1 2 3; do
	"$GSORT" -m --shard=$k/3 lists/a lists/b -o part$k
done
cat part1 part2 part3 > output
expect_same expected output '--shard of directories'
"$GSORT" --limit=12345 random few -o expected
expect_output expected -m --limit=12345 lists/a lists/b

claim "part files may begin like another format"
printf '\050\265\057\375\001\001\001\001' > magic
"$GSORT" --format=raw --split=2 magic -o magics 2> stderr
expect_output magic -m magics

claim "the manifest describes the records"
"$GSORT" -R 24 -k 3:b10:r records -o expected
"$GSORT" -R 24 -k 3:b10:r --split=3 records -o lists/r
expect_success -c lists/r
expect_output expected -m lists/r
expect_output expected -m -R 24 -k 3:b10:r lists/r
expect_exit 1 -c -R 24 -k 3:b10 lists/r
expect_error 'records of part files have 24 bytes, not 8' -m -t u64 lists/r
expect_error 'lists/r: part files have other records' -m lists/a lists/r
"$GSORT" -u --count -R 24 -k 3:b10 --split=2 records -o lists/k
expect_success -c -u lists/k
"$GSORT" --argsort --split=2 random -o lists/i
expect_error 'lists/i: part files are not sorted' -m lists/i
expect_error 'lists/a: is a directory of sorted part files; gsort -m' lists/a
expect_error 'a/manifest.json: is a part manifest of sorted files; gsort -m' lists/a/manifest.json
cat lists/a/manifest.json |
	expect_error 'standard input: is a part manifest, but not a regular file' -m -
"$GSORT" -m -t u8 --format=raw lists/a/manifest.json -o output 2> stderr
expect_message 'a/manifest.json: record 2: disorder' 'as records'

claim "headers and trailers of inputs are not records of part files, whatever their length"
head -c 804 random > whole-and-4
printf '\377\377\377\377' > four
printf 'abcde\377' > six
"$GSORT" --partial=drop whole-and-4 -o expected
"$GSORT" --partial=keep whole-and-4 four six -o with-tails
for zstd in '' --zstd; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	"$GSORT" --partial=keep --split=2 $zstd whole-and-4 four six -o lists/t
	expect_output expected -m --partial=drop lists/t
	expect_output with-tails -m --partial=keep lists/t
	expect_success -c --partial=keep lists/t
	expect_error 't/part-0001(.zst)?: ends with 14 bytes that are no record: .* 50 records' \
		-m lists/t
	rm -rf lists/t
done
"$GSORT" --partial=keep --split=2 four four -o lists/t
expect_output /dev/null -m --partial=drop lists/t
expect_error 't/part-0001: ends with 8 bytes that are no record' -m lists/t

claim "the numbers of records of the manifest are compared with the part files"
"$GSORT" --split=2 whole-and-4 --partial=drop -o lists/t
cp -a lists/t untouched
for as in 's/"records": 100/"records": 0/; s/"records": 50/"records": 0/' \
	'0,/"records": 50/s//"records": 40/; s/"records": 50/"records": 60/'; do
	rm -r lists/t
	cp -a untouched lists/t
	sed -i "$as" lists/t/manifest.json
	expect_error 't/part-0000: has 400 bytes of records, not (0|40) records of 8 bytes' \
		-m lists/t
done

claim "part manifests with a header"
{ printf 'HEADER'; head -c 800 random; } > framed
"$GSORT" --skip-bytes=6 framed -o expected
"$GSORT" --skip-bytes=6 --split=3 framed -o lists/h
expect_output expected -m --skip-bytes=6 lists/h
expect_error 'lists/h: part files begin with a header of 6 bytes, not 0 \(--skip-bytes\)' -m lists/h

# expect_defect REGEX DIRECTORY: -m, -c and gsort-check report the error
expect_defect() {
	expect_error "$1" -m "$2"
	expect_failure "$1" -c "$2"
	"$GSORT_CHECK" "$2" > /dev/null 2> stderr
	[ $? -eq 2 ] || fail "gsort-check $2: not status 2"
	sed -i 's/^gsort-check: /gsort: /' stderr
	expect_message "$1" "gsort-check $2"
	rm -rf lists
	mv kept lists
}

claim "a part file that contradicts the manifest is named"
for damage in 'a 0002 printf x | dd of=a/part-0002 bs=1 seek=4440 conv=notrunc' \
	'a 0001 cp a/part-0003 a/part-0001' 'a 0002 rm a/part-0002' \
	'a 0000 truncate -s -8 a/part-0000' 'a 0003 printf 12345678 >> a/part-0003' \
	'b 0000 cp b/part-0001.zst b/part-0000.zst' \
	'a 0002 "$GSORT" --split=4 ../few -o again; cp again/part-0002 a' \
	'a 0001 rm a/part-0001; mkdir a/part-0001'; do
	cp -a lists kept
	directory=${damage%% *}
	damage=${damage#* }
	part=${damage%% *}
	(cd lists && eval "${damage#* }") 2> /dev/null
	expect_defect "lists/$directory/part-$part(.zst)?: " "lists/$directory"
done
cp -a lists kept
printf 12345678 >> lists/a/part-0003
expect_defect 'lists/a/part-0003: has [0-9]+ bytes, not [0-9]+ as listed in lists/a' lists/a

claim "an output does not replace a part file of an input"
cp -a lists kept
expect_failure 'a/part-0001: is a part file or part manifest of an input' \
	-m lists/a -o lists/a/part-0001
for report in stats-json trace; do
	expect_error "$report 'lists/a/part-0002' exists, but is not a report" \
		-m --$report=lists/a/part-0002 lists/a
	expect_error "$report 'lists/a/manifest.json' is .* of an input" \
		-m --$report=lists/a/manifest.json lists/a
done
expect_exit 2 -m lists/a -o lists/a/manifest.json
expect_message 'a/manifest.json: is a part file or part manifest of an input' \
	'in the place of the manifest'
"$GSORT" -m lists/a >> lists/a/manifest.json 2> stderr
[ $? -eq 2 ] || fail 'behind the manifest: status not 2'
expect_message 'standard output: is a part file or part manifest of an input' 'behind the manifest'
diff -r lists kept > difference || fail "$(head -3 difference)"

claim 'no report goes to a part file of an input'
for command in '"$GSORT" -m lists/a -o output --stats' '"$GSORT" -c lists/a --stats' \
	'"$GSORT_CHECK" lists/a'; do
	eval "$command" > stdout 2>> lists/a/part-0001
	[ $? -eq 2 ] || fail "$command 2>>: status not 2"
done
for command in '"$GSORT" -m lists/a --explain' '"$GSORT_CHECK" lists/a'; do
	eval "$command" >> lists/a/part-0001 2> stderr
	[ $? -eq 2 ] || fail "$command >>: status not 2"
	expect_line '^gsort.*: standard output is a part file of an input; use another file' stderr
done
diff -r lists kept > difference || fail "$(head -3 difference)"

finish
