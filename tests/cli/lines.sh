#!/bin/sh
# lines - gsort --lines and GNU sort agree: options, inputs, messages, spilled sorts, many ties
. "$(dirname "$0")/testlib.sh"

# compare_with_gnu_sort ARGUMENT...: gsort has the output and the status of GNU sort
compare_with_gnu_sort() {
	sort "$@" > expected 2> expected.err < stdin
	expected_status=$?
	"$GSORT" --lines "$@" > found 2> stderr < stdin
	status=$?
	expect_status "$expected_status" "$*"
	cmp -s expected found || fail "$*: $(diff expected found | head -3)"
}

# expect_failed REGEX ARGUMENT...: gsort --lines fails, with `stdin` as standard input
expect_failed() {
	regex=$1
	shift
	expect_failure "$regex" --lines "$@" < stdin
}

printf 'b 2,x\na 10,y\n\nc 1\na 9,z\nB 2,x\na 10,y\n' > stdin
printf 'z 3\ny 4' > other
: > empty

claim 'standard input, files, several files and empty ones are sorted'
compare_with_gnu_sort
compare_with_gnu_sort -
compare_with_gnu_sort stdin
compare_with_gnu_sort stdin other
compare_with_gnu_sort empty
compare_with_gnu_sort empty other stdin -
echo > blank
compare_with_gnu_sort blank
printf "a\nc\n" > sorted
compare_with_gnu_sort -m sorted empty sorted
compare_with_gnu_sort -z stdin

claim 'keys and orders are those of GNU sort'
for keys in -r -f -n -d -b '-k2n' '-k2,2nr -k1,1' '-t, -k2' '-k1.2,1.3' '-s -k1,1' \
		'-u -k2,2n' '-u' '+1 -2' '+1n' '+0.1 -0.2' '-k2,2n -r' '--sort=numeric -k2'; do
	# shellcheck disable=SC2086
	compare_with_gnu_sort $keys stdin other
done

claim 'numbers, NaN and other text are three classes'
printf '1e3\nnan\nx\n-inf\n0x10\n' > general
compare_with_gnu_sort -g general

claim 'an output that is an input is replaced'
cp stdin file
"$GSORT" --lines file other -o file 2> stderr || fail "status $?"
sort stdin other | cmp -s - file || fail "$(cat file)"

claim 'an output that is written in place and is an input is refused before anything is written'
cp stdin file
for words in 'file' '-' 'other file' '-m file' '-u file'; do
	# shellcheck disable=SC2086
	"$GSORT" --lines $words < file >> file 2> stderr
	[ $? -eq 2 ] || fail "$words >> file: status is not 2"
	grep -q 'standard output: is both an input and the output' stderr || fail "$(cat stderr)"
	cmp -s stdin file || fail "$words >> file: it has changed"
done
"$GSORT" --lines file 1<> file 2> stderr
[ $? -eq 2 ] || fail '1<> file: status is not 2'
"$GSORT" --lines file -o /dev/fd/3 3<> file 2> stderr
[ $? -eq 2 ] || fail '-o /dev/fd/3: status is not 2'
grep -q '/dev/fd/3: is both an input and the output' stderr || fail "$(cat stderr)"
cmp -s stdin file || fail 'the file has changed'
"$GSORT" --lines /dev/null > /dev/null 2> stderr || fail "/dev/null: $(cat stderr)"
"$GSORT" --lines < file > found 2> stderr || fail "$(cat stderr)"

claim 'checks name the line of the disorder'
compare_with_gnu_sort -c other
compare_with_gnu_sort -C other
"$GSORT" --lines -c other 2> stderr
grep -qx 'gsort: other:2: disorder: y 4' stderr || fail "$(cat stderr)"
compare_with_gnu_sort -c empty
printf 'a\na\n' > twice
compare_with_gnu_sort -c twice
compare_with_gnu_sort -c -u twice

claim 'names are read from a file'
printf 'stdin\0other\0' > names
compare_with_gnu_sort --files0-from=names
expect_failed "operand 'stdin' cannot be given as well" --files0-from=names stdin
expect_failed '^gsort: /: read of file names: Is a directory$' --files0-from=/
: > nothing
expect_failed 'nothing: contains no file names' --files0-from=nothing

