#!/bin/sh
# devices - random sorts on two simulated devices give the same bytes as on the CPU
#
# The devices have separate memories (tests/support/separate_memory_backend.h).
# random_config.sh describes the variables that repeat a run or make it longer.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/random_config.sh"

echo "GSORT_SEED=$seed"
GSORT_ROUNDS=${GSORT_ROUNDS:-24}

"$GSORT_GEN" -n 300000 -d zipf --seed="$seed" -o numbers || exit 99
"$GSORT_GEN" -n 40000 --seed="$seed" -o few || exit 99
"$GSORT" numbers -o sorted0 && "$GSORT" few -o sorted1 || exit 99

{
	header="{'descr': '<u8', 'fortran_order': False, 'shape': (300000,), }"
	printf "\\223NUMPY\\001\\000\\166\\000%-117s\\n" "$header"
	cat numbers
} > array.npy

# sort_in_directory DIRECTORY PROGRAM...: run a sort in a new directory
sort_in_directory() {
	directory=$1
	shift
	rm -rf "$directory"
	mkdir "$directory"
	(cd "$directory" && "$@" -o out > stdout 2> ../stderr) || fail "$*"
}

round=0
while more_rounds $round; do
	pick '' '' '-u' '--limit=1000' '--limit=39000' '--split=3' '--count' '--argsort' \
		'--keys-only' '--zstd' '--checkpoint=state'
	what=$picked
	pick '../numbers' '../few' '-r ../numbers' '-R 16 -k 0:u64 ../numbers' \
		'-R 16 -k 9:b3 ../numbers' '-R 40 -k 3:b30 ../numbers' \
		'-R 8 -k 4:u32 -k 0:u32:r ../numbers' '../array.npy' '-m ../sorted0 ../sorted1' \
		'-R 48 -k 40:u64 ../numbers'
	records=$picked
	case "$what $records" in
	--count*-m* | --argsort*-m* | --checkpoint*-m*) what= ;;
	--keys-only*) what='--keys-only' records='-R 16 -k 0:u64 ../numbers' ;;
	esac
	case $what in
	--count | *-u*) what="$what -u" ;;
	esac
	pick_resources
	pick 0,1 0,1 1,0,1
	on="--gpus=$picked"
	pick '' 1
	reach=$picked
	claim "$on, ${reach:+reached,} $resources $what $records"
	# Word splitting is intended.
	# shellcheck disable=SC2086
	{
		sort_in_directory one "$GSORT" -S 64M $what $records
		sort_in_directory two env ${reach:+GSORT_TEST_PEER_ACCESS=1} \
			"$GSORT_TWO_DEVICES" $on $resources $what $records
	}
	rm -rf one/state two/state
	diff -r one two > /dev/null || fail 'other bytes'
	round=$((round + 1))
done
echo "$round rounds"

finish
