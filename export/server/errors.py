"""What a request is refused with: the codes and the words of TensorFlow Serving."""

import grpc

# As TensorFlow Serving turns a code into a status of HTTP.
HTTP_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.INTERNAL: 500,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


class RequestError(Exception):
    """A request that gets no answer.

    Args:
        code: of gRPC.
        message: for the client.
    """

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def http_status(self) -> int:
        """The same for REST."""
        return HTTP_STATUS.get(self.code, 500)


def invalid(message: str) -> RequestError:
    """What the client sent is wrong."""
    return RequestError(grpc.StatusCode.INVALID_ARGUMENT, message)


def unavailable(message: str) -> RequestError:
    """Not now: the client may try again."""
    return RequestError(grpc.StatusCode.UNAVAILABLE, message)
