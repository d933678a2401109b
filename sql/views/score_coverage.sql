create view score_coverage as
with
counted as (
    select
        strategy,
        metric,
        -- What was asked for. A failure or an omission is missing; where there is nothing to judge,
        -- or the evidence is gone, there is nothing to miss; max_questions draws a sample.
        count(*) filter (
            where
            status in ('ok', 'error', 'skipped') and error_kind is distinct from 'max_questions'
        ) as n_total,
        count(*) filter (where status = 'ok') as n_scored,
        count(*) filter (where status = 'error') as n_error,
        count(*) filter (where status = 'not_applicable') as n_not_applicable,
        count(*) filter (where status = 'stale') as n_stale,
        count(*) filter (
            where status = 'skipped' and error_kind is distinct from 'max_questions'
        ) as n_skipped,
        count(*) filter (where error_kind = 'max_questions') as n_beyond,
        count(distinct judge) filter (where status = 'ok') as n_judges,
        avg(value) as mean_scored,
        coalesce(sum(value), 0) as sum_scored
    from ragas_scores
    group by strategy, metric
)
select
    c.strategy,
    s.strategy is not null as is_declared,
    c.metric,
    c.n_total,
    c.n_scored,
    c.n_error,
    c.n_not_applicable,
    c.n_stale,
    c.n_skipped,
    c.n_beyond,
    c.n_scored / nullif(c.n_total, 0) as coverage,
    c.mean_scored,
    c.sum_scored / nullif(c.n_total, 0) as mean_if_missing_0,
    (c.sum_scored + c.n_total - c.n_scored) / nullif(c.n_total, 0) as mean_if_missing_1,
    c.n_judges
from counted as c
left join strategies as s on s.strategy = c.strategy
order by is_declared desc, c.metric, c.strategy;

comment on view score_coverage is 'How much of a judged mean was really judged. Two strategies whose bounds overlap cannot be told apart by these judgements.';
comment on column score_coverage.strategy is 'The strategy.';
comment on column score_coverage.is_declared is 'False for one that corpus.yaml no longer declares; what was measured of it is kept for the history.';
comment on column score_coverage.metric is 'The judged metric: faithfulness, context_recall, context_precision, factual_correctness or answer_relevancy, as far as corpus.yaml asks for them.';
comment on column score_coverage.n_total is 'Questions the metric applies to and was asked of: n_scored + n_error + n_skipped.';
comment on column score_coverage.n_scored is 'Questions with a value.';
comment on column score_coverage.n_error is 'Judgements that failed: refused, truncated, timed out ...';
comment on column score_coverage.n_not_applicable is 'Questions with nothing to judge, such as an answer that says the contexts do not hold it. Not in n_total.';
comment on column score_coverage.n_stale is 'Questions whose evidence is gone. Not in n_total.';
comment on column score_coverage.n_skipped is 'Questions not judged for want of a judge.';
comment on column score_coverage.n_beyond is 'Questions beyond the configured number (ragas.max_questions), the same for every strategy: a sample, not a loss. Not in n_total.';
comment on column score_coverage.coverage is 'n_scored over n_total; NULL if it applies to none.';
comment on column score_coverage.mean_scored is 'Mean of the values there are; NULL if there are none.';
comment on column score_coverage.mean_if_missing_0 is 'The mean if every missing value were 0.';
comment on column score_coverage.mean_if_missing_1 is 'The mean if every missing value were 1.';
comment on column score_coverage.n_judges is 'Different judges behind the values; over 1 the mean mixes what cannot be compared.';
