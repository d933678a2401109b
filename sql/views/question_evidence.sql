create view question_evidence as
with
-- A quote that occurs several times has a row for each.
quoted as (
    select distinct question_id, evidence, alternative, doc_id, quote
    from gold_evidence
)
select
    question_id,
    list(quote order by evidence, alternative) as quotes,
    list_sort(list_distinct(list(doc_id))) as documents
from quoted
group by question_id;

comment on view question_evidence is 'What a question''s answer stands on: one row per question that has evidence.';
comment on column question_evidence.question_id is 'The question.';
comment on column question_evidence.quotes is 'The words that should be retrieved, in the order of the questions file, alternatives included.';
comment on column question_evidence.documents is 'The documents they stand in.';
