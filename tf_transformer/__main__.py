"""`python -m tf_transformer` is the command `tf-transformer`."""

from tf_transformer.cli import main

if __name__ == "__main__":
    main()
