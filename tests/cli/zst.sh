#!/bin/sh
# zst - compare compressed inputs and outputs with the zstd program
. "$(dirname "$0")/testlib.sh"
command -v zstd > /dev/null || {
	echo 'no zstd program: skipped'
	exit 77
}

compressed_inputs zst 'zstd -q' 1 9 19

claim 'frames may have any options'
zstd -q -f --no-check input -o frame.zst
gives expected frame.zst
zstd -q -f --long=24 input -o frame.zst
gives expected frame.zst

claim 'a file may have many frames, empty ones and skippable ones'
head -c 1000000 input | zstd -q > frames.zst
: | zstd -q >> frames.zst
printf '\120\052\115\030\003\000\000\000abc' >> frames.zst
tail -c +1000001 input | zstd -q >> frames.zst
gives expected frames.zst
cat frames.zst | gives expected
{ printf '\137\052\115\030\000\000\000\000' && cat frames.zst; } > skippable_first.zst
gives expected skippable_first.zst

claim 'a probed descriptor is merged from its beginning, and can be replaced'
zstd -q -f expected -o sorted.zst
gives expected -m < sorted.zst
gives expected -m - < sorted.zst
"$GSORT" expected expected -o twice
gives twice -m - expected < sorted.zst
gives twice -m expected - < sorted.zst
gives twice -m sorted.zst - < sorted.zst
cp sorted.zst in_place
succeeds -m -t u64 -o in_place < in_place
same expected in_place 'the input replaced by its merge'
head -c 80000 expected | zstd -q > short.zst
head -c 80000 expected > short
gives short -m < short.zst

claim 'truncated data is refused'
size=$(wc -c < input.zst)
for n in 5 9 100 $((size / 2)) $((size - 1)); do
	head -c "$n" input.zst > cut.zst
	refuses "cut.zst.*truncated.*byte $n" cut.zst
	cat cut.zst | refuses "standard input.*truncated.*byte $n" -
done

claim 'damaged data is refused'
damaged_inputs zst '.*(damaged|truncated)' 5 8 1000 $((size / 2)) $((size - 2))

claim 'other data after a frame is refused'
cat input.zst input > followed.zst
refuses 'followed.zst.*damaged' followed.zst

claim 'four bytes of the magic number alone are not a frame'
printf '\050\265\057\375' > magic
refuses 'magic.*truncated' -t u32 magic

# content_is EXPECTED FILE: zstd decompresses the file to EXPECTED
content_is() {
	zstd -dc "$2" > content 2> stderr || broken "zstd cannot read $2"
	same "$1" content "$2"
}

# writes EXPECTED ARGUMENT...: gsort writes EXPECTED to output.zst without messages
writes() {
	writes_expected=$1
	shift
	rm -f output.zst
	succeeds -o output.zst "$@"
	content_is "$writes_expected" output.zst
}

claim 'an output called .zst is compressed, and so is any with --zstd'
writes expected input
writes expected --zstd=1 input
at_level_1=$(wc -c < output.zst)
writes expected --zstd=19 input
[ "$(wc -c < output.zst)" -lt "$at_level_1" ] || broken 'level 19 compresses no more than level 1'
gives expected output.zst
zstd -lv output.zst 2> /dev/null | grep -q XXH64 || broken 'no checksums of the content'
succeeds --zstd -o output input
content_is expected output
succeeds --zstd input
content_is expected stdout
"$GSORT" --zstd input | cat > piped
content_is expected piped

claim 'the compressed output does not depend on memory and threads'
cp output.zst first.zst
for options in -S5M -S7M --parallel=1 --parallel=7; do
	succeeds -o output.zst --zstd=19 $options input
	same first.zst output.zst "$options"
done

claim 'files that gsort compressed contain their size and are read in parallel'
"$GSORT" --explain -S 64M first.zst > plan
says '^input  *3.8 MiB' plan
gives expected first.zst
gives expected -S 1M first.zst
gives expected - < first.zst
cat first.zst | gives expected -
gives both first.zst second
gives both -m first.zst second_sorted
succeeds -c first.zst
cat second | gives both first.zst -
{ cat first.zst && cat second.zst; } > two.zst
gives both two.zst

claim 'two concatenated files are both sorted, although the seek table belongs to the second'
cat first.zst first.zst > two.zst
"$GSORT" input input -o twice
gives twice two.zst
run -c two.zst
[ "$status" -eq 1 ] || broken "-c of two alike: status $status"

claim 'compressed outputs in place, and of every kind'
cp first.zst same.zst
succeeds -r -t u64 -o same.zst same.zst
"$GSORT" -r input -o reversed
content_is reversed same.zst
writes expected --verify --fsync input
"$GSORT" -u input -o unique
writes unique -u input
writes header_expected --skip-bytes=10 header.zst
writes both -m first.zst second_sorted
writes empty empty
gives empty output.zst
succeeds -c output.zst

claim 'a seek table does not hide damage'
size=$(wc -c < first.zst)
for at in 2 1000 $((size / 2)) $((size - 20)); do
	cp first.zst damaged.zst
	printf '\252\125\252' | dd of=damaged.zst bs=1 seek="$at" conv=notrunc 2> /dev/null
	cmp -s damaged.zst first.zst && continue
	run -o output damaged.zst
	if [ "$status" -eq 0 ]; then
		same expected output 'of a damaged index'
	else
		one_line 'damaged.zst' "damage at $at"
	fi
done

# flipped_bit OFFSET BIT: copy first.zst to flipped.zst with a flipped bit
flipped_bit() {
	cp first.zst flipped.zst
	byte=$(od -An -v -j"$1" -N1 -tu1 first.zst)
	printf "\\$(printf %o $((byte ^ $2)))" |
		dd of=flipped.zst bs=1 seek="$1" conv=notrunc 2> /dev/null
}

claim 'a flipped bit in a seek table loses no records and is not reported as disorder'
table=$((size - 9 - 8 * 4 - 8)) # four frames; the entry of the second is at 16
for flipped in '0 1' '4 8' '16 1' '17 128' '20 1' '22 16' '23 64' '30 16' '40 4' '44 128' '48 1'; do
	at=$((table + ${flipped% *}))
	flipped_bit $at ${flipped#* }
	run -o output flipped.zst
	if [ "$status" -eq 0 ]; then
		same expected output "bit $flipped"
		succeeds -c output
	else
		one_line 'flipped.zst' "bit $flipped"
		run -c flipped.zst
		[ "$status" -eq 2 ] || broken "-c, bit $flipped: status $status"
	fi
done
head -c $((size - 1)) first.zst > cut.zst
refuses 'cut.zst.*truncated' cut.zst
head -c $((size / 2)) first.zst > cut.zst
refuses 'cut.zst.*truncated' cut.zst

claim 'an output that cannot be written is an error and leaves no file'
"$GSORT" --zstd input > /dev/full 2> stderr
[ $? -eq 2 ] || broken 'status of a full disk'
one_line 'standard output.*No space' 'a full disk'
refuses '--zstd.*23' --zstd=23 input
refuses '--zstd.*fast' --zstd=fast input
run -c --zstd input
[ "$status" -eq 2 ] || broken "-c --zstd: status $status"
one_line 'a check writes nothing' '-c --zstd'

finish
