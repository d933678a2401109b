create table strategy_slices (
    metric varchar not null,
    baseline varchar not null,
    strategy varchar not null,
    dimension varchar not null check (dimension in ('collection', 'language', 'tag', 'length')),
    slice varchar not null,
    n_questions bigint not null,
    n_documents bigint not null,
    baseline_mean double,
    mean double,
    difference double,
    ci_low double,
    ci_high double,
    p_holm double,
    minimum_detectable_difference double,
    verdict varchar check (verdict in ('baseline', 'better', 'worse', 'cannot tell'))
);

comment on table strategy_slices is 'The primary metric on parts of the questions: where a strategy is weak. To look at, not to decide by. Key: baseline, strategy, dimension, slice.';
comment on column strategy_slices.metric is 'The primary metric, name and cut-off: recall@5.';
comment on column strategy_slices.baseline is 'The strategy compared with.';
comment on column strategy_slices.strategy is 'The strategy compared.';
comment on column strategy_slices.dimension is 'What the questions are divided by: collection of the document they rest on, language, tag, or length of the question.';
comment on column strategy_slices.slice is 'The collection, the language, the tag; short (up to 7 words), medium (up to 15) or long.';
comment on column strategy_slices.n_questions is 'Questions of the slice that are scored for both.';
comment on column strategy_slices.n_documents is 'Documents those questions rest on.';
comment on column strategy_slices.baseline_mean is 'Mean score of the baseline over those questions.';
comment on column strategy_slices.mean is 'Mean score of the strategy over those questions.';
comment on column strategy_slices.difference is 'mean minus baseline_mean.';
comment on column strategy_slices.ci_low is 'Lower end of the confidence interval of the difference; NULL for a single document.';
comment on column strategy_slices.ci_high is 'Upper end of the confidence interval of the difference; NULL for a single document.';
comment on column strategy_slices.p_holm is 'Probability of such a difference if there were none, corrected (Holm) for all slices and strategies; NULL where there is no test.';
comment on column strategy_slices.minimum_detectable_difference is 'The smallest difference these questions would show in 80 % of repetitions.';
comment on column strategy_slices.verdict is 'better, worse or cannot tell; baseline for the baseline itself; NULL below 10 questions or 3 documents, or where scores are missing.';
