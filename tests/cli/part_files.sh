#!/bin/sh
# part_files - the output as several files and a list of them: the same bytes, all there or none
#
# GSORT_SEED repeats a run, GSORT_ROUNDS or GSORT_SECONDS make it longer.
. "$(dirname "$0")/prelude.sh"
. "$(dirname "$0")/pick.sh"

GSORT_ROUNDS=${GSORT_ROUNDS:-25}
echo "GSORT_SEED=$seed"
mkdir out

# divides N ARGUMENT...: into N files in out/, which together are what the file `expected` holds.
divides() {
	n=$1
	shift
	succeeds --parts="$n" "$@" -o out/x
	cat out/x.[0-9]* > together
	same expected together "gsort --parts=$n $*"
	[ "$(ls -A out | wc -l)" -eq $((n + 1)) ] ||
		broken "gsort --parts=$n $*: there are $(ls -A out | tr '\n' ' ')"
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

generate -n 100000 -t u64 -d few -o few
generate -n 100000 -t u64 -o random
generate -n 30000 -R 24 -k 3:b10 -d few -o records
generate -n 30000 -R 60 -k 0:b40 --prefix=20 -o long

claim "parts have the same length, to within a record, and are those of --part"
"$GSORT" random -o expected
for options in '' '-S 1M' '-S 1M --ranges=3 --parallel=3' '--ranges=2'; do
	# It is a list of words.
	# shellcheck disable=SC2086
	divides 7 $options random
	[ "$(lengths)" = '114280 114288' ] || broken "$options: of $(lengths) bytes"
done
"$GSORT" -m --part=3/7 expected -o part
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
[ "$(listed gsort_parts < out/x.parts)" = 1 ] || broken "version"
head -c 17 out/x.parts | grep -q gsort_parts || broken "the list does not begin with its mark"

# keys RECORD_BYTES OFFSET BYTES: no key is in two parts
undivided() {
	for i in out/x.[0-9]*; do
		xxd -p -c "$1" "$i" | cut -c "$((2 * $2 + 1))-$((2 * ($2 + $3)))" | uniq
	done | sort | uniq -d > divided
	[ ! -s divided ] || broken "divided: $(head -1 divided)"
}

claim "no key is in two parts, where they end at keys"
"$GSORT" few -o expected
for options in '' '-S 1M' '-S 1M --ranges=3 --parallel=2 --compress=delta' '--limit=50000'; do
	# shellcheck disable=SC2086
	"$GSORT" $options few -o expected
	# shellcheck disable=SC2086
	divides 6 --parts-at=keys $options few
	undivided 8 0 8
done
"$GSORT" -R 24 -k 3:b10 records -o expected
divides 5 --parts-at=keys -R 24 -k 3:b10 --ranges=2 records
undivided 24 3 10
"$GSORT" -R 60 -k 0:b40 long -o expected
divides 3 --parts-at=keys -R 60 -k 0:b40 long
undivided 60 0 40

claim "each record once, in ranges that are parts"
for options in '' '-S 1M --ranges=3' '--count' '--count --keys-only --verify' '--limit=1000' \
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
divides 3 --parts-at=keys nothing
divides 3 -u nothing
head -c 16 random > two
"$GSORT" two -o expected
divides 5 two
divides 5 --parts-at=keys two

claim "compressed parts are files of their own"
"$GSORT" few -o expected
for options in '' '--parts-at=keys --ranges=2' '-S 1M --parallel=3'; do
	# shellcheck disable=SC2086
	succeeds --zstd --parts=3 --verify $options few -o out/x
	for i in 0 1 2; do
		"$GSORT" -m out/x.000$i
	done > together
	same expected together "--zstd $options"
done
grep -q '"content": "zstd"' out/x.parts || broken "it is not said in the list"

claim "each part has the header, and the last one the tail"
{ printf 'HEADER'; head -c 800 random; printf 'TAIL'; } > framed
head -c 800 random | "$GSORT" > expected
succeeds --skip-bytes=6 --partial=keep --verify --parts=3 framed -o out/x
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
divides 4 -m --ranges=2 -S 4M --parts-at=keys s1 s2
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
succeeds --parts=2 random -o out/x
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
leaves 'odd: .*whole number' --parts=3 odd
leaves 'x.0001.* and input .*x.0001.* are the same file' --parts=3 out/x.0001
leaves 'same file' --parts=3 --stats-json=out/x.parts random
leaves 'same file' --parts=3 --trace=out/x.0002 random
leaves '--checkpoint.*--parts|--parts.*--checkpoint' --parts=3 --checkpoint=kept random
leaves '--part.*--parts' --parts=3 -m --part=1/2 s1
leaves 'are the same' -m --parts=3 out/x.parts
: > out/x.0003
leaves 'x.0003 beside it is none of the 3 parts' --parts=3 random
rm out/x.0003
mkdir out/x.0007
leaves 'x.0007 beside it is no regular file' --parts=3 random
rmdir out/x.0007
mv out/x.0001 aside
ln -s ../few out/x.0001
leaves 'x.0001 beside it is no regular file' --parts=3 random
rm out/x.0001
mv aside out/x.0001
echo 'a list of mine' > out/x.parts
leaves 'x.parts: is there, and no list of parts' --parts=3 random
rm -r out
mkdir out
for wrong in 0 1001 x 1/2; do
	refuses "--parts: '$wrong'" --parts=$wrong random
done
refuses "--parts-at: 'key'" --parts=2 --parts-at=key random
refuses "--parts-at needs --parts" --parts-at=keys random
run --parts=2 random
one_line '--parts needs -o' 'to standard output'
run --parts=2 -c s1
one_line '--parts cannot be used' '-c'
run --parts=2 random -o nowhere/x
one_line 'nowhere/x: its directory: No such file' 'nowhere'
if [ "$(id -u)" -ne 0 ]; then
	mkdir closed
	chmod 555 closed
	run --parts=2 random -o closed/x
	one_line 'closed/x.0000' 'a directory that cannot be written'
fi

claim "killed at any moment, the parts of before are there, or the new ones"
"$GSORT" random -o expected
"$GSORT" --parts=5 few -o out/x
cp -a out older
begin=$(date +%s%N)
"$GSORT" --parts=3 -S 1M random -o timed
milliseconds=$((($(date +%s%N) - begin) / 1000000 + 1))
rm timed.*
for i in $(seq "${GSORT_KILLS:-8}"); do
	below $((milliseconds + 5))
	run_for "$picked" --parts=3 -S 1M random -o out/x
	if diff -r older out > /dev/null; then
		:
	elif [ -e out/x.parts ]; then
		cat out/x.000? > together
		same expected together "killed after $picked ms"
		rm -rf out
		cp -a older out
	fi
	rm -rf tmp/*
done
succeeds --parts=3 random -o out/x
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
	pick '' '' -u -r '--limit=9999' '-u --limit=3' '--index' '--keys-only' '-u --count'
	options="$options $picked"
	pick 1 2 3 5 16 33
	n=$picked
	pick '' '' --parts-at=keys --verify '--parts-at=keys --verify'
	way=$picked
	case $options in *--index*) way=${way%--verify} ;; esac
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

finish
