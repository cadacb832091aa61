#!/bin/sh
# option_errors - each wrong option gives one line with the error and a hint, and changes no file
. "$(dirname "$0")/testlib.sh"

generate -n 1000 -o input
generate -n 1000 -d sorted -o sorted

claim 'the message about an incomplete record names the input and the excess bytes'
{ cat sorted; printf 'xyz'; } > odd
expect_error 'odd: .*8003.* 3' odd
expect_error 'odd: .*8003.* 3' input odd
expect_error 'odd: .*8003.* 3' -m sorted odd
expect_error 'input: .*8000.* 8' -t b9 input
cat odd | expect_error '3' -
(cat odd; sleep 0.1) | expect_error '3' -S 1M -

claim 'an input that cannot be read is named'
expect_error 'missing' missing
expect_error 'missing' input missing
expect_error 'missing' -m sorted missing
mkdir directory
expect_error 'directory' directory
if [ "$(id -u)" -ne 0 ]; then
	cp input unreadable
	chmod 0 unreadable
	expect_error 'unreadable' unreadable
	rm -f unreadable
fi

claim 'an output that cannot be written is named'
ln -s circle circle
for path in nowhere/output directory input/output circle; do
	expect_failure "$path" input -o $path
done
expect_exit 2 input -o ''
"$GSORT" input > /dev/full 2> stderr
[ $? -eq 2 ] || fail '/dev/full: not status 2'
expect_message 'standard output.*No space' '/dev/full'
"$GSORT" input >&- 2> stderr
[ $? -eq 2 ] || fail 'closed standard output: not status 2'
expect_message . 'closed standard output'
"$GSORT" -o output <&- 2> stderr
[ $? -eq 2 ] || fail 'closed standard input: not status 2'
expect_message . 'closed standard input'

# expect_kept REGEX WHAT COMMAND...: the command is refused before the sort, and the older
# output stays
expect_kept() {
	regex=$1
	what=$2
	shift 2
	"$@" -T nowhere input -o bound/file > stdout 2> stderr
	status=$?
	expect_status 2 "$what"
	expect_message "$regex" "$what"
	[ "$(ls -A bound)" = file ] || fail "$what: there is more beside it"
	expect_same older bound/file "$what"
	expect_same input elsewhere "$what: what is mounted"
}

claim 'an output that cannot be replaced is refused before the sort'
mkdir bound
echo older | tee older > bound/file
cp input elsewhere
export GSORT
if unshare -rm mount --bind elsewhere bound/file 2> /dev/null; then
	expect_kept '^gsort: bound/file: mount point' 'a mount' unshare -rm sh -c \
		'mount --bind elsewhere bound/file && "$GSORT" "$@"' sh
else
	echo 'no mounts here: skipped'
fi
for name in bound/file bound; do
	if chattr +a $name 2> /dev/null; then
		expect_kept '^gsort: bound/file: .*is append-only' "append-only $name" "$GSORT"
		chattr -a $name
	else
		echo "no append-only $name here: skipped"
	fi
done

if chattr +i bound/file 2> /dev/null; then
	expect_kept '^gsort: bound/file: .*is immutable \(chattr \+i\)' 'immutable' "$GSORT"
	chattr -i bound/file
else
	echo 'nothing immutable here: skipped'
fi

claim 'standard output must not be an input'
cp input file
"$GSORT" file >> file 2> stderr
[ $? -eq 2 ] || fail '>> file: not status 2'
expect_same input file 'a file appended to itself'

claim 'unknown types'
for type in '' u u7 u65 u256 x64 f24 f128 i64xe u64bee b b0 bx b-1 b99999999999 -1; do
	expect_error "(-t|--type)" -t "$type" input
done
expect_error "(-t|--type).*'b65537'.* 65536" -t b65537 input
expect_error "'w63'.*u128" -t w63 input
expect_error "'u64xe'.*u64be" -t u64xe input
expect_error "'u63'.*did you mean u64\?" -t u63 input

claim 'invalid record sizes and keys'
for size in '' 0 -1 65537 18446744073709551617 99999999999999999999; do
	expect_error "^gsort: -R, --record-size: .*$size" -R "$size" input
