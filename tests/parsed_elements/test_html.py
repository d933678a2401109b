import pytest

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.document import ParsedText, check_spans
from chunking_assets.parsed_elements.html import parse, parse_text


def parsed(page: str) -> ParsedText:
    result = parse_text(page)
    check_spans(result)
    return result


def shown(page: str) -> list[tuple[str, str]]:
    result = parsed(page)
    return [(e.kind, result.text[e.start : e.end]) for e in result.elements]


GOLDEN = """\
<!doctype html>
<html><head><title>Fees · Tidepay</title><style>p {color: red}</style></head>
<body class="has-sidebar">
<a class="skip-link" href="#main">Skip to content</a>
<header class="site"><a href="/">Tidepay</a></header>
<nav><ul><li>Home</li></ul></nav>
<div class="cookie-banner" role="dialog"><p>We use cookies</p><button>OK</button></div>
<div class="breadcrumb">Help &rsaquo; Fees</div>
<main><article>
<header><h1>Fees &amp; <em>limits</em></h1></header>
<p>Paid   <b>per</b>
sale,&nbsp;never<br>per month.</p>
<h2>By card<a class="headerlink" href="#card">¶</a></h2>
<ol start="3"><li>First<ul><li>inner <code>GET /v1</code></li></ul></li>
<li><p>Second</p><p>more</p></li></ol>
<table><caption>Fee table</caption>
<thead><tr><th>Card</th><th>Fee</th></tr></thead>
<tbody><tr><td rowspan="2">EU|EEA</td><td>1.2&nbsp;%</td></tr><tr><td>0.25<br>EUR</td></tr>
<tr><td colspan="2">none</td></tr></tbody></table>
<pre><code class="language-sh">curl \\
\t-d "a"  </code></pre>
<blockquote><p>Quoted</p></blockquote>
<dl><dt>Payout</dt><dd>Money to you.</dd><dd>Daily.</dd></dl>
<figure><img src="a.png"><figcaption>A terminal</figcaption></figure>
<aside class="note">In the article.</aside>
</article></main>
<aside><h2>Related</h2></aside>
<footer>© 2026</footer>
<script>track()</script>
</body></html>
"""


def test_golden():
    assert (
        parsed(GOLDEN).text
        == """\
# Fees & limits

Paid per sale, never
per month.

## By card

3. First
   - inner `GET /v1`
4. Second

   more

Fee table

| Card | Fee |
| --- | --- |
| EU\\|EEA | 1.2 % |
| EU\\|EEA | 0.25 EUR |
| none | none |

```sh
curl \\
\t-d "a"
```

> Quoted

Payout
: Money to you.
: Daily.

A terminal

In the article.
"""
    )


def test_golden_elements():
    elements = parsed(GOLDEN).elements
    assert [(e.kind, e.level) for e in elements] == [
        ("heading", 1),
        ("paragraph", 0),
        ("heading", 2),
        ("list_item", 1),
        ("list_item", 2),
        ("list_item", 1),
        ("list_item", 1),
        ("caption", 0),
        ("table", 0),
        ("code", 0),
        ("quote", 0),
        ("definition", 0),
        ("caption", 0),
        ("paragraph", 0),
    ]
    assert elements[1].heading_path == ("Fees & limits",)
    assert elements[-1].heading_path == ("Fees & limits", "By card")
    assert elements[9].language == "sh"


def test_a_table_says_where_its_header_ends():
    result = parsed(
        "<p>x</p><table><thead><tr><th colspan=2>A</th></tr><tr><th>b</th><th>c</th></tr></thead>"
        "<tr><td>1</td><td>2</td></tr></table>"
    )
    table = result.elements[1]
    assert result.text[table.start : table.attribute("header_end")] == (
        "| A | A |\n| b | c |\n| --- | --- |\n"
    )


