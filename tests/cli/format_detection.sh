#!/bin/sh
# format_detection - files of other formats are refused with a hint, and --format=raw sorts them
. "$(dirname "$0")/testlib.sh"

generate -n 2000 -o numbers
"$GSORT" numbers -o sorted

# npy DESCRIPTION SHAPE: print a .npy header of 128 bytes
npy() {
	printf '\223NUMPY\001\000v\000'
	printf "%-117s\n" "{'descr': $1, 'fortran_order': False, 'shape': $2, }"
}

# untouched NAME WHAT: the file still equals its copy `before`
untouched() {
	cmp -s before "$1" || broken "$2: $1 was touched"
}

claim 'a .npy file is sorted without its header, in the order of numpy'
{ npy "'<f8'" '(2000,)' && cat numbers; } > array.npy
"$GSORT" -t f64:n numbers > sorted_floats
{ npy "'<f8'" '(2000,)' && cat sorted_floats; } > expected
for options in '' '-t f64' '-R 8' '-S 1M' '--format=npy'; do
	cp array.npy output
	succeeds $options output -o output
	[ "$options" = '-R 8' ] || same expected output "gsort $options"
done
gives expected array.npy
gives expected < array.npy
succeeds -c expected
"$GSORT" -t f64 numbers > sorted_floats
{ npy "'<f8'" '(2000,)' && cat sorted_floats; } > expected
succeeds -t f64 --skip-bytes=128 array.npy -o output
same expected output 'with the header that was known'
succeeds -t f64 --skip-bytes=128 --format=raw array.npy -o output
same expected output 'raw, behind the header'

