"""What crosses a topic or an API, and nothing else. Imports nothing of ours."""
