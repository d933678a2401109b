-- Where do the chunks come from that the live strategy finds first: which bytes, parser, elements?
-- For one question here. Add the columns ..._by_run and ..._at to find the runs.
with
asked as (
    select min(r.question_id) as question_id
    from retrieved_chunks as r
    join gold_questions as q on q.question_id = r.question_id
    where q.status = 'active'
),
found as (
    select r.rank, r.chunk_id
    from asked as a
    join retrieved_chunks as r on r.question_id = a.question_id
    join live_history as h on h.strategy = r.strategy
    where h.live_until is null and r.rank <= 3
)
select
    f.rank,
    l.doc_id,
    left(l.doc_rev, 8) as doc_rev,
    l.parser,
    l.start_char,
    l.end_char,
    l.element_kinds,
    l.chunker_version,
    l.embedding_model,
    l.live_strategy
from found as f
join chunk_lineage as l on l.chunk_id = f.chunk_id
order by f.rank, l.index_version;
