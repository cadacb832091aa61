#!/bin/sh
# seeds - a corpus for each fuzzer to begin with
#
# usage: seeds.sh DIRECTORY
#
# Makes DIRECTORY/arguments, /decoders, /manifest and /plan. GSORT, if set, makes a compressed file.
set -eu
cd "$1"
mkdir -p arguments decoders manifest plan

# seed NAME WORD...: a command line, and some records.
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
seed index -R 20 -k 4:u32 --index --limit=10 --partial=drop in
seed count -R 20 -k 4:i32 -u --count --skip-bytes=8 in
seed keys -R 20 -k 4:i128:r --keys-only --partial=keep in
seed reports --stats --stats-json=j --trace=t --progress=never --debug in
seed modes -m a b c -o d --compress=zstd:3
seed check -c -C --explain --help --version -- -x
seed names --files0-from=/dev/null --zstd=3 -o x.zst
seed checkpoint --checkpoint=dir in -o out

# A byte that chooses the decoder, one for the size of items, one for their number.
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

head -c 96 /dev/zero > plan/zeros
head -c 96 /dev/urandom > plan/random
