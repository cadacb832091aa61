#!/bin/sh
# shards - the shards of a merge (-m --shard=K/P) together are the whole output
. "$(dirname "$0")/testlib.sh"

# check_shards P ARGUMENT...: the P shards together are `whole`, and differ by at most a record in
# length
check_shards() {
	n_parts=$1
	shift
	: > together
	least='' most=0
	for k in $(seq "$n_parts"); do
		rm -f output
		expect_success -m --shard="$k/$n_parts" "$@" -o output
		size=$(wc -c < output)
		[ -n "$least" ] && [ "$size" -ge "$least" ] || least=$size
		[ "$size" -le "$most" ] || most=$size
		cat output >> together
	done
	expect_same whole together "gsort -m --shard=K/$n_parts $*"
	[ $((most - least)) -le "$record_nbytes" ] ||
		fail "$n_parts parts are of $least to $most bytes"
}

# merge_in_shards RECORD_BYTES ARGUMENT...: merge s0, s1 and s2, whole and in shards
merge_in_shards() {
	record_nbytes=$1
	shift
	expect_success -m "$@" s0 s1 s2 -o whole
	for n in 2 7; do
		check_shards $n "$@" s0 s1 s2
	done
	check_shards 3 -S 2M --parallel=5 "$@" s0 s1 s2
	check_shards 3 -S 64M --partitions=3 "$@" s0 s1 s2
}

# create_inputs RECORD_BYTES GENERATOR_OPTIONS GSORT_OPTIONS: create s0, s1 and s2, which share keys
create_inputs() {
	# Word splitting is intended.
	# shellcheck disable=SC2086
	generate -n 40000 $2 -o input
	for i in 0 1 2; do
		tail -c +$((1 + i * 13000 * $1)) input |
			head -c $(((10000 + i * 2000) * $1)) > piece
		# shellcheck disable=SC2086
		"$GSORT" $3 piece -o s$i
	done
}

for d in random hundred-keys equal; do
	claim "shards of a merge, keys: $d"
	create_inputs 8 "-t u64 -d $d" "-t u64"
	merge_in_shards 8
	claim "shards of records, keys: $d"
	create_inputs 12 "-R 12 -k 2:b3 -d $d" "-R 12 -k 2:b3"
	merge_in_shards 12 -R 12 -k 2:b3
done

claim "shards of records whose keys have a longer common prefix than the metadata of blocks"
create_inputs 40 "-R 40 -k 0:b32 --prefix=30 -d hundred-keys" "-R 40 -k 0:b32"
merge_in_shards 40 -R 40 -k 0:b32
merge_in_shards 8 -R 40 -k 0:b32 --argsort

claim "more shards than records"
generate -n 2 -t u64 -d sorted -o s0
"$GSORT" -m s0 -o whole
record_nbytes=8
check_shards 5 s0

claim "wrong arguments of --shard"
for wrong in 0/3 4/3 1 /3 1/ a/b 1/0 1/3x 1/1000001; do
	expect_error "--shard: '$wrong'" -m --shard=$wrong s0 -o output
done
expect_error "requires -m" --shard=1/2 s0 -o output
cp s0 in
expect_failure '^gsort: in: output of a shard would replace an input' \
	-m -t u64 --shard=1/2 in s1 -o in
expect_same s0 in 'a part in the place of an input'
expect_error "--shard.*-u|-u.*--shard" -m -u --shard=1/2 s0 -o output
expect_error "--shard.*--limit|--limit.*--shard" -m --limit=5 --shard=1/2 s0 -o output
expect_error "inputs must be files" -m --shard=1/2 - -o output < /dev/null
expect_error "not possible with headers" -m --shard=1/2 --skip-bytes=8 s0 -o output

claim "a shard names disorder within it, or before it"
generate -n 9000 -t u64 -d sorted -o s0
printf '\0\0\0\0\0\0\0\0' | dd of=s0 bs=8 seek=4500 conv=notrunc 2> /dev/null
named=0
for k in 1 2 3 4; do
	run -m --shard=$k/4 s0 -o output
	[ "$status" -ne 0 ] || continue
	named=$((named + 1))
	expect_message "s0: record 4501: disorder; -m merges" "part $k"
done
[ "$named" -ge 1 ] || fail "no shard reported it"

claim "the makefile of docs/cluster.md"
! command -v make > /dev/null || {
	mkdir cluster
	for i in 0 1 2; do
		generate -n 5000 -t u64 --seed=$i -o cluster/p$i.bin
	done
	cat cluster/*.bin > input
	awk '/^```make/ { on = 1; next } /^```/ { on = 0 } on' \
		"$(dirname "$0")/../../docs/cluster.md" > cluster/Makefile
	"$GSORT" -t u64 input -o expected
	(cd cluster && PATH="$(dirname "$GSORT"):$PATH" make -j2 > ../made 2>&1) ||
		fail "make: $(tail -3 made)"
	cat cluster/sorted.* > together
	expect_same expected together "make -j"
}

finish
