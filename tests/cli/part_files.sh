#!/bin/sh
# part_files - the output as several files and a list of them: the same bytes, all there or none
#
# GSORT_SEED repeats a run, GSORT_ROUNDS or GSORT_SECONDS make it longer.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/random_config.sh"

GSORT_ROUNDS=${GSORT_ROUNDS:-15}
echo "GSORT_SEED=$seed"
mkdir out

# divides N ARGUMENT...: into N files in out/, which together are what the file `expected` holds.
divides() {
	n=$1
	shift
	succeeds --split="$n" "$@" -o out/x
	cat out/x.[0-9]* > together
	same expected together "gsort --split=$n $*"
	[ "$(ls -A out | wc -l)" -eq $((n + 1)) ] ||
		broken "gsort --split=$n $*: there are $(ls -A out | tr '\n' ' ')"
	is_json out/x.parts
}

# lengths: of the parts, shortest and longest
lengths() {
	# Names are those of parts.
	# shellcheck disable=SC2012
	ls -l out/x.[0-9]* | awk '
		{ if (!n++ || $5 < least) least = $5; if ($5 > most) most = $5 }
		END { print least, most }'
}

# listed NAME < list: the values of a member, a line each
listed() {
	sed -n "s/^ *\"$1\": \"\\{0,1\\}\\([^\",]*\\).*/\\1/p"
}

generate -n 100000 -t u64 -d hundred-keys -o few
generate -n 100000 -t u64 -o random
generate -n 30000 -R 24 -k 3:b10 -d hundred-keys -o records
generate -n 30000 -R 60 -k 0:b40 --prefix=20 -o long

claim "parts have the same length, to within a record, and are those of --shard"
"$GSORT" random -o expected
for options in '' '-S 1M' '-S 1M --partitions=3 --parallel=3' '--partitions=2'; do
	# It is a list of words.
	# shellcheck disable=SC2086
	divides 7 $options random
	[ "$(lengths)" = '114280 114288' ] || broken "$options: of $(lengths) bytes"
done
"$GSORT" -m --shard=3/7 expected -o part
same part out/x.0002 'the third of seven'
"$GSORT" -R 60 -k 0:b40 long -o expected
divides 4 -R 60 -k 0:b40 long
[ "$(lengths)" = '450000 450000' ] || broken "keys that begin alike: of $(lengths) bytes"

claim "the list says of each part what gsort-check finds"
divides 3 -R 60 -k 0:b40 -S 2M long
for i in 0 1 2; do
	"$GSORT_CHECK" -R 60 -k 0:b40 out/x.000$i > found
	says "$(listed records < out/x.parts | sed -n $((i + 2))p) records, sorted" found
	says "checksum $(listed checksum < out/x.parts | sed -n $((i + 1))p)\$" found
	[ "$(listed bytes < out/x.parts | sed -n $((i + 1))p)" = "$(wc -c < out/x.000$i)" ] ||
		broken "bytes of part $i"
	[ "$(listed first_key < out/x.parts | sed -n $((i + 1))p)" = \
		"$(head -c 40 out/x.000$i | xxd -p -c 40)" ] || broken "first key of part $i"
	[ "$(listed last_key < out/x.parts | sed -n $((i + 1))p)" = \
		"$(tail -c 60 out/x.000$i | head -c 40 | xxd -p -c 40)" ] ||
		broken "last key of part $i"
done
[ "$(listed gsort_part_manifest < out/x.parts)" = 1 ] || broken "version"
head -c 25 out/x.parts | grep -q gsort_part_manifest ||
	broken "the list does not begin with its mark"

# keys RECORD_BYTES OFFSET BYTES: no key is in two parts
undivided() {
	for i in out/x.[0-9]*; do
		xxd -p -c "$1" "$i" | cut -c "$((2 * $2 + 1))-$((2 * ($2 + $3)))" | uniq
	done | sort | uniq -d > divided
	[ ! -s divided ] || broken "divided: $(head -1 divided)"
}

