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
),
measured as (
    select *, 'retrieval' as measured
    from retrieval
    union all
    select *, 'judged' as measured
    from judged
)
select
    m.strategy,
    s.strategy is not null as is_declared,
    m.metric,
    m.measured,
    m.n_total,
    m.n_scored,
    m.n_scored / nullif(m.n_total, 0) as coverage,
    m.mean
from measured as m
left join strategies as s on s.strategy = m.strategy
order by is_declared desc, m.strategy, m.measured, m.metric;

comment on view strategy_means is 'The mean of every metric of every strategy over the questions that can be scored, with how much of it was measured.';
comment on column strategy_means.strategy is 'The strategy.';
comment on column strategy_means.is_declared is 'False for one that corpus.yaml no longer declares; what was measured of it is kept for the history.';
comment on column strategy_means.metric is 'Name and cut-off of a retrieval score (recall@5), or name of a judged metric (faithfulness).';
comment on column strategy_means.measured is 'retrieval: on character spans, exact; judged: by a model.';
comment on column strategy_means.n_total is 'Questions it applies to.';
comment on column strategy_means.n_scored is 'Questions with a value.';
comment on column strategy_means.coverage is 'n_scored over n_total; NULL if it applies to none.';
comment on column strategy_means.mean is 'Mean of the values there are; NULL if there are none.';
