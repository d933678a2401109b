-- Which questions divide the strategies? One row a question, one column a strategy.
pivot question_matrix
on strategy
using max(value)
group by question_id, question
order by question_id;
