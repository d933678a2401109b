-- Who finds most at equal reading cost? Five large chunks hold more than five small ones, so
-- strategies of different chunk sizes are compared within the same number of context tokens.
select
    strategy,
    chunker_version,
    round(mean_chunk_tokens) as chunk_tokens,
    round(mean_context_tokens) as context_tokens,
    round(recall_at_500_tokens, 3) as within_500,
    round(recall_at_1000_tokens, 3) as within_1000,
    round(recall_at_2000_tokens, 3) as within_2000
from leaderboard
order by within_1000 desc nulls last, strategy;
