#!/bin/sh
# seeds - write a seed corpus for each fuzzer
#
# usage: seeds.sh DIRECTORY
#
# Creates the folders arguments, decoders, formats, line_keys, manifest, part_manifest and plan in
# DIRECTORY. If the environment variable GSORT is set, the program adds compressed seeds.
set -eu
cd "$1"
mkdir -p arguments decoders formats line_keys manifest part_manifest plan

# seed NAME WORD...: write a command line and some records
seed() {
	name=$1
	shift
	{
		printf '%s\0' "$@"
		printf '\0'
		head -c 200 /dev/urandom
	} > "arguments/$name"
}

seed plain in -o out
seed types -t f64be -r -u in other -o out
seed bytes -t b10 --verify --fsync in -o out
seed sizes -S 64M --device-memory=1G --temp-limit=50% -T /tmp -T . in
seed numbers --parallel=3 --batch-size=16 --gpus=0,1 --backend=cpu in
seed records -R 20 -k 4:u32 -k 0:b4:r -k 8:f64be in
seed index -R 20 -k 4:u32 --argsort --limit=10 --partial=drop in
seed count -R 20 -k 4:i32 -u --count --skip-bytes=8 in
seed keys -R 20 -k 4:i128:r --keys-only --partial=keep in
seed reports --stats --stats-json=j --trace=t --progress=never --debug in
seed modes -m a b c -o d --temp-compress=zstd:3
seed check -c -C --explain --help --version -- -x
seed names --files0-from=/dev/null --zstd=3 -o x.zst
seed checkpoint --checkpoint=dir in -o out

# The first three bytes are the decoder, the size of an item and the number of items.
for kind in 0 1 2 3; do
	printf "\\00$kind\\001\\010" > "decoders/$kind"
	head -c 300 /dev/zero >> "decoders/$kind"
done
if [ -n "${GSORT:-}" ]; then
	head -c 4000 /dev/urandom | "$GSORT" --zstd > frame
	for kind in 2 3; do
		{ printf "\\00$kind\\001\\010"; cat frame; } > "decoders/frame$kind"
	done
	rm -f frame
fi

for type in 1 2 3 4 5; do
	{
		printf '\001\100\000'
		head -c 64 /dev/zero
		printf "\\00$type\\200\\001"
		head -c 384 /dev/zero
	} > "manifest/$type"
done

part() {
	printf '{ "number": %s, "name": "a.000%s", "records": %s, "bytes": 152,' \
		"$1" "$1" "$2"
	printf '"first_key": "00", "last_key": "01", "checksum": "0123456789abcdef" }'
}
{
	printf '{ "gsort_part_manifest": 1, "content": "npy", "zstd": false, "record_bytes": 12,'
	printf '"header_bytes": 128, "keys": ["8:i32:r", "0:f64:n"], "unique": true,'
	printf '"split_by_keys": true, "records": 3, "part_files": [%s, %s] }' \
		"$(part 0 2)" "$(part 1 1)"
} > part_manifest/two

head -c 96 /dev/zero > plan/zeros
head -c 96 /dev/urandom > plan/random

# format NAME BYTES: write a byte of flags (what is known of the file) and the first bytes of a file
format() {
	for known in 000 001 002 004 010; do
		{ printf "\\$known$2" && head -c 100 /dev/zero; } > "formats/$1$known"
	done
}

format gzip '\037\213\010\000\000\000\000\000\000\003ccc'
format xz '\3757zXZ\000\000\004'
format bzip2 'BZh91AY&SY'
format lz4 '\004\042\115\030\144\100\247'
format zip 'PK\003\004\024\000\000\000\010\000................\005\000\000\000a.npy'
format parquet 'PAR1\025\004'
format arrow 'ARROW1\000\000'
format sqlite 'SQLite format 3\000'
format hdf5 '\211HDF\r\n\032\n'
format zstd '\050\265\057\375\044\011'
format skippable '\120\052\115\030\004\000\000\000....\050\265\057\375'
format text 'some words\nin lines, \303\244\n'
for descr in "'<f8'" "'>c8'" "'|S10'" "[('a', '<u8'), ('b', '|V4'), ('c', '<M8[ns]')]"; do
	format "npy$((n = ${n:-0} + 1))" \
		"\\223NUMPY\\001\\000v\\000{'descr': $descr, 'fortran_order': False, 'shape': (3,)}"
done

for keys in 2n 1.2,3.4bfr '2,2Vr 1M -s' '-t, 3g,3 1' -h '-dfi 2.1b,2.3b' '-n -u -r'; do
	printf '%s\na 1.5K,Jan x-1.10\nB -2e3,feb x-1.9\n' "$keys" \
		> "line_keys/$((k = ${k:-0} + 1))"
done
