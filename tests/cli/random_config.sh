# random_config - random choices, the same for the same seed; sourced, not run
#
# GSORT_SEED repeats a run, GSORT_ROUNDS or GSORT_SECONDS make it longer. GSORT_BACKENDS, "cpu cuda"
# say, are what to choose from where there is a choice.
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

# go_on ROUND: is it one of the rounds to do?
go_on() {
	if [ -n "${GSORT_SECONDS:-}" ]; then
		[ $(($(date +%s) - started)) -lt "$GSORT_SECONDS" ]
	else
		[ "$1" -lt "${GSORT_ROUNDS:-60}" ]
	fi
}
started=$(date +%s)

# pick_resources: memory, widths, codecs, threads and back end, as options in $resources.
pick_resources() {
	pick '' -S1M -S1M -S1100K -S2M -S8M
	resources=$picked
	pick '' '' --batch-size=2 --batch-size=3 --batch-size=16
	resources="$resources $picked"
	pick '' '' --partitions=2 --partitions=3 --partitions=7
	resources="$resources $picked"
	pick '' '' --temp-compress=none --temp-compress=delta --temp-compress=zstd \
		--temp-compress=zstd:9
	resources="$resources $picked"
	pick '' --parallel=1 --parallel=2 --parallel=5
	resources="$resources $picked"
	[ -z "${GSORT_BACKENDS:-}" ] || {
		# It is a list of words.
		# shellcheck disable=SC2086
		pick $GSORT_BACKENDS
		resources="$resources --backend=$picked"
	}
}