claim 'an empty name of an output or a report is named'
expect_failed '^gsort: -o, --output: FILE cannot be empty$' -o '' stdin
for option in --report --trace --stats-json; do
	expect_failed "^gsort: $option: FILE cannot be empty\$" $option= stdin
done

claim 'the first lines can be kept in front, and the result can be limited'
"$GSORT" --lines --header stdin > found 2> stderr || fail "status $?"
{ head -n 1 stdin; tail -n +2 stdin | sort; } | cmp -s - found || fail "$(cat found)"
"$GSORT" --lines --limit=3 stdin > found 2> stderr || fail "status $?"
sort stdin | head -n 3 | cmp -s - found || fail "$(cat found)"

claim 'a closed standard input is an error'
"$GSORT" --lines > found 2> stderr <&-
[ $? -eq 2 ] || fail "status is not 2"
grep -q 'standard input: read: Bad file descriptor' stderr || fail "$(cat stderr)"

claim 'obsolete keys are those of GNU sort, also with an end before the first field'
for keys in '+1 -0' '+0 -0' '+1 -0.0' '+1 -0b' '+0 -0n' '+0.1 -0.2' '+1 -1.' '+1 -2x' '+1x' '++1n' \
		'+1.' '-rk +2' '--key +2' '-k +2' '+99999999999999999999 -k2n'; do
	# shellcheck disable=SC2086
	compare_with_gnu_sort $keys stdin other
done
expect_failed 'field number is zero' -k1,0

claim 'with POSIXLY_CORRECT, a word after a file is a file'
printf 'plus 1\n' > +1
printf 'minus 1\n' > ./-r
for words in 'other +1' 'other -r' '+1 other' '-r other +1' 'other -- +1' 'other +1 -2'; do
	for version in 199209 200112 200809; do
		export _POSIX2_VERSION=$version
		# shellcheck disable=SC2086
		compare_with_gnu_sort $words
		export POSIXLY_CORRECT=1
		# shellcheck disable=SC2086
		compare_with_gnu_sort $words
		unset POSIXLY_CORRECT _POSIX2_VERSION
	done
done
POSIXLY_CORRECT=1 "$GSORT" --lines other -o found 2> stderr || fail "-o: status $?"
sort other | cmp -s - found || fail '-o after a file'

claim 'options can be abbreviated, and -y takes a number'
compare_with_gnu_sort --sort=num -k2 stdin
compare_with_gnu_sort --check=q other
compare_with_gnu_sort --re stdin
compare_with_gnu_sort --sta -k2,2n stdin
compare_with_gnu_sort --z stdin
compare_with_gnu_sort --co=gzip stdin
compare_with_gnu_sort -y stdin
for words in '-y 5 stdin' '-ry 5 stdin' '-ry5 stdin' '-ry stdin' '-y -- stdin' '-y -r stdin' \
		'-y 5a stdin' 'stdin -y' 'stdin -ry' 'stdin -k'; do
	# shellcheck disable=SC2086
	compare_with_gnu_sort $words
done
expect_failed '^gsort: -y requires an argument, N; see --help$' stdin -y

claim 'errors are one line'
expect_failed 'missing: No such file' missing
expect_failed 'field number is zero' -k0
expect_failed "options '-gn' are incompatible" -g -n
expect_failed "options '-dn' are incompatible" -d -n -i
expect_failed "options '-in' are incompatible" -n -i
expect_failed 'multi-character tab' -t xx
expect_failed 'random order is not supported' -R
expect_failed 'partitions: not with --lines' --partitions=3
expect_failed 'unknown option' --nonsense
expect_failed 'not allowed with -c' -c stdin other
expect_failed 'No such file or directory' stdin -o nowhere/output
expect_failed "invalid argument 'sorted' for '--check'" --check=sorted stdin

claim 'all short names have the -V order of GNU sort'
awk 'function add(name) {
		print name
		n = length(name)
		for (i[n] = 1; n < 5 && i[n] <= 5; i[n = length(name)]++)
			add(name substr("a01.~", i[n], 1))
	}
	BEGIN { add("") }' > names
