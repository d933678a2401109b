create view regressions as
with
live as (
    select strategy, previous
    from live_history
    where live_until is null
),
-- Against what serves; against the baseline of the comparison while nothing does.
reference as (
    select strategy
    from live
    union
    select baseline as strategy
    from strategy_comparisons
    where is_primary and not exists (select 1 from live)
),
-- What switching would worsen, and what the last switch has worsened.
pairs as (
    select s.strategy, r.strategy as against
    from strategies as s
    join reference as r on r.strategy <> s.strategy
    union all
    select strategy, previous as against
    from live
    where previous is not null
)
select
    p.strategy,
    p.against,
    n.question_id,
    q.question,
    q.language,
    q.tags,
    m.metric,
    o.primary_value as value_against,
    n.primary_value as value,
    n.primary_value - o.primary_value as difference,
    e.documents,
    e.quotes
from pairs as p
cross join primary_metric as m
join question_scores as n on n.strategy = p.strategy
join question_scores as o on o.strategy = p.against and o.question_id = n.question_id
join gold_questions as q on q.question_id = n.question_id
left join question_evidence as e on e.question_id = n.question_id
where n.primary_value < o.primary_value
order by p.strategy, p.against, difference, n.question_id;

comment on view regressions is 'Questions that a strategy answers worse than the live one, by however little; and those that the live one answers worse than what it replaced.';
comment on column regressions.strategy is 'The strategy that does worse.';
comment on column regressions.against is 'The live strategy; for the live one, what served before it; the baseline if nothing is live.';
comment on column regressions.question_id is 'The question.';
comment on column regressions.question is 'The question as asked.';
comment on column regressions.language is 'Its language.';
comment on column regressions.tags is 'Its labels.';
comment on column regressions.metric is 'The primary metric.';
comment on column regressions.value_against is 'Score of the strategy it is held against.';
comment on column regressions.value is 'Score of the strategy.';
comment on column regressions.difference is 'value minus value_against; below 0.';
comment on column regressions.documents is 'The documents the evidence stands in.';
comment on column regressions.quotes is 'The words that should be retrieved.';
