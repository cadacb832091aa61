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
expect_output expected frame.zst
zstd -q -f --long=24 input -o frame.zst
expect_output expected frame.zst

claim 'a file may have many frames, empty ones and skippable ones'
head -c 1000000 input | zstd -q > frames.zst
: | zstd -q >> frames.zst
printf '\120\052\115\030\003\000\000\000abc' >> frames.zst
tail -c +1000001 input | zstd -q >> frames.zst
expect_output expected frames.zst
cat frames.zst | expect_output expected
{ printf '\137\052\115\030\000\000\000\000' && cat frames.zst; } > skippable_first.zst
expect_output expected skippable_first.zst

claim 'a probed descriptor is merged from its beginning, and can be replaced'
zstd -q -f expected -o sorted.zst
expect_output expected -m < sorted.zst
expect_output expected -m - < sorted.zst
"$GSORT" expected expected -o twice
expect_output twice -m - expected < sorted.zst
expect_output twice -m expected - < sorted.zst
expect_output twice -m sorted.zst - < sorted.zst
cp sorted.zst in_place
expect_success -m -t u64 -o in_place < in_place
expect_same expected in_place 'the input replaced by its merge'
head -c 80000 expected | zstd -q > short.zst
head -c 80000 expected > short
expect_output short -m < short.zst

claim 'truncated data is refused'
size=$(wc -c < input.zst)
for n in 5 9 100 $((size / 2)) $((size - 1)); do
	head -c "$n" input.zst > cut.zst
	expect_error "cut.zst.*truncated.*byte $n" cut.zst
	cat cut.zst | expect_error "standard input.*truncated.*byte $n" -
done

claim 'damaged data is refused'
damaged_inputs zst '.*(damaged|truncated)' 5 8 1000 $((size / 2)) $((size - 2))

claim 'other data after a frame is refused'
cat input.zst input > followed.zst
expect_error "followed.zst: compressed data is followed by other data at byte $size" followed.zst

claim 'four bytes of the magic number alone are not a frame'
printf '\050\265\057\375' > magic
expect_error 'magic.*truncated' -t u32 magic

# expect_content EXPECTED FILE: zstd decompresses the file to EXPECTED
expect_content() {
	zstd -dc "$2" > content 2> stderr || fail "zstd cannot read $2"
	expect_same "$1" content "$2"
}

# expect_zst EXPECTED ARGUMENT...: gsort writes EXPECTED to output.zst without messages
expect_zst() {
	writes_expected=$1
	shift
	rm -f output.zst
	expect_success -o output.zst "$@"
	expect_content "$writes_expected" output.zst
}

claim 'an output called .zst is compressed, and so is any with --zstd'
expect_zst expected input
expect_zst expected --zstd=1 input
at_level_1=$(wc -c < output.zst)
expect_zst expected --zstd=19 input
[ "$(wc -c < output.zst)" -lt "$at_level_1" ] || fail 'level 19 compresses no more than level 1'
expect_output expected output.zst
zstd -lv output.zst 2> /dev/null | grep -q XXH64 || fail 'no checksums of the content'
expect_success --zstd -o output input
expect_content expected output
expect_success --zstd input
expect_content expected stdout
"$GSORT" --zstd input | cat > piped
expect_content expected piped

claim 'the compressed output does not depend on memory and threads'
expect_success -o first.zst --zstd=5 input
for options in -S5M -S7M --parallel=1 --parallel=7; do
	expect_success -o output.zst --zstd=5 $options input
	expect_same first.zst output.zst "$options"
done

claim 'files that gsort compressed contain their size and are read in parallel'
"$GSORT" --explain -S 64M first.zst > plan
expect_line '^input  *3.8 MiB' plan
expect_output expected first.zst
expect_output expected -S 1M first.zst
expect_output expected - < first.zst
cat first.zst | expect_output expected -
expect_output both first.zst second
expect_output both -m first.zst second_sorted
expect_success -c first.zst
cat second | expect_output both first.zst -
{ cat first.zst && cat second.zst; } > two.zst
expect_output both two.zst

claim 'two concatenated files are both sorted, although the seek table belongs to the second'
cat first.zst first.zst > two.zst
"$GSORT" input input -o twice
expect_output twice two.zst
expect_exit 1 -c two.zst

claim 'compressed outputs in place, and of every kind'
cp first.zst same.zst
expect_success -r -t u64 -o same.zst same.zst
"$GSORT" -r input -o reversed
expect_content reversed same.zst
expect_zst expected --verify --fsync input
"$GSORT" -u input -o unique
expect_zst unique -u input
expect_zst header_expected --skip-bytes=10 header.zst
expect_zst both -m first.zst second_sorted
expect_zst empty empty
expect_output empty output.zst
expect_success -c output.zst

claim 'a seek table does not hide damage'
size=$(wc -c < first.zst)
for at in 2 1000 $((size / 2)) $((size - 20)); do
	cp first.zst damaged.zst
	printf '\252\125\252' | dd of=damaged.zst bs=1 seek="$at" conv=notrunc 2> /dev/null
	cmp -s damaged.zst first.zst && continue
	run -o output damaged.zst
	if [ "$status" -eq 0 ]; then
		expect_same expected output 'of a damaged index'
	else
		expect_message 'damaged.zst' "damage at $at"
	fi
done

# flip_bit OFFSET BIT: copy first.zst to flipped.zst with a flipped bit
flip_bit() {
	cp first.zst flipped.zst
	byte=$(od -An -v -j"$1" -N1 -tu1 first.zst)
	printf "\\$(printf %o $((byte ^ $2)))" |
		dd of=flipped.zst bs=1 seek="$1" conv=notrunc 2> /dev/null
}

claim 'a flipped bit in a seek table loses no records and is not reported as disorder'
table=$((size - 9 - 8 * 4 - 8)) # four frames; the entry of the second is at 16
for flipped in '0 1' '4 8' '16 1' '17 128' '20 1' '22 16' '23 64' '30 16' '40 4' '44 128' '48 1'; do
	at=$((table + ${flipped% *}))
	flip_bit $at ${flipped#* }
	run -o output flipped.zst
	if [ "$status" -eq 0 ]; then
		expect_same expected output "bit $flipped"
		expect_success -c output
	else
		expect_message 'flipped.zst' "bit $flipped"
		expect_exit 2 -c flipped.zst
	fi
done
head -c $((size - 1)) first.zst > cut.zst
expect_error 'cut.zst.*truncated' cut.zst
head -c $((size / 2)) first.zst > cut.zst
expect_error 'cut.zst.*truncated' cut.zst

claim 'an output that cannot be written is an error and leaves no file'
"$GSORT" --zstd input > /dev/full 2> stderr
[ $? -eq 2 ] || fail 'status of a full disk'
expect_message 'standard output.*No space' 'a full disk'
expect_error '--zstd.*23' --zstd=23 input
expect_error '--zstd.*fast' --zstd=fast input
expect_failure 'a check writes nothing' -c --zstd input

finish