for options in -V '-V -u' '-V -s -r' '-k1.1,1.2V'; do
	# shellcheck disable=SC2086
	sort $options names > expected
	# shellcheck disable=SC2086
	"$GSORT" --lines $options names > found 2> stderr || fail "$options: status $?"
	cmp -s expected found || fail "$options: another order"
done

claim 'a program that is called sort or lsort sorts lines'
for name in sort lsort; do
	ln -sf "$(command -v "$GSORT")" ./$name
	./$name stdin other > found 2> stderr || fail "$name: status $?"
	sort stdin other | cmp -s - found || fail "$name: $(cat found)"
	(PATH=$PWD:$PATH && exec $name < stdin > found 2> stderr) || fail "$name: status $?"
	sort stdin | cmp -s - found || fail "$name without arguments: $(cat found)"
done

claim 'a sort that spills gives the output of GNU sort'
awk 'BEGIN { srand(7); for (i = 0; i < 120000; i++) print int(rand() * 1e9), i % 7 }' > many
compare_with_gnu_sort -S 1M many
compare_with_gnu_sort -S 1M -k2,2n -k1,1r many
[ -z "$(ls tmp)" ] || fail "temporary files are left: $(ls tmp)"

claim 'many lines with a common prefix are sorted by their ends'
awk 'BEGIN { srand(8); p = sprintf("%300s", ""); gsub(/ /, "x", p)
	for (i = 0; i < 20000; i++) print p int(rand() * 1e6) }' > alike
compare_with_gnu_sort -S 1M alike
compare_with_gnu_sort -r alike
awk 'BEGIN { for (i = 0; i < 20000; i++) print "all of these lines are the same line" }' > equal
compare_with_gnu_sort equal
compare_with_gnu_sort -u equal

claim 'a sort that spills keeps its memory limit and leaves no files'
awk 'BEGIN { srand(9); for (i = 0; i < 800000; i++) print int(rand() * 1e9), i }' > large
for keys in -r '-k2,2n' '-k1,1V'; do
	"$PEAK_MEMORY" $((36 * 1024)) "$GSORT" --lines -S 4M $keys large -o found > peak 2>&1 ||
		fail "$keys: $(cat peak)"
	sort $keys large | cmp -s - found || fail "$keys: other lines"
done

claim 'an exceeded --temp-limit is an error and leaves the output unchanged'
echo old > output
"$GSORT" --lines -S 1M --temp-limit=1M --temp-compress=none large -o output 2> stderr
[ $? -eq 2 ] || fail 'status is not 2'
[ "$(cat output)" = old ] || fail 'the output has changed'
[ "$(wc -l < stderr)" -eq 1 ] || fail "$(cat stderr)"
[ -z "$(ls tmp)" ] || fail "temporary files are left: $(ls tmp)"

claim 'a line of more than a quarter of the memory is named'
{ echo short; head -c 3000000 /dev/zero | tr '\0' x; echo; } > long
expect_failure 'long: line 2 has 3000000 bytes, too many for the memory' --lines -S 4M long large
memory=$(sed -n 's/.*; use -S \([0-9]*\)M or more$/\1/p' stderr)
timeout 60 "$GSORT" --lines -S 4M -c long 2> stderr
[ $? -eq 2 ] || fail '-c: status is not 2'
expect_line 'long: line 2 has 3000000 bytes, too many for the memory' stderr
"$GSORT" --lines -S "${memory}M" long large > found 2> stderr || fail "$(cat stderr)"
sort long large | cmp -s - found || fail "-S ${memory}M: other lines"
compare_with_gnu_sort -S 32M long stdin

