# compare_backends - the CUDA back end against the CPU's; sourced behind testlib.sh, not run
#
# Where there is no GPU the script that sources it ends here (77: skipped).
generate -n 1 -o input
if ! "$GSORT" --backend=cuda input -o output 2> stderr; then
	cat stderr
	exit 77
fi

# agree ARGUMENT...: on `input`
agree() {
	succeeds --backend=cpu -o expected "$@" input
	succeeds --backend=cuda -o output "$@" input
	same expected output "gsort --backend=cuda $*"
}
