create table excluded_spans (
    chunker_version varchar not null,
    doc_id varchar not null,
    start_char bigint not null,
    end_char bigint not null,
    reason varchar not null
);

comment on table excluded_spans is 'One row per span of a document''s canonical text that a chunker version with `clean` does not embed. Key: chunker_version, doc_id, start_char.';
comment on column excluded_spans.chunker_version is 'Which declaration leaves it out, name@n.';
comment on column excluded_spans.doc_id is 'The document: documents.doc_id.';
comment on column excluded_spans.start_char is 'First code point in the canonical text, from 0.';
comment on column excluded_spans.end_char is 'One past the last code point.';
comment on column excluded_spans.reason is 'boilerplate (a block that many documents of the shard have), blank_lines, invisible (characters nobody sees) or furniture (what pages repeat: running headers, footers, page numbers; no version embeds it).';
