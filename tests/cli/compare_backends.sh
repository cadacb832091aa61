# compare_backends - compare the CUDA back end with the CPU back end; source it after testlib.sh
#
# Without a GPU the script exits with 77 (skipped).
generate -n 1 -o input
if ! "$GSORT" --backend=cuda input -o output 2> stderr; then
	cat stderr
	exit 77
fi

# compare_backends ARGUMENT...: both back ends sort `input` to the same bytes
compare_backends() {
	expect_success --backend=cpu -o expected "$@" input
	expect_success --backend=cuda -o output "$@" input
	expect_same expected output "gsort --backend=cuda $*"
}
