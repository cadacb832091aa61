#!/bin/sh
# part_files - --split writes a directory of part files atomically, with the bytes of one output
#
# random_config.sh describes the variables that repeat a run or make it longer.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/random_config.sh"

GSORT_ROUNDS=${GSORT_ROUNDS:-15}
echo "GSORT_SEED=$seed"
mkdir out

# divides N ARGUMENT...: sort to N part files in out/x, whose concatenation is the file `expected`
divides() {
	n=$1
	shift
	succeeds --split="$n" "$@" -o out/x
	cat out/x/part-* > together
	same expected together "gsort --split=$n $*"
	[ "$(ls -A out)" = x ] && [ "$(ls -A out/x | wc -l)" -eq $((n + 1)) ] ||
		broken "gsort --split=$n $*: there are $(ls -A out out/x | tr '\n' ' ')"
	is_json out/x/manifest.json
}

# lengths: print the sizes of the shortest and the longest part file
lengths() {
	# Names of part files have no special characters.
	# shellcheck disable=SC2012
	ls -l out/x/part-* | awk '
		{ if (!n++ || $5 < least) least = $5; if ($5 > most) most = $5 }
		END { print least, most }'
}

# listed NAME < MANIFEST: print the values of a member, one per line
listed() {
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
	divides 7 $options random
	[ "$(lengths)" = '114280 114288' ] || broken "$options: of $(lengths) bytes"
done
"$GSORT" -m --shard=3/7 expected -o part
same part out/x/part-0002 'the third of seven'
"$GSORT" -R 60 -k 0:b40 long -o expected
divides 4 -R 60 -k 0:b40 long
[ "$(lengths)" = '450000 450000' ] || broken "keys that begin alike: of $(lengths) bytes"

claim "manifest and gsort-check agree about each part file"
divides 3 -R 60 -k 0:b40 -S 2M long
for i in 0 1 2; do
	"$GSORT_CHECK" -R 60 -k 0:b40 out/x/part-000$i > found
	says "$(listed records < out/x/manifest.json | sed -n $((i + 2))p) records, sorted" found
	says "checksum $(listed checksum < out/x/manifest.json | sed -n $((i + 1))p)\$" found
	[ "$(listed bytes < out/x/manifest.json | sed -n $((i + 1))p)" = \
		"$(wc -c < out/x/part-000$i)" ] ||
		broken "bytes of part $i"
	[ "$(listed first_key < out/x/manifest.json | sed -n $((i + 1))p)" = \
		"$(head -c 40 out/x/part-000$i | xxd -p -c 40)" ] || broken "first key of part $i"
	[ "$(listed last_key < out/x/manifest.json | sed -n $((i + 1))p)" = \
		"$(tail -c 60 out/x/part-000$i | head -c 40 | xxd -p -c 40)" ] ||
		broken "last key of part $i"
done
[ "$(listed gsort_part_manifest < out/x/manifest.json)" = 1 ] || broken "version"
head -c 25 out/x/manifest.json | grep -q gsort_part_manifest ||
	broken "the manifest does not begin with its mark"

# undivided RECORD_BYTES OFFSET BYTES: no key is in two part files
undivided() {
	for i in out/x/part-*; do
		xxd -p -c "$1" "$i" | cut -c "$((2 * $2 + 1))-$((2 * ($2 + $3)))" | uniq
	done | sort | uniq -d > divided
	[ ! -s divided ] || broken "divided: $(head -1 divided)"
}

claim "with --split-by=keys, no key is in two part files"
"$GSORT" few -o expected
for options in '' '-S 1M' '-S 1M --partitions=3 --parallel=2 --temp-compress=delta' \
	'--limit=50000'; do
	# shellcheck disable=SC2086
	"$GSORT" $options few -o expected
	# shellcheck disable=SC2086
	divides 6 --split-by=keys $options few
	undivided 8 0 8
done
"$GSORT" -R 24 -k 3:b10 records -o expected
divides 5 --split-by=keys -R 24 -k 3:b10 --partitions=2 records
undivided 24 3 10
"$GSORT" -R 60 -k 0:b40 long -o expected
divides 3 --split-by=keys -R 60 -k 0:b40 long
undivided 60 0 40

claim "with --split-by=keys, no key is in two part files if records stay in the mapped input"
# Elements contain the position of the record, so no two are equal. They have 8 or 16 bytes. The
# keys have one value, a few, or many.
for key in 3:b1 21:b1 24:b2 20:b5; do
	"$GSORT" -R 60 -k $key long -o expected
	for options in '' --partitions=2 '-S 1M'; do
		# shellcheck disable=SC2086
		divides 3 --split-by=keys $options -R 60 -k $key long
		undivided 60 "${key%%:*}" "${key##*b}"
	done
done
run --split=3 --split-by=keys --stats -R 60 -k 21:b1 long -o out/x
says 'chunks: .* of the mapped input' stderr

claim "floats that are equal in the order of numpy are one key"
# 0.0, -0.0 and two NaN
printf '\0\0\0\0\0\0\0\200\0\0\300\377\0\0\0\0\0\0\0\200\1\0\300\177' > floats
for options in '' -r; do
	# $options may be empty.
	# shellcheck disable=SC2086
	"$GSORT" $options -R 4 -k 0:f32:n floats -o expected
	# shellcheck disable=SC2086
	divides 5 --split-by=keys $options -t f32:n floats
	# shellcheck disable=SC2086
	"$GSORT" -u $options -t f32:n floats -o expected
	for part in out/x/part-*; do
		# shellcheck disable=SC2086
		"$GSORT" -u $options -t f32:n "$part"
	done > found
	same expected found "$options: keys of parts"
done

claim "-u with part files keeps each record once"
for options in '' '-S 1M --partitions=3' '--count' '--count --keys-only --verify' '--limit=1000' \
	'--limit=77 --count'; do
	# shellcheck disable=SC2086
	"$GSORT" -u $options random few random -o expected
	# shellcheck disable=SC2086
	divides 4 -u $options random few random
done
"$GSORT_CHECK" -u out/x/part-0000 > /dev/null 2>&1 # records with counts have another size
"$GSORT" -u few -o expected
divides 9 -u few

claim "an empty input gives empty part files"
: > nothing
: > expected
divides 3 nothing
divides 3 --split-by=keys nothing
divides 3 -u nothing
head -c 16 random > two
"$GSORT" two -o expected
divides 5 two
divides 5 --split-by=keys two

claim "each compressed part file can be decompressed alone"
"$GSORT" few -o expected
for options in '' '--split-by=keys --partitions=2' '-S 1M --parallel=3'; do
	# shellcheck disable=SC2086
	succeeds --zstd --split=3 --verify $options few -o out/x
	for i in 0 1 2; do
		"$GSORT" -m out/x/part-000$i.zst
	done > together
	same expected together "--zstd $options"
done
grep -q '"zstd": true' out/x/manifest.json || broken "it is not said in the manifest"

claim "each part file has the header, and the last one the trailer"
{ printf 'HEADER'; head -c 800 random; printf 'TAIL'; } > framed
head -c 800 random | "$GSORT" > expected
succeeds --skip-bytes=6 --partial=keep --verify --split=3 framed -o out/x
for i in 0 1 2; do
	[ "$(head -c 6 out/x/part-000$i)" = HEADER ] || broken "no header in $i"
	tail -c +7 out/x/part-000$i
done | head -c 800 > together
same expected together framed
[ "$(tail -c 4 out/x/part-0002)" = TAIL ] || broken "no tail"
[ "$(listed header_bytes < out/x/manifest.json)" = 6 ] || broken "no header in the manifest"

claim "a merge, a pipe, several inputs"
"$GSORT" random -o s1
"$GSORT" few -o s2
"$GSORT" -m s1 s2 -o expected
divides 4 -m s1 s2
divides 4 -m --partitions=2 -S 4M --split-by=keys s1 s2
divides 3 random few
"$GSORT" random -o expected
divides 3 < random
# The length of a pipe is unknown.
cat random | divides 3 -S 1M

claim "a sort to fewer part files removes the older ones and keeps files beside the directory"
"$GSORT" random -o expected
divides 7 random
: > out/y
succeeds --split=2 random -o out/x/
[ "$(ls out out/x | tr '\n' ' ')" = 'out: x y  out/x: manifest.json part-0000 part-0001 ' ] ||
	broken "there are $(ls out out/x | tr '\n' ' ')"
rm out/y
divides 3 random
chmod 700 out/x
divides 4 random
[ "$(stat -c %a out/x)" = 700 ] || broken "the directory is open to others now"
rm -r out/x
mkdir out/x
divides 3 random
rm -r out/x
ln -s there out/x
succeeds --split=3 random -o out/x
[ "$(ls out/there | wc -l)" -eq 4 ] && [ -h out/x ] || broken "a link is not followed"
rm -r out
mkdir out
divides 3 random

# leaves REGEX ARGUMENT...: the sort fails with one line, and the older directory stays
leaves() {
	leaves_regex=$1
	shift
	cp -a out before
	run "$@" -o out/x
	[ "$status" -eq 2 ] || broken "gsort $*: status $status, not 2"
	one_line "$leaves_regex" "gsort $*"
	diff -r --no-dereference before out > difference || broken "gsort $*: $(head -3 difference)"
	rm -rf before
	nothing_left "gsort $*"
}

claim "a failed sort leaves the older directory"
head -c 100 random > odd
leaves 'odd: .*not a multiple of the record size' --split=3 odd
leaves "input 'out/x/part-0001' is in the output directory 'out/x'" \
	--split=3 out/x/part-0001
leaves "--stats-json 'out/x/manifest.json' is in the output directory" --split=3 \
	--stats-json=out/x/manifest.json random
leaves "--trace './out/../out/x/t' is in the output directory" --split=3 \
	--trace=./out/../out/x/t random
leaves "--checkpoint 'out/x/ck' is in the output directory" --split=3 --checkpoint=out/x/ck random
leaves "-o 'out/x' and --checkpoint 'out/x' are the same" --split=3 --checkpoint=out/x random
leaves "-o 'out/x' and --report 'out/x' are the same directory" --split=3 --report=out/x random
ln -s out/x/t to-part
leaves "--trace 'to-part' is in the output directory" --split=3 --trace=to-part random
leaves '--shard.*--split' --split=3 -m --shard=1/2 s1
leaves "-o 'out/x' and input 'out/x' are the same directory" -m --split=3 out/x
leaves "input 'out/x/manifest.json' is in the output directory" -m --split=3 out/x/manifest.json
for file in out/x/part-*; do
	ln "$file" linked
	leaves 'out/x: is a directory that contains an input' --split=3 linked
	rm linked
done
printf 'random\0' > names0
cp names0 out/x/names
leaves "files0-from 'out/x/names' is in the output directory" --split=2 --files0-from=out/x/names
leaves 'out/x: contains names, which its part manifest does not list' --split=3 random
rm out/x/names
mkdir out/x/part-0007
leaves 'out/x: contains part-0007' --split=3 random
leaves 'out/x: contains part-0007' --explain --split=3 random
rmdir out/x/part-0007
mv out/x/part-0001 aside
ln -s ../../few out/x/part-0001
leaves 'out/x: contains part-0001' --split=3 random
rm out/x/part-0001
head -c 8 aside > out/x/part-0001
leaves 'out/x: part-0001 has 8 bytes, not [0-9]* as in' --split=3 random
mv aside out/x/part-0001
cp out/x/manifest.json kept-manifest
echo 'a list of mine' > out/x/manifest.json
leaves 'out/x/manifest.json: is not a part manifest' --split=3 random
rm out/x/manifest.json
leaves 'out/x: contains part-000[0-2]' --split=3 random
rm -r out/x
echo mine > out/x
leaves 'out/x: exists, and is no directory of part files' --split=3 random
rm -r out
mkdir out
for wrong in 0 1001 x 1/2; do
	refuses "--split: '$wrong'" --split=$wrong random
done
refuses "--split-by: 'key'" --split=2 --split-by=key random
for unit in records keys; do
	refuses "--split-by requires --split" --split-by=$unit random
done
run --split=2 random
one_line '--split requires -o' 'to standard output'
run --split=2 -c s1
one_line '--split cannot be used' '-c'
run --split=2 random -o nowhere/x
one_line 'nowhere/x: .*No such file' 'nowhere'
run --split=2 random -o /
one_line '/: not a name for a new directory' 'the root'
if [ "$(id -u)" -ne 0 ]; then
	mkdir closed
	chmod 555 closed
	run --split=2 random -o closed/x
	one_line 'closed/x: .*Permission denied' 'a directory that cannot be written'
fi

mkfifo pipe
generate -n 300000 --seed=2 -o second
"$GSORT" --split=3 random -o out/x
cp -a out three

# while_sorted REGEX COMMAND: the command runs in out/ after gsort has read its first input and
# looked at the older directory. The sort fails, and nothing but the change of the command remains.
while_sorted() {
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
	[ $? -eq 2 ] || broken "$2: status not 2"
	one_line "$1" "$2"
	diff -r --no-dereference before out > difference || broken "$2: $(head -3 difference)"
	rm -rf before
}

claim "an older directory that changes during the sort is not replaced"
while_sorted 'out/x: has changed during the sort' 'echo mine > x/mine'
while_sorted 'out/x: has changed during the sort' 'rm x/part-0001'
while_sorted 'out/x: has changed during the sort' 'rm x/part-0002; mkdir x/part-0002'
while_sorted 'out/x: part-0002 changed' 'echo more >> x/part-0002'
while_sorted 'out/x: part-0002 changed' \
	'touch -r x/part-0002 time; printf X | dd of=x/part-0002 conv=notrunc 2> dd
	touch -r time x/part-0002'
while_sorted 'out/x: leads to another file' 'mv x y; mkdir x'
while_sorted 'out/x: leads to another file' 'mv x y; echo mine > x'
rm -rf pipe out three
mkdir out

claim "the limit of open files is raised for many part files, if allowed"
"$GSORT" random -o expected
(
	ulimit -S -n 64
	divides 300 random
)
(
	ulimit -n 64
	run --split=300 random -o few.parts
	[ "$status" -eq 2 ] || broken "status $status"
	one_line 'few.parts(/.*)?: .*Too many open files' 'not allowed'
)
[ ! -e few.parts ] && [ -z "$(ls -A | grep gsort-temp)" ] || broken 'some are left'

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
# ended SIGNAL: end a sort at a random time; the directory is the older one or the new one
ended() {
	below $((milliseconds + 5))
	"$GSORT" --split=3 -S 1M random -o out/x 2> stderr &
	process=$!
	sleep "0.$(printf '%03d' "$picked")"
	kill -"$1" $process 2> /dev/null
	wait $process 2> /dev/null
	if ! diff -r older out/x > /dev/null; then
		[ "$(ls -A out/x | wc -l)" -eq 4 ] || broken "SIG$1 after $picked ms: a mixture"
		cat out/x/part-* > together
		same expected together "SIG$1 after $picked ms"
		"$GSORT" -c out/x || broken "SIG$1 after $picked ms: not as the manifest says"
		rm -rf out/x
		cp -a older out/x
	fi
	rm -rf tmp/*
}
for i in $(seq "${GSORT_KILLS:-8}"); do
	ended KILL
	rm -rf out/.gsort-temp-*
	ended TERM
	[ "$(ls -A out)" = x ] || broken "SIGTERM after $picked ms leaves $(ls -A out)"
done

claim "orphans of a killed sort are reported and kept"
mkdir out/.gsort-temp-0123456789abcdef
echo half > out/.gsort-temp-0123456789abcdef/part-0000
run --split=3 random -o out/x
[ "$status" -eq 0 ] || broken "status $status"
one_line '.gsort-temp-0123456789abcdef in the same directory was left by a gsort that' 'an orphan'
[ "$(ls -A out | tr '\n' ' ')" = '.gsort-temp-0123456789abcdef x ' ] ||
	broken "there are $(ls -A out)"
rm -r out/.gsort*

claim "with random options, the part files together are the output"
round=0
while go_on $round; do
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
	way=$picked
	case $options in *--argsort*) way=${way%--verify} ;; esac
	pick_resources
	# Word splitting is intended.
	# shellcheck disable=SC2086
	"$GSORT" $options $input -o expected
	# shellcheck disable=SC2086
	divides $n $options $way $resources $input
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
gives expected -m lists/a/manifest.json lists/b/
succeeds -c lists/a/manifest.json
gives expected -m lists/a lists/b
gives expected -m -S 3M --partitions=2 few-sorted lists/a
gives expected -m --batch-size=2 -S 2M lists/b lists/a
succeeds -c lists/a
succeeds -c lists/b
run -m --stats lists/a lists/b -o output
says '^runs: 2,' stderr
cat few-sorted | gives expected -m lists/a -
mkfifo fifo
"$GSORT" -m few-sorted > fifo &
gives expected -m fifo lists/a
rm fifo
"$GSORT_CHECK" lists/a lists/b > found
says '^lists/a: 100000 records, sorted, 0 duplicate keys' found
says '^lists/b: 100000 records, sorted, 99900 duplicate keys' found
"$GSORT_CHECK" --same-records lists/a random || broken "not the same records"
"$GSORT_CHECK" --same-records few lists/b || broken "not the same records, compressed"
"$GSORT" -m --split=5 lists/a lists/b -o lists/c
succeeds -c lists/c
for k in 1 2 3; do
	"$GSORT" -m --shard=$k/3 lists/a lists/b -o part$k
done
cat part1 part2 part3 > output
same expected output '--shard of directories'
"$GSORT" --limit=12345 random few -o expected
gives expected -m --limit=12345 lists/a lists/b

claim "the manifest describes the records"
"$GSORT" -R 24 -k 3:b10:r records -o expected
"$GSORT" -R 24 -k 3:b10:r --split=3 records -o lists/r
succeeds -c lists/r
gives expected -m lists/r
gives expected -m -R 24 -k 3:b10:r lists/r
run -c -R 24 -k 3:b10 lists/r
[ "$status" -eq 1 ] || broken "in another order: status $status"
refuses 'records of part files have 24 bytes, not 8' -m -t u64 lists/r
refuses 'lists/r: part files have other records' -m lists/a lists/r
"$GSORT" -u --count -R 24 -k 3:b10 --split=2 records -o lists/k
succeeds -c -u lists/k
"$GSORT" --argsort --split=2 random -o lists/i
refuses 'lists/i: part files are not sorted' -m lists/i
refuses 'lists/a: is a directory of sorted part files; gsort -m' lists/a
refuses 'a/manifest.json: is a part manifest of sorted files; gsort -m' lists/a/manifest.json
cat lists/a/manifest.json |
	refuses 'standard input: is a part manifest, but not a regular file' -m -
"$GSORT" -m -t u8 --format=raw lists/a/manifest.json -o output 2> stderr
one_line 'a/manifest.json: record 2: disorder' 'as records'

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
	gives expected -m --partial=drop lists/t
	gives with-tails -m --partial=keep lists/t
	succeeds -c --partial=keep lists/t
	refuses 't/part-0001(.zst)?: ends with 14 bytes that are no record: .* 50 records before' \
		-m lists/t
	rm -rf lists/t
done
"$GSORT" --partial=keep --split=2 four four -o lists/t
gives /dev/null -m --partial=drop lists/t
refuses 't/part-0001: ends with 8 bytes that are no record' -m lists/t

claim "the numbers of records of the manifest are compared with the part files"
"$GSORT" --split=2 whole-and-4 --partial=drop -o lists/t
cp -a lists/t untouched
for as in 's/"records": 100/"records": 0/; s/"records": 50/"records": 0/' \
	'0,/"records": 50/s//"records": 40/; s/"records": 50/"records": 60/'; do
	rm -r lists/t
	cp -a untouched lists/t
	sed -i "$as" lists/t/manifest.json
	refuses 't/part-0000: has 400 bytes of records, not (0|40) records of 8 bytes' \
		-m lists/t
done

claim "part manifests with a header"
{ printf 'HEADER'; head -c 800 random; } > framed
"$GSORT" --skip-bytes=6 framed -o expected
"$GSORT" --skip-bytes=6 --split=3 framed -o lists/h
gives expected -m --skip-bytes=6 lists/h
refuses 'lists/h: part files begin with a header of 6 bytes, not 0 \(--skip-bytes\)' \
	-m lists/h

# finds REGEX DIRECTORY: -m, -c and gsort-check report the error
finds() {
	refuses "$1" -m "$2"
	run -c "$2"
	[ "$status" -eq 2 ] || broken "-c $2: status $status"
	one_line "$1" "-c $2"
	"$GSORT_CHECK" "$2" > /dev/null 2> stderr
	[ $? -eq 2 ] || broken "gsort-check $2: not status 2"
	sed -i 's/^gsort-check: /gsort: /' stderr
	one_line "$1" "gsort-check $2"
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
	finds "lists/$directory/part-$part(.zst)?: " "lists/$directory"
done
cp -a lists kept
printf 12345678 >> lists/a/part-0003
finds 'lists/a/part-0003: has [0-9]+ bytes, not [0-9]+ as listed in lists/a' lists/a

claim "an output does not replace a part file of an input"
cp -a lists kept
run -m lists/a -o lists/a/part-0001
[ "$status" -eq 2 ] || broken "status $status"
one_line 'a/part-0001: is a part file or part manifest of an input' 'in the place of a part'
refuses "stats-json 'lists/a/part-0002' is a part file of an input" \
	-m --stats-json=lists/a/part-0002 lists/a
refuses "trace 'lists/a/part-0002' is a part file of an input" -m --trace=lists/a/part-0002 lists/a
run -m lists/a -o lists/a/manifest.json
[ "$status" -eq 2 ] || broken "in the place of the manifest: status $status"
one_line 'a/manifest.json: is a part file or part manifest of an input' \
	'in the place of the manifest'
"$GSORT" -m lists/a >> lists/a/manifest.json 2> stderr
[ $? -eq 2 ] || broken 'behind the manifest: status not 2'
one_line 'standard output: is a part file or part manifest of an input' 'behind the manifest'
diff -r lists kept > difference || broken "$(head -3 difference)"

claim 'no report goes to a part file of an input'
for command in '"$GSORT" -m lists/a -o output --stats' '"$GSORT" -c lists/a --stats' \
	'"$GSORT_CHECK" lists/a'; do
	eval "$command" > stdout 2>> lists/a/part-0001
	[ $? -eq 2 ] || broken "$command 2>>: status not 2"
done
for command in '"$GSORT" -m lists/a --explain' '"$GSORT_CHECK" lists/a'; do
	eval "$command" >> lists/a/part-0001 2> stderr
	[ $? -eq 2 ] || broken "$command >>: status not 2"
	says '^gsort.*: standard output is a part file of an input; use another file' stderr
done
diff -r lists kept > difference || broken "$(head -3 difference)"

finish