claim "no key is in two parts, where they end at keys"
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

claim "no key of records that stay where they are in a mapped file is in two parts"
# Each has a number there, so no two elements are equal, in 8 bytes or 16: of one key, of a few, of
# many.
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
# -0.0 and 0.0, and two numbers that are none
printf '\0\0\0\0\0\0\0\200\0\0\300\377\0\0\0\0\0\0\0\200\1\0\300\177' > floats
for options in '' -r; do
	# It may be none.
	# shellcheck disable=SC2086
	"$GSORT" $options -R 4 -k 0:f32:n floats -o expected
	# shellcheck disable=SC2086
	divides 5 --split-by=keys $options -t f32:n floats
	# shellcheck disable=SC2086
	"$GSORT" -u $options -t f32:n floats -o expected
	for part in out/x.[0-9]*; do
		# shellcheck disable=SC2086
		"$GSORT" -u $options -t f32:n "$part"
	done > found
	same expected found "$options: keys of parts"
done

claim "each record once, in ranges that are parts"
for options in '' '-S 1M --partitions=3' '--count' '--count --keys-only --verify' '--limit=1000' \
	'--limit=77 --count'; do
	# shellcheck disable=SC2086
	"$GSORT" -u $options random few random -o expected
	# shellcheck disable=SC2086
	divides 4 -u $options random few random
done
"$GSORT_CHECK" -u out/x.0000 > /dev/null 2>&1 # with counts it is no such record
"$GSORT" -u few -o expected
divides 9 -u few

claim "no records are no parts of any length"
: > nothing
: > expected
divides 3 nothing
divides 3 --split-by=keys nothing
divides 3 -u nothing
head -c 16 random > two
"$GSORT" two -o expected
divides 5 two
divides 5 --split-by=keys two

claim "compressed parts are files of their own"
"$GSORT" few -o expected
for options in '' '--split-by=keys --partitions=2' '-S 1M --parallel=3'; do
	# shellcheck disable=SC2086
	succeeds --zstd --split=3 --verify $options few -o out/x
	for i in 0 1 2; do
		"$GSORT" -m out/x.000$i
	done > together
	same expected together "--zstd $options"
done
grep -q '"zstd": true' out/x.parts || broken "it is not said in the list"

claim "each part has the header, and the last one the tail"
{ printf 'HEADER'; head -c 800 random; printf 'TAIL'; } > framed
head -c 800 random | "$GSORT" > expected
succeeds --skip-bytes=6 --partial=keep --verify --split=3 framed -o out/x
for i in 0 1 2; do
	[ "$(head -c 6 out/x.000$i)" = HEADER ] || broken "no header in $i"
	tail -c +7 out/x.000$i
done | head -c 800 > together
same expected together framed
[ "$(tail -c 4 out/x.0002)" = TAIL ] || broken "no tail"
[ "$(listed header_bytes < out/x.parts)" = 6 ] || broken "no header in the list"

claim "a merge, a pipe, several inputs"
"$GSORT" random -o s1
"$GSORT" few -o s2
"$GSORT" -m s1 s2 -o expected
divides 4 -m s1 s2
divides 4 -m --partitions=2 -S 4M --split-by=keys s1 s2
divides 3 random few
"$GSORT" random -o expected
divides 3 < random
# What is read of a pipe of unknown length.
cat random | divides 3 -S 1M

claim "the second time there are fewer: what is too many goes, others stay"
"$GSORT" random -o expected
divides 7 random
: > out/x.0010.mine
: > out/y.0005
succeeds --split=2 random -o out/x
[ "$(ls out | tr '\n' ' ')" = 'x.0000 x.0001 x.0010.mine x.parts y.0005 ' ] ||
	broken "there are $(ls out | tr '\n' ' ')"
rm out/x.0010.mine out/y.0005
divides 3 random

