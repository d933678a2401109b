"""Indexes of several levels: overlapping hits, parents in place of children, neighbours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from small_corpus import CONFIGURATION, SmallCorpus, write_corpus

from chunking_assets.retrieval import reader as reader_module
from chunking_assets.retrieval.dedupe import dedupe
from chunking_assets.retrieval.hit import Hit
from chunking_assets.retrieval.open import open_strategy
from chunking_assets.retrieval.parents import Family, with_parents
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.select import merge
from chunking_assets.retrieval.trim import trim
from evals.retrieval_scores.build import hits_within


def hit(name, score=1.0, span=(0, 10), *, doc="d", level=0, parent=None, tokens=10, ordinal=0):
    start, end = span
    text = "x" * (end - start)
    return Hit(
        name, doc, ordinal, start, end, "", text, (), tokens, score, level=level, parent_id=parent
    )


def ids(hits):
    return [h.chunk_id for h in hits]


# dedupe


def test_a_hit_inside_a_better_one_is_dropped():
    large, small = hit("large", 2.0, (0, 100)), hit("small", 1.0, (10, 20))
    assert ids(dedupe([large, small], 0.5)) == ["large"]


def test_a_large_hit_around_a_better_small_one_stays_until_its_share_is_known():
    hits = [hit("a", 3.0, (0, 30)), hit("b", 2.0, (30, 50)), hit("large", 1.0, (0, 100))]
    assert ids(dedupe(hits, 0.5)) == ["a", "b"]
    assert ids(dedupe(hits, 0.51)) == ["a", "b", "large"]


def test_a_span_of_another_document_covers_nothing():
    assert len(dedupe([hit("a"), hit("b", doc="e")], 0.1)) == 2


def test_what_was_dropped_covers_nothing():
    hits = [hit("a", 3.0, (0, 10)), hit("b", 2.0, (4, 16)), hit("c", 1.0, (10, 20))]
    assert ids(dedupe(hits, 0.5)) == ["a", "c"]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=15),
    st.sampled_from([0.07, 0.3, 0.5, 1.0]),
)
def test_what_is_kept_is_what_counting_characters_says(spans, share):
    hits = [hit(str(n), span=(start, start + length)) for n, (start, length) in enumerate(spans)]
    kept, covered = [], set()
    for one in hits:
        own = set(range(one.start, one.end))
        if len(own & covered) / len(own) < share:
            kept.append(one)
            covered |= own
    assert dedupe(hits, share) == kept


# parents


class Tree:
    """Families as an index would tell them: parent to its span, level, own parent and children."""

    def __init__(self, **parents):
        self.parents = parents
        self.asked = 0

    def __call__(self, hits):
        self.asked += 1
        named = {h.parent_id for h in hits} & self.parents.keys()
        return {
            name: Family(hit(name, 0.0, span, level=level, parent=above, tokens=tokens), children)
            for name, (span, level, above, children, tokens) in self.parents.items()
            if name in named
        }


FAMILY = Tree(p=((0, 40), 1, None, 4, 40))


def children(*names, parent="p"):
    spans = {name: (10 * at, 10 * at + 10) for at, name in enumerate("abcdefgh")}
    return [hit(n, 1.0 - at / 10, spans[n], parent=parent) for at, n in enumerate(names)]


def test_a_parent_takes_the_place_and_score_of_its_best_child():
    other = hit("other", 0.95, doc="e")
    best, second = children("c", "a")
    found = with_parents([best, other, second], 0.5, FAMILY)
    assert [(h.chunk_id, h.score) for h in found] == [("p", 1.0), ("other", 0.95)]
    assert found[0].vector_score is None


def test_too_few_children_stay():
    assert ids(with_parents(children("a", "b"), 0.51, FAMILY)) == ["a", "b"]
    assert ids(with_parents(children("a"), 0.5, FAMILY)) == ["a"]


def test_parents_are_merged_upwards():
    tree = Tree(
        p=((0, 20), 1, "g", 2, 20), q=((20, 40), 1, "g", 2, 20), g=((0, 40), 2, None, 2, 40)
    )
    hits = [*children("a", "b"), *children("a", "b", "c", "d", parent="q")[2:]]
    assert ids(with_parents(hits, 1.0, tree)) == ["g"]
    assert ids(with_parents(hits[:3], 1.0, tree)) == ["p", "c"]
    assert ids(with_parents(hits[:3], 0.5, tree)) == ["g"]


def test_what_lies_inside_a_parent_goes_with_its_children():
    tree = Tree(p=((0, 20), 1, "g", 2, 20), g=((0, 40), 2, None, 2, 40))
    stranger = hit("s", 0.5, (25, 30), parent="elsewhere")
    assert ids(with_parents([*children("a"), stranger], 0.5, tree)) == ["g"]


def test_a_parent_over_the_token_budget_is_not_taken():
    assert ids(with_parents(children("a", "b"), 0.5, FAMILY, token_budget=39)) == ["a", "b"]
    assert ids(with_parents(children("a", "b"), 0.5, FAMILY, token_budget=40)) == ["p"]


def test_the_better_of_two_parents_gets_the_budget():
    tree = Tree(p=((0, 40), 1, None, 2, 40), q=((40, 80), 1, None, 2, 40))
    hits = [*children("e", "f", parent="q"), *children("a", "b")]
    assert ids(with_parents(hits, 0.5, tree, token_budget=60)) == ["q", "a", "b"]


def test_a_parent_the_index_does_not_hold_leaves_its_children():
    assert ids(with_parents(children("a", "b", parent="gone"), 0.1, FAMILY)) == ["a", "b"]


def test_an_index_without_parents_is_not_asked():
    tree = Tree()
    assert ids(with_parents([hit("a"), hit("b")], 0.1, tree)) == ["a", "b"]
    assert tree.asked == 0


# trim


def parents_in(tree):
    return lambda hits: {name: family.parent for name, family in tree(hits).items()}


PARENTS = parents_in(FAMILY)


def test_a_parent_is_trimmed_to_what_lies_from_its_first_to_its_last_good_child():
    second, last = children("b", "d")
    (found,) = trim([last], [last, second], PARENTS)
    assert (found.chunk_id, found.start, found.end, found.text) == ("p", 10, 40, "x" * 30)
    assert (found.score, found.n_tokens) == (last.score, 30)


def test_trimmed_parents_stand_in_the_order_of_their_best_children():
    tree = Tree(p=((0, 40), 1, None, 4, 40), q=((40, 80), 1, None, 4, 40))
    other = hit("other", 0.95, doc="e")
    hits = [*children("e", parent="q"), other, *children("a", "b")]
    assert ids(trim(hits, hits, parents_in(tree))) == ["q", "other", "p"]


def test_a_good_hit_of_a_parent_that_is_not_among_the_ranked_adds_nothing():
    ranked, stranger = children("a"), hit("s", 0.9, (50, 60), parent="q")
    assert [(h.start, h.end) for h in trim(ranked, [stranger], PARENTS)] == [(0, 10)]


def test_a_parent_over_the_token_budget_is_not_trimmed_but_left():
    hits = children("a", "d")
    assert ids(trim(hits, hits, PARENTS, token_budget=40)) == ["p"]
    assert ids(trim(hits, hits, PARENTS, token_budget=39)) == ["a"]


@given(st.sets(st.sampled_from("abcdefgh"), min_size=1), st.integers(0, 7))
def test_a_trimmed_parent_holds_every_good_child_and_begins_and_ends_with_one(names, seed):
    hits = children(*sorted(names))
    best = hits[seed % len(hits)]
    (found,) = trim([best], hits, parents_in(Tree(p=((0, 80), 1, None, 8, 80))))
    assert (found.start, found.end) == (hits[0].start, hits[-1].end)
    assert len(found.text) == found.end - found.start == found.n_tokens


# merge


def test_hits_of_two_levels_do_not_follow_each_other_by_their_ordinals():
    hits = [hit("a", span=(0, 10), ordinal=3), hit("b", span=(90, 99), level=1, ordinal=4)]
    assert len(merge(hits)) == 2


def test_a_hit_inside_another_adds_neither_text_nor_tokens():
    inner, outer = hit("in", span=(0, 5), tokens=5), hit("out", span=(0, 10), level=1, tokens=9)
    (passage,) = merge([inner, outer])
    assert (passage.spans, passage.n_tokens) == (((0, 10),), 9)
    assert passage.chunk_ids == ("out", "in")


# over a real index

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
TEXT = "\n\n".join(f"The word {word} stands in line {n} here." for n, word in enumerate(WORDS))
CHUNKERS = {
    "tree@1": {"kind": "hierarchical", "sizes": [36, 18, 9]},
    "sizes@1": {"kind": "multi_granularity", "sizes": [36, 18, 9]},
}
PROFILES = {
    "plain": {"search": "bm25", "k": 4},
    "parents": {"search": "bm25", "k": 4, "parents": 0.5},
    "all": {"search": "bm25", "k": 4, "parents": 1.0},
    "dedupe": {"search": "bm25", "k": 4, "dedupe": 0.4},
    "hybrid": {"search": "hybrid", "k": 4, "parents": 0.5, "dedupe": 0.5},
    "trim": {"search": "bm25", "k": 2, "cut": 0.9, "trim": 0.2},
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    strategies = {
        f"{chunker}-{profile}": {"chunker": f"{chunker}@1", "model": "hash", "profile": profile}
        for chunker in ("tree", "sizes")
        for profile in PROFILES
    }
    file = write_corpus(
        tmp_path_factory.mktemp("levels"),
        {"it's.md": TEXT, "other.md": "Nothing of that is said in this short file."},
        chunkers={**CONFIGURATION["chunkers"], **CHUNKERS},
        retrieval_profiles=PROFILES,
        strategies=strategies,
    )
    corpus = SmallCorpus(file)
    corpus.update()
    return corpus


@pytest.fixture
def reader(corpus, monkeypatch):
    monkeypatch.setattr(reader_module, "FOLLOW_SECONDS", 60.0)
    return lambda strategy: open_strategy(corpus.workspace, corpus.config.strategies[strategy])


@pytest.fixture
def ask(reader):
    def chosen(strategy, question, **limits):
        opened = reader(strategy)
        return opened.chosen(opened.rank(question), **limits)

    return chosen


def test_only_the_finest_chunks_are_found(ask):
    hits = ask("tree-plain", "the word alpha stands in line")
    assert {h.level for h in hits} == {0}
    assert all(h.parent_id for h in hits)


def test_children_found_together_give_way_to_their_parent(ask):
    hits = ask("tree-all", "alpha beta")
    assert [(h.level, h.text) for h in hits] == [(1, TEXT[: TEXT.index("\n\nThe word gamma")])]


def test_parents_found_together_give_way_to_theirs(ask):
    hits = ask("tree-all", "alpha beta gamma delta")
    assert [(h.level, h.text) for h in hits] == [(2, TEXT[: TEXT.index("\n\nThe word epsilon")])]
    hits = ask("tree-parents", "alpha")
    assert [h.level for h in hits] == [2]


def test_a_token_budget_bounds_what_parents_add(ask):
    hits = ask("tree-parents", "alpha beta gamma delta", token_budget=20)
    assert sum(h.n_tokens for h in hits) <= 20
    assert hits


def test_parents_are_handed_on_trimmed(reader):
    answer = reader("tree-trim").answer("alpha beta delta epsilon")
    hits = [h for h in answer.candidates if h.dropped is None]
    assert {h.level for h in hits} == {1}
    assert len(hits) == 2
    assert all(h.text == TEXT[h.start : h.end] for h in hits)
    assert all(h.bm25_score for h in hits)
    assert sorted(i for p in answer.passages for i in p.chunk_ids) == sorted(ids(hits))


def test_a_hit_says_that_its_parent_was_handed_on_or_why_it_was_not(reader):
    answer = reader("tree-trim").answer("alpha gamma epsilon")
    fates = {h.text.split()[2]: h.dropped for h in answer.candidates if h.level == 0}
    assert fates["alpha"] == fates["gamma"] == "trim: its parent was handed on"
    assert fates["epsilon"] == "k: 2 better hits were handed on"


def test_all_sizes_are_found_and_the_worse_of_two_that_overlap_is_dropped(ask):
    hits = ask("sizes-plain", "alpha")
    assert sorted(h.level for h in hits) == [0, 1, 2]
    hits = ask("sizes-dedupe", "alpha")
    assert [h.level for h in hits] == [0, 2]


@pytest.mark.parametrize("cutoff", ["5", "500t", "served"])
def test_the_scores_see_what_is_served(reader, cutoff):
    opened = reader("tree-parents")
    ranked = opened.rank("alpha beta gamma")
    assert hits_within(opened, ranked, cutoff) == opened.chosen(ranked)
    assert {h.level for h in opened.chosen(ranked)} == {2}


@pytest.mark.parametrize("strategy", ["tree-plain", "sizes-plain"])
def test_neighbours_are_one_passage_whatever_stands_between_their_ordinals(ask, reader, strategy):
    hits = finest(ask(strategy, "beta gamma delta epsilon", k=50))
    beta, gamma = hits["beta"], hits["gamma"]
    assert gamma.ordinal - beta.ordinal > 1
    assert [p.text for p in reader(strategy).passages([beta, gamma])] == [
        f"{beta.text}\n\n{gamma.text}"
    ]


@pytest.mark.parametrize("strategy", ["tree-plain", "sizes-plain"])
def test_hits_with_text_between_them_stay_apart(ask, reader, strategy):
    hits = finest(ask(strategy, "beta gamma delta epsilon", k=50))
    assert len(reader(strategy).passages([hits["beta"], hits["delta"]])) == 2


def finest(hits):
    return {hit.text.split()[2]: hit for hit in hits if hit.level == 0}


def test_a_hybrid_profile_with_both_steps_answers(ask, reader):
    hits = ask("tree-hybrid", "which line is alpha in")
    assert hits[0].doc_id == "docs/it's.md"
    passages = reader("tree-hybrid").passages(hits)
    assert sum(len(p.chunk_ids) for p in passages) == len(hits)


# the profile


@pytest.mark.parametrize("step", ["dedupe", "parents"])
@pytest.mark.parametrize("share", [0, -0.1, 1.1])
def test_a_share_is_above_0_and_at_most_1(step, share):
    with pytest.raises(ValidationError):
        RetrievalProfile(search="bm25", **{step: share})


def test_trim_stands_alone():
    for step in ({"parents": 0.5}, {"expand": {"before": 1}}):
        with pytest.raises(ValidationError, match="leave out expand and parents"):
            RetrievalProfile(search="bm25", trim=0.5, **step)


def test_a_profile_declared_before_these_steps_came_is_still_the_same():
    assert {"dedupe", "parents", "trim"}.isdisjoint(RetrievalProfile(search="bm25").declaration())
    assert RetrievalProfile(search="bm25", parents=0.5).declaration()["parents"] == 0.5