def test_a_table_without_header_cells_repeats_no_row_as_header():
    table = parsed("<table><tr><td>a<td>b<tr><td>c<td>d</table>").elements[0]
    assert table.attribute("header_end") == table.start


def test_cells_hold_nested_lists_tables_and_code_on_one_line():
    page = (
        "<table><tr><th>k<th>v<tr><td><ul><li>a<li>b</ul><td><pre>x\n|y</pre>"
        "<tr><td>t<td><table><tr><td>1<td>2<tr><td>3<td>4</table></table>"
    )
    assert shown(page) == [
        ("table", "| k | v |\n| --- | --- |\n| a; b | x \\|y |\n| t | 1 2; 3 4 |")
    ]


def test_a_table_that_only_arranges_blocks_is_read_through():
    page = "<table><tr><td><h2>News</h2><p>text<td><ul><li>item</ul></table>"
    assert [kind for kind, _ in shown(page)] == ["heading", "paragraph", "list_item"]


def test_a_cell_that_spans_everything_does_not_explode():
    cell = f'<td colspan="65534" rowspan="65534">{"x" * 1_000}</td>'
    page = f"<table><tr><th>a</th></tr>{f'<tr>{cell * 20}</tr>' * 20}</table>"
    assert len(parsed(page).text) < 1_000_000


def test_preformatted_text_is_kept_as_it_is_in_a_fence_longer_than_any_inside():
    code = "\tif x:\u00a0\n\n        ````\n&\n"
    assert shown(f"<div><pre>{code.replace('&', '&amp;')}</pre></div>") == [
        ("code", f"`````\n{code.rstrip()}\n`````")
    ]


@pytest.mark.parametrize(
    "page",
    [
        '<pre class="lang-sql">x</pre>',
        '<pre><code class="hljs language-sql">x</code></pre>',
        '<div class="highlight-sql notranslate"><div class="highlight"><pre>x</pre></div></div>',
        '<pre data-lang="sql">x</pre>',
    ],
)
def test_the_language_of_code_is_found_where_highlighters_write_it(page: str):
    assert parsed(page).elements[0].language == "sql"


def test_inline_code_with_backticks_gets_a_longer_fence():
    assert shown("<p>a <code>x`y</code> b")[0][1] == "a `` x`y `` b"


def test_code_marks_stay_out_of_a_heading_path():
    heading = parsed("<h2>Use <code>retry()</code></h2>").elements[0]
    assert heading.heading_path == ("Use retry()",)


def test_a_heading_inside_a_paragraph_is_a_heading():
    assert shown("<p>before<h2>Title</h2>after</p>") == [
        ("paragraph", "before"),
        ("heading", "## Title"),
        ("paragraph", "after"),
    ]


def test_a_question_in_a_button_in_a_heading_is_read():
    page = "<h3><button>How long?</button></h3><div>Two days.</div><button>Send</button>"
    assert shown(page) == [("heading", "### How long?"), ("paragraph", "Two days.")]


def test_two_line_breaks_end_a_paragraph():
    assert shown("one<br>line<br><br>two") == [("paragraph", "one\nline"), ("paragraph", "two")]


def test_a_card_in_a_list_is_a_section_and_no_item():
    assert shown("<ul><li><h3>Card</h3><p>text</ul>") == [
        ("heading", "### Card"),
        ("paragraph", "text"),
    ]


def test_a_page_without_a_main_heading_is_named_by_its_title():
    result = parsed("<title>Fees</title><h2>Card</h2><p>x")
    assert result.text == "# Fees\n\n## Card\n\nx\n"
    assert result.elements[-1].heading_path == ("Fees", "Card")


def test_a_page_that_is_all_furniture_is_still_read():
    assert shown('<div class="sidebar"><p>The only text.</p></div>') == [
        ("paragraph", "The only text.")
    ]


def test_a_title_alone_is_no_page():
    assert parsed("<title>App</title><script>render()</script>").elements == ()


