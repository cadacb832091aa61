/*
 * trap - a kernel that ends the context that it runs in
 *
 * After that every call fails for as long as the process lives: an error that sticks, for real.
 */
extern "C" void launch_trap(void);

static __global__ void trap()
{
	asm volatile("trap;");
}

/* It has happened when it returns. */
void launch_trap(void)
{
	trap<<<1, 1>>>();
	cudaDeviceSynchronize();
}
