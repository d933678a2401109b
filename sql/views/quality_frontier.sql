create view quality_frontier as
with
-- As far as the score that decides looks; a judge reads what is handed on.
read_to as (
    select 'context_tokens@' || coalesce(nullif(split_part(metric, '@', 2), ''), 'served') as metric
    from primary_metric
),
tokens as (
    select m.strategy, m.mean as mean_context_tokens
    from strategy_means as m
    join read_to as r on r.metric = m.metric
),
priced as (
    select
        b.strategy,
        b.is_live,
        b.primary_mean,
        t.mean_context_tokens,
        i.tokens as index_tokens
    from leaderboard as b
    join tokens as t on t.strategy = b.strategy
    left join strategies as s on s.strategy = b.strategy
    left join index_versions as i on i.index_version = s.index_version
    where b.primary_mean is not null
),
-- Beaten: another is as good and as cheap to read, and one of the two is strictly so.
beaten as (
    select
        p.strategy,
        list(o.strategy order by o.primary_mean desc, o.strategy) as beaten_by
    from priced as p
    join priced as o
        on
            o.primary_mean >= p.primary_mean
            and o.mean_context_tokens <= p.mean_context_tokens
            and (
                o.primary_mean > p.primary_mean or o.mean_context_tokens < p.mean_context_tokens
            )
    group by p.strategy
)
select
    p.strategy,
    p.is_live,
    p.primary_mean,
    p.mean_context_tokens,
    p.index_tokens,
    b.strategy is null as is_on_frontier,
    b.beaten_by
from priced as p
left join beaten as b on b.strategy = p.strategy
order by p.mean_context_tokens, p.primary_mean desc, p.strategy;

comment on view quality_frontier is 'Quality against what an answer costs to read. Of the strategies on the frontier, none is both better and cheaper than another; by their means, which are not verdicts.';
comment on column quality_frontier.strategy is 'The strategy.';
comment on column quality_frontier.is_live is 'True for the strategy that serves now.';
comment on column quality_frontier.primary_mean is 'Mean of the score that decides: see primary_metric.';
comment on column quality_frontier.mean_context_tokens is 'What an answer costs to read: mean tokens of the chunks that the score that decides looks at, the first 5 for recall@5; of those handed on where a judge decides.';
comment on column quality_frontier.index_tokens is 'Tokens of all chunks of its index: what embedding it anew would send, at most.';
comment on column quality_frontier.is_on_frontier is 'True if no other strategy is at least as good and at least as cheap to read.';
comment on column quality_frontier.beaten_by is 'Those that are, the best first; NULL on the frontier.';
