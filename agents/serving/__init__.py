"""Any verifier, and any environment, as an HTTP service, for trainers that do not share a Python environment with this package.

| file | contents |
|---|---|
| `app.py` | the routes of a verifier, and their answers |
| `env_app.py` | the routes of an environment, and their answers |
| `guard.py` | access, and limits on requests |
| `batching.py` | requests that arrive together are judged together |
| `server.py` | the address it listens on, and how it stops |
"""
