-- Every metric a strategy has, in one shape: what is averaged elsewhere starts here.
create view strategy_means as
with
retrieval as (
    select
        s.strategy,
        s.metric || '@' || s.cutoff as metric,
        count(*) as n_total,
        count(s.value) as n_scored,
        avg(s.value) as mean
    from retrieval_scores as s
    join gold_questions as q on q.question_id = s.question_id
    where q.status = 'active'
    group by s.strategy, s.metric, s.cutoff
),
judged as (
    select
        strategy,
        metric,
        n_total,
        n_scored,
        mean_scored as mean
    from score_coverage
)
select
    strategy,
    metric,
    'retrieval' as measured,
    n_total,
    n_scored,
    n_scored / nullif(n_total, 0) as coverage,
    mean
from retrieval
union all
select
    strategy,
    metric,
    'judged' as measured,
    n_total,
    n_scored,
    n_scored / nullif(n_total, 0) as coverage,
    mean
from judged
order by strategy, measured, metric;

comment on view strategy_means is 'The mean of every metric of every strategy over the questions that can be scored, with how much of it was measured.';
comment on column strategy_means.strategy is 'The strategy.';
comment on column strategy_means.metric is 'Name and cut-off of a retrieval score (recall@5), or name of a judged metric (faithfulness).';
comment on column strategy_means.measured is 'retrieval: on character spans, exact; judged: by a model.';
comment on column strategy_means.n_total is 'Questions it applies to.';
comment on column strategy_means.n_scored is 'Questions with a value.';
comment on column strategy_means.coverage is 'n_scored over n_total; NULL if it applies to none.';
comment on column strategy_means.mean is 'Mean of the values there are; NULL if there are none.';
