"""Bill of materials and provenance: valid by their official schemas, and true."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from shop import Shop
from validation import valid_sbom


def built(shop: Shop) -> tuple[str, Any]:
    done = shop.build()
    assert done.status == 0, done.out
    return done.json["digest"], json.loads((shop.out / "sbom.cdx.json").read_text())


def test_the_schema_finds_what_is_wrong() -> None:
    with pytest.raises(AssertionError):
        valid_sbom('{"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "componentz": []}')


def test_the_bill_of_an_image(shop: Shop) -> None:
    _, document = built(shop)
    valid_sbom((shop.out / "sbom.cdx.json").read_text())
    assert document["metadata"]["component"]["type"] == "container"
    main = document["components"][0]
    pedigree = main["pedigree"]
    assert pedigree["ancestors"][0]["purl"] == "pkg:pypi/demo@1.0"
    assert pedigree["ancestors"][0]["hashes"][0]["content"] == hashlib.sha256(shop.wheel.read_bytes()).hexdigest()
    assert [p["resolves"][0]["name"] for p in pedigree["patches"]] == ["log", "names", "drop"]
    assert pedigree["patches"][0]["resolves"][0]["id"] == "demo #12 (open)"
    text = pedigree["patches"][0]["diff"]["text"]["content"].encode()
    assert text == (shop.demo.patches / "log.patch").read_bytes()
    order = [p["value"].split()[0] for p in main["properties"] if ":patch:" in p["name"]]
    assert order == ["log", "names", "drop"]
    assert {c["name"] for c in document["components"][1:]} == {"dep"}
    assert document["dependencies"][1] == {"ref": main["bom-ref"], "dependsOn": ["pkg:pypi/dep@2.0"]}


def test_the_bill_is_the_same_twice_and_another_for_another_series(shop: Shop) -> None:
    _, first = built(shop)
    assert built(shop)[1] == first
    shop.demo.write_patches(log=(shop.demo.patches / "log.patch").read_bytes())
    assert shop.run("lock", "--tree", str(shop.root.parent / "pristine")).status == 0
    assert shop.run("table").status == 0
    shop.commit()
    assert built(shop)[1]["serialNumber"] != first["serialNumber"]


def test_the_command(shop: Shop, tmp_path: Path) -> None:
    shown = shop.run("sbom")
    assert shown.status == 0
    valid_sbom(shown.out)
    assert json.loads(shown.out)["metadata"]["component"]["name"] == "demo"
    assert shop.run("sbom", "--format", "json").json["sbom"] == json.loads(shown.out)
    file = tmp_path / "sbom.json"
    assert shop.run("sbom", "--check", "--out", str(file)).status == 1
    assert shop.run("sbom", "--out", str(file)).status == 0
    assert json.loads(file.read_text()) == json.loads(shown.out)
    assert shop.run("sbom", "--check", "--out", str(file)).status == 0
    assert shop.run("sbom", "--check").status == 2


def test_the_provenance(shop: Shop) -> None:
    digest, _ = built(shop)
    data = (shop.out / "provenance.intoto.json").read_text()
    statement = json.loads(data)
    found = pytest.importorskip("in_toto_attestation.v1.statement")
    from google.protobuf import json_format
    from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
    from in_toto_attestation.v1 import statement_pb2

    parsed = json_format.Parse(data, statement_pb2.Statement())
    found.Statement.copy_from_pb(parsed).validate()
    json_format.ParseDict(statement["predicate"], provenance_pb2.Provenance())
    assert statement["subject"] == [{"name": "localhost/demo-patched:1.0-default", "digest": {"sha256": digest[7:]}}]
    build = statement["predicate"]["buildDefinition"]
    assert build["externalParameters"]["flavor"] == "default"
    materials = {item["name"]: item["digest"] for item in build["resolvedDependencies"]}
    patch = shop.demo.patches / "log.patch"
    assert materials["patch patches/demo-1.0/log.patch"] == {"sha256": hashlib.sha256(patch.read_bytes()).hexdigest()}
    assert materials["project"]["gitCommit"]
    assert f"sha256:{materials['base image localhost/stub']['sha256']}" in shop.pin.read_text()


def test_statements_are_outside_the_digest(shop: Shop) -> None:
    """The provenance has a time in it; the image must not change with it."""
    digest, _ = built(shop)
    blobs = [p.read_bytes() for p in (shop.out / "layout/blobs/sha256").iterdir()]
    assert not any(b"slsa.dev" in blob for blob in blobs)
    index = json.loads((shop.out / "layout/index.json").read_text())
    assert [m["digest"] for m in index["manifests"]] == [digest]
