"""Whole completions from a server that speaks OpenAI's protocol: requests to it, and verdicts on its answers.

`client` sends requests and reads answers; `sampling` turns problems into requests, and answers into samples.
"""
