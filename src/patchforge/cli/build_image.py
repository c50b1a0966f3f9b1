"""``patchforge build-image``."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated

import typer

from patchforge.cli import options as o


class Backend(enum.StrEnum):
    """What builds the image."""

    context = "context"
    oci = "oci"
    buildah = "buildah"
    podman = "podman"
    buildx = "buildx"


def command(
    pin: o.PinArgument = None,
    flavor: Annotated[
        str | None, typer.Option("--flavor", metavar="NAME", help="Which of the pin's images; default: the first.")
    ] = None,
    backend: Annotated[
        Backend,
        typer.Option("--backend", help="context writes files to build from; oci appends to a base without a daemon."),
    ] = Backend.context,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Where the result goes; default: below build/image.")
    ] = None,
    base: Annotated[
        Path | None, typer.Option("--base", metavar="LAYOUT", help="oci: the OCI layout that holds the pinned base.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="HOST/PATH:TAG", help="What the image is called.")
    ] = None,
    queue: Annotated[
        str, typer.Option("--queue", metavar="NAME", help="Kueue's local queue in the Kubernetes manifests.")
    ] = "serving",
    check: Annotated[
        bool, typer.Option("--check", help="Build twice, in two places; fail when the results differ.")
    ] = False,
    push: Annotated[
        str | None, typer.Option("--push", metavar="REF", help="Copy the image to a registry with skopeo.")
    ] = None,
    plain_http: Annotated[bool, typer.Option("--plain-http", help="Push to a registry without TLS.")] = False,
    allow_dirty: Annotated[
        bool, typer.Option("--allow-dirty", help="Build what is not committed, and mark the image.")
    ] = False,
    build_option: Annotated[
        list[str] | None,
        typer.Option("--build-option", metavar="WORD", help="buildah, podman, buildx: one more word for the client."),
    ] = None,
    pip_conf: Annotated[
        Path | None,
        typer.Option(
            "--pip-conf", metavar="FILE", help="pip's configuration in the build, as a secret no layer keeps."
        ),
    ] = None,
    wheels: Annotated[
        bool, typer.Option("--wheels", help="Put every locked wheel into the context: it builds without an index.")
    ] = False,
    format: o.FormatOption = o.Format.text,
    project: o.ProjectOption = None,
    quiet: o.QuietOption = False,
) -> int:
    """Build the pinned image, or what to build it from."""
    from patchforge.cli.session import execute
    from patchforge.reports.model import Report

    def work() -> Report:
        from patchforge.cli import targets
        from patchforge.cli.building import Asked, build
        from patchforge.reports.imaging import build_report

        asked = Asked(
            backend.value,
            out,
            base,
            name,
            queue,
            check,
            push,
            plain_http,
            allow_dirty,
            tuple(build_option or ()),
            pip_conf,
            wheels,
        )
        done = build(targets.Where(pin, project, quiet=quiet), flavor, asked)
        return build_report(
            done.inputs, done.backend, targets.shown(str(done.out)), done.name, done.digest, done.layers, done.built,
            done.checked, done.pushed,
        )  # fmt: skip

    return execute("build-image", format, quiet, work)
