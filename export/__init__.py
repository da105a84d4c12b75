"""Where a trained translator runs. A new target is one file here and one line below."""

from .checks import run_checks
from .client import Client
from .ctranslate2 import export_ctranslate2
from .fresh_process import answer_in_fresh_process
from .line_client import ServerError
from .litert import export_litert
from .rest_client import RestClient
from .result import CheckResult, ExportError
from .saved_model import export_saved_model
from .session_model import SessionModel
from .signatures import SIGNATURES, make_endpoints

EXPORTERS = {
    "saved_model": export_saved_model,
    "ctranslate2": export_ctranslate2,
    "litert": export_litert,
}

__all__ = [
    "EXPORTERS",
    "SIGNATURES",
    "CheckResult",
    "Client",
    "ExportError",
    "RestClient",
    "ServerError",
    "SessionModel",
    "answer_in_fresh_process",
    "export_ctranslate2",
    "export_litert",
    "export_saved_model",
    "make_endpoints",
    "run_checks",
]
