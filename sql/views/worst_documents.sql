create view worst_documents as
with
-- A question counts for each document that holds some of its evidence.
asked as (
    select distinct doc_id, question_id
    from gold_evidence
),
scored as (
    select
        a.doc_id,
        a.question_id,
        s.strategy,
        s.primary_value
    from asked as a
    join question_scores as s on s.question_id = a.question_id
    join strategies as d on d.strategy = s.strategy  -- those no longer declared help nobody
    where s.primary_value is not null
),
by_strategy as (
    select doc_id, strategy, avg(primary_value) as mean
    from scored
    group by doc_id, strategy
),
live as (
    select b.doc_id, b.mean
    from by_strategy as b
    join live_history as h on h.strategy = b.strategy
    where h.live_until is null
),
highest as (
    select doc_id, max(mean) as mean
    from by_strategy
    group by doc_id
),
best as (
    select
        h.doc_id,
        h.mean,
        case when count(*) = 1 then min(b.strategy) end as strategy
    from highest as h
    join by_strategy as b on b.doc_id = h.doc_id and b.mean = h.mean
    group by h.doc_id, h.mean
)
select
    s.doc_id,
    d.media_type,
    d.language,
    d.n_chars,
    count(distinct s.question_id) as n_questions,
    avg(s.primary_value) as mean,
    max(l.mean) as live_mean,
    max(b.strategy) as best_strategy,
    max(b.mean) as best_mean
from scored as s
left join documents as d on d.doc_id = s.doc_id
left join live as l on l.doc_id = s.doc_id
left join best as b on b.doc_id = s.doc_id
group by s.doc_id, d.media_type, d.language, d.n_chars
order by mean, s.doc_id;

comment on view worst_documents is 'The documents whose questions are answered worst, on the primary metric. One where even the best strategy is low is a matter of the document or its questions, not of the strategy.';
comment on column worst_documents.doc_id is 'The document that holds the evidence.';
comment on column worst_documents.media_type is 'What its content was recognised as.';
comment on column worst_documents.language is 'Its language.';
comment on column worst_documents.n_chars is 'Length of its text in code points.';
comment on column worst_documents.n_questions is 'Scored questions with evidence in it.';
comment on column worst_documents.mean is 'Mean score of those questions over all strategies.';
comment on column worst_documents.live_mean is 'Mean score of the live strategy; NULL if nothing is live.';
comment on column worst_documents.best_strategy is 'The strategy that does best on it; NULL if several do.';
comment on column worst_documents.best_mean is 'The best mean score any strategy has.';