# leaves REGEX ARGUMENT...: fails, says so, and leaves the older parts.
leaves() {
	leaves_regex=$1
	shift
	cp -a out before
	run "$@" -o out/x
	[ "$status" -eq 2 ] || broken "gsort $*: status $status, not 2"
	one_line "$leaves_regex" "gsort $*"
	diff -r before out > difference || broken "gsort $*: $(head -3 difference)"
	rm -rf before
	nothing_left "gsort $*"
}

claim "what cannot be done leaves what was there"
head -c 100 random > odd
leaves 'odd: .*whole number' --split=3 odd
leaves 'x.0001.* and input .*x.0001.* are the same file' --split=3 out/x.0001
leaves 'same file' --split=3 --stats-json=out/x.parts random
leaves 'same file' --split=3 --trace=out/x.0002 random
leaves "--report 'out/x.0007' has the name of a part file of 'out/x'" --split=3 \
	--report=out/x.0007 random
leaves 'has the name of a part file' --split=3 --trace=./out/../out/x.0003 random
leaves 'has the name of a part file' --split=3 --stats-json=out/.x.0003.backup random
leaves 'has the name of a part file' --split=3 --stats-json=out/.x.parts.pending random
ln -s out/x.12345 to-part
leaves 'has the name of a part file' --split=3 --trace=to-part random
leaves '--shard.*--split' --split=3 -m --shard=1/2 s1
leaves 'are the same' -m --split=3 out/x.parts
: > out/x.0003
leaves 'x.0003 beside it is none of the 3 part files' --split=3 random
rm out/x.0003
mkdir out/x.0007
leaves 'x.0007 beside it is no regular file' --split=3 random
rmdir out/x.0007
mv out/x.0001 aside
ln -s ../few out/x.0001
leaves 'x.0001 beside it is no regular file' --split=3 random
rm out/x.0001
mv aside out/x.0001
echo 'a list of mine' > out/x.parts
leaves 'out/x.parts: is there, and no part manifest' --split=3 random
rm -r out
mkdir out
for wrong in 0 1001 x 1/2; do
	refuses "--split: '$wrong'" --split=$wrong random
done
refuses "--split-by: 'key'" --split=2 --split-by=key random
refuses "--split-by needs --split" --split-by=keys random
run --split=2 random
one_line '--split needs -o' 'to standard output'
run --split=2 -c s1
one_line '--split cannot be used' '-c'
run --split=2 random -o nowhere/x
one_line 'nowhere/x: its directory: No such file' 'nowhere'
if [ "$(id -u)" -ne 0 ]; then
	mkdir closed
	chmod 555 closed
	run --split=2 random -o closed/x
	one_line 'closed/x.0000' 'a directory that cannot be written'
fi

