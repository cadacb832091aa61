#!/bin/sh
# no_cuda_driver - a program with the CUDA back end runs on machines without the CUDA driver
#
# gsort loads the driver at run time. If this machine has a driver, the test hides it.
. "$(dirname "$0")/testlib.sh"

generate -n 1000003 -o input
expect_success --backend=cpu -o expected input

claim 'gsort is linked with neither the driver nor the toolkit'
needed=$(ldd "$GSORT" 2> /dev/null | grep -iE 'cuda|nvidia' || true)
[ -z "$needed" ] || fail "$needed"

gsort=$GSORT
mkdir drivers
echo 'not a library' > drivers/libcuda.so.1
cat > hidden << END
#!/bin/sh
export LD_LIBRARY_PATH=$work/drivers:\${LD_LIBRARY_PATH:-} CUDA_VISIBLE_DEVICES=
exec "$gsort" "\$@"
END
chmod +x hidden
GSORT=./hidden

# From a pipe, because gsort would use a GPU for an input of unknown size.
claim 'without a driver the CPU sorts, without a message'
rm -f output
cat input | ./hidden -o output 2> stderr || fail "status $?"
[ ! -s stderr ] || fail 'not silent'
expect_same expected output 'from a pipe'
expect_output expected input

claim 'a requested GPU that is not usable is an error with the reason'
expect_error '--backend=cuda: (no usable GPU: .|.*built without the CUDA)' --backend=cuda \
	input
expect_error '--backend=cuda: (no usable GPU: .|.*built without the CUDA)' --gpus=0 input
expect_error '--backend=cuda: (no usable GPU: .|.*built without the CUDA)' --gpus=all input
finish
