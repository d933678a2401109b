create table strategy_comparisons (
    metric varchar not null,
    baseline varchar not null,
    strategy varchar not null,
    n_questions bigint,
    n_documents bigint,
    baseline_mean double,
    mean double,
    difference double,
    ci_low double,
    ci_high double,
    p_value double,
    p_holm double,
    p_best double,
    minimum_detectable_difference double,
    verdict varchar,
    is_primary boolean,
    seed bigint,
    resamples bigint,
    confidence double
);

comment on table strategy_comparisons is 'Each strategy against the baseline on the same questions: a bootstrap, paired by question and clustered by document. Key: metric, baseline, strategy.';
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
comment on column strategy_comparisons.p_value is 'Two-sided probability of such a difference if there were none.';
comment on column strategy_comparisons.p_holm is 'p_value corrected (Holm) for comparing several strategies.';
comment on column strategy_comparisons.p_best is 'Share of resamples in which this strategy is the best of all.';
comment on column strategy_comparisons.minimum_detectable_difference is 'The smallest difference these questions would show in 80 % of repetitions.';
comment on column strategy_comparisons.verdict is 'What may be said: better, worse, or cannot tell; "baseline" for the baseline itself.';
comment on column strategy_comparisons.is_primary is 'True for the one metric that decides.';
comment on column strategy_comparisons.seed is 'Seed of the resampling: the same inputs give the same numbers.';
comment on column strategy_comparisons.resamples is 'Number of resamples.';
comment on column strategy_comparisons.confidence is 'Level of the confidence interval, for example 0.95.';
