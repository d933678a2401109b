create view pairwise as
with
-- Both directions of a pair, so that either name finds it.
pairs as (
    select
        a.strategy,
        b.strategy as other,
        a.question_id,
        a.primary_value as value,
        b.primary_value as other_value
    from question_scores as a
    join question_scores as b on b.question_id = a.question_id and b.strategy <> a.strategy
    where a.primary_value is not null and b.primary_value is not null
),
compared as (
    select strategy, baseline, verdict
    from strategy_comparisons
    where is_primary and strategy <> baseline
),
tested as (
    from compared
    union all
    select
        baseline as strategy,
        strategy as baseline,
        case verdict
            when 'better' then 'worse'
            when 'worse' then 'better'
            else verdict
        end as verdict
    from compared
)
select
    p.strategy,
    p.other,
    m.metric,
    count(*) as n_questions,
    count(*) filter (where p.value > p.other_value) as better_on,
    count(*) filter (where p.value < p.other_value) as worse_on,
    count(*) filter (where p.value = p.other_value) as equal_on,
    avg(p.value) as mean,
    avg(p.other_value) as other_mean,
    avg(p.value) - avg(p.other_value) as difference,
    max(t.verdict) as verdict
from pairs as p
cross join primary_metric as m
left join tested as t on t.strategy = p.strategy and t.baseline = p.other
group by p.strategy, p.other, m.metric
order by p.strategy, p.other;

comment on view pairwise is 'Any two strategies, question by question on the primary metric. Counts to look at; only a verdict is tested.';
comment on column pairwise.strategy is 'The strategy.';
comment on column pairwise.other is 'The strategy it is held against.';
comment on column pairwise.metric is 'The primary metric.';
comment on column pairwise.n_questions is 'Active questions scored for both.';
comment on column pairwise.better_on is 'Questions on which the strategy scores higher.';
comment on column pairwise.worse_on is 'Questions on which it scores lower.';
comment on column pairwise.equal_on is 'Questions on which both score the same.';
comment on column pairwise.mean is 'Mean of the strategy over those questions.';
comment on column pairwise.other_mean is 'Mean of the other.';
comment on column pairwise.difference is 'mean minus other_mean.';
comment on column pairwise.verdict is 'What the comparison said, seen from the strategy; NULL unless one of the two is the baseline.';
