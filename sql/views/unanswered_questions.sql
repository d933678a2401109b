create view unanswered_questions as
with
found as (
    select
        q.question_id,
        count(q.recall_at_5) as n_strategies,
        max(q.recall_at_5) as best_recall
    from question_scores as q
    join strategies as s on s.strategy = q.strategy  -- those no longer declared help nobody
    group by q.question_id
),
answered as (
    select
        a.question_id,
        count(*) filter (where a.status = 'ok') as n_answers,
        count(*) filter (where a.abstained) as n_abstained
    from answers as a
    join strategies as s on s.strategy = a.strategy
    -- Sentences that are copied by their words abstain where they find none of them.
    where a.answer_kind = 'generated'
    group by a.question_id
)
select
    q.question_id,
    q.question,
    q.language,
    q.tags,
    q.file,
    f.n_strategies,
    f.best_recall,
    coalesce(a.n_answers, 0) as n_answers,
    coalesce(a.n_abstained, 0) as n_abstained,
    e.documents,
    e.quotes
from gold_questions as q
join found as f on f.question_id = q.question_id
left join answered as a on a.question_id = q.question_id
left join question_evidence as e on e.question_id = q.question_id
where
    q.status = 'active'
    and (f.best_recall = 0 or (a.n_answers > 0 and a.n_abstained = a.n_answers))
order by f.best_recall, q.question_id;

comment on view unanswered_questions is 'Questions that no strategy answers: none has any evidence among its first 5 chunks, or every answer that a model gave was that the contexts do not hold it. The question, the document, or what all strategies share is at fault.';
comment on column unanswered_questions.question_id is 'The question.';
comment on column unanswered_questions.question is 'The question as asked.';
comment on column unanswered_questions.language is 'Its language.';
comment on column unanswered_questions.tags is 'Its labels.';
comment on column unanswered_questions.file is 'The questions file it stands in.';
comment on column unanswered_questions.n_strategies is 'Strategies scored on it.';
comment on column unanswered_questions.best_recall is 'The best share of the evidence that any of them has among its first 5 chunks.';
comment on column unanswered_questions.n_answers is 'Answers a model gave, abstentions included.';
comment on column unanswered_questions.n_abstained is 'Answers that say the contexts do not hold it.';
comment on column unanswered_questions.documents is 'The documents the evidence stands in.';
comment on column unanswered_questions.quotes is 'The words that should be retrieved.';
