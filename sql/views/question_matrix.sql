create view question_matrix as
with
-- Every active question against every strategy, so that what was not scored shows as NULL.
pairs as (
    select q.question_id, q.question, q.language, q.tags, s.strategy
    from gold_questions as q
    cross join strategies as s
    where q.status = 'active'
)
select
    p.question_id,
    p.question,
    p.language,
    p.tags,
    p.strategy,
    m.metric,
    s.primary_value as value
from pairs as p
cross join primary_metric as m
left join question_scores as s on s.question_id = p.question_id and s.strategy = p.strategy
order by p.question_id, p.strategy;

comment on view question_matrix is 'Question by strategy on the primary metric, one row a pair. To see it as a matrix: pivot question_matrix on strategy using max(value) group by question_id.';
comment on column question_matrix.question_id is 'The question.';
comment on column question_matrix.question is 'The question as asked.';
comment on column question_matrix.language is 'Its language.';
comment on column question_matrix.tags is 'Its labels.';
comment on column question_matrix.strategy is 'The strategy.';
comment on column question_matrix.metric is 'The primary metric.';
comment on column question_matrix.value is 'The score; NULL if this strategy has none on this question.';
