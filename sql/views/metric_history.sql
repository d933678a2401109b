create view metric_history as
with
terms as (
    select
        row_number() over (order by live_from) as term,
        strategy,
        live_from,
        live_until,
        action,
        forced
    from live_history
),
measured as (
    select
        t.*,
        m.metric,
        m.n_scored,
        m.mean
    from terms as t
    join strategy_means as m on m.strategy = t.strategy
)
select
    term,
    strategy,
    live_from,
    live_until,
    action,
    forced,
    metric,
    n_scored,
    mean,
    mean - lag(mean) over (partition by metric order by term) as change
from measured
order by metric, term;

comment on view metric_history is 'What each promotion and rollback did to each metric, as measured now: what was live is scored on today''s questions and documents, for scores of another day are not comparable. What was known on the day is in promotions.';
comment on column metric_history.term is 'Number of the promotion or rollback, from 1.';
comment on column metric_history.strategy is 'The strategy that served from then on.';
comment on column metric_history.live_from is 'From when.';
comment on column metric_history.live_until is 'Until when; NULL for the one that is live.';
comment on column metric_history.action is 'promote or rollback.';
comment on column metric_history.forced is 'True if the gate said no and a person went ahead.';
comment on column metric_history.metric is 'The metric: strategy_means.metric.';
comment on column metric_history.n_scored is 'Questions with a value.';
comment on column metric_history.mean is 'Its mean for that strategy.';
comment on column metric_history.change is 'mean minus that of the strategy served before, where both are scored; NULL for the first.';
