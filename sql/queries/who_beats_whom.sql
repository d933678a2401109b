-- Who beats whom, and on how many questions?
-- Winning more questions is not yet being better: only a verdict is tested, for or against the
-- baseline.
select
    strategy,
    other,
    n_questions,
    better_on,
    worse_on,
    equal_on,
    round(difference, 3) as difference,
    verdict
from pairwise
where difference > 0
order by difference desc, strategy, other;
