/*
 * rank_stats - what each of several ranks has done, and what that comes to (see rank_stats.h)
 */
#include "src/sort/rank_stats.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/comm/tags.h"

/* A number of an entry, or one for each phase, or for each stage of each phase. */
struct row {
	size_t offset; /* of the first */
	enum { SUM, MOST } how;
	enum { ONCE, PER_PHASE, PER_STAGE } of;
};

/* Whatever else is no number of the list: it does not compile. */
#define AT(member)                                                                                 \
	_Generic(((struct census_entry *)0)->member, uint64_t                                      \
		 : offsetof(struct census_entry, member))

static const struct row rows[] = {
	{ AT(facts.n_records_in), SUM, ONCE },
	{ AT(facts.n_records_out), SUM, ONCE },
	{ AT(facts.buffer_nbytes), SUM, ONCE },
	{ AT(facts.chunk_nbytes), MOST, ONCE },
	{ AT(facts.n_runs), SUM, ONCE },
	{ AT(facts.n_runs_spilled), SUM, ONCE },
	{ AT(facts.n_ranges), SUM, ONCE },
	{ AT(facts.n_passes), MOST, ONCE },
	{ AT(facts.n_windows), SUM, ONCE },
	{ AT(facts.written.cached_nbytes), SUM, ONCE },
	{ AT(facts.written.direct_nbytes), SUM, ONCE },
	{ AT(facts.written.mapped_nbytes), SUM, ONCE },
	{ AT(facts.peak_temp_nbytes), SUM, ONCE },
	{ AT(facts.spilled.items_nbytes), SUM, ONCE },
	{ AT(facts.spilled.stored_nbytes), SUM, ONCE },
	{ AT(totals.elapsed_ns), MOST, ONCE },
	{ AT(totals.usage.user_ns), SUM, ONCE },
	{ AT(totals.usage.system_ns), SUM, ONCE },
	{ AT(totals.usage.peak_rss_nbytes), SUM, ONCE },
	{ AT(totals.phases[0].elapsed_ns), MOST, PER_PHASE },
	{ AT(totals.phases[0].volumes.temporary_written_nbytes), SUM, PER_PHASE },
	{ AT(totals.phases[0].volumes.temporary_read_nbytes), SUM, PER_PHASE },
	{ AT(totals.phases[0].volumes.sent_nbytes), SUM, PER_PHASE },
	{ AT(totals.phases[0].volumes.received_nbytes), SUM, PER_PHASE },
	{ AT(totals.phases[0].volumes.wire_sent_nbytes), SUM, PER_PHASE },
	{ AT(totals.phases[0].volumes.wire_received_nbytes), SUM, PER_PHASE },
	{ AT(totals.phases[0].stages[0].n_spans), SUM, PER_STAGE },
	{ AT(totals.phases[0].stages[0].nbytes), SUM, PER_STAGE },
	{ AT(totals.phases[0].stages[0].busy_ns), SUM, PER_STAGE },
	{ AT(totals.phases[0].stages[0].waited_ns), SUM, PER_STAGE },
	{ AT(totals.phases[0].stages[0].covered_ns), MOST, PER_STAGE },
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

static unsigned n_numbers(const struct row *row)
{
	static const unsigned n[] = {
		[ONCE] = 1, [PER_PHASE] = N_PHASES, [PER_STAGE] = N_PHASES * N_STAGES
	};

	return n[row->of];
}

static size_t offset_of(const struct row *row, unsigned i)
{
	const unsigned phase = row->of == PER_STAGE ? i / N_STAGES : i;
	const unsigned stage = row->of == PER_STAGE ? i % N_STAGES : 0;

	return row->offset + phase * sizeof(struct phase_totals) +
	       stage * sizeof(struct stage_totals);
}

static uint64_t *number_at(struct census_entry *entry, const struct row *row, unsigned i)
{
	return (uint64_t *)(void *)((char *)entry + offset_of(row, i));
}

static uint64_t read_number(const struct census_entry *entry, const struct row *row, unsigned i)
{
	return *(const uint64_t *)(const void *)((const char *)entry + offset_of(row, i));
}

/* A number that the table describes: the i-th of its row. */
struct place {
	const struct row *row;
	unsigned i;
};

static const struct place first_place = { rows, 0 };

static bool is_place(struct place place)
{
	return place.row < rows + N_ROWS;
}

static struct place next_place(struct place place)
{
	if (++place.i < n_numbers(place.row))
		return place;
	return (struct place){ place.row + 1, 0 };
}

static size_t count_numbers(void)
{
	size_t n = 0;

	for (const struct row *row = rows; row < rows + N_ROWS; row++)
		n += n_numbers(row);
	return n;
}

/* A phase has taken place where it has taken time. */
static void note_phases(struct census_entry *entry)
{
	for (enum phase i = 0; i < N_PHASES; i++)
		entry->totals.phases[i].has_begun = entry->totals.phases[i].elapsed_ns > 0;
}

void census_add(struct census_entry *sum, const struct census_entry *entry)
{
	for (struct place at = first_place; is_place(at); at = next_place(at)) {
		uint64_t *number = number_at(sum, at.row, at.i);
		const uint64_t other = read_number(entry, at.row, at.i);

		if (at.row->how == SUM)
			*number += other;
		else if (*number < other)
			*number = other;
	}
	note_phases(sum);
}

static int fail_memory(const struct ranks *ranks)
{
	return fail(-ENOMEM, "no memory for what %u ranks have done", ranks_size(ranks));
}

/* What a rank sends. */
struct form {
	char backend[sizeof((struct sort_facts *)0)->backend];
	uint64_t numbers[];
};

static size_t form_nbytes(void)
{
	return sizeof(struct form) + count_numbers() * sizeof(uint64_t);
}

static int send_own(struct ranks *ranks, const struct census_entry *own)
{
	struct form *form = calloc(1, form_nbytes());
	struct ranks_transfer transfer;
	size_t n = 0;
	int r;

	if (!form)
		return fail_memory(ranks);
	memcpy(form->backend, own->facts.backend, sizeof form->backend);
	for (struct place at = first_place; is_place(at); at = next_place(at))
		form->numbers[n++] = read_number(own, at.row, at.i);
	r = ranks_send(ranks, 0, RANKS_TAG_CENSUS, form, form_nbytes(), &transfer);
	if (r == 0)
		r = ranks_wait(ranks, &transfer);
	free(form);
	return r;
}

/* An entry of what was sent, and with all other names of another one. */
static void take_form(const struct form *form, const struct census_entry *like,
		      struct census_entry *ret_entry)
{
	const uint64_t *number = form->numbers;

	*ret_entry = *like;
	memcpy(ret_entry->facts.backend, form->backend, sizeof form->backend - 1);
	for (struct place at = first_place; is_place(at); at = next_place(at))
		*number_at(ret_entry, at.row, at.i) = *number++;
	note_phases(ret_entry);
}

static int receive_one(struct ranks *ranks, unsigned rank, const struct census_entry *own,
		       struct census_entry *ret_entry)
{
	const size_t nbytes = form_nbytes();
	struct form *form = malloc(nbytes);
	struct ranks_transfer transfer;
	int r;

	if (!form)
		return fail_memory(ranks);
	r = ranks_receive(ranks, rank, RANKS_TAG_CENSUS, form, nbytes, &transfer);
	if (r == 0)
		r = ranks_wait(ranks, &transfer);
	if (r == 0)
		take_form(form, own, ret_entry);
	free(form);
	return r;
}

static struct census *make_census(struct ranks *ranks, const struct census_entry *own)
{
	struct census *census = calloc(1, sizeof *census);

	if (!census)
		return NULL;
	census->n = ranks_size(ranks);
	census->ranks = calloc(census->n, sizeof *census->ranks);
	census->hosts = calloc(census->n, sizeof *census->hosts);
	if (!census->ranks || !census->hosts) {
		census_close(census);
		return NULL;
	}
	census->all = census->ranks[0] = *own;
	census->all.facts.n_devices = 0;
	for (unsigned i = 0; i < census->n; i++)
		strcpy(census->hosts[i], ranks_host(ranks, i));
	return census;
}

int census_take(struct ranks *ranks, const struct census_entry *own, struct census **ret_census)
{
	struct census *census;
	int r = 0;

	*ret_census = NULL;
	if (ranks_rank(ranks) != 0)
		return send_own(ranks, own);
	census = make_census(ranks, own);
	if (!census)
		return fail_memory(ranks);
	for (unsigned i = 1; i < census->n && r == 0; i++) {
		r = receive_one(ranks, i, own, &census->ranks[i]);
		if (r == 0)
			census_add(&census->all, &census->ranks[i]);
	}
	if (r < 0)
		census_close(census);
	else
		*ret_census = census;
	return r;
}

void census_close(struct census *census)
{
	if (!census)
		return;
	free(census->ranks);
	free(census->hosts);
	free(census);
}

double census_imbalance(const struct census *census)
{
	const double share = (double)census->all.facts.n_records_out / census->n;
	uint64_t most = 0;

	for (unsigned i = 0; i < census->n; i++)
		if (most < census->ranks[i].facts.n_records_out)
			most = census->ranks[i].facts.n_records_out;
	return share > 0 ? (double)most / share - 1 : 0;
}
