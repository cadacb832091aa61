#!/bin/sh
# format_detection - files of other formats are refused with a hint, and --format=raw sorts them
. "$(dirname "$0")/testlib.sh"

generate -n 2000 -o numbers
"$GSORT" numbers -o sorted

# npy_header DESCRIPTION SHAPE: print a .npy header of 128 bytes
npy_header() {
	printf '\223NUMPY\001\000v\000'
	printf "%-117s\n" "{'descr': $1, 'fortran_order': False, 'shape': $2, }"
}

# expect_unchanged NAME WHAT: the file still equals its copy `before`
expect_unchanged() {
	cmp -s before "$1" || fail "$2: $1 was touched"
}

claim 'a .npy file is sorted without its header, in the order of numpy'
{ npy_header "'<f8'" '(2000,)' && cat numbers; } > array.npy
"$GSORT" -t f64:n numbers > sorted_floats
{ npy_header "'<f8'" '(2000,)' && cat sorted_floats; } > expected
for options in '' '-t f64' '-R 8' '-S 1M' '--format=npy'; do
	cp array.npy output
	expect_success $options output -o output
	[ "$options" = '-R 8' ] || expect_same expected output "gsort $options"
done
expect_output expected array.npy
expect_output expected < array.npy
expect_success -c expected
"$GSORT" -t f64 numbers > sorted_floats
{ npy_header "'<f8'" '(2000,)' && cat sorted_floats; } > expected
expect_success -t f64 --skip-bytes=128 array.npy -o output
expect_same expected output 'with the header that was known'
expect_success -t f64 --skip-bytes=128 --format=raw array.npy -o output
expect_same expected output 'raw, behind the header'

