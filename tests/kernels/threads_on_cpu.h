/*
 * threads_on_cpu - the threads of a block as contexts that one thread of the CPU goes through
 *
 * A context runs until it has to wait at a barrier; then it is the next one's turn. Real threads
 * would do the same with a call of the system, and a wait for the scheduler, for each of them at
 * each barrier, and tests of a second would take a minute.
 *
 * What goes wrong between threads still goes wrong here. To ThreadSanitizer each context is a
 * thread ("fiber"), and switching between them orders nothing: only barriers do, and the beginning
 * and the end of a launch. So two accesses without a barrier between them are a race, whatever the
 * order in which they happened to be made. Without ThreadSanitizer that order is what counts: it is
 * turned around with each launch.
 *
 * A barrier's two sides are told apart from those of its next use by their address: who arrives
 * early at the next one must not be ordered before who leaves this one late.
 */
#pragma once

#include <stdlib.h>

#include <vector>

#include <ucontext.h>

#if defined(__SANITIZE_THREAD__)
#define EMULATION_UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define EMULATION_UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EMULATION_UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATION_UNDER_ASAN 1
#endif
#endif

#ifdef EMULATION_UNDER_TSAN
#include <sanitizer/tsan_interface.h>
#else
#define __tsan_acquire(address) ((void)(address))
#define __tsan_release(address) ((void)(address))
#endif
#ifdef EMULATION_UNDER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

/* Of the emulation itself, which several threads go through without being ordered by it. */
#define EMULATION_ONLY __attribute__((noinline, no_sanitize("thread", "address")))

struct emulated_index {
	unsigned x;
};

struct emulated_block;

/* What a context is, for all launches; the first of a pool is the thread that launches. */
struct emulated_thread {
	ucontext_t beginning;
	void *place[5]; /* where it goes on, once it has begun */
	bool has_begun;
	char *stack; /* stack_nbytes; of the launching thread: as far as it is known */
	size_t stack_nbytes;
	void *fake_stack;      /* AddressSanitizer's */
	void *fiber;           /* ThreadSanitizer's */
	emulated_block *block; /* NULL: has nothing to do, or is through */

	/* The thread's own, in the current launch. */
	emulated_index thread_index, block_index, block_size, grid_size;
	unsigned warp_turn, vote_turn;
};

/* A launch: what all of its threads do. */
struct emulated_work {
	void (*run)(const void *context);
	const void *context;
	emulated_block *block;
	unsigned n_threads, n_blocks;
};

class emulated_pool
{
	enum { STACK_NBYTES = 256 << 10 };

	emulated_thread launching;
	std::vector<emulated_thread *> threads;
	emulated_thread *current;
	emulated_work work;
	bool backwards;

	/* Not swapcontext(), most of which is a call of the system for the signal mask. */
	[[noreturn]] static void EMULATION_ONLY go_to(emulated_thread *to)
	{
		if (to->has_begun)
			__builtin_longjmp(to->place, 1);
		to->has_begun = true;
		setcontext(&to->beginning);
		abort();
	}

	void EMULATION_ONLY switch_to(emulated_thread *to)
	{
		emulated_thread *from = current;

		current = to;
#ifdef EMULATION_UNDER_TSAN
		__tsan_switch_to_fiber(to->fiber, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef EMULATION_UNDER_ASAN
		__sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_nbytes);
#endif
		if (__builtin_setjmp(from->place) == 0)
			go_to(to);
#ifdef EMULATION_UNDER_ASAN
		__sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
	}

	/* What a context does: its part of one launch after the other. */
	static void EMULATION_ONLY thread_main()
	{
		emulated_pool &pool = of_this_thread();

#ifdef EMULATION_UNDER_ASAN
		__sanitizer_finish_switch_fiber(NULL, (const void **)&pool.launching.stack,
						&pool.launching.stack_nbytes);
#endif
		for (;;) {
			__tsan_acquire(&pool.work);
			pool.work.run(pool.work.context);
			__tsan_release(&pool.launching);
			pool.current->block = NULL;
			pool.yield();
		}
	}

	void EMULATION_ONLY add_thread()
	{
		emulated_thread *thread = new emulated_thread();

		thread->stack = new char[STACK_NBYTES];
		thread->stack_nbytes = STACK_NBYTES;
#ifdef EMULATION_UNDER_TSAN
		thread->fiber = __tsan_create_fiber(0);
#endif
		getcontext(&thread->beginning);
		thread->beginning.uc_stack.ss_sp = thread->stack;
		thread->beginning.uc_stack.ss_size = STACK_NBYTES;
		makecontext(&thread->beginning, thread_main, 0);
		threads.push_back(thread);
	}

	void EMULATION_ONLY start_threads()
	{
		while (threads.size() < work.n_threads)
			add_thread();
		for (unsigned i = 0; i < work.n_threads; i++) {
			threads[i]->block = work.block;
			threads[i]->thread_index.x = i;
			threads[i]->block_size.x = work.n_threads;
			threads[i]->grid_size.x = work.n_blocks;
			threads[i]->warp_turn = threads[i]->vote_turn = 0;
		}
	}

	/* Every thread's turn; false if all are through. */
	bool EMULATION_ONLY run_round()
	{
		const unsigned n = work.n_threads;
		bool any = false;

		for (unsigned i = 0; i < n; i++) {
			emulated_thread *thread = threads[backwards ? n - 1 - i : i];

			if (!thread->block)
				continue;
			switch_to(thread);
			any = true;
		}
		return any;
	}

public:
	emulated_pool() : launching(), threads(), current(&launching), work(), backwards()
	{
		launching.has_begun = true;
#ifdef EMULATION_UNDER_TSAN
		launching.fiber = __tsan_get_current_fiber();
#endif
	}
	~emulated_pool()
	{
		for (emulated_thread *thread : threads) {
#ifdef EMULATION_UNDER_TSAN
			__tsan_destroy_fiber(thread->fiber);
#endif
			delete[] thread->stack;
			delete thread;
		}
	}
	emulated_pool(const emulated_pool &) = delete;

	static emulated_pool &EMULATION_ONLY of_this_thread()
	{
		static thread_local emulated_pool pool;

		return pool;
	}

	emulated_thread *EMULATION_ONLY self()
	{
		return current;
	}

	/* Of a context: let the others go on. */
	void EMULATION_ONLY yield()
	{
		switch_to(&launching);
	}

	void EMULATION_ONLY launch(const emulated_work &launched)
	{
		work = launched;
		start_threads();
		__tsan_release(&work);
		while (run_round())
			;
		__tsan_acquire(&launching);
		backwards = !backwards;
	}
};

static inline emulated_thread *this_thread()
{
	return emulated_pool::of_this_thread().self();
}

/* A barrier that threads meet at again and again. */
class emulated_barrier
{
	const unsigned n;
	unsigned n_waiting, turn;
	char sides[2];

public:
	explicit emulated_barrier(unsigned n) : n(n), n_waiting(), turn(), sides()
	{
	}
	emulated_barrier(const emulated_barrier &) = delete;
	void EMULATION_ONLY wait()
	{
		const unsigned mine = turn;

		__tsan_release(&sides[mine % 2]);
		if (++n_waiting == n) {
			n_waiting = 0;
			turn++;
		}
		while (turn == mine)
			emulated_pool::of_this_thread().yield();
		__tsan_acquire(&sides[mine % 2]);
	}
};
