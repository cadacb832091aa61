# random_config - random choices that a seed repeats; source it after testlib.sh
#
# Environment:
#  GSORT_SEED      seed of all choices (default: random)
#  GSORT_ROUNDS    number of rounds (default: 60, or that of the script)
#  GSORT_SECONDS   time to run, instead of a number of rounds
#  GSORT_BACKENDS  back ends to choose from, such as "cpu cuda" (default: no --backend)
seed=${GSORT_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}

# A Lehmer generator, because POSIX shells have no random numbers.
state=$((seed % 2147483646 + 1))

# pick WORD...: set $picked to one of the words
pick() {
	state=$((state * 48271 % 2147483647))
	shift $((state / 64 % $#))
	picked=$1
}

# pick_below N: set $picked to a number below N
pick_below() {
	state=$((state * 48271 % 2147483647))
	picked=$((state % $1))
}

# more_rounds ROUND: whether to run this round
more_rounds() {
	if [ -n "${GSORT_SECONDS:-}" ]; then
		[ $(($(date +%s) - started)) -lt "$GSORT_SECONDS" ]
	else
		[ "$1" -lt "${GSORT_ROUNDS:-60}" ]
	fi
}
started=$(date +%s)

# pick_resources: set $resources to options for memory, fan-in, partitions, codec, threads, back end
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
		# Word splitting is intended.
		# shellcheck disable=SC2086
		pick $GSORT_BACKENDS
		resources="$resources --backend=$picked"
	}
}
