"""Whole completions from a server that speaks OpenAI's protocol: what is asked of it, and how its answers are judged.

`client` sends requests and reads answers; `sampling` turns problems into requests, and answers into samples.
"""
