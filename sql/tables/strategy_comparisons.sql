create table strategy_comparisons (
    metric varchar not null,
    baseline varchar not null,
    strategy varchar not null,
    n_questions bigint not null,
    n_documents bigint,
    baseline_mean double,
    mean double,
    difference double,
    ci_low double,
    ci_high double,
    p_value double,
    p_randomisation double,
    p_holm double,
    p_best double,
    behind_best double,
    p_behind double,
    minimum_detectable_difference double,
    judge_noise double,
    questions_needed bigint,
    n_scored bigint,
    n_total bigint,
    coverage double,
    mean_low double,
    mean_high double,
    difference_low double,
    difference_high double,
    verdict varchar not null,
    check (verdict in ('baseline', 'better', 'worse', 'cannot tell', 'not comparable')),
    reason varchar,
    state varchar check (state in ('best so far', 'in play', 'ruled out')),
    changed varchar,
    is_primary boolean,
    seed bigint,
    resamples bigint,
    confidence double
);

comment on table strategy_comparisons is 'Each strategy against the baseline on the same questions: a bootstrap and a randomisation test, paired by question and clustered by document. Key: metric, baseline, strategy.';
comment on column strategy_comparisons.metric is 'The compared score, name and cut-off: recall@5.';
comment on column strategy_comparisons.baseline is 'The strategy compared with: the live one, or the configured reference.';
comment on column strategy_comparisons.strategy is 'The strategy compared.';
comment on column strategy_comparisons.n_questions is 'Questions scored for both.';
comment on column strategy_comparisons.n_documents is 'Documents those questions rest on; they are what is resampled.';
comment on column strategy_comparisons.baseline_mean is 'Mean score of the baseline over those questions.';
comment on column strategy_comparisons.mean is 'Mean score of the strategy over those questions.';
comment on column strategy_comparisons.difference is 'mean minus baseline_mean.';
comment on column strategy_comparisons.ci_low is 'Lower end of the confidence interval of the difference.';
comment on column strategy_comparisons.ci_high is 'Upper end of the confidence interval of the difference.';
comment on column strategy_comparisons.p_value is 'Two-sided probability of such a difference if there were none, by the bootstrap.';
comment on column strategy_comparisons.p_randomisation is 'The same by the randomisation test: how often swapping the two strategies'' scores, a document at a time, gives as large a difference.';
comment on column strategy_comparisons.p_holm is 'The larger of the two, corrected (Holm) for comparing several strategies.';
comment on column strategy_comparisons.p_best is 'Share of resamples in which this strategy is the best of all.';
comment on column strategy_comparisons.behind_best is 'How far the mean is behind the best one, over the questions scored for all; 0 for the best.';
comment on column strategy_comparisons.p_behind is 'How often as many strategies without any difference would leave one as far behind.';
comment on column strategy_comparisons.minimum_detectable_difference is 'The smallest difference these questions would show in 80 % of repetitions.';
comment on column strategy_comparisons.judge_noise is 'Standard error of difference that the judge alone gives it, from repeated judgements; NULL where answers were judged once, or not.';
comment on column strategy_comparisons.questions_needed is 'About how many questions like these would show the difference that was seen; NULL if it is nil.';
comment on column strategy_comparisons.n_scored is 'Questions scored for the strategy.';
comment on column strategy_comparisons.n_total is 'Questions the metric applies to, scored or not.';
comment on column strategy_comparisons.coverage is 'n_scored over n_total; below 0.95, here or for the baseline, there is no verdict.';
comment on column strategy_comparisons.mean_low is 'Mean of the strategy if every missing score were 0.';
comment on column strategy_comparisons.mean_high is 'Mean of the strategy if every missing score were 1.';
comment on column strategy_comparisons.difference_low is 'difference if every missing score, of either side, were the worst for the strategy.';
comment on column strategy_comparisons.difference_high is 'difference if every missing score, of either side, were the best for the strategy. Missing scores that could turn the difference leave no verdict.';
comment on column strategy_comparisons.verdict is 'What may be said: better, worse, or cannot tell; not comparable if it was measured otherwise; baseline for the baseline itself.';
comment on column strategy_comparisons.reason is 'Why, in words.';
comment on column strategy_comparisons.state is 'What is left of its chances: best so far (the best mean), ruled out (worse than another strategy), or in play.';
comment on column strategy_comparisons.changed is 'What of the measurement differs, if it is not comparable: golden_version, scorer, cutoffs, metrics, retrieval (judged on other passages), judge, answerer.';
comment on column strategy_comparisons.is_primary is 'True for the one metric that decides.';
comment on column strategy_comparisons.seed is 'Seed of the resampling: the same inputs give the same numbers.';
comment on column strategy_comparisons.resamples is 'Number of resamples.';
comment on column strategy_comparisons.confidence is 'Level of the confidence interval, for example 0.95.';
