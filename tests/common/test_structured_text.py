"""Lists and maps in one line, as Flink's configuration has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.common.structured_text import parse_map, parse_maps, show_map, show_maps, split


def test_parts_with_delimiters_stand_in_quotes() -> None:
    assert split("a; b;'c;d' ; \"e;f\";'it''s'", ";") == ["a", "b", "c;d", "e;f", "it's"]
    assert split("[a, 'b;c']", ";") == ["a", "b;c"]
    assert split("", ";") == []


def test_maps_in_every_form_that_flink_reads() -> None:
    expected = {"a": "1", "b": "x:y,z"}
    assert parse_map("a:1,b:'x:y,z'") == expected
    assert parse_map("{a: 1, b: 'x:y,z'}") == expected
    assert parse_map("a:1,'b:''x:y,z'''") == expected, "an entry may be quoted as a whole"
    assert parse_map("path:hdfs://host/file") == {"path": "hdfs://host/file"}
    assert parse_maps("name:a,path:/a;name:b,path:'/b;c'") == (
        {"name": "a", "path": "/a"},
        {"name": "b", "path": "/b;c"},
    )
    assert parse_maps("[{name: a, path: /a}]") == ({"name": "a", "path": "/a"},)


@pytest.mark.parametrize("text", ["a", "a:1,b", ":1", "a:'1", "{a: 1", "[1", "[a]"])
def test_what_is_no_map_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_maps(text)


_texts = st.text(st.sampled_from("ab:,;'\" /"), min_size=1, max_size=6).map(str.strip).filter(bool)


@given(st.lists(st.dictionaries(_texts, _texts, min_size=1, max_size=3), max_size=3))
def test_what_is_shown_is_read_again(maps: list[dict[str, str]]) -> None:
    assert list(parse_maps(show_maps(maps))) == maps
    for one in maps:
        assert parse_map(show_map(one)) == one
