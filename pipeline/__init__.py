"""trueup: whether AI agents finish what customers came for, kept true as the outcomes arrive."""

__version__ = "0.1.0"
