"""What keeps the server closed: the bind, the key, and the ways round them.  Every finding is appended, none printed."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping

from patchforge.errors import Problem
from patchforge.serving.command import Outputs
from patchforge.serving.installed import Installed
from patchforge.serving.secret import Secret
from patchforge.serving.table import Knob, Security, Table
from patchforge.serving.values import nearest

# Kubernetes and old container links add these for a service with the package's name.
_LINK = re.compile(r"_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)\Z")


def is_loopback(host: str) -> bool:
    """True for an address only this machine reaches.  A name other than ``localhost`` could be anything, so it is not."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_bind(
    security: Security, host: str | None, key: Secret | None, installed: Installed, problems: list[Problem]
) -> None:
    """An address others reach needs a key, and the patch that makes the key guard every path."""
    if host is None or is_loopback(host):
        return
    if key is None:
        problems.append(
            Problem(
                f"{security.host}={host} can be reached from other machines, and there is no {security.key}",
                hint=f"export {security.key}=$({security.create})",
                reason="bind",
            )
        )
    elif security.guard is not None and security.guard not in installed.patches:
        problems.append(
            Problem(
                f"{security.host}={host} can be reached from other machines, and the series does not carry "
                f"{security.guard}: the key would guard some paths only",
                hint="serve with a series that carries it, or on the loopback",
                reason="bind",
            )
        )


def check_environment(
    table: Table,
    knobs: tuple[Knob, ...],
    outputs: Outputs,
    environ: Mapping[str, str],
    key: Secret | None,
    installed: Installed,
    problems: list[Problem],
) -> None:
    """Variables the package would read: none it does not know, none that a knob decides otherwise, none round the key."""
    security = table.security
    if key is not None:
        for name in security.bypasses:
            if environ.get(name, "0") not in ("", "0"):
                text = f"{name} starts a front end that asks for no key, and {security.key} is set"
                problems.append(Problem(text, hint=f"unset {name}", reason="key"))
    ours = {knob.name for knob in knobs}
    decided = dict(outputs.env)
    for name, owner in sorted(outputs.owner.items()):
        have = environ.get(name)
        if name not in ours and have and have != decided.get(name):
            problems.append(
                Problem(f"{name} is what {owner} decides", hint=f"unset {name}, and set {owner}", reason="environment")
            )
    if table.registry is None or installed.variables is None:
        return
    known = installed.variables | ours | set(outputs.owner) | {security.key}
    for name in sorted(environ):
        if not name.startswith(table.registry.prefix) or name in known or not environ[name]:
            continue
        near = nearest(name, sorted(installed.variables))
        hint = f"did you mean {near}?" if near else f"{table.registry.file} lists those it knows"
        if _LINK.search(name):
            hint = "a cluster adds it for a service of that name: set enableServiceLinks to false"
        shown = name.encode("ascii", "backslashreplace").decode()  # a name may be any bytes, and not all can be printed
        text = f"the environment has {shown}, which {installed.distribution} {installed.version} does not know"
        problems.append(Problem(text, hint=hint, reason="environment"))
    for name in sorted(environ):
        # It is known, and what a cluster puts there is an address.
        if name in known and _LINK.search(name) and environ[name].startswith(("tcp://", "udp://")):
            text = f"{name} holds an address that a cluster put there"
            problems.append(Problem(text, hint="set enableServiceLinks to false", reason="environment"))


def check_extra(table: Table, knobs: tuple[Knob, ...], extra: Iterable[str], problems: list[Problem]) -> list[str]:
    """Reserved flags are refused; those that shadow a knob are named.  Returns the notes."""
    owners = {output.name: knob.name for knob in knobs for output in knob.becomes if output.is_flag}
    notes = []
    for word in extra:
        if word == "--":
            problems.append(Problem("EXTRA_ARGS: '--' would end the flags", hint="leave it out", reason="extra"))
        if not word.startswith("--") or word == "--":
            continue
        flag = _normal(word)
        # argparse takes any unambiguous beginning of a flag for the flag.
        meant = next((name for name in table.security.reserved if name == flag or name.startswith(flag)), None)
        if meant is not None:
            knob = owners.get(meant)
            hint = f"set {knob}" if knob else "leave it out"
            if meant == "--api-key":
                hint = f"set {table.security.key} in the environment, or a file in {table.security.key_file}"
            problems.append(Problem(f"EXTRA_ARGS: {meant} is not taken there", hint=hint, reason="extra"))
        elif flag in owners:
            notes.append(f"{flag} in EXTRA_ARGS comes after what {owners[flag]} says, and wins")
    return notes


def _normal(word: str) -> str:
    """The flag in ``word``: without value, sub-key and negation, with dashes for underscores."""
    flag = word.partition("=")[0].partition(".")[0].replace("_", "-")
    return "--" + flag.removeprefix("--no-") if flag.startswith("--no-") else flag


def check_key_free(
    key: Secret | None, texts: Iterable[str], env: Iterable[tuple[str, str]], problems: list[Problem]
) -> None:
    """The key stands in no word of the command, which everybody on the machine can read, and in no setting, which is printed."""
    if key is None:
        return
    if any(key.within(text) for text in texts) or any(key.within(value) for _, value in env):
        problems.append(
            Problem("a setting holds the API key", hint="the key belongs in its variable or file alone", reason="key")
        )
