"""The embedded first run: French sentences and their English translations from our own grammar.

This is not real language. A few hundred words and some seventy constructions, written by hand
for this project, give about fifteen thousand short sentences, each with exactly one
translation. A small model learns them in minutes, which shows that everything works, and says
nothing about its quality on real text: for that, train on real data.
"""

from .corpus import DemoCorpus, demo_corpus, write_demo_corpus

__all__ = ["DemoCorpus", "demo_corpus", "write_demo_corpus"]