claim 'the hint for a check is a command that checks'
for checker in 'gsort -c' 'gsort -C' gsort-check; do
	xz -c numbers > packed.xz
	case $checker in
	gsort-check) "$GSORT_CHECK" packed.xz > stdout 2> stderr ;;
	*) run ${checker#gsort} packed.xz ;;
	esac
	says "is compressed by xz; use xz -dc packed.xz [|] $checker [.][.][.], or" stderr
done

claim 'a header size that contradicts --skip-bytes is refused'
refuses 'header of 128 bytes, not 64; omit --skip-bytes' --skip-bytes=64 array.npy
cat array.npy | refuses 'header of 128 bytes, not 64' -t f64 --skip-bytes=64
refuses 'omit --skip-bytes to read the header' --skip-bytes=128 array.npy
refuses 'skip-bytes and --format=npy' --skip-bytes=128 --format=npy array.npy

# kind MESSAGE < FIRST-BYTES: a file with these first bytes is refused, however it is read
kind() {
	{ cat && cat numbers; } > other
	refuses "^gsort: other: is $1.*--format=raw" other
	refuses "^gsort: standard input: is $1.*--format=raw" < other
	cat other | refuses "^gsort: standard input: is $1.*--format=raw" -
	refuses "^gsort: other: is $1" numbers other
	cat other | refuses "^gsort: standard input: is $1" numbers -
	refuses "^gsort: other: is $1" -m sorted other
	cat other | refuses "^gsort: standard input: is $1" -m sorted -
	refuses "^gsort: other: is $1" --explain other
	run -c other
	[ "$status" -eq 2 ] || broken "-c: status $status"
	one_line "^gsort: other: is $1" '-c'
	cp other before
	run other -o other
	untouched other 'in place'
}

claim 'other formats are refused from files, pipes, standard input, in place, with -m and -c'
printf '\3757zXZ\000\000\004' | kind 'compressed by xz; use xz -dc'
printf 'BZh91AY&SY......' | kind 'compressed by bzip2; use bzip2 -dc'
printf 'SQLite format 3\000' | kind 'a SQLite database, not records; use ORDER BY'
printf '\211HDF\r\n\032\n' | kind 'an HDF5 file, not records; use h5dump'
printf 'ARROW1\000\000' | kind 'an Arrow file, not records'

claim 'outputs of compressors are recognised, and the command of the hint sorts them'
for compress in bzip2 xz lz4; do
	command -v $compress > /dev/null || continue
	$compress -c < numbers > packed
	refuses "packed: is compressed by $compress; use $compress -dc packed [|] gsort" packed
	$compress -dc packed | gives sorted
done

claim 'Parquet is recognised by both ends'
{ printf 'PAR1\025\000' && head -c 1990 numbers && printf '\100\000\000\000PAR1'; } > parquet
refuses 'parquet: is a Parquet file' -t b2 parquet
{ printf 'PAR1\025\000..' && head -c 2000 numbers; } > parquet
succeeds parquet -o output

claim 'text is refused if no option describes the records'
seq -w 1001 1999 > lines # 5 bytes each
head -c 4000 lines > text
refuses 'text: is text; gsort --lines .*-t, -R' text
cat text | refuses 'standard input: is text' -r
refuses 'text: is text, not a .npy file$' --format=npy text
run -c text
[ "$status" -eq 2 ] || broken "-c: status $status"
succeeds -t b5 -c text
succeeds -R 5 text -o output
same text output 'lines as records'
succeeds -t u64 text -o output
printf 'ABCDEFGHIJKLMNOPQRSTUVWXYZ012345' > letters
succeeds letters -o output

claim 'short text is refused, and numbers that look like it are not'
printf '1234567\n' > short
refuses 'short: is text; gsort --lines .*-t, -R' short
printf 'one\ntwo\n33\n' > short
refuses 'short: is text' short
cat short | refuses 'standard input: is text' -
printf 'a line without end' > short
refuses 'short: is text' short
for text in '1\n22\n333\n4444\n55\n' 'name,place\r\nx,y\r\nsome,where\r\n' \
	'\357\273\277z\303\244hl\342\202\254\360\237\230\200\n....\n'; do
	# shellcheck disable=SC2059 # the text is a format
	printf "$text" > short
	refuses 'short: is text' short
done
printf 'EIGHT888' > short
succeeds short -o output
printf '\12\0\0\0\0\0\0\0\101\102\103\0\0\0\0\0' > short
succeeds short -o output

claim 'the message about a wrong size names the origin of the record size'
printf '\1\2\3\4\5\6\7\1\2\3\4\5\6' > short
refuses 'short: 13 bytes are not a multiple of .* 8: 5 left .*u64; use -t or -R.$' short
refuses 'short: 13 bytes are not a whole number of records of 8 bytes: 5 left over$' -t u64 short

claim '--format=raw sorts any file'
for file in array.npy other packed text; do
	[ -e "$file" ] || continue
	succeeds --format=raw --partial=drop -t u32 "$file" -o output
	head -c $(($(wc -c < "$file") / 4 * 4)) "$file" | "$KEY_LINES" u32 | sort |
		cut -d' ' -f2 | xxd -r -p > expected
	same expected output "$file"
done
refuses "--format: 'nyp' is invalid; use auto.npy.raw" --format=nyp numbers
refuses 'numbers: is not a .npy file' --format=npy numbers

if command -v zstd > /dev/null; then
	claim '--format=raw sorts Zstandard files'
	zstd -q array.npy -o array.npy.zst
	"$GSORT" array.npy > expected
	gives expected array.npy.zst
	gives expected < array.npy.zst
	"$GSORT" --zstd --format=raw array.npy -o indexed.zst 2> stderr
	"$GSORT" --zstd array.npy -o indexed.zst
	gives expected indexed.zst
	zstd -q -f numbers -o twice && zstd -q twice -o twice.zst
	refuses 'twice.zst.*zstd -dc twice.zst [|] zstd -dc [|] gsort' twice.zst
	zstd -q text -o text.zst
	refuses 'text.zst: is text' text.zst

	claim 'raw does not decompress'
	zstd -q -f numbers -o numbers.zst
	truncate -s %8 numbers.zst
	"$KEY_LINES" u64 < numbers.zst | sort | cut -d' ' -f2 | xxd -r -p > expected
	gives expected --format=raw numbers.zst
	cat numbers.zst | "$GSORT" --format=raw > piped
	same expected piped 'a pipe'
fi

claim 'numbers that begin like a skippable frame of Zstandard are numbers'
printf '\120\052\115\030\000\000\000\000\001\000\000\000\000\000\000\000' > begin
{ cat begin && cat numbers; } > skippable
"$KEY_LINES" u64 < skippable | sort | cut -d' ' -f2 | xxd -r -p > expected
gives expected skippable
cat skippable | gives expected
gives expected - < skippable
head -c 8 begin > equal
for double in 1 2 3 4 5 6 7 8; do
	cat equal equal > doubled && mv doubled equal
done
cp equal expected
gives expected equal
cat equal | gives expected

claim 'a warning, once, that an output would be detected as another format'
run begin -r -o output
[ "$status" -eq 0 ] || broken "status $status"
[ ! -s stderr ] || broken 'plain numbers: not silent'
printf '\050\265\057\375\001\001\001\001' > magic
run --format=raw magic -o output
[ "$status" -eq 0 ] || broken "status $status"
one_line '^gsort: warning: output: .*Zstandard.*--format=raw' 'magic'
cat magic | "$GSORT" --format=raw > piped 2> stderr
one_line '^gsort: warning: standard output: .*Zstandard' 'to a pipe'
{ printf '\000\000\000\000\000\000\000\000' && cat magic; } > later
run -r later -o output
one_line '^gsort: warning: output: .*Zstandard' 'by sorting'
"$GSORT" -t u64 --format=raw output -o output
same later output 'sorted again'
refuses 'damaged.*--format=raw' magic

claim '--explain detects numbers and compressed data in a pipe'
plan() {
	sed -n 's/^codecs *//p' plan
}
generate -b 24M -o large
"$GSORT" --explain -S 16M < large > plan
of_file=$(plan)
cat large | "$GSORT" --explain -S 16M > plan
[ "$(plan)" = "$of_file" ] || broken "of a pipe $(plan), of a file $of_file"
if command -v zstd > /dev/null; then
	zstd -q -1 large -o large.zst
	cat large.zst | "$GSORT" --explain -S 16M > plan
	[ "$(plan)" != "$of_file" ] || broken "a compressed one: $(plan)"
fi
"$GSORT" large -o expected
cat large | gives expected -S 16M
cat large | "$GSORT" -S 16M --stats-json=json -o output
spilled=$(sed -n 's/.*"peak_temporary_bytes": \([0-9]*\).*/\1/p' json)
[ "$spilled" -lt 22000000 ] || broken "$spilled bytes of temporary space"

claim 'gsort waits for the first data of a pipe'
{ sleep 0.2 && cat numbers; } | gives sorted
: | gives /dev/null
printf '' | succeeds -c

finish