claim "what is called as older or newer parts, and no list explains, is refused and stays"
"$GSORT" --split=2 random -o out/x
for name in .x.0000.backup .x.parts.backup .x.parts.pending; do
	echo precious > out/$name
	leaves "$name( beside it has the name of|: is there, and no part manifest)" --split=2 random
	mv out/x.parts kept-list # nor is anything renamed where there is no list
	mkdir parts
	mv out/x.0* parts
	leaves "$name( beside it has the name of|: is there, and no part manifest)" --split=2 random
	mv kept-list out/x.parts
	mv parts/* out
	rmdir parts
	leaves "$name( beside it has the name of|: is there, and no part manifest)" \
		--explain --split=2 random
	rm out/$name
done
cp random out/.x.0000.backup
leaves "input 'out/.x.0000.backup' has the name of a part file" --split=2 out/.x.0000.backup
leaves "input 'out/.x.0000.backup' has the name of a part file" --split=2 random out/.x.0000.backup
rm out/.x.0000.backup
printf 'random\0' > out/x.0007
leaves "files0-from 'out/x.0007' has the name of a part file" --split=2 --files0-from=out/x.0007
rm out/x.0007

mkfifo pipe
generate -n 300000 --seed=2 -o second
"$GSORT" --split=3 random -o out/x
cp -a out three

# while_sorted REGEX COMMAND: what it does in out/, when so much has gone through the pipe that all
# has been looked at, ends a sort for two parts, and is all that is done.
while_sorted() {
	rm -rf out
	cp -a three out
	sleep 0.02 # a tick of the clock of files: what is changed now has another time
	"$GSORT" --split=2 random pipe -o out/x 2> stderr &
	process=$!
	exec 3> pipe
	cat second >&3 2> /dev/null
	(cd out && eval "$2")
	cp -a out before
	exec 3>&-
	wait $process
	[ $? -eq 2 ] || broken "$2: status not 2"
	one_line "$1" "$2"
	diff -r --no-dereference before out > difference || broken "$2: $(head -3 difference)"
	rm -rf before
}

claim "older parts that are too many, and are changed or replaced, stay"
while_sorted 'x.0002 beside it is another file' 'cp x.0001 y; mv y x.0002'
while_sorted 'x.0002 beside it is another file' 'ln -sf ../random x.0002'
while_sorted 'x.0002 beside it is another file' 'ln -f ../random x.0002'
while_sorted 'x.0002 beside it is another file' 'mv x.0002 y; mkdir x.0002'
while_sorted 'x.0002 beside it has changed' 'echo more >> x.0002'
while_sorted 'x.0002 beside it has changed' \
	'touch -r x.0002 time; printf X | dd of=x.0002 conv=notrunc 2> dd; touch -r time x.0002'

claim "what others call as a part, while it is sorted, stays"
for name in .x.0000.backup .x.parts.backup x.0005; do
	while_sorted "somebody else has made $name beside it" "echo precious > $name"
done
while_sorted 'somebody else has made .x.0001.backup' 'ln ../second .x.0001.backup'
while_sorted 'somebody else has made .x.parts.pending beside it since it was looked at' \
	'echo precious > .x.parts.pending'
rm -rf pipe out three
mkdir out

claim "as many files are open as there are parts, where that is allowed"
"$GSORT" random -o expected
(
	ulimit -S -n 64
	divides 300 random
)
(
	ulimit -n 64
	run --split=300 random -o few
	[ "$status" -eq 2 ] || broken "status $status"
	one_line 'few.0[0-9]*: .*Too many open files' 'not allowed'
)
[ -z "$(ls -A | grep few.0)" ] || broken 'some are left'

claim "killed at any moment, the parts of before are there, or the new ones"
"$GSORT" random -o expected
"$GSORT" --split=5 few -o out/x
cp -a out older
begin=$(date +%s%N)
"$GSORT" --split=3 -S 1M random -o timed
milliseconds=$((($(date +%s%N) - begin) / 1000000 + 1))
rm timed.*
for i in $(seq "${GSORT_KILLS:-8}"); do
	below $((milliseconds + 5))
	run_for "$picked" --split=3 -S 1M random -o out/x
	rm -f out/.gsort-* # a name for the moment of a rename; the next says that it is there
	# Nor does a copy of the list that was not followed by any name.
	if diff -r -x .x.parts.pending older out > /dev/null; then
		:
	elif [ -e out/x.parts ]; then
		cat out/x.000? > together
		same expected together "killed after $picked ms"
		rm -rf out
		cp -a older out
	fi
	rm -rf tmp/*
done
run --split=3 random -o out/x
[ "$status" -eq 0 ] || broken "after all: status $status"
if [ -s stderr ]; then # the last to be killed had moved the older ones aside
	one_line 'what a gsort that was killed had moved aside is put back' 'after all'
fi
[ "$(ls -A out | tr '\n' ' ')" = 'x.0000 x.0001 x.0002 x.parts ' ] ||
	broken "after all there are $(ls -A out | tr '\n' ' ')"

claim "whatever is asked for, the parts together are the whole"
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
	# They are lists of words.
	# shellcheck disable=SC2086
	"$GSORT" $options $input -o expected
	rm -r out
	mkdir out
	# shellcheck disable=SC2086
	divides $n $options $way $resources $input
	round=$((round + 1))
done

# --- lists are read ---

rm -rf out lists
mkdir lists
"$GSORT" --split=4 random -o lists/a
"$GSORT" --zstd --split=3 --split-by=keys few -o lists/b
"$GSORT" random few -o expected
"$GSORT" few -o few-sorted

claim "a list is one sorted input"
gives expected -m lists/a.parts lists/b.parts
gives expected -m -S 3M --partitions=2 few-sorted lists/a.parts
gives expected -m --batch-size=2 -S 2M lists/b.parts lists/a.parts
succeeds -c lists/a.parts
succeeds -c lists/b.parts
run -m --stats lists/a.parts lists/b.parts -o output
says '^runs: 2,' stderr
cat few-sorted | gives expected -m lists/a.parts -
mkfifo fifo
"$GSORT" -m few-sorted > fifo &
gives expected -m fifo lists/a.parts
rm fifo
"$GSORT_CHECK" lists/a.parts lists/b.parts > found
says '^lists/a.parts: 100000 records, sorted, 0 duplicate keys' found
says '^lists/b.parts: 100000 records, sorted, 99900 duplicate keys' found
"$GSORT_CHECK" --same-records lists/a.parts random || broken "not the same records"
"$GSORT_CHECK" --same-records few lists/b.parts || broken "not the same records, compressed"
"$GSORT" -m --split=5 lists/a.parts lists/b.parts -o lists/c
succeeds -c lists/c.parts
for k in 1 2 3; do
	"$GSORT" -m --shard=$k/3 lists/a.parts lists/b.parts -o part$k
done
cat part1 part2 part3 > output
same expected output '--shard of lists'
"$GSORT" --limit=12345 random few -o expected
gives expected -m --limit=12345 lists/a.parts lists/b.parts

claim "a list says what its records are"
"$GSORT" -R 24 -k 3:b10:r records -o expected
"$GSORT" -R 24 -k 3:b10:r --split=3 records -o lists/r
succeeds -c lists/r.parts
gives expected -m lists/r.parts
gives expected -m -R 24 -k 3:b10:r lists/r.parts
run -c -R 24 -k 3:b10 lists/r.parts
[ "$status" -eq 1 ] || broken "in another order: status $status"
refuses 'records of its part files have 24 bytes, not 8' -m -t u64 lists/r.parts
refuses 'r.parts: its part files have other records' -m lists/a.parts lists/r.parts
"$GSORT" -u --count -R 24 -k 3:b10 --split=2 records -o lists/k
succeeds -c -u lists/k.parts
"$GSORT" --argsort --split=2 random -o lists/i
refuses 'i.parts: its part files are not sorted' -m lists/i.parts
refuses 'a.parts: is a part manifest of sorted files; gsort -m' lists/a.parts
cat lists/a.parts | refuses 'standard input: is a part manifest, which is no regular file' -m -
"$GSORT" -m -t u8 --format=raw lists/a.parts -o output 2> stderr
one_line 'a.parts: record 2: disorder' 'as records'

claim "what was no record of the inputs is none of the parts, whatever it is as long as"
head -c 804 random > whole-and-4
printf '\377\377\377\377' > four
printf 'abcdef' > six
"$GSORT" --partial=drop whole-and-4 -o expected
"$GSORT" --partial=keep whole-and-4 four six -o with-tails
for zstd in '' --zstd; do
	# Words.
	# shellcheck disable=SC2086
	"$GSORT" --partial=keep --split=2 $zstd whole-and-4 four six -o lists/t
	gives expected -m --partial=drop lists/t.parts
	gives with-tails -m --partial=keep lists/t.parts
	succeeds -c --partial=keep lists/t.parts
	refuses 't.0001(.zst)?: ends with 14 bytes that are no record: .* 50 records before' \
		-m lists/t.parts
	rm -f lists/t.*
done
"$GSORT" --partial=keep --split=2 four four -o lists/t
gives /dev/null -m --partial=drop lists/t.parts
refuses 't.0001: ends with 8 bytes that are no record' -m lists/t.parts

claim "a list's numbers of records are compared with the parts"
"$GSORT" --split=2 whole-and-4 --partial=drop -o lists/t
for as in 's/"records": 100/"records": 0/; s/"records": 50/"records": 0/' \
	'0,/"records": 50/s//"records": 40/; s/"records": 50/"records": 60/'; do
	sed "$as" lists/t.parts > lists/edited.parts
	refuses 't.0000: has 400 bytes of records, and not the (0|40) records of 8 bytes' \
		-m lists/edited.parts
done

claim "part manifests with a header"
{ printf 'HEADER'; head -c 800 random; } > framed
"$GSORT" --skip-bytes=6 framed -o expected
"$GSORT" --skip-bytes=6 --split=3 framed -o lists/h
gives expected -m --skip-bytes=6 lists/h.parts
refuses 'h.parts: its part files begin with a header of 6 bytes, not 0 \(--skip-bytes\)' \
	-m lists/h.parts

# finds REGEX LIST: whoever reads it.
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

claim "a part that is not what the list says is named"
for damage in 'printf x | dd of=a.0002 bs=1 seek=4440 conv=notrunc' 'cp a.0003 a.0001' \
	'rm a.0002' 'truncate -s -8 a.0000' 'printf 12345678 >> a.0003' 'cp b.0001 b.0000' \
	'gsort_again' 'mkdir a.9; mv a.0001 a.9; mkdir a.0001'; do
	cp -a lists kept
	part=$(echo "$damage" | grep -o '[ab]\.000[0-9]$\|a\.000[0-9]' | tail -1)
	case $damage in
	gsort_again)
		"$GSORT" --split=4 few -o lists/again
		cp lists/again.0002 lists/a.0002
		part=a.0002
		;;
	*) (cd lists && eval "$damage") 2> /dev/null ;;
	esac
	finds "lists/${part:-a.0001}: " "lists/${part%%.*}.parts"
done

claim "an output does not take the place of a part of an input"
cp -a lists kept
run -m lists/a.parts -o lists/a.0001
[ "$status" -eq 2 ] || broken "status $status"
one_line 'a.0001: is a part file of an input' 'in the place of a part'
refuses "stats-json 'lists/a.0002' is a part file of an input" \
	-m --stats-json=lists/a.0002 lists/a.parts
refuses "trace 'lists/a.0002' is a part file of an input" -m --trace=lists/a.0002 lists/a.parts
run -m lists/a.parts -o lists/a.parts
[ "$status" -eq 2 ] || broken "in the place of the list: status $status"
one_line 'a.parts: is a part file of an input, or its part manifest' 'in the place of the list'
"$GSORT" -m lists/a.parts >> lists/a.parts 2> stderr
[ $? -eq 2 ] || broken 'behind the list: status not 2'
one_line 'standard output: is a part file of an input, or its part manifest' 'behind the list'
diff -r lists kept > difference || broken "$(head -3 difference)"

claim 'no text goes to a part of an input'
for command in '"$GSORT" -m lists/a.parts -o output --stats' '"$GSORT" -c lists/a.parts --stats' \
	'"$GSORT_CHECK" lists/a.parts'; do
	eval "$command" > stdout 2>> lists/a.0001
	[ $? -eq 2 ] || broken "$command 2>>: status not 2"
done
for command in '"$GSORT" -m lists/a.parts --explain' '"$GSORT_CHECK" lists/a.parts'; do
	eval "$command" >> lists/a.0001 2> stderr
	[ $? -eq 2 ] || broken "$command >>: status not 2"
	says '^gsort.*: standard output is a part file of an input; use another file' stderr
done
diff -r lists kept > difference || broken "$(head -3 difference)"

finish
