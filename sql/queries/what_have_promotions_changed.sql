-- What has each promotion or rollback done to what people get, and to what they wait and pay for?
select
    term,
    strategy,
    action,
    metric,
    round(mean, 3) as mean,
    round(change, 3) as change
from metric_history
where metric in ('recall@5', 'mrr@10', 'recall@1000t', 'context_tokens@5', 'faithfulness')
order by metric, term;
