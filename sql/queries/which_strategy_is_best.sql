-- Which strategy is best, and may we say so?
-- The means order the table; the verdict says whether the order means anything on these questions.
select
    b.strategy,
    b.is_live,
    round(b.primary_mean, 3) as mean_score,
    b.n_questions,
    round(c.difference, 3) as difference,
    round(c.ci_low, 2) as ci_low,
    round(c.ci_high, 2) as ci_high,
    round(c.minimum_detectable_difference, 2) as detectable,
    b.verdict
from leaderboard as b
left join strategy_comparisons as c on c.strategy = b.strategy and c.is_primary
order by mean_score desc nulls last, b.strategy;
