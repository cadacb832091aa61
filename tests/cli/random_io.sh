# random_io - random projections, inputs and outputs of a sort; source it after random_config.sh
#
# The script sets:
#
#	$options		records and keys, as options of gsort
#	$spec $sort_flags	records and keys, as arguments of key_lines and sort
#	$size $keys_nbytes	size of a record and of its keys
#	$order			byte order of its first key: le or be
#
# Functions here and in random_config.sh pick the rest: $resources, $shape, $directories, $verify
# and $way.
mkdir spare

# nbytes_of_type TYPE: set $nbytes
nbytes_of_type() {
	nbytes=${1%:?}
	nbytes=${nbytes%be}
	nbytes=${nbytes##*[!0-9]}
	case $1 in
	b[0-9]*) ;;
	*) nbytes=$((nbytes / 8)) ;;
	esac
}

# order_of_type TYPE: set $order
order_of_type() {
	order=le
	case ${1%:?} in
	*be) order=be ;;
	esac
}

# pick_shape: set $shape to options for the projection, -u, the limit and the header
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

# pick_way: pick inputs, outputs, --verify and temporary directories; call after pick_shape
pick_way() {
	pick '' '' --verify
	verify=$picked
	[ $column -ne 4 ] || verify= # positions cannot be verified
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
	checkpoint) directories= ;; # runs are in the checkpoint directory
	esac
}

# generate_inputs COUNT ARGUMENT...: generate `input` and, if $way needs it, `more`
generate_inputs() {
	claim "seed $seed round $round: -n $*:" $options $resources $shape $directories $verify $way
	generate -n "$@" --seed=$round -o input
	[ "$inputs" = input ] || {
		shift
		generate -n 5000 "$@" --seed=1$round -o more
	}
}

# limited: keep the first $limit output records, or all
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

# expect: compute the file `expected`; call before headers are added to the inputs
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

# prepare: compute `expected`; sort the inputs if $way is a merge; add headers. gsort must write the
# header of the first input.
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
		# The headers of the inputs differ.
		header "$(echo "$name" | sed 's/input/h/; s/more/m/')" > headed
		cat $name >> headed
		mv headed $name
	done
}

# is_killed_and_goes_on ARGUMENT...: kill a sort with a checkpoint at random times, then resume it
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

# checks_out: gsort -c accepts the output, if it consists of records
checks_out() {
	[ $column -ne 2 ] || [ -n "$count" ] ||
		succeeds -c $options $unique --skip-bytes="$header_nbytes" output
}

# try_way: sort the generated inputs and compare the output
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
