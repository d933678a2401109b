-- If we promoted the strategy with the best mean, which questions would get worse answers?
with
candidate as (
    select strategy
    from leaderboard
    where not is_live
    order by primary_mean desc nulls last, strategy
    limit 1
)
select
    l.strategy,
    l.question,
    l.metric,
    l.baseline_value,
    l.value,
    l.documents,
    l.quotes
from questions_lost_and_won as l
join candidate as c on c.strategy = l.strategy
where l.difference < 0
order by l.difference, l.question_id;
