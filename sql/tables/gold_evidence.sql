create table gold_evidence (
    question_id varchar not null,
    evidence bigint not null,
    alternative bigint not null,
    doc_id varchar not null,
    quote varchar not null,
    occurrence bigint not null,
    start_char bigint,
    end_char bigint,
    status varchar not null,
    check (status in ('found', 'ambiguous', 'missing_quote', 'missing_document')),
    passage varchar,
    diff varchar
);

comment on table gold_evidence is 'One row per place where the words that answer a question stand now. Key: question_id, evidence, alternative, occurrence.';
comment on column gold_evidence.question_id is 'The question: gold_questions.question_id.';
comment on column gold_evidence.evidence is 'Number of what is needed within its question, from 1: all of them together answer it.';
comment on column gold_evidence.alternative is 'Number of the quote among those of which one is enough, from 1.';
comment on column gold_evidence.doc_id is 'The document it is quoted from: documents.doc_id.';
comment on column gold_evidence.quote is 'The exact words, as the questions file gives them.';
comment on column gold_evidence.occurrence is 'Number of the place within the document, from 1; 0 if the words are not found.';
comment on column gold_evidence.start_char is 'First code point in the canonical text, from 0; NULL if not found.';
comment on column gold_evidence.end_char is 'One past the last code point; NULL if not found.';
comment on column gold_evidence.status is 'found; ambiguous (stands there several times, any of them counts); missing_quote (the document no longer says it, or not as often); missing_document.';
comment on column gold_evidence.passage is 'The quote with the text around it, as it was when it was last found; NULL if it never was.';
comment on column gold_evidence.diff is 'What the passage of a missing quote has become: [-removed-]{+added+} in the most similar passage of today; NULL if the quote is found, or nothing is like it.';
