-- Which questions divide the strategies? One row a question, one column a strategy.
with
divided as (
    select question_id
    from question_matrix
    group by question_id
    having max(value) - min(value) >= 0.5
)
pivot (
    select m.question_id, m.strategy, round(m.value, 2) as value
    from question_matrix as m
    join divided as d on d.question_id = m.question_id
)
on strategy
using max(value)
group by question_id
order by question_id;