claim 'a long line among short ones is refused if it cannot be merged'
{
	yes "$(head -c 100 /dev/zero | tr '\0' s)" | head -3000
	head -c 2000000 /dev/zero | tr '\0' x
	echo
	cat large
} > mixed
expect_failure 'mixed: line 3001 has 2000000 bytes, too many for the memory' --lines -S 4M mixed
memory=$(sed -n 's/.*; use -S \([0-9]*\)M or more$/\1/p' stderr)
"$GSORT" --lines -S "${memory}M" mixed > found 2> stderr || fail "-S ${memory}M: $(cat stderr)"
sort mixed | cmp -s - found || fail "-S ${memory}M: other lines"
"$GSORT" --lines -S "$((memory - 1))M" mixed > found 2> stderr &&
	fail "-S $((memory - 1))M suffices"
compare_with_gnu_sort -S 64M mixed

claim 'a long line whose keys need much memory does not slow the merge of the others'
{ seq 100000 500000; echo "a$(head -c 400000 /dev/zero | tr '\0' x)"; } > mixed
compare_with_gnu_sort -S 4M -k1,1 -k1,1r -k1,1 -k1,1r mixed

claim 'a long line is merged even if its keys do not fit in memory'
# expect_same_lines FILE ARGUMENT...: 4 MiB of memory give the same output as much memory
expect_same_lines() {
	"$GSORT" --lines -S 400M "$@" > expected 2> stderr || fail "$*: $(cat stderr)"
	"$GSORT" --lines -S 4M "$@" > found 2> stderr || fail "$*: $(cat stderr)"
	cmp -s expected found || fail "$*: other lines"
}
{
	echo "equal bytes $(head -c 500000 /dev/zero | tr '\0' x)"
	seq -f 'equal bytes %.0f' 100000 400000
	seq -f 'other bytes %.0f' 100000 400000
} > mixed
expect_same_lines -k1 -k1r -k1 -k1r mixed
{ head -c 800000 /dev/zero | tr '\0' x; echo; seq -f 'short %.0f' 120000; } > mixed
expect_same_lines -k1,1 -k1f mixed
{ yes a1. | head -266666 | tr -d '\n'; echo; seq -f 'short %.0f' 120000; } > mixed
expect_same_lines -k1V -k1d -k1 mixed
expect_same_lines -k1V -u mixed

claim 'the -S of the message suffices for a long line, its keys and its output'
# find_sufficient FILE LINE SIZE ARGUMENT...: line LINE of FILE has SIZE bytes, too many for 4 MiB
find_sufficient() {
	message="$1: line $2 has $3 bytes, too many for the memory; use -S [0-9]*M or more"
	file=$1
	shift 3
	expect_failure "$message" --lines -S 4M "$@" "$file"
	sufficient=$(sed -n 's/.*; use -S \([0-9]*\)M or more$/\1/p' stderr)
	"$GSORT" --lines -S "${sufficient}M" "$@" "$file" > found 2> stderr ||
		fail "$* $file: -S ${sufficient}M: $(cat stderr)"
}
for size in 1000000 2500000; do
	{
		seq 50000
		head -c $size /dev/zero | tr '\0' x
		echo
	} > longer
	for keys in '' '-k1V -k1d -k1' '-k1,1 -k1f'; do
		find_sufficient longer 50001 $size $keys
		"$GSORT" --lines $keys longer | cmp -s - found || fail "$keys, $size: other lines"
	done
	find_sufficient longer 50001 $size -k1V -k1d -k1 -o found.zst
	"$GSORT" --lines -c -k1V -k1d -k1 found.zst 2> stderr || fail "$(cat stderr)"
done
"$GSORT" --lines -S "$((sufficient - 1))M" -k1V -k1d -k1 longer -o found.zst 2> stderr &&
	fail "-S $((sufficient - 1))M suffices"

claim 'a long line is named by the input and the line in which it is'
printf 'a\nb' > first
{ echo header; echo short; head -c 1000000 /dev/zero | tr '\0' x; printf '\nlast'; } > second
expect_failure 'second: line 3 has 1000000 bytes' --lines -S 4M --header first second first large
mkfifo pipe
cat second first large > pipe &
expect_failure '^gsort: pipe: line 3 has 1000000 bytes' --lines -S 4M first pipe
{ head -c 2000000 /dev/zero | tr '\0' y; echo; head -c 1500000 /dev/zero | tr '\0' z; } > two
{ echo; cat two; } > three
find_sufficient three 2 2000000 -c

