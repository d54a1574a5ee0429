from .server import make_server as make_server
