create view stale_questions as
with
lost as (
    select question_id, evidence, alternative, doc_id, quote, status, diff
    from gold_evidence
    where status in ('missing_quote', 'missing_document')
)
select
    q.question_id,
    q.question,
    q.reason,
    q.file,
    l.status as evidence_status,
    l.doc_id,
    l.quote,
    l.diff
from gold_questions as q
left join lost as l on l.question_id = q.question_id
where q.status = 'stale'
order by q.file, q.question_id, l.evidence, l.alternative;

comment on view stale_questions is 'Questions that are not scored because a document changed: one row per quote to correct.';
comment on column stale_questions.question_id is 'The question.';
comment on column stale_questions.question is 'The question as asked.';
comment on column stale_questions.reason is 'Why it is stale.';
comment on column stale_questions.file is 'The questions file to correct it in.';
comment on column stale_questions.evidence_status is 'missing_quote (the document no longer says it) or missing_document.';
comment on column stale_questions.doc_id is 'The document quoted.';
comment on column stale_questions.quote is 'The words that are no longer found there.';
comment on column stale_questions.diff is 'What the passage has become: [-removed-]{+added+}; NULL if nothing there is like it.';