claim 'the hint for a check is a command that checks'
for checker in 'gsort -c' 'gsort -C' gsort-check; do
	xz -c numbers > packed.xz
	case $checker in
	gsort-check) "$GSORT_CHECK" packed.xz > stdout 2> stderr ;;
	*) run ${checker#gsort} packed.xz ;;
	esac
	expect_line "is compressed by xz; use xz -dc packed.xz [|] $checker [.][.][.], or" stderr
done

claim 'a header size that contradicts --skip-bytes is refused'
expect_error 'header of 128 bytes, not 64; omit --skip-bytes' --skip-bytes=64 array.npy
cat array.npy | expect_error 'header of 128 bytes, not 64' -t f64 --skip-bytes=64
expect_error 'omit --skip-bytes to read the header' --skip-bytes=128 array.npy
expect_error 'skip-bytes and --format=npy' --skip-bytes=128 --format=npy array.npy

# expect_detected MESSAGE < FIRST-BYTES: a file with these first bytes is refused, however it is
# read
expect_detected() {
	{ cat && cat numbers; } > other
	expect_error "^gsort: other: is $1.*--format=raw" other
	expect_error "^gsort: standard input: is $1.*--format=raw" < other
	cat other | expect_error "^gsort: standard input: is $1.*--format=raw" -
	expect_error "^gsort: other: is $1" numbers other
	cat other | expect_error "^gsort: standard input: is $1" numbers -
	expect_error "^gsort: other: is $1" -m sorted other
	cat other | expect_error "^gsort: standard input: is $1" -m sorted -
	expect_error "^gsort: other: is $1" --explain other
	expect_failure "^gsort: other: is $1" -c other
	cp other before
	run other -o other
	expect_unchanged other 'in place'
}

claim 'other formats are refused from files, pipes, standard input, in place, with -m and -c'
printf '\3757zXZ\000\000\004' | expect_detected 'compressed by xz; use xz -dc'
printf 'BZh91AY&SY......' | expect_detected 'compressed by bzip2; use bzip2 -dc'
printf 'SQLite format 3\000' | expect_detected 'a SQLite database, not records; use ORDER BY'
printf '\211HDF\r\n\032\n' | expect_detected 'an HDF5 file, not records; use h5dump'
printf 'ARROW1\000\000' | expect_detected 'an Arrow file, not records'

claim 'outputs of compressors are recognised, and the command of the hint sorts them'
for compress in bzip2 xz lz4; do
	command -v $compress > /dev/null || continue
	$compress -c < numbers > packed
	expect_error "packed: is compressed by $compress; use $compress -dc packed [|] gsort" packed
	$compress -dc packed | expect_output sorted
done

claim 'Parquet is recognised by both ends'
{ printf 'PAR1\025\000' && head -c 1990 numbers && printf '\100\000\000\000PAR1'; } > parquet
expect_error 'parquet: is a Parquet file' -t b2 parquet
{ printf 'PAR1\025\000..' && head -c 2000 numbers; } > parquet
expect_success parquet -o output

claim 'text is refused if no option describes the records'
seq -w 1001 1999 > lines # 5 bytes each
head -c 4000 lines > text
expect_error 'text: is text; gsort --lines .*-t, -R' text
cat text | expect_error 'standard input: is text' -r
expect_error 'text: is text, not a .npy file$' --format=npy text
expect_exit 2 -c text
expect_success -t b5 -c text
expect_success -R 5 text -o output
expect_same text output 'lines as records'
expect_success -t u64 text -o output
printf 'ABCDEFGHIJKLMNOPQRSTUVWXYZ012345' > letters
expect_success letters -o output

claim 'short text is refused, and numbers that look like it are not'
printf '1234567\n' > short
expect_error 'short: is text; gsort --lines .*-t, -R' short
printf 'one\ntwo\n33\n' > short
expect_error 'short: is text' short
cat short | expect_error 'standard input: is text' -
printf 'a line without end' > short
expect_error 'short: is text' short
for text in '1\n22\n333\n4444\n55\n' 'name,place\r\nx,y\r\nsome,where\r\n' \
	'\357\273\277z\303\244hl\342\202\254\360\237\230\200\n....\n'; do
	# shellcheck disable=SC2059 # the text is a format
	printf "$text" > short
	expect_error 'short: is text' short
done
for text in EIGHT888 'hi\n'; do
	# shellcheck disable=SC2059 # the text is a format
	printf "$text" > short
	expect_error 'short: is text' short
done
printf 'EIGHT_88' > short
expect_success short -o output
printf '\12\0\0\0\0\0\0\0\101\102\103\0\0\0\0\0' > short
expect_success short -o output

claim 'the message about a wrong size names the origin of the record size'
printf '\1\2\3\4\5\6\7\1\2\3\4\5\6' > short
expect_error 'short: 13 bytes are not a multiple of .* 8: 5 left .*u64; use -t or -R.$' short
expect_error 'short: 13 bytes are not a whole number of records of 8 bytes: 5 left over$' -t u64 \
	short

claim '--format=raw sorts any file'
for file in array.npy other packed text; do
	[ -e "$file" ] || continue
	expect_success --format=raw --partial=drop -t u32 "$file" -o output
	head -c $(($(wc -c < "$file") / 4 * 4)) "$file" | "$KEY_LINES" u32 | sort |
		cut -d' ' -f2 | xxd -r -p > expected
	expect_same expected output "$file"
done
expect_error "--format: 'nyp' is invalid; use auto.npy.raw" --format=nyp numbers
expect_error 'numbers: is not a .npy file' --format=npy numbers

if command -v zstd > /dev/null; then
	claim '--format=raw sorts Zstandard files'
	zstd -q array.npy -o array.npy.zst
	"$GSORT" array.npy > expected
	expect_output expected array.npy.zst
	expect_output expected < array.npy.zst
	"$GSORT" --zstd --format=raw array.npy -o indexed.zst 2> stderr
	"$GSORT" --zstd array.npy -o indexed.zst
	expect_output expected indexed.zst
	zstd -q -f numbers -o twice && zstd -q twice -o twice.zst
	expect_error 'twice.zst.*zstd -dc twice.zst [|] zstd -dc [|] gsort' twice.zst
	zstd -q text -o text.zst
	expect_error 'text.zst: is text' text.zst

	claim 'raw does not decompress'
	zstd -q -f numbers -o numbers.zst
	truncate -s %8 numbers.zst
	"$KEY_LINES" u64 < numbers.zst | sort | cut -d' ' -f2 | xxd -r -p > expected
	expect_output expected --format=raw numbers.zst
	cat numbers.zst | "$GSORT" --format=raw > piped
	expect_same expected piped 'a pipe'
fi

claim 'numbers that begin like a skippable frame of Zstandard are numbers'
printf '\120\052\115\030\000\000\000\000\001\000\000\000\000\000\000\000' > begin
{ cat begin && cat numbers; } > skippable
"$KEY_LINES" u64 < skippable | sort | cut -d' ' -f2 | xxd -r -p > expected
expect_output expected skippable
cat skippable | expect_output expected
expect_output expected - < skippable
head -c 8 begin > equal
for double in 1 2 3 4 5 6 7 8; do
	cat equal equal > doubled && mv doubled equal
done
cp equal expected
expect_output expected equal
cat equal | expect_output expected

claim 'a warning, once, that an output would be detected as another format'
expect_exit 0 begin -r -o output
[ ! -s stderr ] || fail 'plain numbers: not silent'
printf '\050\265\057\375\001\001\001\001' > magic
expect_exit 0 --format=raw magic -o output
expect_message '^gsort: warning: output: .*Zstandard.*--format=raw' 'magic'
cat magic | "$GSORT" --format=raw > piped 2> stderr
expect_message '^gsort: warning: standard output: .*Zstandard' 'to a pipe'
{ printf '\000\000\000\000\000\000\000\000' && cat magic; } > later
run -r later -o output
expect_message '^gsort: warning: output: .*Zstandard' 'by sorting'
"$GSORT" -t u64 --format=raw output -o output
expect_same later output 'sorted again'
expect_error 'damaged.*--format=raw' magic

claim '--explain detects numbers and compressed data in a pipe'
codec_of_plan() {
	sed -n 's/^codecs *//p' plan
}
generate -b 24M -o large
"$GSORT" --explain -S 16M < large > plan
of_file=$(codec_of_plan)
cat large | "$GSORT" --explain -S 16M > plan
[ "$(codec_of_plan)" = "$of_file" ] || fail "of a pipe $(codec_of_plan), of a file $of_file"
if command -v zstd > /dev/null; then
	zstd -q -1 large -o large.zst
	cat large.zst | "$GSORT" --explain -S 16M > plan
	[ "$(codec_of_plan)" != "$of_file" ] || fail "a compressed one: $(codec_of_plan)"
fi
"$GSORT" large -o expected
cat large | expect_output expected -S 16M
cat large | "$GSORT" -S 16M --stats-json=json -o output
spilled=$(sed -n 's/.*"peak_temporary_bytes": \([0-9]*\).*/\1/p' json)
[ "$spilled" -lt 22000000 ] || fail "$spilled bytes of temporary space"

claim 'gsort waits for the first data of a pipe'
{ sleep 0.2 && cat numbers; } | expect_output sorted
: | expect_output /dev/null
printf '' | expect_success -c

finish