done
expect_error '-R, --record-size: .*suffix' -R 1x input
expect_error '-R, --record-size=x: random order is not supported; .*--lines$' -R x input
for key in '' 0 x u32 :u32 0: 0:u33 0:u32: 0:u32:x 0:u32:rr 0:u32:r:r 0:r:n 0:u32r -1:u32 5:u32 \
	8:u8 0:b9 0:b0 0:b0000000000000001 99999999999999999999:u8 18446744073709551615:u64; do
	expect_error '(-k|--key)' -R 8 -k "$key" input
done
expect_error '-k, --key.*-R, --record-size' -k 0:u32 input
expect_error '-k, --key.*131072' -R 65536 -k 0:b65536 -k 0:b65536 input
expect_error '-t, --type.*-k, --key' -t u64 -k 0:u32 input
expect_error '-R, --record-size.*-t, --type' -R 12 -t u64 input
expect_error 'input: .*8000.* 24 bytes: 8' -R 24 -k 0:u32 input

claim 'invalid projections'
expect_error '--skip-bytes' --skip-bytes=x input
expect_error '--skip-bytes' --skip-bytes=1T input
expect_error '--partial.*error.keep.drop' --partial=perhaps input
expect_error '--limit' --limit=x input
expect_error "^gsort: --limit: '10K' is not .*; suffixes are only for sizes\$" --limit=10K input
expect_error '--limit' --limit=-1 input
expect_error '--limit' --limit=18446744073709551616 input
expect_error '--count.*-u' --count input
expect_error '--count.*--argsort' -u --count --argsort input
expect_error '--keys-only.*--argsort' --keys-only --argsort input
expect_error '--verify.*--argsort' --verify --argsort input
for shape in --limit=3 '-u --count' --keys-only --argsort; do
	expect_error '--partial=keep' --partial=keep $shape input
done

claim 'invalid sizes'
for size in '' x -1 1x 1Ki 1.5G 99999999999999999999 99999999E 0; do
	expect_error "^gsort: -S, --buffer-size: .*('$size'|too large|above 0)" -S "$size" input
	expect_error '(--device-memory)' --device-memory="$size" input
done
for size in '' x 1x 1XB 99999999999999999999; do
	expect_error '^gsort: --temp-limit: ' --temp-limit="$size" input
done
for codec in '' lzo zstd:0 delta:2; do
	expect_error "^gsort: --temp-compress: .*'$codec'" --temp-compress="$codec" input
done

units='b, K, M, G, T, P, E, kB, MB [.]{3}'
expect_error "^gsort: -S, --buffer-size: invalid suffix in '3Q'; use one of $units or %\$" -S 3Q \
	input
expect_error "^gsort: -R, --record-size: invalid suffix in '50%'; use one of $units\$" -R 50% input
expect_error "'x' is not a size; examples: 100b, 64K, 4G, 4GB or 50%\$" -S x input
expect_error "'[+]1' is not a size; examples: 100 \\(bytes\\), 4K or 4kB\$" -R +1 input

claim 'invalid numbers'
for number in '' x -1 0 1x 1.5 0x10 4294967296 99999999999999999999; do
	expect_error "^gsort: --parallel: .*$number" --parallel="$number" input
	expect_error "^gsort: --batch-size: .*$number" --batch-size="$number" input
done

claim 'invalid words'
expect_error '^gsort: --backend: .*auto.cuda.cpu' --backend=quantum input
expect_error '^gsort: --progress: .*auto.always.never' --progress=perhaps input
for gpus in '' , 0, ,0 0,,1 a -1 '0 1' 99999999999 all,0 0,all; do
	expect_error "--gpus: '$gpus'" --gpus="$gpus" input
done
expect_error '--gpus.*--backend=cpu' --gpus=0 --backend=cpu input
expect_error '--gpus|GPU' --gpus=99 input
expect_error '--gpus|GPU' --gpus=99 --backend=auto input
expect_error '(-T|--temporary-directory)' -T '' input

claim 'unknown options'
for option in --bogus --bogus=zstd --xy --=x --temporary-directory-that-is-much-too-long; do
	expect_error "unknown option '$option'; see --help" $option input
