create table elements (
    doc_id varchar not null,
    ordinal bigint not null,
    kind varchar not null,
    level bigint,
    start_char bigint not null,
    end_char bigint not null,
    heading_path varchar[],
    language varchar,
    attributes json,
    parent bigint,
    line bigint
);

comment on table elements is 'One row per structural part of a document: typed, sorted, never overlapping. Key: doc_id, ordinal.';
comment on column elements.doc_id is 'The document: documents.doc_id.';
comment on column elements.ordinal is 'Position in the document, from 0.';
comment on column elements.kind is 'heading, paragraph, list_item, table, code, caption, turn ...';
comment on column elements.level is 'Depth of a heading or list item, 1 the outermost; 0 or NULL where depth has no meaning.';
comment on column elements.start_char is 'First code point of the element in the canonical text, from 0.';
comment on column elements.end_char is 'One past the last code point.';
comment on column elements.heading_path is 'The headings above the element, outermost first.';
comment on column elements.language is 'Language of a code block, where the document says so.';
comment on column elements.attributes is 'What only some kinds have, as a JSON object: page, row, speaker ...';
comment on column elements.parent is 'Ordinal of the element it stands under: its list item, class or innermost heading; NULL at the top.';
comment on column elements.line is 'Line of the canonical text it begins on, from 1: in Markdown, code, CSV and other text, the line of the file.';
