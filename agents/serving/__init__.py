"""Serves any verifier or environment over HTTP, for trainers that do not share a Python environment with this package.

| file | contents |
|---|---|
| `app.py` | the routes of a verifier, and their answers |
| `env_app.py` | the routes of an environment, and their answers |
| `guard.py` | access, and limits on requests |
| `batching.py` | batches of requests that arrive together |
| `server.py` | the service's address, and its start and stop |
"""
