-- Which score decides: the one the last comparison used, recall@5 until there is one.
create view primary_metric as
select coalesce(
    (
        select min(metric) from strategy_comparisons
        where is_primary
    ),
    'recall@5'
) as metric;

comment on view primary_metric is 'The one score that decides between strategies.';
comment on column primary_metric.metric is 'Its name and cut-off, as in strategy_comparisons.metric: recall@5; a judged metric has no cut-off: faithfulness.';
