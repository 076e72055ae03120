"""Serves any verifier or environment over HTTP, for trainers that do not share a Python environment with this package.

| file | contents |
|---|---|
| `app.py` | the routes of a verifier, and their answers |
| `env_app.py` | the routes of an environment, and their answers |
| `guard.py` | access, and limits on requests |
| `batching.py` | judging requests together that arrive together |
| `server.py` | the address that the service listens on, and how it stops |
"""
