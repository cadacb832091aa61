#!/bin/sh
# zst - compressed inputs and outputs, against the zstd program
. "$(dirname "$0")/prelude.sh"
command -v zstd > /dev/null || {
	echo 'no zstd program: skipped'
	exit 77
}

generate -n 500000 -d nearly -o input
"$GSORT" input -o expected
zstd -q input -o input.zst

claim 'a compressed input is its content, by whatever name, of any frames'
gives expected input.zst
gives expected -S 1M input.zst
gives expected --parallel=1 input.zst
cp input.zst plain_name
gives expected plain_name
for level in 1 9 19; do
	zstd -q -f -$level input -o frame.zst
	gives expected frame.zst
done
zstd -q -f --no-check input -o frame.zst
gives expected frame.zst
zstd -q -f --long=24 input -o frame.zst
gives expected frame.zst

claim 'so is a compressed pipe'
cat input.zst | gives expected
cat input.zst | gives expected -S 1M -
mkfifo fifo
cat input.zst > fifo &
gives expected fifo
gives expected - < input.zst

claim 'frames may be many, of nothing, and skippable'
head -c 1000000 input | zstd -q > frames.zst
: | zstd -q >> frames.zst
printf '\120\052\115\030\003\000\000\000abc' >> frames.zst
tail -c +1000001 input | zstd -q >> frames.zst
gives expected frames.zst
cat frames.zst | gives expected
{ printf '\137\052\115\030\000\000\000\000' && cat frames.zst; } > skippable_first.zst
gives expected skippable_first.zst

claim 'compressed and plain inputs are sorted together'
generate -n 300000 --seed=2 -o second
zstd -q second -o second.zst
"$GSORT" input second -o both
gives both input.zst second.zst
gives both input second.zst
gives both input.zst second
cat input.zst | gives both - second
cat input | gives both - second.zst

claim 'nothing compressed is nothing'
: | zstd -q > nothing.zst
: > empty
gives empty nothing.zst
cat nothing.zst | gives empty

claim 'they can be checked, and merged'
zstd -q expected -o expected.zst
"$GSORT" second -o second_sorted
zstd -q second_sorted -o second_sorted.zst
succeeds -c expected.zst
cat expected.zst | succeeds -c
run -c input.zst
[ "$status" -eq 1 ] || broken "status $status"
gives both -m expected.zst second_sorted.zst
gives both -m expected.zst second_sorted
cat expected.zst | gives both -m - second_sorted.zst

claim 'a header in front and a tail behind are of the content'
{ printf 0123456789 && cat input; } | zstd -q > header.zst
{ printf 0123456789 && cat expected; } > header_expected
gives header_expected --skip-bytes=10 header.zst
head -c 3999997 input | zstd -q > partial.zst
refuses 'partial.zst.*3999997.*left over' partial.zst
succeeds --partial=drop -o output partial.zst
[ "$(wc -c < output)" -eq 3999992 ] || broken 'the partial record was not dropped'

claim 'what is cut off is refused'
size=$(wc -c < input.zst)
for n in 5 9 100 $((size / 2)) $((size - 1)); do
	head -c "$n" input.zst > cut.zst
	refuses "cut.zst.*cut off.*byte $n" cut.zst
	cat cut.zst | refuses "standard input.*cut off.*byte $n" -
done

claim 'what is damaged is refused, wherever it is'
for at in 5 8 1000 $((size / 2)) $((size - 2)); do
	cp input.zst damaged.zst
	printf '\252\125\252' | dd of=damaged.zst bs=1 seek="$at" conv=notrunc 2> /dev/null
	refuses 'damaged.zst.*(damaged|cut off)' damaged.zst
done

claim 'plain data behind a frame is no frame'
cat input.zst input > followed.zst
refuses 'followed.zst.*damaged' followed.zst

claim 'four bytes of the magic number alone are not a frame'
printf '\050\265\057\375' > magic
refuses 'magic.*cut off' -t u32 magic

finish
