"""Asks a model server over REST, TensorFlow Serving or ours: any number of texts, in order."""

import os
import random
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter

from .line_client import LineClient, Row, ServerError

# What passes: nobody listens yet, a server that ended in the middle or is silent.
_PASSING = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
)
_BUSY = 503


class RestClient(LineClient):
    """Over REST. Any number of threads may ask.

    Args:
        address: HOST:PORT or a URL in front of /v1; TensorFlow Serving's port is 8501.
        model: its name at the server.
        version: a number; default the server's newest.
        timeout: seconds for one answer, with all retries and the wait for a server that starts.
        retries: at most, after a connection that fails or breaks off and after the status 503, a
            server that starts or has a full queue; default as many as the time allows.
        ca: a PEM file with who signed the server's certificate, for https; default the machine's.
    """

    def __init__(
        self,
        address: str,
        model: str = "model",
        *,
        version: int | None = None,
        timeout: float = 60.0,
        retries: int | None = None,
        ca: str | os.PathLike[str] | None = None,
    ) -> None:
        home = address.rstrip("/") if "://" in address else f"http://{address}"
        which = "" if version is None else f"/versions/{version}"
        self._url, self._timeout = f"{home}/v1/models/{quote(model, safe='')}{which}", timeout
        self._retries = retries
        self._verify = None if ca is None else os.fspath(ca)
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=64))

    def predict(self, body: dict[str, Any]) -> Any:
        """The `predictions` or `outputs` of a body of TensorFlow Serving's REST API.

        Raises:
            ServerError: no answer.
        """
        found = self._json("POST", ":predict", body)
        return found["predictions"] if "predictions" in found else found["outputs"]

    def status(self) -> dict[int, str]:
        """The state of each version: AVAILABLE, LOADING, ...; ServerError if there is none."""
        found = self._json("GET", "")["model_version_status"]
        return {int(one["version"]): one["state"] for one in found}

    def close(self) -> None:
        """Frees the connections."""
        self._session.close()

    def _json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The answer; a translation may be asked for twice, so every request may be repeated."""
        url, until, tried = self._url + path, time.monotonic() + self._timeout, 0
        while True:
            left = max(0.001, until - time.monotonic())
            try:
                response = self._session.request(
                    method, url, json=body, timeout=left, verify=self._verify
                )
                if response.status_code != _BUSY:
                    return _answer(response)
                why = _told(response)
            except requests.exceptions.SSLError as error:
                raise ServerError(f"{url}: {error}") from error
            except _PASSING as error:
                why = str(error)
            except requests.RequestException as error:
                raise ServerError(f"{url}: {error}") from error
            if self._retries is not None and tried >= self._retries:
                raise ServerError(f"{url}: {why}")
            wait = random.uniform(0.8, 1.2) * min(5.0, 0.2 * 2.0 ** min(tried, 9))
            if time.monotonic() + wait >= until:
                raise ServerError(f"{url}: no answer within {self._timeout:g} s: {why}")
            time.sleep(wait)
            tried += 1

    def ask(self, texts: Sequence[str]) -> list[Row]:
        """What `serving_default` says of each text, in one request."""
        return self.predict({"instances": [{"text": text} for text in texts]})


def _answer(response: requests.Response) -> dict[str, Any]:
    found = response.json() if response.ok else None
    if not isinstance(found, dict):
        raise ServerError(f"{response.url}: {_told(response)}")
    return found


def _told(response: requests.Response) -> str:
    """A server's refusal in its words."""
    try:
        found = response.json()
    except requests.RequestException:  # of somebody between, with a page for people
        found = response.reason
    return (
        f"{response.status_code}: {found.get('error', found) if isinstance(found, dict) else found}"
    )
