#!/bin/sh
# check - -c and -C find the first record that is out of order
. "$(dirname "$0")/testlib.sh"

# finds RECORD ARGUMENT...: the first record of `input` that is out of order is RECORD, from 1
finds() {
	finds_record=$1
	shift
	run -c "$@" input
	[ "$status" -eq 1 ] || broken "gsort -c $*: status $status, not 1"
	echo "gsort: input: record $finds_record: disorder" > wanted
	same wanted stderr "gsort -c $*"
	run -C "$@" input
	[ "$status" -eq 1 ] || broken "gsort -C $*: status $status, not 1"
	[ ! -s stderr ] || broken "gsort -C $*: not silent"
	[ ! -s stdout ] || broken "gsort -C $*: wrote to standard output"
}

ordered() {
	succeeds -c "$@"
	[ ! -s stdout ] || broken "gsort -c $*: wrote to standard output"
	succeeds -C "$@"
}

claim 'sorted files are in order'
for type in u8 i16be f64 u128be b3; do
	generate -n 100000 -t $type -d sorted -o input
	ordered -t $type input
	generate -n 100000 -t $type -d reversed -o input
	ordered -r -t $type input
done
generate -n 100000 -d equal -o input
ordered input
ordered -r input
: > input
ordered input
ordered -u input
head -c 8 /dev/zero > input
ordered -u input
ordered - < input

claim 'the first disorder is found'
generate -n 1000000 -d sorted -o sorted
for record in 2 3 65535 65536 65537 131071 131072 131073 500000 999999 1000000; do
	# Replace the record by a zero, and later also the last record.
	cp sorted input
	head -c 8 /dev/zero | dd of=input bs=8 seek=$((record - 1)) conv=notrunc 2> /dev/null
	finds $record
	finds $record --parallel=1
	head -c 8 /dev/zero | dd of=input bs=8 seek=999999 conv=notrunc 2> /dev/null
	finds $record
	cat input | run -c -
	[ "$status" -eq 1 ] || broken "pipe: status $status"
	grep -q "record $record: disorder" stderr || broken "pipe: not record $record"
done

claim 'with -u, equal keys are disorder'
cp sorted input
tail -c 8 sorted >> input
ordered input
finds 1000001 -u
generate -n 1000 -d equal -o input
finds 2 -u

claim '-r checks for descending order'
cp sorted input
finds 2 -r

claim '--check takes the words of GNU sort'
for word in --check --check=diagnose-first --check=quiet --check=silent; do
	run $word -r input
	[ "$status" -eq 1 ] || broken "$word: status $status"
	[ "$(wc -l < stderr)" -eq "$(echo $word | grep -vc '=[qs]')" ] ||
		broken "$word: $(cat stderr)"
done
run --check=loud input
one_line "-c, --check: 'loud'" 'another word'
run -c --check=quiet input
one_line "-c, --check: .*'diagnose-first' and as 'quiet'" 'two words'

claim 'all keys of records are compared'
keys='-R 32 -k 8:i16be -k 20:f32:r -k 0:b3'
generate -n 30000 -R 32 -k 8:i16be -k 20:f32 -k 0:b3 -d zipf -o unsorted
succeeds $keys unsorted -o sorted
cp sorted input
ordered $keys
ordered $keys --parallel=1
ordered $keys - < sorted
finds 2 $keys -r
run -c -R 32 -k 20:f32:r input
[ "$status" -eq 1 ] || broken "by another key: status $status"
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
	finds $record $keys
	finds $record $keys -u --parallel=1
done

claim 'with -u, records with equal keys are disorder, even if they differ'
generate -n 1000 -R 40 -k 4:u64 -d equal -o input
ordered -R 40 -k 4:u64
finds 2 -R 40 -k 4:u64 -u
ordered -R 40 -k 4:u64 -r

claim 'long records'
for size in 4096 65536; do
	generate -b 4M -R $size -o unsorted
	succeeds -R $size unsorted -o input
	ordered -R $size
	finds 2 -R $size -r
done

claim '--stats says how many records were checked'
generate -n 12345 -R 20 -k 3:u16 -d sorted -o input
"$GSORT" -c --stats -R 20 -k 3:u16 input 2> stderr || broken "status $?"
says '^12345 records of 3:u16le' stderr

claim 'a file that cannot be checked gives status 2, not 1'
for option in -c -C; do
	run $option missing
	[ "$status" -eq 2 ] || broken "missing file: status $status"
	one_line 'missing' "gsort $option missing"
	head -c 12 /dev/zero > odd
	run $option odd
	[ "$status" -eq 2 ] || broken "odd size: status $status"
	one_line 'odd: .*4' "gsort $option odd"
done

finish
