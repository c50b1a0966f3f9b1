"""Asking a running server whether it is well."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

PATH = "/health"
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


@dataclass(frozen=True, slots=True)
class Health:
    """``code`` is the HTTP status, ``None`` when no answer came; ``why`` says what happened then."""

    url: str
    code: int | None
    why: str = ""

    @property
    def well(self) -> bool:
        """True when the server says that it and its engine are running."""
        return self.code == 200


def ask(host: str, port: int, timeout: float) -> Health:
    """GET the health path, which needs no key.  A server that listens everywhere is asked on the loopback."""
    address = _EVERYWHERE.get(host.strip("[]"), host.strip("[]"))
    shown = f"[{address}]" if ":" in address else address
    url = f"http://{shown}:{port}{PATH}"
    connection = HTTPConnection(address, port, timeout=timeout)
    try:
        connection.request("GET", PATH)
        return Health(url, connection.getresponse().status)
    except TimeoutError:
        return Health(url, None, f"no answer within {timeout:g} s")
    except ConnectionRefusedError:
        return Health(url, None, "nothing listens there")
    except (OSError, HTTPException, ValueError) as error:
        return Health(url, None, f"{type(error).__name__}: {error}")
    finally:
        connection.close()
