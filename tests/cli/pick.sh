# pick - random choices, the same for the same seed; sourced, not run
#
# GSORT_SEED repeats a run.
seed=${GSORT_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}

# A Lehmer generator: POSIX shells have no random numbers.
state=$((seed % 2147483646 + 1))

# pick WORD...: one of them in $picked.
pick() {
	state=$((state * 48271 % 2147483647))
	shift $((state / 64 % $#))
	picked=$1
}

# below N: a number in $picked.
below() {
	state=$((state * 48271 % 2147483647))
	picked=$((state % $1))
}
