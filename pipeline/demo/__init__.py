"""The demo: a world whose truth is known, sent through everything, and held against what comes out."""