@pytest.mark.parametrize(
    "element",
    [
        "<nav>{}</nav>",
        "<header>{}</header>",
        "<footer>{}</footer>",
        "<aside>{}</aside>",
        "<dialog open>{}</dialog>",
        "<div hidden>{}</div>",
        '<div aria-hidden="true">{}</div>',
        '<div role="contentinfo">{}</div>',
        '<div id="cookie-consent-bar">{}</div>',
        '<div class="left-sidebar">{}</div>',
        '<section class="toc">{}</section>',
        "<noscript>{}</noscript>",
        "<template>{}</template>",
        "<svg><text>{}</text></svg>",
        "<select><option>{}</option></select>",
    ],
)
def test_furniture_is_left_out(element: str):
    assert shown(f"<p>kept</p>{element.format('dropped')}") == [("paragraph", "kept")]


@pytest.mark.parametrize(
    "element",
    [
        "<article><header>{}</header></article>",
        "<article><aside>{}</aside></article>",
        '<main><aside class="starlight-aside">{}</aside></main>',
        '<div hidden="until-found">{}</div>',
        '<div class="with-sidebar">{}</div>',
        '<div class="sidebar"><h1>T</h1>{}</div>',
        "<header><h1>T</h1><p>{}</p></header>",
        '<section id="cookie-banner">{}</section>',
        '<div class="section" id="cookie-banner">{}</div>',
        '<div class="cookie-recipe">{}</div>',
        '<div aria-hidden="true"><main>{}</main></div>',
        "<details><summary>{}</summary></details>",
    ],
)
def test_in_doubt_text_is_kept(element: str):
    assert "kept" in parsed(f"<p>more</p>{element.format('kept')}").text


def test_soft_hyphens_are_not_read():
    assert shown("<p>Donau&shy;dampf")[0][1] == "Donaudampf"


@pytest.mark.parametrize(
    "data",
    [
        '<meta charset="windows-1252"><p>5 €'.encode("cp1252"),
        b'<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1"><p>5 \x80',
        "\ufeff<meta charset='windows-1252'><p>5 €".encode("utf-16-le"),
        '<meta charset="latin-1"><p>5 €'.encode(),
    ],
    ids=["meta", "http-equiv", "byte-order mark", "wrong"],
)
def test_the_encoding_a_page_declares_is_respected(data: bytes):
    assert parse(data).text == "5 €\n"


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 10_000 + "deep" + "</div>" * 10_000,
        "<ul><li>" * 3_000 + "deep",
        "<table><tr><td>" * 5_000 + "deep",
        "<blockquote>" * 5_000 + "deep",
        "<b>" * 10_000 + "deep",
        "<code>" * 5_000 + "<pre>deep",
        "<dl><dd>" * 3_000 + "deep",
    ],
    ids=lambda page: page[:12],
)
def test_deep_nesting_is_read(page: str):
    result = parsed(page)
    assert "deep" in result.text
    assert len(result.text) < 10 * len(page)


@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 200_000,
        "<p>" + "".join(f"<font color={n}>" for n in range(3_000)) + "</p>" + "<p>x</p>" * 3_000,
    ],
    ids=["nesting", "formatting left open"],
)
def test_a_page_that_would_take_the_machine_down_is_refused(page: str):
    with pytest.raises(CorpusError, match="Close its tags"):
        parse_text(page)


@pytest.mark.parametrize(
    "page",
    [
        "\n" * 1_000_000 + "end",
        "<p>x" * 50_000,
        "<br>" * 100_000 + "x",
        "<td>x" * 50_000,
        "<" * 500_000,
        "&amp;" * 100_000,
        "<table>" + "<tr><td>x<td>y" * 20_000,
        f"<p class='{'cookie-' * 50_000}'>x",
        "<!--" * 100_000,
    ],
    ids=lambda page: repr(page[:12]),
)
def test_hostile_pages_come_to_an_end_with_every_promise_kept(page: str):
    parsed(page)
