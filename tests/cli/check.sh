#!/bin/sh
# check - -c and -C find the first record that is out of order
. "$(dirname "$0")/testlib.sh"

# expect_disorder RECORD ARGUMENT...: the first record of `input` that is out of order is RECORD,
# from 1
expect_disorder() {
	finds_record=$1
	shift
	expect_exit 1 -c "$@" input
	echo "gsort: input: record $finds_record: disorder" > wanted
	expect_same wanted stderr "gsort -c $*"
	expect_exit 1 -C "$@" input
	[ ! -s stderr ] || fail "gsort -C $*: not silent"
	[ ! -s stdout ] || fail "gsort -C $*: wrote to standard output"
}

expect_sorted() {
	expect_success -c "$@"
	[ ! -s stdout ] || fail "gsort -c $*: wrote to standard output"
	expect_success -C "$@"
}

claim 'sorted files are in order'
for type in u8 i16be f64 u128be b3; do
	generate -n 100000 -t $type -d sorted -o input
	expect_sorted -t $type input
	generate -n 100000 -t $type -d reversed -o input
	expect_sorted -r -t $type input
done
generate -n 100000 -d equal -o input
expect_sorted input
expect_sorted -r input
: > input
expect_sorted input
expect_sorted -u input
head -c 8 /dev/zero > input
expect_sorted -u input
expect_sorted - < input

claim 'the first disorder is found'
generate -n 1000000 -d sorted -o sorted
for record in 2 3 65535 65536 65537 131071 131072 131073 500000 999999 1000000; do
	# Replace the record by a zero, and later also the last record.
	cp sorted input
	head -c 8 /dev/zero | dd of=input bs=8 seek=$((record - 1)) conv=notrunc 2> /dev/null
	expect_disorder $record
	expect_disorder $record --parallel=1
	head -c 8 /dev/zero | dd of=input bs=8 seek=999999 conv=notrunc 2> /dev/null
	expect_disorder $record
	cat input | run -c -
	expect_status 1 'pipe'
	grep -q "record $record: disorder" stderr || fail "pipe: not record $record"
done

claim 'with -u, equal keys are disorder'
cp sorted input
tail -c 8 sorted >> input
expect_sorted input
expect_disorder 1000001 -u
generate -n 1000 -d equal -o input
expect_disorder 2 -u

claim '-r checks for descending order'
cp sorted input
expect_disorder 2 -r

claim '--check takes the words of GNU sort'
for word in --check --check=diagnose-first --check=quiet --check=silent; do
	expect_exit 1 $word -r input
	[ "$(wc -l < stderr)" -eq "$(echo $word | grep -vc '=[qs]')" ] ||
		fail "$word: $(cat stderr)"
done
run --check=loud input
expect_message "-c, --check: 'loud'" 'another word'
run -c --check=quiet input
expect_message "-c, --check: .*'diagnose-first' and as 'quiet'" 'two words'

claim 'all keys of records are compared'
keys='-R 32 -k 8:i16be -k 20:f32:r -k 0:b3'
generate -n 30000 -R 32 -k 8:i16be -k 20:f32 -k 0:b3 -d zipf -o unsorted
expect_success $keys unsorted -o sorted
cp sorted input
expect_sorted $keys
expect_sorted $keys --parallel=1
expect_sorted $keys - < sorted
expect_disorder 2 $keys -r
expect_exit 1 -c -R 32 -k 20:f32:r input
for record in 2 3 8191 16384 16385 29999; do
	# Swap two adjacent records.
	"$GSORT" $keys -u sorted -o input
	{
		head -c $(((record - 2) * 32)) input
		tail -c +$(((record - 1) * 32 + 1)) input | head -c 32
		tail -c +$(((record - 2) * 32 + 1)) input | head -c 32
		tail -c +$((record * 32 + 1)) input
	} > swapped
	mv swapped input
	[ "$(wc -c < input)" -ge $((record * 32)) ] || break
	expect_disorder $record $keys
	expect_disorder $record $keys -u --parallel=1
done

claim 'with -u, records with equal keys are disorder, even if they differ'
generate -n 1000 -R 40 -k 4:u64 -d equal -o input
expect_sorted -R 40 -k 4:u64
expect_disorder 2 -R 40 -k 4:u64 -u
expect_sorted -R 40 -k 4:u64 -r

claim 'long records'
for size in 4096 65536; do
	generate -b 4M -R $size -o unsorted
	expect_success -R $size unsorted -o input
	expect_sorted -R $size
	expect_disorder 2 -R $size -r
done

claim 'long records of bytes are compared to their end'
# end_bytes N...: print records of 65536 bytes that end with these bytes, else zeros
end_bytes() {
	python3 -c 'import sys
for n in sys.argv[1:]: sys.stdout.buffer.write(bytes(65535) + bytes([int(n)]))' "$@"
}
end_bytes $(seq 40) > input
expect_sorted -R 65536 input
expect_sorted -R 65536 - < input
expect_disorder 2 -R 65536 -k 0:b65536:r
end_bytes $(seq 20) 1 $(seq 22 40) > input
expect_disorder 21 -R 65536
cat input | run -R 65536 -c -
expect_line 'record 21: disorder' stderr

claim '--stats says how many records were checked'
generate -n 12345 -R 20 -k 3:u16 -d sorted -o input
"$GSORT" -c --stats -R 20 -k 3:u16 input 2> stderr || fail "status $?"
expect_line '^12345 records of 3:u16le' stderr

claim 'a file that cannot be checked gives status 2, not 1'
for option in -c -C; do
	expect_failure 'missing' $option missing
	head -c 12 /dev/zero > odd
	expect_failure 'odd: .*4' $option odd
done

finish
