"""A server of S3 in memory, for tests of databases in object stores: moto's, on a free port of the loopback.

Prints the port once it listens, and ends when its standard input does, so that it does not outlive the tests. One request
is answered at a time: moto looks at the condition of a put and then puts, which two threads may do at once, and a store whose conditions do
not hold is no S3.
"""

import os
import sys
import threading

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server

application = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def one_at_a_time(environ, start_response):
    with turn:
        return list(application(environ, start_response))


class Quiet(MotoRequestHandler):
    def log(self, *_):
        pass


def end_with_the_tests():
    sys.stdin.read()
    os._exit(0)


server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=Quiet)
print(server.server_port, flush=True)
threading.Thread(target=end_with_the_tests, daemon=True).start()
server.serve_forever()
