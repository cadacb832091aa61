#!/bin/sh
# backend_records - the GPU sorts records like the CPU
# Skipped (77) without a GPU. Small memory limits make small files spill, as in backends.sh.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/compare_backends.sh"

# compare_spilled ARGUMENT...: compare sorts in device memory and spilled sorts
compare_spilled() {
	for limits in '' '--device-memory=8M -S 8M' '--device-memory=4M -S 4M --batch-size=2'; do
		compare_backends $limits "$@"
	done
}

claim 'the sort benchmark'
for kind in ascii binary skewed; do
	generate --gensort=$kind -n 200003 -o input
	compare_spilled -R100 -k0:b10
	compare_spilled -R100 -k0:b10 -u
	compare_spilled -R100 -k0:b10:r
done

claim 'a key and a value in 16 bytes'
for layout in '-R16 -k0:u64' '-R16 -k8:i64:r' '-R12 -k0:f32be' '-R12 -k4:b8' '-R3 -k1:u8'; do
	for dist in random hundred-keys sorted; do
		generate -n 500009 -d $dist $layout -o input
		compare_spilled $layout
		compare_backends -u $layout
	done
done

claim 'every record size'
for size in 1 2 7 15 17 24 31 32 33 63 64 96 100 127 128 250 1000 4096 65536; do
	generate -R $size -n $((20000000 / (size + 20) + 1)) -o input
	compare_backends -R $size -k0:b1
	compare_backends -R $size --device-memory=32M -S 32M
done

claim 'several keys, overlapping'
generate -R 48 -n 300007 -k 8:u16 -d hundred-keys -o input
for keys in '-k8:u16 -k0:i32be:r' '-k8:u16 -k20:f64 -k0:u8:r' '-k4:b30' '-k40:b8 -k38:b10:r' \
	'-k8:u16 -k8:b16:r -k0:i128' '-k0:u8 -k1:u8 -k2:u8 -k3:u8 -k4:u8 -k5:u8 -k6:u8 -k9:i8'
do
	compare_spilled -R48 $keys
	compare_backends -R48 -u $keys
done

claim 'long keys with a common prefix'
for n in 1 100 40009; do
	generate -R 200 -n $n -k 0:b200 --prefix=180 -d hundred-keys -o input
	compare_spilled -R200
	generate -R 200 -n $n -k 0:b200 -d equal -o input
	compare_spilled -R200
	compare_backends -R200 -u
done

claim 'projections, -u and limits'
generate -R 24 -n 300007 -k 4:u32 -d zipf -o input
for more in '-u --count' --argsort --keys-only '--limit=1' '--limit=1000' '-u --limit=100' \
	'-u --argsort' '--keys-only -u --limit=77'; do
	compare_spilled -R24 -k4:u32 $more
	compare_spilled -R24 -k4:b20 $more
done

claim 'merging sorted files, and pipes'
expect_success --backend=cpu -o sorted -R24 -k4:u32 input
for more in '' -u '-u --count' --argsort; do
	expect_success --backend=cpu -m -o expected -R24 -k4:u32 $more sorted sorted
	expect_success --backend=cuda -m -o output -R24 -k4:u32 $more sorted sorted
	expect_same expected output "gsort --backend=cuda -m $more"
done
cat input | "$GSORT" --backend=cuda -R24 -k4:u32 --device-memory=8M -S 8M > output
expect_same sorted output 'from a pipe, spilling'

finish