done
for pair in '--outptu --output' '--buffersize=1M --buffer-size' '--tye --type' \
	'--tmeporary-directory=x --temporary-directory' '--keyonly --keys-only'; do
	expect_error "'${pair% *}'; did you mean ${pair#* }[?] See --help" "${pair% *}" input
done
expect_error "unknown option '-Z'.*--help" -rZ input
for lines in '' --lines; do
	expect_error "option '--memory=4G': use -S, --buffer-size" $lines --memory=4G input
	expect_error "option '--threads=2': use --parallel" $lines --threads=2 input
	expect_error "option '-j': use --parallel" $lines -j2 input
done
expect_error '-t, --type.*requires an argument' input -t
run input --output
expect_message '-o, --output.*requires an argument' '--output without a name'
expect_error '--verify.*takes no argument' --verify=yes input
expect_error "'--st'.* is ambiguous; use one of --stable, --stats, --stats-json" --st input

claim 'a multi-byte character as an option is shown whole'
run -é input
expect_message "^gsort: unknown option '-é'" '-é'

claim 'the message about too many open files names the command that raises the limit'
(
	exec > stdout 2> stderr # before the limit
	ulimit -n 4
	exec "$GSORT" input -o output
)
[ $? -eq 2 ] || fail 'status is not 2'
expect_message 'Too many open files; ulimit -n raises the limit' 'ulimit -n 4'

claim 'an output that ends in a slash'
run input -o nothing/
expect_message '^gsort: nothing/: is the name of a directory' '-o nothing/'

claim 'two different arguments of one option'
for pair in '-tu32 -tu64' '-R8 -R12' '--limit=1 --limit=2' '--parallel=1 --parallel=2' \
	'--backend=cpu --backend=auto' '--zstd --zstd=4' '--temp-limit=0 --temp-limit=1' \
	'--trace=a --trace=b' '--temp-compress=none --temp-compress=delta' \
	'--fields=a:u32 --fields=b:u32' '-m --shard=1/4 --shard=2/4'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	expect_error 'given twice' $pair input
done
expect_error "-S, --buffer-size: given twice, as '1M' and as '2M'" -S 1M --buffer-size=2M input
expect_output sorted -S 1M -S 1M sorted

claim 'bounds in messages are exact'
expect_error '--parallel.* 1 to 1024' --parallel=0 input
expect_error '--parallel.* 1 to 1024' --parallel=1025 input
expect_error '--batch-size.* 2 to 4294967295' --batch-size=1 input
expect_error '--skip-bytes.* 0 to 16777216 bytes' --skip-bytes=16777217b input

claim 'options of GNU sort are refused with a reason and an alternative'
for option in -b -d -f -i -g -h -n -M -V -z --sort=numeric --random-sort --random-source=f \
	--field-separator=, --compress-program=gzip --numeric-sort; do
	expect_error "^gsort: option '$option': (records|random order|use --temp-compress)" \
		$option input
done

claim 'keys, separators and random order of GNU sort are refused with an alternative'
for option in -k2,2 -k1.3,1.5 -k2n,2 --key=2,2; do
	expect_error '^gsort: -k, --key=[0-9n.,]*: records are binary' $option input
done
for option in -t, '-t ' '-t\t' --type=:; do
	expect_error '^gsort: -t, --type=.*: records are binary' "$option" input
done
expect_failure '^gsort: -R, --record-size: random order is not supported' -R
expect_error 'repeat -k for each key' -R 8 -k 0:u32,4:u32 input
expect_error 'repeat -k for each key' -R 8 -k a,b input
expect_error 'repeat -k for each key' --fields=a:u32,b:u32 -k a,b input
expect_error '--fields: field a: .*use u8, u16' --fields=a:zzzz input
expect_error 'did you mean f64 .double.' -t d input

claim 'a check writes nothing and needs no output'
for option in -c -C --check=quiet; do
	run $option --verify sorted
	expect_message '(--check|-C).*--verify.*writes nothing' "$option --verify"
done
run -c --fsync sorted
expect_message '--check and --fsync.*writes nothing' '-c --fsync'

