"""gRPC's own health service, grpc.health.v1, which load balancers and Kubernetes ask."""

import threading
from collections.abc import Callable
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

Send = Callable[[Any], None]


class Health(health.HealthServicer):
    """SERVING for the server as a whole, "", and for the model; another name is NOT_FOUND.

    Args:
        name: of the model.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._watching: set[Send] = set()
        self._ended, self._changing = False, threading.Lock()
        self.set(name, health_pb2.HealthCheckResponse.SERVING)

    def Watch(  # noqa: N802
        self, request: Any, context: grpc.ServicerContext, send_response_callback: Send
    ) -> None:
        """The state now, and each time that it changes, until `end`."""
        super().Watch(request, context, send_response_callback)
        with self._changing:
            if not self._ended:
                self._watching.add(send_response_callback)
                context.add_callback(lambda: self._watching.discard(send_response_callback))
                return
        send_response_callback(None)

    def end(self) -> None:
        """Tells who watches NOT_SERVING, and that there is no more to come.

        Without the second a server that stops would wait for them as for any request.
        """
        self.enter_graceful_shutdown()
        with self._changing:
            self._ended = True
            watching = list(self._watching)
        for send in watching:
            send(None)


def add_health(server: grpc.Server, name: str) -> Health:
    """Puts the service on a server."""
    service = Health(name)
    health_pb2_grpc.add_HealthServicer_to_server(service, server)
    return service
