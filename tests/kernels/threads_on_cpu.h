/*
 * threads_on_cpu.h - the threads of a block as contexts that one CPU thread runs in turns
 *
 * A context runs until it waits at a barrier; then the next one runs. Real threads would need a
 * system call and the scheduler for each thread at each barrier, and tests of a second would take a
 * minute.
 *
 * Errors between threads are still found. For ThreadSanitizer each context is a thread ("fiber"),
 * and switching does not synchronise them: only barriers do, and the beginning and the end of a
 * launch. So two accesses without a barrier in between are a race, in whatever order they happen.
 * Without ThreadSanitizer the order of the threads is reversed with each launch.
 *
 * The two sides of a barrier have other addresses than those of its next use: a thread that arrives
 * early at the next one must not be ordered before a thread that leaves this one late.
 */
#pragma once

#include <stdlib.h>
#include <ucontext.h>

#include <vector>

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

/* Marks functions of the emulation itself, which several threads run without synchronisation. */
#define EMULATION_ONLY __attribute__((noinline, no_sanitize("thread", "address", "undefined")))

struct emulated_index {
	unsigned x;
};

struct emulated_block;

/* A context, kept for all launches. The first one of a pool is the launching thread. */
struct emulated_thread {
	ucontext_t beginning;
	void *place[5]; /* the saved registers, once the context has run */
	bool has_begun;
	char *stack; /* of the launching thread: the part that is known */
	size_t stack_nbytes;
	void *fake_stack;      /* AddressSanitizer's */
	void *fiber;           /* ThreadSanitizer's */
	emulated_block *block; /* NULL: idle, or finished */

	/* The indices and sizes of this thread in the current launch. */
	emulated_index thread_index, block_index, block_size, grid_size;
	unsigned warp_turn, vote_turn;
};

/* A launch: the function that all of its threads run. */
struct emulated_work {
	void (*run)(const void *context);
	const void *context;
	emulated_block *block;
	unsigned n_threads, n_blocks;
};

class emulated_pool;

/* The pool of this CPU thread; NULL: it has launched no kernel. Reading this needs no call. */
static __thread emulated_pool *pool_of_this_thread __attribute__((tls_model("initial-exec")));

class emulated_pool
{
	enum { STACK_NBYTES = 256 << 10 };

	emulated_thread launching;
	std::vector<emulated_thread *> threads;
	emulated_thread **turns; /* the threads of the launch, in the order of their turns */
	unsigned turn, n_unfinished;
	emulated_thread *current;
	emulated_work work;
	bool backwards;

	/*
	 * Switch contexts. swapcontext() would spend most of its time in a system call for the
	 * signal mask.
	 */
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

	/* The first switch of all is that of the launching thread and tells where its stack is. */
	void EMULATION_ONLY finish_first_switch()
	{
#ifdef EMULATION_UNDER_ASAN
		const bool is_known = launching.stack;

		__sanitizer_finish_switch_fiber(NULL,
						is_known ? NULL : (const void **)&launching.stack,
						is_known ? NULL : &launching.stack_nbytes);
#endif
	}

	/* Run the context's part of one launch after the other. */
	static void EMULATION_ONLY thread_main()
	{
		emulated_pool &pool = *pool_of_this_thread;

		pool.finish_first_switch();
		for (;;) {
			__tsan_acquire(&pool.work);
			pool.work.run(pool.work.context);
			__tsan_release(&pool.launching);
			pool.current->block = NULL;
			if (--pool.n_unfinished == 0)
				pool.switch_to(&pool.launching);
			else
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
		const unsigned n = work.n_threads;

		if (threads.size() < n) {
			while (threads.size() < n)
				add_thread();
			/* Tests make malloc() and realloc() fail, but not the new operator. */
			delete[] turns;
			turns = new emulated_thread *[n];
		}
		for (unsigned i = 0; i < n; i++) {
			emulated_thread *thread = threads[i];

			turns[backwards ? n - 1 - i : i] = thread;
			thread->block = work.block;
			thread->thread_index.x = i;
			thread->block_size.x = n;
			thread->grid_size.x = work.n_blocks;
			thread->warp_turn = thread->vote_turn = 0;
		}
		n_unfinished = n;
		turn = 0;
	}

public:
	emulated_pool()
		: launching(), threads(), turns(), turn(), n_unfinished(), current(&launching),
		  work(), backwards()
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
		delete[] turns;
	}
	emulated_pool(const emulated_pool &) = delete;

	emulated_thread *EMULATION_ONLY self()
	{
		return current;
	}

	/* Let the other contexts run: those of the launch that are not finished, in turns. */
	void EMULATION_ONLY yield()
	{
		do
			turn = turn + 1 < work.n_threads ? turn + 1 : 0;
		while (!turns[turn]->block);
		if (turns[turn] != current)
			switch_to(turns[turn]);
	}

	static void EMULATION_ONLY launch(const emulated_work &launched)
	{
		static thread_local emulated_pool pool;

		pool_of_this_thread = &pool;
		pool.work = launched;
		pool.start_threads();
		__tsan_release(&pool.work);
		pool.switch_to(pool.turns[0]);
		__tsan_acquire(&pool.launching);
		pool.backwards = !pool.backwards;
	}
};

static emulated_thread *EMULATION_ONLY this_thread()
{
	return pool_of_this_thread->self();
}

/* A reusable barrier. */
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
			pool_of_this_thread->yield();
		__tsan_acquire(&sides[mine % 2]);
	}
};
