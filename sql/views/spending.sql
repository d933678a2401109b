create view spending as
with
-- The index a row of work on vectors was for, which strategies share.
worked as (
    select
        *,
        case when asset = 'chunk_embeddings' then regexp_replace(partition, '\|[^|]*$', '') end
            as index_version
    from costs
),
attributed as (
    select w.*, coalesce(w.strategy, s.strategy) as for_strategy
    from worked as w
    left join strategy_costs as s on s.index_version = w.index_version
)
select
    for_strategy as strategy,
    asset,
    work,
    model,
    sum(tokens_sent) as tokens_sent,
    sum(tokens_received) as tokens_received,
    sum(tokens_saved) as tokens_saved,
    sum(requests) as requests,
    sum(retries) as retries,
    sum(seconds) as seconds,
    case when count(cost) = count(*) and count(distinct currency) <= 1 then sum(cost) end as cost,
    case when count(distinct currency) <= 1 then sum(cost) end as cost_known,
    count(*) - count(cost) as rows_without_a_cost,
    max(currency) as currency
from attributed
group by for_strategy, asset, work, model
order by strategy nulls last, asset, work, model;

comment on view spending is 'What was spent so far for each declared strategy, by work and model. Vectors are shared by the strategies over one index, and counted for each: do not add them up over strategies.';
comment on column spending.strategy is 'The strategy; NULL for work that belongs to none that is declared.';
comment on column spending.asset is 'What was built.';
comment on column spending.work is 'embed, embed_batch, embed_sentences, embed_questions, chunk, answer, or the judged metric.';
comment on column spending.model is 'The model.';
comment on column spending.tokens_sent is 'Tokens sent, as far as they are known.';
comment on column spending.tokens_received is 'Tokens received, as far as they are known.';
comment on column spending.tokens_saved is 'Tokens that caches made unnecessary, as far as they are known.';
comment on column spending.requests is 'Requests sent.';
comment on column spending.retries is 'Requests that repeated a failed one.';
comment on column spending.seconds is 'Seconds of work, calls side by side counted each.';
comment on column spending.cost is 'What it cost; NULL if any part of it has no known cost, or another currency.';
comment on column spending.cost_known is 'What the parts with a known cost add up to: a lower bound.';
comment on column spending.rows_without_a_cost is 'Rows of costs that have none.';
comment on column spending.currency is 'Currency of the cost; all prices of a model have one.';
