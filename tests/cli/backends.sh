#!/bin/sh
# backends - the GPU and the CPU write the same bytes
# Skipped (77) without a GPU. With small memory limits small files are spilled to host memory and to
# disk, and are merged in several passes.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/compare_backends.sh"

tiny='--device-memory=4M -S 4M'

claim 'every type, direction and -u'
for type in u8 u16 u16be u32 u32be u64 u64be u128 u128be i8 i16 i32 i32be i64 i64be i128 f32 f32be \
	f64 f64be f16 bf16be f32:n f64be:n t64 bool u24 i40be u56 i72be i120 b3 b5 b6 b7 b9 \
	b10 b11 b12 b13 b14 b15 b16; do
	generate -n 100003 -t $type -d nan -o input
	compare_backends -t $type
	compare_backends -t $type -r
	compare_backends -t $type -u
	generate -n 1000003 -t $type -d hundred-keys -o input
	compare_backends -t $type -u $tiny
	generate -n 1000003 -t $type -o input
	compare_backends -t $type $tiny
done

claim 'every distribution and length'
for dist in random sorted reversed equal two-keys zipf hundred-keys nearly-sorted sawtooth \
	organ-pipe clustered; do
	for n in 0 1 2 1000 65536 3000001; do
		generate -n $n -d $dist -o input
		compare_backends
		compare_backends --device-memory=8M -S 16M
	done
done

claim 'every way to store runs'
for type in u32 i64be f32 u128; do
	generate -n 1000003 -t $type -o input
	for mode in none delta zstd:1; do
		compare_backends -t $type $tiny --temp-compress=$mode
		compare_backends -t $type $tiny --temp-compress=$mode --batch-size=2 -u
	done
done
generate -n 3000001 -o input

claim 'two runs at a time'
compare_backends --device-memory=2M -S 2M --batch-size=2

claim 'pipes'
expect_success --backend=cpu -o expected input
cat input | "$GSORT" --backend=cuda | cat > output
expect_same expected output 'from and to a pipe'
cat input | "$GSORT" --backend=cuda --device-memory=8M -S 16M > output
expect_same expected output 'from a pipe, spilling'

claim 'merging sorted files'
mv expected sorted
expect_success --backend=cpu -o expected sorted sorted
expect_success --backend=cuda -m -o output sorted sorted
expect_same expected output 'gsort --backend=cuda -m'
expect_success --backend=cpu -m -u -o expected sorted sorted
expect_success --backend=cuda -m -u -o output sorted sorted
expect_same expected output 'gsort --backend=cuda -m -u'

finish
