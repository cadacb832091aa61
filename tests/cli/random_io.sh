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
# and $mode.
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
		pick_below "$limit"
		limit=$picked
		shape="$shape --limit=$limit"
	}
	pick 0 0 0 1 27 5000
	header_nbytes=$picked
	[ "$header_nbytes" -eq 0 ] || shape="$shape --skip-bytes=$header_nbytes"
}

# pick_mode: pick inputs, outputs, --verify and temporary directories; call after pick_shape
pick_mode() {
	pick '' '' --verify
	verify=$picked
	[ $column -ne 4 ] || verify= # positions cannot be verified
	pick '' '' '-T tmp -T spare'
	directories=$picked
	pick file in-place pipe-in pipe-out several merge merge-pipe zst-in zst-pipe zst-out \
		checkpoint checkpoint
	mode=$picked
	case $mode in
	zst*) command -v zstd > zstd-path || mode=file ;;
	esac
	inputs=input
	case $mode in
	several | merge*) inputs='input more' ;;
	checkpoint) directories= ;; # runs are in the checkpoint directory
	esac
}

# generate_inputs COUNT ARGUMENT...: generate `input` and, if $mode needs it, `more`
generate_inputs() {
	claim "seed $seed round $round: -n $*:" $options $resources $shape $directories \
		$verify $mode
	generate -n "$@" --seed=$round -o input
	[ "$inputs" = input ] || {
		shift
		generate -n 5000 "$@" --seed=1$round -o more
	}
}

# apply_limit: keep the first $limit output records, or all
apply_limit() {
	if [ -n "$limit" ]; then
		head -c $((limit * written_nbytes))
	else
		cat
	fi
}

print_header() {
	head -c "$header_nbytes" /dev/zero | tr '\0' "$1"
}

# compute_expected: compute the file `expected`; call before headers are added to the inputs
compute_expected() {
	print_header h > expected
	if [ -n "$count" ]; then
		cat $inputs | sorted_lines "$spec" $sort_flags | count_equal $order $column $keep
	elif [ -n "$keep" ]; then
		cat $inputs | sorted_lines "$spec" $sort_flags | last_of_equal | print_column \
			$column
	else
		cat $inputs | sorted_lines "$spec" $sort_flags $unique | print_column $column
	fi | apply_limit >> expected
}

# prepare_inputs: compute `expected`; sort the inputs if $mode is a merge; add headers. gsort must
# write the header of the first input.
prepare_inputs() {
	for name in $inputs; do
		case $mode in
		merge*)
			reference_sort "$spec" $sort_flags < $name > sorted
			mv sorted $name
			;;
		esac
	done
	compute_expected
	[ "$header_nbytes" -eq 0 ] || for name in $inputs; do
		# The headers of the inputs differ.
		print_header "$(echo "$name" | sed 's/input/h/; s/more/m/')" > headed
		cat $name >> headed
		mv headed $name
	done
}

# kill_and_resume ARGUMENT...: kill a sort with a checkpoint at random times, then resume it
kill_and_resume() {
	rm -rf output ck
	for attempt in 1 2 3; do
		pick 5 20 50 100 200 400
		pick_below "$picked"
		run_for "$picked" --checkpoint=ck "$@" -o output
		[ $status -ne 0 ] || break
		expect_status 137 'killed'
	done
	[ $status -eq 0 ] || run --checkpoint=ck "$@" -o output
	expect_status 0 "gsort $*: resumed"
	expect_same expected output "gsort $*: resumed"
	[ ! -e ck ] || fail "gsort $*: the checkpoint is left"
	expect_no_temp_files "gsort $*"
}

# check_output: gsort -c accepts the output, if it consists of records
check_output() {
	[ $column -ne 2 ] || [ -n "$count" ] ||
		expect_success -c $options $unique --skip-bytes="$header_nbytes" output
}

# run_mode: sort the generated inputs and compare the output
run_mode() {
	prepare_inputs
	set -- $options $resources $shape $directories
	case $mode in
	merge*) set -- -m "$@" ;;
	esac
	rm -f output
	case $mode in
	pipe-out)
		"$GSORT" "$@" input 2> stderr | cat > output
		expect_same expected output "$mode"
		;;
	pipe-in) cat input | expect_output expected "$@" $verify - ;;
	merge-pipe) cat more | expect_output expected "$@" $verify input - ;;
	zst-in)
		zstd -q -f --rm input -o input.zst
		expect_output expected "$@" $verify input.zst
		;;
	zst-pipe) zstd -q -c input | expect_output expected "$@" $verify ;;
	zst-out)
		expect_success "$@" $verify --zstd input -o output
		zstd -q -d -c < output > plain
		expect_same expected plain "$mode"
		;;
	in-place)
		expect_success "$@" $verify input -o input
		expect_same expected input "$mode"
		;;
	checkpoint) kill_and_resume "$@" $verify input ;;
	*)
		expect_output expected "$@" $verify $inputs
		check_output
		;;
	esac
	[ -z "$(ls -A spare)" ] || fail "left behind: $(ls -A spare)"
}
