"""A Multi30K run's BLEU on every held-out set: as users read text, and as papers count it.

    pip install -e '.[evaluate]' sacremoses
    python benchmarks/multi30k.py runs/m30k --data DIR

"cased 13a" is sacreBLEU of the text as it is. "lower-cased Moses" is how published figures of this
corpus are measured (its task 1 preparation, and so Wu et al. 2021, arXiv 2105.14462): punctuation
normalised, lower-cased, cut by the Moses tokenizer with dashes apart, then BLEU over these tokens
(sacreBLEU with tok:none, which is multi-bleu.perl). Both sides are treated alike, and the run was
trained on raw text: nothing about it is lower-cased or tokenized by Moses.
"""

import argparse
import html
from pathlib import Path

import sacrebleu
import sacremoses

from tf_transformer import Translator

TESTS = ("valid", "test2016", "test2017", "testcoco")  # valid, to choose beams and alpha by


def moses(lines: list[str], language: str) -> list[str]:
    """As the corpus's own scripts prepare its task 1."""
    normalise = sacremoses.MosesPunctNormalizer(language).normalize
    tokenize = sacremoses.MosesTokenizer(language).tokenize
    normal = (normalise(line.lower()) for line in lines)
    # The tokenizer escapes characters that phrase tables reserve; both sides get them back.
    texts = (tokenize(line, aggressive_dash_splits=True, return_str=True) for line in normal)
    return [html.unescape(text) for text in texts]


def read(path: Path) -> list[str]:
    """Lines end at newlines only: the corpus has other separators inside of lines."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def scores(translations: list[str], references: list[str], language: str) -> tuple[float, float]:
    """Cased 13a and lower-cased Moses BLEU, 0 to 100."""
    cased = sacrebleu.corpus_bleu(translations, [references])
    pair = moses(translations, language), [moses(references, language)]
    return cased.score, sacrebleu.corpus_bleu(*pair, tokenize="none", force=True).score


def main() -> None:
    """See the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of test2016.src and others"
    )
    parser.add_argument("--language", default="de", help="of the translations")
    parser.add_argument("--beams", type=int, default=4)
    parser.add_argument("--alpha", type=float, default=0.6)
    arguments = parser.parse_args()
    print(
        "| run | " + " | ".join(f"{name}, cased 13a | lower-cased Moses" for name in TESTS) + " |"
    )
    print("|---|" + "--:|" * 2 * len(TESTS))
    for run in arguments.runs:
        translator = Translator.load(run, num_beams=arguments.beams, alpha=arguments.alpha)
        cells = [run.name]
        for name in TESTS:
            sources, references = (read(arguments.data / f"{name}.{x}") for x in ("src", "tgt"))
            texts = [found["text"] for found in translator.stream(sources)]
            cells += [f"{score:.2f}" for score in scores(texts, references, arguments.language)]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
