-- If we promoted the best strategy that is not live, which questions would get worse answers?
with
candidate as (
    select strategy
    from leaderboard
    where not is_live
    order by primary_mean desc nulls last, strategy
    limit 1
)
select
    r.strategy,
    r.question,
    round(r.value_against, 3) as live_value,
    round(r.value, 3) as value,
    r.documents
from regressions as r
join candidate as c on c.strategy = r.strategy
order by r.difference, r.question_id;
