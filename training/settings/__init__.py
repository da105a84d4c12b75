"""The sections of a recipe: every key with its type, its rule and its default."""
