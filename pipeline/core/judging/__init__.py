"""Stage 4: stitch the spans of a conversation into sessions, join outcomes, judge by contract, revise."""
