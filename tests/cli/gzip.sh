#!/bin/sh
# gzip - sort inputs that are compressed with gzip
. "$(dirname "$0")/testlib.sh"

compressed_inputs gz 'gzip -c' 1 9
cp input named && gzip -f named
expect_output expected named.gz

claim 'members are concatenated'
head -c 1000000 input | gzip > members.gz
: | gzip >> members.gz
tail -c +1000001 input | gzip >> members.gz
expect_output expected members.gz
cat members.gz | expect_output expected
head -c 10000 /dev/zero | cat members.gz - > padded.gz
expect_output expected padded.gz

if command -v zstd > /dev/null; then
	claim 'inputs of different formats are sorted together'
	zstd -q second -o second.zst
	expect_output both input.gz second.zst
fi

claim 'gsort-check reads compressed inputs, and gsort replaces them'
"$GSORT_CHECK" expected.gz > stdout || fail "gsort-check: status $?"
"$GSORT_CHECK" --same-records input expected.gz > stdout || fail "gsort-check: status $?"
cp input.gz in_place
expect_success -t u64 -o in_place in_place
expect_same expected in_place 'the input replaced by the output'

claim 'a .npy file is recognised in the content'
{
	printf '\223NUMPY\001\000v\000'
	printf "%-117s\n" "{'descr': '<u8', 'fortran_order': False, 'shape': (500000,), }"
} > npy_header
cat npy_header input | gzip > array.npy.gz
cat npy_header expected > array_expected
expect_output array_expected array.npy.gz
expect_output array_expected < array.npy.gz

claim 'truncated data is refused, with the position'
size=$(wc -c < input.gz)
for n in 19 100 $((size / 2)) $((size - 8)) $((size - 1)); do
	head -c "$n" input.gz > cut.gz
	expect_error "cut.gz: compressed data is truncated: it ends at byte $n, within a member" \
		cut.gz
	cat cut.gz | expect_error "standard input: .*truncated.*byte $n, within a member" -
done
expect_error 'within a member$' cut.gz
head -c 19 input.gz > cut.gz
expect_error 'within a member; use --format=raw' cut.gz
head -c 100000 expected.gz > cut.gz
expect_failure 'cut.gz: .*truncated' -c cut.gz
expect_error 'cut.gz: .*truncated' -m cut.gz
"$GSORT_CHECK" cut.gz > stdout 2> stderr && fail 'gsort-check: not refused'
expect_line 'cut.gz: .*truncated' stderr

claim 'damaged data is refused'
damaged_inputs gz ': compressed data is damaged before byte [0-9]+: ' \
	1000 $((size / 2)) $((size - 7)) $((size - 3))

claim 'other data after a member is refused'
for tail in x '\0x' '\037\213x'; do
	{ cat input.gz && printf "$tail"; } > followed.gz
	expect_error 'followed.gz: compressed data is (followed by other|damaged|truncated)' \
		followed.gz
done

claim 'files that are compressed twice are refused'
gzip -c input.gz > twice.gz
expect_error 'twice.gz: its content .* gzip; use gzip -dc twice.gz [|] gzip -dc [|] gsort' twice.gz

claim 'raw does not decompress'
head -c 100000 input.gz > raw.gz
"$KEY_LINES" u64 < raw.gz | sort | cut -d' ' -f2 | xxd -r -p > raw_expected
expect_output raw_expected --format=raw raw.gz

claim 'an output with the name *.gz is not compressed, with a warning'
for type in '-t u64' --lines; do
	# They are words.
	# shellcheck disable=SC2086
	expect_exit 0 $type input -o output.gz
	grep -qx 'gsort: warning: output.gz: is not compressed; .*' stderr ||
		fail "$type: $(cat stderr)"
	[ "$(wc -c < output.gz)" -ge "$(wc -c < input)" ] || fail "$type: compressed"
done

finish
