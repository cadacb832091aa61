/*
 * api_check_explain - what a handle can be used for instead of sorting (see include/gsort.h)
 */
#include <errno.h>

#include "src/lib/lib_internal.h"
#include "src/report/explain.h"

/* The first thing that a handle is used for is the only one. */
static int check_unused(const struct gsort *sort, const char *name)
{
	return sort->has_begun ?
		       fail(-EBUSY, "%s: this handle was used already: open another one", name) :
		       0;
}

static int check(struct gsort *sort, uint64_t *ret_first_unsorted)
{
	int r = check_pointer(ret_first_unsorted, "ret_first_unsorted");

	if (r == 0)
		r = check_unused(sort, "gsort_check()");
	if (r == 0 && !begin_has_inputs(sort))
		r = fail(-EINVAL, "there is no input: gsort_add_input_path() adds one");
	if (r == 0 && sort->given_output.kind != GIVEN_PATH)
		r = fail(-EINVAL, "the output is %s, but a check writes nothing",
			 sort->output_name);
	if (r == 0)
		r = begin(sort, PURPOSE_CHECK, false);
	if (r == 0)
		r = engine_wait(sort);
	if (r == 0)
		*ret_first_unsorted = sort->disorder;
	return r;
}

int gsort_check(struct gsort *sort, uint64_t *ret_first_unsorted)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, check(sort, ret_first_unsorted));
}

static int write_json(const struct gsort *sort, FILE *stream)
{
	return explain_write_json(&sort->explanation, stream);
}

static int write_text(const struct gsort *sort, FILE *stream)
{
	explain_print(&sort->explanation, stream);
	return 0;
}

/* In the words of who calls it: `name` is that of the function. */
static int explain(struct gsort *sort, uint64_t assumed_nbytes, told_writer *write,
		   const char *name, const char **ret_text)
{
	int r = check_unused(sort, name);

	if (r < 0)
		return r;
	sort->assumed_nbytes = assumed_nbytes ? assumed_nbytes : sort->options.assumed_nbytes;
	r = begin(sort, PURPOSE_EXPLAIN, false);
	if (r == 0)
		r = engine_wait(sort);
	return r < 0 ? r : told_text(sort, write, ret_text);
}

int gsort_explain(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_json)
{
	struct messages *before;
	int r;

	if (!told_enter(sort, &before))
		return -EINVAL;
	r = check_pointer(ret_json, "ret_json");
	if (r == 0)
		r = explain(sort, assumed_nbytes, write_json, "gsort_explain()", ret_json);
	return told_leave(before, r);
}

int gsort_explain_text(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_text)
{
	struct messages *before;
	int r;

	if (!told_enter(sort, &before))
		return -EINVAL;
	r = check_pointer(ret_text, "ret_text");
	if (r == 0)
		r = explain(sort, assumed_nbytes, write_text, "gsort_explain_text()", ret_text);
	return told_leave(before, r);
}
