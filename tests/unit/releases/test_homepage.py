"""Where a distribution is developed, by its metadata."""

from __future__ import annotations

import pytest

from patchforge.releases.homepage import developed_at

HOSTS = {"github.com", "git.example"}


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ("Project-URL: Homepage, https://github.com/vllm-project/vllm", "vllm-project/vllm"),
        (
            "Project-URL: Source Code, https://github.com/org/demo/tree/main\nHome-page: https://github.com/x/y",
            "org/demo",
        ),
        (
            "Project-URL: Homepage, https://demo.example/\nProject-URL: repository, https://github.com/org/demo.git",
            "org/demo",
        ),
        ("Project-URL: Bug Tracker, https://github.com/org/demo/issues", "org/demo"),
        ("Home-page: https://git.example/org/demo/", "git.example/org/demo"),
        ("Project-URL: Funding, https://github.com/sponsors/somebody", None),
        ("Project-URL: Homepage, https://github.com/org", None),
        ("Project-URL: Homepage, https://other.example/org/demo", None),
        ("Project-URL: Homepage, https://user:pw@github.com/org/demo", None),
        ("Project-URL: Homepage, https://[github.com/org/demo", None),
        ("Project-URL: Homepage, git@github.com:org/demo", None),
        ("Project-URL: Homepage", None),
        ("", None),
    ],
)
def test_the_repository(lines: str, place: str | None) -> None:
    metadata = (
        f"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n{lines}\n\nProject-URL: Source, https://github.com/a/b\n"
    )
    found = developed_at(metadata.encode(), HOSTS)
    assert (None if found is None else str(found)) == place


def test_no_metadata() -> None:
    assert developed_at(b"", HOSTS) is None
