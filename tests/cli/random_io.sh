# random_io - what random sorts write, and the ways in and out; sourced behind random_config.sh,
# not run
#
# A test says what is sorted:
#
#	$options		records and keys, as gsort takes them
#	$spec $sort_flags	the same as key_lines and sort take them
#	$size $keys_nbytes	of a record, and of its keys
#	$order			of the bytes of its first key, le or be
#
# and what is picked here, and in random_config.sh, is the rest: $resources, $shape,
# $directories, $verify, $way.
mkdir spare

# nbytes_of_type TYPE: in $nbytes
nbytes_of_type() {
	nbytes=${1%:?}
	nbytes=${nbytes%be}
	nbytes=${nbytes##*[!0-9]}
	case $1 in
	b[0-9]*) ;;
	*) nbytes=$((nbytes / 8)) ;;
	esac
}

# order_of_type TYPE: in $order
order_of_type() {
	order=le
	case ${1%:?} in
	*be) order=be ;;
	esac
}

# pick_shape: what is written in the place of all records, in $shape as options.
pick_shape() {
	pick '' '' '' --argsort --keys-only
	case $picked in
	--argsort) column=4 written_nbytes=8 ;;
	--keys-only) column=3 written_nbytes=$keys_nbytes ;;
	*) column=2 written_nbytes=$size ;;
	esac
	shape=$picked
	pick '' '' -u --count
	[ "$shape$picked" != --argsort--count ] || picked=-u
	unique=${picked:+-u} count= keep=
	[ "$picked" != --count ] || {
		count=--count
		written_nbytes=$((written_nbytes + 8))
	}
	[ -z "$unique" ] || {
		pick '' last
		keep=$picked
	}
	shape="$shape $unique $count ${keep:+--keep=last}"
	pick '' '' '' 1 100 100000
	limit=$picked
	[ -z "$limit" ] || {
		below "$limit"
		limit=$picked
		shape="$shape --limit=$limit"
	}
	pick 0 0 0 1 27 5000
	header_nbytes=$picked
	[ "$header_nbytes" -eq 0 ] || shape="$shape --skip-bytes=$header_nbytes"
}

# pick_way: in and out, whether to verify it, and where temporary data is; behind pick_shape.
pick_way() {
	pick '' '' --verify
	verify=$picked
	[ $column -ne 4 ] || verify= # positions are no records
	pick '' '' '-T tmp -T spare'
	directories=$picked
	pick file in-place pipe-in pipe-out several merge merge-pipe zst-in zst-pipe zst-out \
		checkpoint checkpoint
	way=$picked
	case $way in
	zst*) command -v zstd > zstd-path || way=file ;;
	esac
	inputs=input
	case $way in
	several | merge*) inputs='input more' ;;
	checkpoint) directories= ;; # it is one itself
	esac
}

# generate_inputs COUNT ARGUMENT...: what gsort-gen makes of them; `more` has some more. Everything
# has been picked.
generate_inputs() {
	claim "seed $seed round $round: -n $*:" $options $resources $shape $directories $verify $way
	generate -n "$@" --seed=$round -o input
	[ "$inputs" = input ] || {
		shift
		generate -n 5000 "$@" --seed=1$round -o more
	}
}

# limited: of what is written, as many as $limit says
limited() {
	if [ -n "$limit" ]; then
		head -c $((limit * written_nbytes))
	else
		cat
	fi
}

header() {
	head -c "$header_nbytes" /dev/zero | tr '\0' "$1"
}

# expect: what the inputs give, in `expected`, while they have no headers.
expect() {
	header h > expected
	if [ -n "$count" ]; then
		cat $inputs | sorted_lines "$spec" $sort_flags | counted $order $column $keep
	elif [ -n "$keep" ]; then
		cat $inputs | sorted_lines "$spec" $sort_flags | last_of_equal | column $column
	else
		cat $inputs | sorted_lines "$spec" $sort_flags $unique | column $column
	fi | limited >> expected
}

# prepare: put the inputs in order for a merge, and headers in front of them; that of the first one
# is written.
prepare() {
	for name in $inputs; do
		case $way in
		merge*)
			oracle "$spec" $sort_flags < $name > sorted
			mv sorted $name
			;;
		esac
	done
	expect
	[ "$header_nbytes" -eq 0 ] || for name in $inputs; do
		# The other one begins with another letter.
		header "$(echo "$name" | sed 's/input/h/; s/more/m/')" > headed
		cat $name >> headed
		mv headed $name
	done
}

# is_killed_and_goes_on ARGUMENT...: at some moments, and then to the end.
is_killed_and_goes_on() {
	rm -rf output ck
	for attempt in 1 2 3; do
		pick 5 20 50 100 200 400
		below "$picked"
		run_for "$picked" --checkpoint=ck "$@" -o output
		[ $status -ne 0 ] || break
		[ $status -eq 137 ] || broken "killed: status $status"
	done
	[ $status -eq 0 ] || run --checkpoint=ck "$@" -o output
	[ $status -eq 0 ] || broken "gsort $*: resumed: status $status"
	same expected output "gsort $*: resumed"
	[ ! -e ck ] || broken "gsort $*: the checkpoint is left"
	nothing_left "gsort $*"
}

# checks_out: gsort itself takes the output for sorted, if it is of records.
checks_out() {
	[ $column -ne 2 ] || [ -n "$count" ] ||
		succeeds -c $options $unique --skip-bytes="$header_nbytes" output
}

# try_way: the inputs have been generated.
try_way() {
	prepare
	set -- $options $resources $shape $directories
	case $way in
	merge*) set -- -m "$@" ;;
	esac
	rm -f output
	case $way in
	pipe-out)
		"$GSORT" "$@" input 2> stderr | cat > output
		same expected output "$way"
		;;
	pipe-in) cat input | gives expected "$@" $verify - ;;
	merge-pipe) cat more | gives expected "$@" $verify input - ;;
	zst-in)
		zstd -q -f --rm input -o input.zst
		gives expected "$@" $verify input.zst
		;;
	zst-pipe) zstd -q -c input | gives expected "$@" $verify ;;
	zst-out)
		succeeds "$@" $verify --zstd input -o output
		zstd -q -d -c < output > plain
		same expected plain "$way"
		;;
	in-place)
		succeeds "$@" $verify input -o input
		same expected input "$way"
		;;
	checkpoint) is_killed_and_goes_on "$@" $verify input ;;
	*)
		gives expected "$@" $verify $inputs
		checks_out
		;;
	esac
	[ -z "$(ls -A spare)" ] || broken "left behind: $(ls -A spare)"
}
