"""Whole completions from a server that speaks OpenAI's protocol: requests, and verdicts on the answers.

`client` sends requests and reads answers; `sampling` turns problems into requests, and answers into samples.
"""
