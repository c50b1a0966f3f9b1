"""The tokenizer's routes stand under /v1 too, and the document that lists them stays sound."""

from __future__ import annotations

import pytest
from seen import Seen


@pytest.mark.parametrize("name", ["tokenize", "detokenize"])
def test_both_paths_answer_alike(seen: Seen, name: str) -> None:
    old, new = f"/{name}", f"/v1/{name}"
    assert seen.pristine[name][old] == seen.patched[name][old] == seen.patched[name][new]
    assert seen.patched[name][new][0] == 200
    assert seen.pristine[name][new][0] == 404


def test_operation_ids_stay_unique_without_warnings(seen: Seen) -> None:
    operations = seen.patched["operations"]
    assert len(operations) == len(set(operations))
    assert seen.patched["openapi warnings"] == []


def test_nothing_else_is_new_in_the_document(seen: Seen) -> None:
    new = set(seen.patched["paths"]) - set(seen.pristine["paths"])
    asked_first = {"/", "/api/status", "/api/show", "/api/experimental/model-recommendations"}
    assert new - asked_first == {"/v1/tokenize", "/v1/detokenize"}
    assert set(seen.pristine["paths"]) <= set(seen.patched["paths"])


def test_the_optional_route_comes_along(seen: Seen) -> None:
    assert seen.pristine["info paths"] == ["/tokenizer_info"]
    assert seen.patched["info paths"] == ["/tokenizer_info", "/v1/tokenizer_info"]
