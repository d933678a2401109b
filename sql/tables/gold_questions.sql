create table gold_questions (
    question_id varchar primary key,
    question varchar not null,
    answer varchar,
    language varchar,
    tags varchar[],
    answerable boolean not null,
    status varchar not null check (status in ('active', 'stale', 'unanswerable', 'draft')),
    reason varchar,
    file varchar,
    n_evidence bigint
);

comment on table gold_questions is 'One row per question the strategies are measured on.';
comment on column gold_questions.question_id is 'The question''s own name, from the questions file.';
comment on column gold_questions.question is 'The question as asked.';
comment on column gold_questions.answer is 'The reference answer, written by a person.';
comment on column gold_questions.language is 'Language of the question, a BCP 47 tag: en, fr, pt-BR ...';
comment on column gold_questions.tags is 'Free labels to group questions by, for example table, multi-document.';
comment on column gold_questions.answerable is 'False if the corpus deliberately does not hold the answer.';
comment on column gold_questions.status is 'active: all evidence is found and the question is scored. stale: a document changed and evidence is no longer found. unanswerable: has no evidence on purpose. draft: not approved yet, and not scored.';
comment on column gold_questions.reason is 'Why a question is stale, or a draft would be; NULL otherwise.';
comment on column gold_questions.file is 'The questions file to correct it in.';
comment on column gold_questions.n_evidence is 'Number of quotes that together answer it; alternatives count as one.';