claim 'of several processes that MPI starts as gsort, one prints a warning'
for several in OMPI_COMM_WORLD_SIZE=4 'PMI_SIZE=4 PMI_RANK=0' \
	'SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	env $several "$GSORT" input -o output 2> stderr || fail "$several: status $?"
	expect_message "warning: .* several processes \(${several%% *}\); .* gsort-mpi" "$several"
done
for others in 'PMI_SIZE=4 PMI_RANK=3 gsort' 'OMPI_COMM_WORLD_SIZE=1 gsort' \
	'SLURM_NTASKS=4 SLURM_PROCID=0 gsort' 'PMI_SIZE=4 gsort -c' \
	'PMI_SIZE=4 gsort -m --shard=1/4'; do
	# shellcheck disable=SC2086
	env ${others%%gsort*} "$GSORT" ${others#*gsort} output > part 2> stderr ||
		fail "$others: status $?"
	[ ! -s stderr ] || fail "$others: not silent"
done
rm part output

claim 'combinations that make no sense'
generate -n 10 -o other
for arguments in '-c -C' '-c -m' '-C -m' '-c --verify' '-c --explain' '-c input other' \
	'-c --limit=1' '-C --limit=1' '-c -u --count' '-c --keys-only' '-C --argsort'; do
	expect_failure . $arguments input
done
expect_exit 2 -c -o output input
expect_failure "^gsort: -c, --check: only one file .*'other'" -c input other
expect_failure "^gsort: -C: only one file .*'other'" -C input other
for option in --verify --fsync; do
	expect_failure "$option.*-o" $option input
done
expect_error 'output' -o other input

claim 'wrong names of inputs from a file'
expect_error 'missing' --files0-from=missing
expect_error '/dev/zero: .*longer' --files0-from=/dev/zero
: > names
expect_error 'names' --files0-from=names
printf 'input\0\0' > names
expect_error 'names' --files0-from=names
printf 'input\0' > names
expect_error 'files0-from' --files0-from=names input

if "$GSORT" --backend=cuda --explain input > /dev/null 2>&1; then
	:
else
	claim 'a back end that is not available'
	expect_error 'cuda|CUDA' --backend=cuda input
fi

claim 'messages quote newlines and escape sequences in names'
odd_name=$(printf 'a\nb\033[2J\377')
run "$odd_name"
expect_message "^gsort: a[$]'.n'b[$]'.033'\[2J[$]'.377': .*No such file" 'a missing input'
"$GSORT_CHECK" "$odd_name" 2> stderr && fail 'gsort-check finds it'
expect_line "^gsort-check: a[$]'.n'b[$]'.033'\\[2J[$]'.377': .*No such file" stderr
cp input "$odd_name"
expect_exit 1 -c "$odd_name"
expect_message "^gsort: a[$]'.n'b.*: record [0-9]*: disorder" 'disorder'
"$GSORT_CHECK" "$odd_name" > stdout
[ "$(wc -l < stdout)" -eq 1 ] || fail 'gsort-check: not one line'
expect_line "^a[$]'.n'b[$]'.033'\\[2J[$]'.377': 1000 records" stdout
run --backend="$odd_name" input
expect_message "^gsort: --backend: 'a'[$]'.n''b'.*is invalid" 'a word'
rm -f "$odd_name"
long_name=$(printf '%0250d' 0)
long_name=$long_name/$long_name/$long_name/$long_name/$long_name
run "$long_name"
expect_message 'No such file' 'a long name'
run '' -o output
expect_message "^gsort: '': cannot open: No such file" 'an empty name'

claim 'a list of names that end with newlines is refused'
printf 'input\nsorted\n' > names
expect_error 'names: .*newlines, not NULs.*-print0' --files0-from=names
printf 'input\nsorted\n' | expect_error 'newlines, not NULs' --files0-from=-
newline_name=$(printf 'in\nput')
cp sorted "$newline_name"
printf 'in\nput' > names
expect_output sorted --files0-from=names
rm -f "$newline_name" names

claim 'inputs are unchanged'
generate -n 1000 -o again
expect_same again input input

finish
