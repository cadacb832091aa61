#!/bin/sh
# estimate_bounds - a sort takes at most the temporary space, and exactly the passes, of --explain
. "$(dirname "$0")/testlib.sh"

generate -t u8 -b 1M -o u8
generate -t u64 -b 6M -o u64
generate -t b3 -b 1M -o b3
generate -R 24 -k 0:u64 -b 5M -o wide
generate -R 12 -k 0:u32 -d hundred-keys -b 4M -o few
for seed in 1 2 3 4 5; do
	generate -b 2M --seed=$seed -o unsorted
	"$GSORT" unsorted -o part$seed
done

# check_space_estimate ARGUMENT...: a sort keeps the predicted temporary space; sets $taken and
# $passes
check_space_estimate() {
	rm -rf output checkpoint
	"$GSORT" --explain "$@" -o output > plan || fail "gsort --explain $*: status $?"
	expect_exit 0 "$@" -o output --stats-json=stats
	taken=$(sed -n 's/.*"peak_temporary_bytes": *\([0-9]*\).*/\1/p' stats)
	passes=$(sed -n 's/.*"passes": *\([0-9]*\).*/\1/p' stats)
	awk -v taken="$taken" '
	BEGIN { unit["B"] = 1; unit["KiB"] = 2 ^ 10; unit["MiB"] = 2 ^ 20; unit["GiB"] = 2 ^ 30 }
	/^temporary space/ { found = 1; good = $3 * unit[$4] >= taken }
	END { exit !(found && good) }' plan || fail \
		"gsort $*: $taken bytes taken, promised: $(grep 'temporary space' plan)"
}

# expect_passes N: the last sort took N merge passes, and --explain predicted N
expect_passes() {
	[ "$passes" -eq "$1" ] || fail "$passes passes, not $1"
	expect_line "^merge passes  *$1\$" plan
}

claim 'the estimate depends on the stored items, not on the records of the input'
check_space_estimate -S 1M -t u8 --argsort u8
[ "$taken" -gt 5000000 ] || fail "only $taken bytes taken"
check_space_estimate -S 1M -t u8 --argsort --temp-compress=none u8
check_space_estimate -S 1M -t b3 --argsort b3
check_space_estimate -S 2M -R 24 -k 0:u64 --argsort wide
check_space_estimate -S 2M -R 24 -k 0:u64 --keys-only --temp-compress=none wide
check_space_estimate -S 2M -R 24 -k 0:u64 -u --count wide

claim 'types and codecs'
check_space_estimate -S 1M -t u8 u8
check_space_estimate -S 1M -t b3 b3
check_space_estimate -S 2M -R 24 -k 0:u64 --temp-compress=none wide
for mode in none auto delta zstd; do
	check_space_estimate -S 2M --temp-compress=$mode u64
done

claim 'dropped records are not stored'
check_space_estimate -S 2M -u u64
check_space_estimate -S 1M -R 12 -k 0:u32 -u few
check_space_estimate -S 2M --limit=1000 u64
check_space_estimate -S 8M --limit=200000 --temp-compress=none u64 u64
expect_passes 1
[ "$taken" -gt 4000000 ] || fail "only $taken bytes taken"
check_space_estimate -S 4M --limit=150000 --temp-compress=none -t u8 --argsort u8
check_space_estimate -S 1M --limit=20000 --batch-size=2 --temp-compress=none u64

claim 'merge passes are predicted, and so is their space'
check_space_estimate -S 1M --batch-size=2 --temp-compress=none u64
[ "$passes" -gt 3 ] || fail "$passes passes"
expect_line "^merge passes  *$passes\$" plan
check_space_estimate -S 1M --batch-size=4 u64
check_space_estimate -m -S 1M part1 part2 part3 part4 part5
expect_passes 1
check_space_estimate -m -S 1M --batch-size=3 --temp-compress=none part1 part2 part3 part4 part5
expect_passes 2
check_space_estimate -m -S 1M --batch-size=2 part1 part2 part3 part4 part5
expect_passes 3
check_space_estimate -S 64M u64
expect_passes 1
for n in 1 2 3 4 5; do
	rm -f pipe$n
	mkfifo pipe$n
done
"$GSORT" --explain -m --assume-size=10M -S 1M pipe1 pipe2 pipe3 pipe4 pipe5 > plan
expect_line '^temporary space  *1[0-9.]* MiB$' plan

claim 'with -u, a record count in the header requires a merge to one run'
{
	printf '\223NUMPY\001\000\166\000'
	printf '%-117s\n' "{'descr': '<u8', 'fortran_order': False, 'shape': (786432,), }"
	cat u64
} > u64.npy
check_space_estimate -S 64M --temp-compress=none u64.npy
[ "$taken" -eq 0 ] || fail "$taken bytes taken"
check_space_estimate -S 64M --temp-compress=none -u --zstd u64.npy
expect_passes 2
[ "$taken" -gt 6000000 ] || fail "only $taken bytes taken"
check_space_estimate -S 2M -u --zstd u64.npy
expect_passes "$passes"
check_space_estimate -S 1M -u --zstd --temp-compress=none --batch-size=2 u64.npy
check_space_estimate -S 1M -u --count --limit=100000 --zstd u64.npy

claim 'a checkpoint keeps merged runs for some time'
check_space_estimate -S 1M --checkpoint=checkpoint --temp-compress=none u64
check_space_estimate -S 1M --checkpoint=checkpoint --batch-size=3 u64
check_space_estimate -S 1M --checkpoint=checkpoint -u u64

finish
