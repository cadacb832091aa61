/*
 * api_check_explain - what a handle can be used for instead of sorting (see include/gsort.h)
 */
#include <errno.h>

#include "src/lib/lib_internal.h"
#include "src/report/explain.h"

/* The first thing that a handle is used for is the only one. */
static int check_unused(const struct gsort *sort, const char *name)
{
	return sort->has_started ?
		       fail(-EBUSY, "%s: this handle was used already: open another one", name) :
		       0;
}

static int check_sort_order(struct gsort *sort, uint64_t *ret_first_unsorted)
{
	int r = api_check_pointer(ret_first_unsorted, "ret_first_unsorted");

	if (r == 0)
		r = check_unused(sort, "gsort_check()");
	if (r == 0 && !api_has_inputs(sort))
		r = fail(-EINVAL, "there is no input: gsort_add_input_path() adds one");
	if (r == 0 && sort->output_endpoint.kind != ENDPOINT_PATH)
		r = fail(-EINVAL, "the output is %s, but a check writes nothing",
			 sort->output_label);
	if (r == 0)
		r = api_start(sort, API_CHECK, false);
	if (r == 0)
		r = api_wait(sort);
	if (r == 0)
		*ret_first_unsorted = sort->disorder;
	return r;
}

int gsort_check(struct gsort *sort, uint64_t *ret_first_unsorted)
{
	struct diagnostics *saved;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	return api_end_call(saved, check_sort_order(sort, ret_first_unsorted));
}

static int write_explanation_json(const struct gsort *sort, FILE *stream)
{
	return explain_write_json(&sort->explanation, stream);
}

static int write_explanation_text(const struct gsort *sort, FILE *stream)
{
	explain_print(&sort->explanation, stream);
	return 0;
}

/* In the words of who calls it: `name` is that of the function. */
static int explain_sort(struct gsort *sort, uint64_t assumed_nbytes, api_text_writer *write,
			const char *name, const char **ret_text)
{
	int r = check_unused(sort, name);

	if (r < 0)
		return r;
	sort->assumed_nbytes = assumed_nbytes ? assumed_nbytes : sort->options.assumed_nbytes;
	r = api_start(sort, API_EXPLAIN, false);
	if (r == 0)
		r = api_wait(sort);
	return r < 0 ? r : api_make_text(sort, write, ret_text);
}

int gsort_explain(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_json)
{
	struct diagnostics *saved;
	int r;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	r = api_check_pointer(ret_json, "ret_json");
	if (r == 0)
		r = explain_sort(sort, assumed_nbytes, write_explanation_json, "gsort_explain()",
				 ret_json);
	return api_end_call(saved, r);
}

int gsort_explain_text(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_text)
{
	struct diagnostics *saved;
	int r;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	r = api_check_pointer(ret_text, "ret_text");
	if (r == 0)
		r = explain_sort(sort, assumed_nbytes, write_explanation_text,
				 "gsort_explain_text()", ret_text);
	return api_end_call(saved, r);
}