claim 'a header that is too large for the memory is refused with an -S that suffices'
{ head -c 131071 /dev/zero | tr '\0' h; echo; seq 100000; } > header
"$GSORT" --lines -n -S 4M --header header | cmp -s - header || fail 'a header of 128 KiB'
{ head -c 131072 /dev/zero | tr '\0' h; echo; seq 100000; } > header
expect_failure '^gsort: header: the header has 131073 bytes, too many for the memory; use -S 5M' \
	--lines -n -S 4M --header header
for memory in 5M 100M; do
	"$GSORT" --lines -n -S $memory --header header | cmp -s - header || fail "-S $memory"
done
seq 100000 | expect_failure '^gsort: -: the header has 588895 bytes, .* use -S 18M or more$' \
	--lines -S 4M --header=200000 -
seq 100000 | "$GSORT" --lines -S 18M --header=200000 > found 2> stderr || fail "$(cat stderr)"
seq 100000 | cmp -s - found || fail 'other lines'
printf hhh > short
"$GSORT" --lines -S 4M --header=9 short header > found 2> stderr || fail "$(cat stderr)"
{ echo hhh; tail -n +10 header | sort; } | cmp -s - found || fail 'other lines'
limit_kib=$((36 * 1024))
head -c 40000000 /dev/zero |
	"$PEAK_MEMORY" $limit_kib "$GSORT" --lines -S 4M --header > peak 2> stderr
expect_line '^gsort: -: the header has 40000001 bytes, .* use -S 1221M or more$' stderr
[ "$(sed 's/peak \([0-9]*\) .*/\1/' peak)" -le $limit_kib ] || fail "$(cat peak)"
"$GSORT" --lines -c -n -S 4M --header header 2> stderr || fail "-c: $(cat stderr)"

claim 'compressed inputs are read, and an output is compressed'
gzip -c stdin > stdin.gz
"$GSORT" --lines stdin.gz other -o output.zst 2> stderr || fail "$(cat stderr)"
"$GSORT" --lines -m output.zst > found 2> stderr || fail "$(cat stderr)"
sort stdin other | cmp -s - found || fail "$(cat found)"

claim 'the header is that of the first input that has one'
"$GSORT" --lines --header empty stdin > found 2> stderr || fail "status $?"
{ head -n 1 stdin; tail -n +2 stdin | sort; } | cmp -s - found || fail "$(cat found)"

claim 'a pipe whose reader ends is detected, even with memory for many writers'
{ timeout 60 "$GSORT" --lines --parallel=4 -S 2G large 2> stderr; echo $? > status; } |
	head -n 1 > found
[ "$(cat status)" -ne 124 ] || fail 'it waits for ever'
sort large | head -n 1 | cmp -s - found || fail "$(cat found)"

claim 'short and long lines with keys fit in memory together'
{ echo 1; head -c 3000000 /dev/zero | tr '\0' 2; echo; } > mixed
{ cat long; echo 1; } > mixed2
for keys in -n -f '-k1,1V -k2,2 -k3,3n'; do
	compare_with_gnu_sort $keys -S 64M mixed
	compare_with_gnu_sort $keys -S 64M mixed2
done

claim 'a missing file has one message, with reports and without'
for options in '' --stats --stats-json=report; do
	expect_failed '^gsort: cannot read: nosuch: No such file or directory$' $options nosuch
	expect_failed "^gsort: cannot read: '': No such file or directory$" $options ''
done

claim 'an empty name of a directory is quoted'
expect_failed "^gsort: '': temporary directory: No such file" -S 4M -T '' large

claim 'a file of sysfs, which has fewer bytes than it says, is refused with a hint'
for file in /sys/devices/system/cpu/online /sys/kernel/mm/transparent_hugepage/enabled; do
	[ ! -r $file ] ||
		expect_failed 'read of (1 byte|[0-9]+ bytes) at .* ends .*; use a pipe: cat' $file
done

claim 'messages quote file names'
expect_failed "cannot read: no[$]'.n'such" "$(printf 'no\nsuch')"

finish
