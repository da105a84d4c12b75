"""A development server with TensorFlow Serving's protocols, over the loader that it uses."""

from .errors import RequestError
from .models import Models
from .run import Server, serve

__all__ = ["Models", "RequestError", "Server", "serve"]
