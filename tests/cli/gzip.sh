#!/bin/sh
# gzip - inputs that are compressed by gzip
. "$(dirname "$0")/testlib.sh"

generate -n 500000 -d nearly-sorted -o input
generate -n 300000 --seed=2 -o second
"$GSORT" input -o expected
"$GSORT" second -o second_sorted
"$GSORT" input second -o both
gzip -c input > input.gz
gzip -c second > second.gz

claim 'a file is read as its content, whatever its name, level and header'
gives expected input.gz
gives expected -S 1M input.gz
gives expected --parallel=1 input.gz
cp input.gz plain_name
gives expected plain_name
for level in 1 9; do
	gzip -$level -c input > level.gz
	gives expected level.gz
done
cp input named && gzip -f named
gives expected named.gz

claim 'a pipe is read as its content'
cat input.gz | gives expected
cat input.gz | gives expected -S 1M -
mkfifo fifo
cat input.gz > fifo &
gives expected fifo
gives expected - < input.gz

claim 'members are concatenated'
head -c 1000000 input | gzip > members.gz
: | gzip >> members.gz
tail -c +1000001 input | gzip >> members.gz
gives expected members.gz
cat members.gz | gives expected
head -c 10000 /dev/zero | cat members.gz - > padded.gz
gives expected padded.gz
: | gzip > nothing.gz
: > empty
gives empty nothing.gz
cat nothing.gz | gives empty

claim 'compressed and plain inputs are sorted together'
gives both input.gz second.gz
gives both input second.gz
gives both input.gz second
cat input.gz | gives both - second
cat input | gives both - second.gz
if command -v zstd > /dev/null; then
	zstd -q second -o second.zst
	gives both input.gz second.zst
fi

claim 'inputs can be checked and merged'
gzip -c expected > expected.gz
gzip -c second_sorted > second_sorted.gz
succeeds -c expected.gz
cat expected.gz | succeeds -c
run -c input.gz
[ "$status" -eq 1 ] || broken "status $status"
gives both -m expected.gz second_sorted.gz
gives both -m expected.gz second_sorted
cat expected.gz | gives both -m - second_sorted.gz
"$GSORT_CHECK" expected.gz > stdout || broken "gsort-check: status $?"
"$GSORT_CHECK" --same-records input expected.gz > stdout || broken "gsort-check: status $?"
cp input.gz in_place
succeeds -t u64 -o in_place in_place
same expected in_place 'the input replaced by the output'

claim 'headers, trailers and .npy files are those of the content'
{ printf 0123456789 && cat input; } | gzip > header.gz
{ printf 0123456789 && cat expected; } > header_expected
gives header_expected --skip-bytes=10 header.gz
head -c 3999997 input | gzip > partial.gz
refuses 'partial.gz.*3999997.*left over' partial.gz
{
	printf '\223NUMPY\001\000v\000'
	printf "%-117s\n" "{'descr': '<u8', 'fortran_order': False, 'shape': (500000,), }"
} > npy_header
cat npy_header input | gzip > array.npy.gz
cat npy_header expected > array_expected
gives array_expected array.npy.gz
gives array_expected < array.npy.gz

claim 'truncated data is refused, with the position'
size=$(wc -c < input.gz)
for n in 19 100 $((size / 2)) $((size - 8)) $((size - 1)); do
	head -c "$n" input.gz > cut.gz
	refuses "cut.gz: compressed data is truncated: it ends at byte $n, within a member" cut.gz
	cat cut.gz | refuses "standard input: .*truncated.*byte $n, within a member" -
done
head -c 100000 expected.gz > cut.gz
run -c cut.gz
[ "$status" -eq 2 ] || broken "-c: status $status"
one_line 'cut.gz: .*truncated' '-c'
refuses 'cut.gz: .*truncated' -m cut.gz
"$GSORT_CHECK" cut.gz > stdout 2> stderr && broken 'gsort-check: not refused'
says 'cut.gz: .*truncated' stderr

claim 'damaged data is refused'
for at in 1000 $((size / 2)) $((size - 7)) $((size - 3)); do
	cp input.gz damaged.gz
	printf '\252\125\252' | dd of=damaged.gz bs=1 seek="$at" conv=notrunc 2> /dev/null
	refuses 'damaged.gz: compressed data is damaged before byte [0-9]+: ' damaged.gz
done

claim 'other data behind a member is refused'
for tail in x '\0x' '\037\213x'; do
	{ cat input.gz && printf "$tail"; } > followed.gz
	refuses 'followed.gz: compressed data is (followed by other|damaged|truncated)' followed.gz
done

claim 'what is compressed twice is refused'
gzip -c input.gz > twice.gz
refuses 'twice.gz: its content .* gzip; use gzip -dc twice.gz [|] gzip -dc [|] gsort' twice.gz

claim 'raw does not decompress'
head -c 100000 input.gz > raw.gz
"$KEY_LINES" u64 < raw.gz | sort | cut -d' ' -f2 | xxd -r -p > raw_expected
gives raw_expected --format=raw raw.gz

finish
