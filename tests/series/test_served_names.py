"""A 404 for a model names those that are served."""

from __future__ import annotations

from seen import Seen


def test_the_message_lists_the_served_names(seen: Seen) -> None:
    status, body = seen.patched["names"]["unknown"]
    assert status == 404
    assert body["error"]["message"] == "The model `nobody` does not exist. Valid aliases: hq, second."


def test_the_rest_of_the_answer_is_as_it_was(seen: Seen) -> None:
    before, after = seen.pristine["names"]["unknown"], seen.patched["names"]["unknown"]
    assert before[1]["error"]["message"] == "The model `nobody` does not exist."
    for body in (before[1]["error"], after[1]["error"]):
        del body["message"]
    assert before == after
