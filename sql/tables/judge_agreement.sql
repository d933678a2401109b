create table judge_agreement (
    judge varchar,
    labels varchar not null,
    kind varchar not null,
    n_labels bigint not null,
    n_judged bigint not null check (n_judged between 0 and n_labels),
    both_supported bigint,
    only_judge_supported bigint,
    only_people_supported bigint,
    neither_supported bigint,
    accuracy double check (accuracy between 0 and 1),
    accuracy_low double,
    accuracy_high double,
    kappa double,
    error_kind varchar,
    -- Nothing judged, nothing to say.
    check ((n_judged > 0) = (accuracy is not null))
);

comment on table judge_agreement is 'How far the judge of faithfulness agrees with people on labelled answers. Look here before a score of it decides anything. Key: kind.';
comment on column judge_agreement.judge is 'The judge, as in ragas_scores.judge of faithfulness; NULL if none was configured.';
comment on column judge_agreement.labels is 'Digest of the file of labels.';
comment on column judge_agreement.kind is 'The kind of error or case, as the labels name it; all: every label.';
comment on column judge_agreement.n_labels is 'Labels of that kind.';
comment on column judge_agreement.n_judged is 'Of these, with a verdict of the judge.';
comment on column judge_agreement.both_supported is 'Supported to the judge and to people.';
comment on column judge_agreement.only_judge_supported is 'Supported to the judge alone: inventions it lets through.';
comment on column judge_agreement.only_people_supported is 'Supported to people alone: what it punishes for nothing.';
comment on column judge_agreement.neither_supported is 'Supported to neither.';
comment on column judge_agreement.accuracy is 'Share of n_judged on which they agree; NULL if nothing was judged.';
comment on column judge_agreement.accuracy_low is 'Lower end of its 95 % interval (Wilson).';
comment on column judge_agreement.accuracy_high is 'Upper end of its 95 % interval.';
comment on column judge_agreement.kappa is 'Cohen''s kappa: agreement beyond chance, at most 1; NULL if chance alone would agree always.';
comment on column judge_agreement.error_kind is 'The first failure: refused, invalid_output ...; no_judge if none is configured; NULL without one.';
