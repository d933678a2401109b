create view missed_questions as
with
missed as (
    select strategy, question_id, recall_at_5
    from question_scores
    where recall_at_5 < 1
)
select
    m.strategy,
    m.question_id,
    q.question,
    m.recall_at_5,
    w.documents as wanted_documents,
    w.quotes as wanted_quotes,
    r.rank,
    r.doc_id as retrieved_document,
    list_contains(w.documents, r.doc_id) as is_wanted_document,
    c.text as retrieved_text,
    r.score
from missed as m
join gold_questions as q on q.question_id = m.question_id
left join question_evidence as w on w.question_id = m.question_id
left join retrieved_chunks as r
    on r.strategy = m.strategy and r.question_id = m.question_id and r.rank <= 5
left join chunks as c on c.chunk_id = r.chunk_id
order by m.strategy, m.recall_at_5, m.question_id, r.rank;

comment on view missed_questions is 'Questions whose evidence is not all among the first 5 chunks, with what was retrieved instead: one row per retrieved chunk.';
comment on column missed_questions.strategy is 'The strategy.';
comment on column missed_questions.question_id is 'The question.';
comment on column missed_questions.question is 'The question as asked.';
comment on column missed_questions.recall_at_5 is 'Share of the evidence that was retrieved; 0 if none.';
comment on column missed_questions.wanted_documents is 'The documents the evidence stands in.';
comment on column missed_questions.wanted_quotes is 'The words that should be retrieved.';
comment on column missed_questions.rank is 'Place of the retrieved chunk, 1 is the best; NULL if nothing was retrieved.';
comment on column missed_questions.retrieved_document is 'The document of the retrieved chunk.';
comment on column missed_questions.is_wanted_document is 'True if it is the right document, only not the right place.';
comment on column missed_questions.retrieved_text is 'Text of the retrieved chunk; NULL if it has been replaced since.';
comment on column missed_questions.score is 'What it was ranked by.';
