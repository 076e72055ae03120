"""Any verifier, and any environment, as an HTTP service, for trainers that do not share a Python environment with this package.

| file | what it answers |
|---|---|
| `app.py` | which routes a verifier has, and what they answer |
| `env_app.py` | the same of an environment |
| `guard.py` | who may ask, and how much at once |
| `batching.py` | how requests that arrive together are judged together |
| `server.py` | where it listens, and how it stops |
"""
