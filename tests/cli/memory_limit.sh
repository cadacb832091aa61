#!/bin/sh
# memory_limit - the process takes at most the memory of -S and 32 MiB
. "$(dirname "$0")/testlib.sh"

# It would fill all memory that is allocated.
unset MALLOC_PERTURB_

overhead_kib=$((32 * 1024))

# expect_peak_memory MIB ARGUMENT...: gsort takes at most MIB and the overhead
expect_peak_memory() {
	limit_kib=$(($1 * 1024 + overhead_kib))
	shift
	"$PEAK_MEMORY" $limit_kib "$GSORT" "$@" -o output > peak 2> stderr ||
		fail "gsort $*: status $?: $(cat peak)"
}

generate -b 48M -o input

claim 'spilling'
expect_peak_memory 32 -S 32M input
"$GSORT_CHECK" output > stdout || fail "not sorted: $(cat stdout)"
"$GSORT_CHECK" --same-records output input > stdout || fail "$(cat stdout)"

claim 'from a pipe'
cat input | expect_peak_memory 32 -S 32M -

claim 'more than a hundred runs, many passes'
generate -b 48M -o input
expect_peak_memory 1 -S 1M input
"$GSORT_CHECK" output > stdout || fail "not sorted: $(cat stdout)"
"$GSORT_CHECK" --same-records output input > stdout || fail "$(cat stdout)"

claim 'records narrower than their elements'
generate -b 32M -t b9 -o input
expect_peak_memory 16 -S 16M -t b9 input

claim 'records'
for size in 100 4096 65536; do
	generate -R $size -n $((24 * 1024 * 1024 / size)) -o input
	expect_peak_memory 16 -S 16M -R $size -k0:b10 input
	expect_peak_memory 16 -S 16M -R $size input
done

claim 'records that stay in the mapped input, which counts as memory'
generate -R 100 -n 900000 -o input
for memory in 128 112 96; do
	expect_peak_memory $memory -S ${memory}M -R 100 -k0:b10 input
done

claim 'the metadata of blocks of an input that is much larger than memory'
truncate -s 64M sparse
expect_peak_memory 1 -S 1M sparse
truncate -s 1G sparse
expect_error ' 1 MiB of memory,.* too little: .* -S of at least [0-9]+M$' -S 1M sparse
enough=$(run -S 1M sparse && sed -n 's/.*-S of at least //p' stderr)
"$GSORT" --explain -S "$enough" sparse > stdout 2> stderr || fail "-S $enough is not enough"
rm -f sparse

claim 'the minimum -S of the message is enough'
truncate -s 300G larger
for size in 1M 20M 100M; do
	expect_exit 2 --explain -R 65536 -S $size larger
	sed -n 's/.* -S of at least //p' stderr
done | sort -u > least
[ "$(wc -l < least)" -eq 1 ] || fail "it moves: $(tr '\n' ' ' < least)"
expect_success --explain -R 65536 -S "$(cat least)" larger
rm larger
sufficient='^gsort: -S: 1 MiB of memory suffices for .* of an input of unknown size; use -S'
head -c 400M /dev/zero | expect_error "$sufficient" -S 1M -
expect_error "$sufficient" -S 1M --explain --assume-size=1G -
expect_success -S "$(sed 's/.* use -S \([0-9]*M\) .*/\1/' stderr)" --explain --assume-size=1G -

claim 'a pipe that needs longer blocks'
head -c 470M /dev/zero | expect_peak_memory 8 -S 8M -

claim 'more threads than fit in memory'
generate -b 16M -o input
for memory in 1 16 64; do
	expect_peak_memory $memory -S ${memory}M --parallel=1024 input
done

claim 'compressed runs, inputs and outputs'
generate -b 40M -d nearly-sorted -o input
for mode in delta zstd:5; do
	expect_peak_memory 16 -S 16M --temp-compress=$mode input
done
expect_peak_memory 16 -S 16M --zstd input
mv output input.zst
expect_peak_memory 24 -S 24M --zstd=9 --parallel=32 input.zst
"$GSORT_CHECK" --same-records output input > stdout || fail "$(cat stdout)"
generate -b 20M -d nearly-sorted -o small
"$GSORT" --zstd small -o small.zst
expect_peak_memory 16 -S 16M --zstd=9 small.zst
rm -f small small.zst
cat input.zst | expect_peak_memory 16 -S 16M -

claim 'many compressed files that are merged'
generate -b 2M -d sorted -o sorted
"$GSORT" --zstd sorted -o sorted.zst
thirty=$(for i in $(seq 30); do printf 'sorted.zst '; done)
expect_peak_memory 64 -S 64M -m $thirty
expect_peak_memory 16 -S 16M $thirty
expect_error ' 1 MiB of memory,.* too little: .*inputs.* -S of at least [0-9]+M$' -S 1M -m $thirty
rm -f sorted sorted.zst output

claim 'a very long seek table'
printf '\136\052\115\030\000\000\000\020' > table.zst # 2^28 bytes
truncate -s $((8 + 268435456 - 9)) table.zst
printf '\377\377\377\001\000\261\352\222\217' >> table.zst # 2^25 - 1 frames
head -c 8000 input | "$GSORT" --zstd | cat - table.zst > with-table.zst
expect_peak_memory 1 -S 1M with-table.zst
rm -f table.zst with-table.zst

