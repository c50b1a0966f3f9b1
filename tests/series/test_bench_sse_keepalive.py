"""The benchmark client reads a stream with comments as it reads one without."""

from __future__ import annotations

import pytest
from seen import Seen

FUNCTIONS = ["async_request_openai_completions", "async_request_openai_chat_completions"]
STREAMS = ["no comment", "comment", "crlf", "comment line in a message"]
TEXT = "the quick brown \u2028 fox"


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("stream", STREAMS)
def test_a_request_is_measured(seen: Seen, function: str, stream: str) -> None:
    done = seen.patched["bench"][f"{function} {stream}"]
    assert done["success"], done["error"]
    assert (done["text"], done["tokens"], done["gaps"]) == (TEXT, 4, 3)
    assert done["ttft"] > 0


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("stream", STREAMS[1:])
def test_pristine_fails_it(seen: Seen, function: str, stream: str) -> None:
    assert not seen.pristine["bench"][f"{function} {stream}"]["success"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_time_to_the_first_token_waits_for_a_token(seen: Seen, function: str) -> None:
    # The server pauses for 20 ms after the comment: a client that took it for a token would report less.
    assert seen.patched["bench"][f"{function} comment"]["ttft"] > 0.019


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("where", ["beside a space of the text", "after the field's colon"])
def test_white_space_where_a_chunk_ends_is_kept(seen: Seen, function: str, where: str) -> None:
    done = seen.patched["cuts"][f"{function} {where}"]
    assert done["success"], done["error"]
    assert done["text"] == TEXT


@pytest.mark.parametrize("function", FUNCTIONS)
def test_pristine_loses_it(seen: Seen, function: str) -> None:
    damaged = seen.pristine["cuts"][f"{function} beside a space of the text"]
    assert damaged["success"]
    assert damaged["text"] == "thequickbrown \u2028fox"
    assert not seen.pristine["cuts"][f"{function} after the field's colon"]["success"]


def test_the_audio_path_skips_comments(seen: Seen) -> None:
    key = "async_request_openai_audio comment"
    assert seen.patched["bench"][key]["success"], seen.patched["bench"][key]["error"]
    assert not seen.pristine["bench"][key]["success"]


@pytest.mark.parametrize("stream", STREAMS)
def test_the_reader_gives_the_same_messages_however_the_bytes_are_cut(seen: Seen, stream: str) -> None:
    found = seen.patched["reader"][stream]
    assert found["different"] == []
    assert found["byte by byte"]
    assert len(found["whole"]) == 6
    assert all(message.startswith("data: ") for message in found["whole"])


def test_a_stream_without_comments_is_read_as_before(seen: Seen) -> None:
    assert seen.patched["reader"]["no comment"] == seen.pristine["reader"]["no comment"]
