-- Is the better strategy worth what it costs to read, or is another as good for less?
select
    strategy,
    is_live,
    round(primary_mean, 3) as mean_score,
    round(mean_context_tokens) as context_tokens,
    index_tokens,
    is_on_frontier,
    beaten_by
from quality_frontier
order by context_tokens, mean_score desc, strategy;
