"""Asks a model server over REST, TensorFlow Serving or ours: any number of texts, in order."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from .client import LineClient, Row, ServerError


class RestClient(LineClient):
    """Over REST. Any number of threads may ask.

    Args:
        address: HOST:PORT or a URL in front of /v1; TensorFlow Serving's port is 8501.
        model: its name at the server.
        version: a number; default the server's newest.
        timeout: seconds that the server may be silent.
        retries: after a connection that fails, or the status 503: a server that starts, or has a
            full queue. Eight take 20 seconds and more.
    """

    def __init__(
        self,
        address: str,
        model: str = "model",
        *,
        version: int | None = None,
        timeout: float = 60.0,
        retries: int = 8,
    ) -> None:
        home = address.rstrip("/") if "://" in address else f"http://{address}"
        which = "" if version is None else f"/versions/{version}"
        self._url, self._timeout = f"{home}/v1/models/{quote(model, safe='')}{which}", timeout
        again = Retry(
            total=retries,
            backoff_factor=0.2,
            backoff_max=5,
            backoff_jitter=0.2,
            status_forcelist=[503],
            allowed_methods=None,  # a translation may be asked for twice
            raise_on_status=False,
        )
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(pool_maxsize=64, max_retries=again))

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
        url = self._url + path
        try:
            response = self._session.request(method, url, json=body, timeout=self._timeout)
            found = response.json()
        except requests.RequestException as error:
            raise ServerError(f"{url}: {error}") from error
        if not response.ok or not isinstance(found, dict):
            told = found.get("error", found) if isinstance(found, dict) else found
            raise ServerError(f"{url}: {response.status_code}: {told}")
        return found

    def ask(self, texts: Sequence[str]) -> list[Row]:
        """What `serving_default` says of each text, in one request."""
        return self.predict({"instances": [{"text": text} for text in texts]})