if command -v zstd > zstd-path; then
	claim 'a window that is larger than the memory'
	cat input input > double
	zstd -q --long=27 double -o long.zst
	rm double
	expect_error ' 8 MiB of memory,.* too little: .* -S of at least [0-9]+M$' -S 8M long.zst
	expect_error ' 64 MiB of memory,.* too little: .* -S of at least [0-9]+M$' \
		-S 64M --explain input long.zst
	cat long.zst | expect_error ' 8 MiB of memory,.* too little: .* -S of at least [0-9]+M$' \
		-S 8M -
	mkfifo first second
	: > broken-pipe
	head -c 800 input > first &
	cat long.zst > second 2> broken-pipe &
	expect_error 'window of more than 8 MiB.* zstd -dc --long=27, or -S of at least 2048M$' \
		-S 8M first second
	wait
	rm -f first second broken-pipe
	expect_peak_memory 256 -S 256M long.zst

	claim 'a sort of lines refuses a window that is large for the memory'
	window='long.zst: no memory for a zstd window of more than 8 MiB.* -S of at least [0-9]*M$'
	expect_error "$window" --lines -S 8M long.zst
	expect_exit 2 --lines -S 8M -c long.zst
	expect_message "$window" '--lines -c'
	cat long.zst | expect_error "${window#long.zst: }" --lines -S 8M -

	claim 'a check counts the window like a sort'
	for option in -c -C; do
		for size in 1M 8M; do
			expect_exit 2 $option -S $size long.zst
			expect_message ".* too little: .* -S of at least [0-9]+M\$" \
				"$option -S $size"
		done
		expect_exit 2 $option -S 8M - < long.zst
	done
	run -c -S 8M long.zst
	enough=$(sed -n 's/.*-S of at least \([0-9]*\)M$/\1/p' stderr)
	expect_exit 1 -c -S "${enough}M" long.zst
	for size in 1M 8M; do
		"$GSORT_CHECK" -S $size long.zst > stdout 2> stderr && fail "gsort-check -S $size"
		expect_line 'too little: .* -S of at least [0-9]+M$' stderr
	done
	"$GSORT_CHECK" -S "${enough}M" long.zst > stdout 2> stderr
	[ $? -eq 1 ] || fail "gsort-check -S ${enough}M: $(cat stderr)"

	claim 'a large window of a later frame is refused, also after a skippable frame'
	{ head -c 80000 /dev/zero | zstd -q && cat long.zst; } > second_frame.zst
	{ printf '\120\052\115\030\010\000\000\000........' && cat long.zst; } > skippable.zst
	for options in '' -m -c -C; do
		for file in second_frame.zst -; do
			expect_exit 2 $options -S 1M $file < second_frame.zst > output
			expect_message 'window of more than 8 MiB.* zstd -dc --long=27' "$options"
		done
		for file in skippable.zst -; do
			expect_exit 2 $options -S 1M $file < skippable.zst > output
			expect_message 'too little: .*-S of at least [0-9]+M$' "$options"
		done
	done
	"$GSORT_CHECK" -S 1M second_frame.zst > stdout 2> stderr && fail 'gsort-check: not refused'
	expect_line 'second_frame.zst: .*window of more than 8 MiB' stderr
	rm -f long.zst second_frame.zst skippable.zst

	claim 'a window that zstd accepts only with an option is not reported as damage'
	head -c 800000 input > short
	"$GSORT" short -o sorted
	for long in 28 31; do
		zstd -q --long=$long -c < short > long.zst
		expect_output sorted -S 5G long.zst
		cat long.zst | expect_output sorted -S 5G -
		"$GSORT_CHECK" -S 5G --same-records short long.zst || fail "--long=$long: status $?"
	done
	expect_error ' 512 MiB of memory,.* too little: .* -S of at least [0-9]+M$' -S 512M long.zst
	mkfifo first second
	: > broken-pipe
	head -c 800 input > first &
	cat long.zst > second 2> broken-pipe &
	expect_error 'window of more than 32 MiB.* zstd -dc --long=31, or -S of at least 32768M$' \
		-S 512M first second
	wait
	rm -f first second broken-pipe short sorted long.zst
fi

claim 'incomplete records and file names'
generate -b 65535 -t u8 -o part
thousand=$(for i in $(seq 1000); do printf 'part '; done)
expect_error ' 1 MiB of memory,.* too little: .*inputs.* -S of at least [0-9]+M$' \
	-S 1M -R 65536 --partial=keep $thousand
expect_peak_memory 128 -S 128M -R 65536 --partial=keep $thousand
: > none
yes none | head -n 200000 | tr '\n' '\0' > names
expect_error ' 1 MiB of memory,.* too little: .*inputs.* -S of at least [0-9]+M$' \
	-S 1M --files0-from=names
expect_peak_memory 128 -S 128M --files0-from=names

claim 'too many names or incomplete records are refused before they take memory'
yes none | head -n 500000 | tr '\n' '\0' > names
# expect_error_within_limit ARGUMENT...: gsort -S 1M fails within its memory limit
expect_error_within_limit() {
	"$PEAK_MEMORY" $((1024 + overhead_kib)) sh -c '"$@" 2> stderr; [ $? -eq 2 ]' - \
		"$GSORT" -S 1M "$@" -o output > peak || fail "gsort $*: $(cat peak stderr)"
	expect_message ' 1 MiB of memory,.* too little: .*inputs.* -S of at least [0-9]+M$' "$*"
}
expect_error_within_limit --files0-from=names
expect_error_within_limit --files0-from=- < names
expect_error_within_limit -R 65536 --partial=keep $thousand
enough=$(sed -n 's/.*-S of at least //p' stderr)
expect_peak_memory "${enough%M}" -S "$enough" -R 65536 --partial=keep $thousand
rm -f part none names

mkdir one two
expect_peak_memory 32 -S 32M -T one -T two --temp-compress=zstd input.zst
expect_peak_memory 32 -S 32M -m input.zst input.zst

finish
