#!/bin/sh
# estimate_bounds - a sort takes at most the temporary space, and exactly the passes, of --explain
. "$(dirname "$0")/testlib.sh"

generate -t u8 -b 4M -o u8
generate -t u64 -b 12M -o u64
generate -t b3 -b 4M -o b3
generate -R 24 -k 0:u64 -b 12M -o wide
generate -R 12 -k 0:u32 -d hundred-keys -b 8M -o few
for seed in 1 2 3 4 5; do
	generate -b 2M --seed=$seed -o unsorted
	"$GSORT" unsorted -o part$seed
done

# kept ARGUMENT...: a sort keeps the predicted temporary space; sets $taken and $passes
kept() {
	rm -rf output checkpoint
	"$GSORT" --explain "$@" -o output > plan || broken "gsort --explain $*: status $?"
	run "$@" -o output --stats-json=stats
	[ "$status" -eq 0 ] || broken "gsort $*: status $status"
	taken=$(sed -n 's/.*"peak_temporary_bytes": *\([0-9]*\).*/\1/p' stats)
	passes=$(sed -n 's/.*"passes": *\([0-9]*\).*/\1/p' stats)
	awk -v taken="$taken" '
	BEGIN { unit["B"] = 1; unit["KiB"] = 2 ^ 10; unit["MiB"] = 2 ^ 20; unit["GiB"] = 2 ^ 30 }
	/^temporary space/ { found = 1; good = $3 * unit[$4] >= taken }
	END { exit !(found && good) }' plan || broken \
		"gsort $*: $taken bytes taken, promised: $(grep 'temporary space' plan)"
}

# foretold N: the last sort took N merge passes, and --explain predicted N
foretold() {
	[ "$passes" -eq "$1" ] || broken "$passes passes, not $1"
	says "^merge passes  *$1\$" plan
}

claim 'the estimate depends on the stored items, not on the records of the input'
kept -S 1M -t u8 --argsort u8
[ "$taken" -gt 20000000 ] || broken "only $taken bytes taken"
kept -S 1M -t u8 --argsort --temp-compress=none u8
kept -S 1M -t b3 --argsort b3
kept -S 2M -R 24 -k 0:u64 --argsort wide
kept -S 2M -R 24 -k 0:u64 --keys-only --temp-compress=none wide
kept -S 2M -R 24 -k 0:u64 -u --count wide

claim 'types and codecs'
kept -S 1M -t u8 u8
kept -S 1M -t b3 b3
kept -S 2M -R 24 -k 0:u64 --temp-compress=none wide
for mode in none auto delta zstd; do
	kept -S 2M --temp-compress=$mode u64
done

claim 'dropped records are not stored'
kept -S 2M -u u64
kept -S 1M -R 12 -k 0:u32 -u few
kept -S 2M --limit=1000 u64
kept -S 8M --limit=200000 --temp-compress=none u64
foretold 1
[ "$taken" -gt 4000000 ] || broken "only $taken bytes taken"
kept -S 8M --limit=300000 --temp-compress=none -t u8 --argsort u8
kept -S 1M --limit=20000 --batch-size=2 --temp-compress=none u64

claim 'merge passes are predicted, and so is their space'
kept -S 1M --batch-size=2 --temp-compress=none u64
[ "$passes" -gt 3 ] || broken "$passes passes"
says "^merge passes  *$passes\$" plan
kept -S 1M --batch-size=4 u64
kept -m -S 1M part1 part2 part3 part4 part5
foretold 1
kept -m -S 1M --batch-size=3 --temp-compress=none part1 part2 part3 part4 part5
foretold 2
kept -m -S 1M --batch-size=2 part1 part2 part3 part4 part5
foretold 3
kept -S 64M u64
foretold 1
for n in 1 2 3 4 5; do
	rm -f pipe$n
	mkfifo pipe$n
done
"$GSORT" --explain -m --assume-size=10M -S 1M pipe1 pipe2 pipe3 pipe4 pipe5 > plan
says '^temporary space  *1[0-9.]* MiB$' plan

claim 'with -u, a record count in the header requires a merge to one run'
{
	printf '\223NUMPY\001\000\166\000'
	printf '%-117s\n' "{'descr': '<u8', 'fortran_order': False, 'shape': (1572864,), }"
	cat u64
} > u64.npy
kept -S 64M --temp-compress=none u64.npy
[ "$taken" -eq 0 ] || broken "$taken bytes taken"
kept -S 64M --temp-compress=none -u --zstd u64.npy
foretold 2
[ "$taken" -gt 12000000 ] || broken "only $taken bytes taken"
kept -S 4M -u --zstd u64.npy
foretold "$passes"
kept -S 1M -u --zstd --temp-compress=none --batch-size=2 u64.npy
kept -S 1M -u --count --limit=100000 --zstd u64.npy

claim 'a checkpoint keeps merged runs for some time'
kept -S 1M --checkpoint=checkpoint --temp-compress=none u64
kept -S 1M --checkpoint=checkpoint --batch-size=3 u64
kept -S 1M --checkpoint=checkpoint -u u64

finish
