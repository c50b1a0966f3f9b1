"""A container's root, entered as a container runtime does it, with no runtime at hand.

The process has mounts of its own: the root is read-only, as the compose file asks, but for /tmp and the user's home.  It runs as
the image's user, with the image's environment, in the image's directory, and is the very process that was started here, so a
signal sent to it is a signal to the container.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

# "$1" is the root, "$2" what /models shows, "$3" ro or rw, "$4" user:group, "$5" the directory; then the command.
ENTER = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount --bind "$2" "$1/models"
mount -o "remount,bind,$3" "$1/models"
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
mount -t tmpfs -o "mode=0700,uid=${4%:*},gid=${4#*:}" tmpfs "$1/home/serve"
mount -o remount,bind,ro "$1"
root=$1 user=$4 folder=$5
shift 5
exec chroot --userspec="$user" "$root" env -C "$folder" "$@"
"""


def image_config(layout: Path) -> dict[str, Any]:
    """The configuration of the only image of an OCI layout."""
    blobs = layout / "blobs/sha256"
    index = json.loads((layout / "index.json").read_text())
    manifest = json.loads((blobs / index["manifests"][0]["digest"][7:]).read_text())
    found: dict[str, Any] = json.loads((blobs / manifest["config"]["digest"][7:]).read_text())
    return found


@dataclass
class Rooted:
    """An image's root on this disk, and the configuration it is run with."""

    root: Path
    config: dict[str, Any]
    models: Path

    def __post_init__(self) -> None:
        (self.root / "models").mkdir(exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        return dict(item.partition("=")[::2] for item in self.config["Env"])

    def words(self, *command: str, user: str | None = None, writable: bool = False) -> list[str]:
        inside = [str(self.root), str(self.models), "rw" if writable else "ro", user or self.config["User"]]
        enter = ["unshare", "--mount", "sh", "-c", ENTER, "enter"]
        return [*enter, *inside, self.config["WorkingDir"], *command]

    def start(self, *arguments: str, log: IO[bytes], **env: str) -> subprocess.Popen[bytes]:
        """Start the image's entry point; the process started is the container's first."""
        words = self.words(*self.config["Entrypoint"], *arguments)
        clean = {**self.environment, **env}
        # A session of its own: an engine that is killed can be cleared away with its children.
        return subprocess.Popen(words, env=clean, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def run(
        self, *command: str, user: str | None = None, writable: bool = False, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run another command in it and wait."""
        words = self.words(*command, user=user, writable=writable)
        clean = {**self.environment, **env}
        return subprocess.run(words, env=clean, capture_output=True, text=True, check=False, timeout=600)


def command_lines() -> str:
    """The command lines of all processes, as ``ps`` shows them."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                found.append((entry / "cmdline").read_bytes().decode("utf-8", "replace"))
            except OSError:
                pass  # it has ended
    return "\n".join(found)
