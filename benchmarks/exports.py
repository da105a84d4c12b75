"""One run in every form: sizes, answers, BLEU, and seconds a sentence, side by side.

    pip install -e '.[evaluate,litert,ctranslate2]'
    PYTHONPATH=. python benchmarks/exports.py --run RUN --source test.src --reference test.tgt

A row for each of: in process, the SavedModel (under the session loader, which is a server's),
LiteRT in float32, float16 and int8, CTranslate2 in float32 and int8; by greedy search and with four
beams. "as in process" counts the lines whose text is equal; BLEU is sacreBLEU's, 13a, cased. Times
are of one sentence at a time, text to text, on one thread; each sentence is asked of all forms in
turn, so that whatever else the machine does hits all alike. The score is log P / n^alpha for all,
since CTranslate2 has no other length penalty.

Under it: the lines where LiteRT float32 is not the SavedModel, or CTranslate2 not in process.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(TF_NUM_INTRAOP_THREADS="1", TF_NUM_INTEROP_THREADS="1", OMP_NUM_THREADS="1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

Answer = tuple[str, float]  # a translation and its score


class Form(NamedTuple):
    """One way to ask the run."""

    name: str
    megabytes: float
    ask: Callable[[str], Answer]
    compared: str | None = None  # with whose answers differences are printed


def main() -> None:
    """Exports, asks and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, required=True, help="a run directory")
    parser.add_argument("--source", type=Path, required=True, help="text, a sentence a line")
    parser.add_argument("--reference", type=Path, required=True, help="its translation")
    parser.add_argument("--lines", type=int, default=500, help="the first so many")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--alpha", type=float, help="default the run's")
    arguments = parser.parse_args()
    pairs = read_pairs(arguments.source, arguments.reference)[: arguments.lines]
    print(
        "| search | form | MB | as in process | BLEU | to in process | s / sentence | its speed |"
    )
    print("|---|---|---|---|---|---|---|---|")
    notes = [""]
    for beams in arguments.beams:
        translator = load(arguments.run, beams, arguments.alpha)
        with tempfile.TemporaryDirectory(prefix="exports_") as folder:
            notes += compare(forms(translator, arguments.run, Path(folder)), pairs, beams)
    print("\n".join(notes))


def read_pairs(*files: Path) -> list[tuple[str, str]]:
    """Lines that are not blank, of both files."""
    sides = [path.read_text(encoding="utf-8").split("\n") for path in files]
    return [pair for pair in zip(*sides, strict=True) if all(side.strip() for side in pair)]


def load(run: Path, beams: int, alpha: float | None) -> Any:
    """The run with beam search; one beam is greedy search."""
    from tf_transformer import Translator

    changes = {"length_penalty": "power"} | ({} if alpha is None else {"alpha": alpha})
    return Translator.load(run, search="beam", num_beams=beams, **changes)


def forms(translator: Any, run: Path, folder: Path) -> list[Form]:
    """All of them, exported into `folder` with the exporters' own checks."""
    return [
        Form("in process", size(run / "model.weights.h5"), in_process(translator)),
        saved_model(translator, folder),
        *(litert(translator, folder, kind) for kind in (None, "float16", "int8")),
        *(ctranslate2(translator, folder, kind) for kind in (None, "int8")),
    ]


def in_process(translator: Any) -> Callable[[str], Answer]:
    """The graph that a translator runs in Python."""
    import tensorflow as tf

    def ask(line: str) -> Answer:
        found = translator.translate(tf.constant([line]))
        return found["text"].numpy()[0].decode(), float(found["score"][0])

    return ask


def saved_model(translator: Any, folder: Path) -> Form:
    """Under the loader of TensorFlow Serving."""
    import numpy as np

    from export import SessionModel, export_saved_model

    path = export_saved_model(translator, folder / "models", signatures=["translate"], kit=False)
    model = SessionModel(path)

    def ask(line: str) -> Answer:
        found = model("serving_default", {"text": np.array([line.encode()], object)})
        return found["text"][0].decode(), float(found["score"][0])

    return Form("SavedModel", size(path), ask)


def litert(translator: Any, folder: Path, quantization: str | None) -> Form:
    """Text to text where LiteRT cuts text as the tokenizers do; else from ids, cut outside."""
    import numpy as np
    import tensorflow as tf

    from export.litert import export_litert, text_obstacle
    from export.litert_check import open_file

    name = f"LiteRT {quantization or 'float32'}"
    path = export_litert(translator, folder / name, quantization)
    interpreter = open_file(path.read_bytes(), threads=1)
    if not text_obstacle(translator):
        run = interpreter.get_signature_runner("translate")

        def ask(line: str) -> Answer:
            found = run(text=np.array([line.encode()], object))
            return found["text"][0].decode().strip(), float(found["score"][0])
    else:
        run, name = interpreter.get_signature_runner("generate_ids"), f"{name}, from ids"

        def ask(line: str) -> Answer:
            source = translator.encode_source(tf.constant([line]))
            found = run(ids=source.token_ids.numpy(), length=source.lengths.numpy())
            text = translator.detokenize(tf.constant(found["ids"]))
            return text.numpy()[0].decode(), float(found["score"][0])

    return Form(name, size(path), ask, None if quantization else "SavedModel")


def ctranslate2(translator: Any, folder: Path, quantization: str | None) -> Form:
    """Pieces to pieces in the engine, text outside, with the arguments that the export names."""
    import ctranslate2 as engine
    import tensorflow as tf

    from export import export_ctranslate2
    from export.ctranslate2_search import search_arguments

    kind = quantization or "float32"
    path = export_ctranslate2(translator, folder / f"ct2-{kind}", quantization)
    model = engine.Translator(str(path), compute_type=kind, inter_threads=1, intra_threads=1)
    arguments = {**search_arguments(translator), "return_scores": True}
    sides, options = translator.tokenizers, translator.options

    def ask(line: str) -> Answer:
        pieces = sides.source.pieces(line)
        length = round(options.length_factor * (len(pieces) + 1)) + options.extra_length
        limit = {"max_decoding_length": min(max(length, 1), options.max_target_length)}
        (found,) = model.translate_batch([pieces], **{**arguments, **limit})
        written = [piece for piece in found.hypotheses[0] if piece != "</s>"]
        ids = tf.constant([sides.target.piece_ids(written)], tf.int32)
        return sides.target.detokenize(ids).numpy()[0].decode(), found.scores[0]

    return Form(f"CTranslate2 {kind}", size(path), ask, None if quantization else "in process")


def size(path: Path) -> float:
    """Megabytes of a file or of all files of a folder."""
    return sum(x.stat().st_size for x in [path, *path.rglob("*")] if x.is_file()) / 1e6


def compare(made: list[Form], pairs: list[tuple[str, str]], beams: int) -> Iterator[str]:
    """Prints the rows of one search; gives the lines that differ."""
    answers, seconds = ask_in_turn(made, [source for source, _ in pairs])
    search = f"beam {beams}" if beams > 1 else "greedy"
    right = [text for text, _ in answers["in process"]]
    base, rate = bleu(right, pairs), seconds["in process"]
    for form in made:
        texts = [text for text, _ in answers[form.name]]
        same = sum(a == b for a, b in zip(texts, right, strict=True))
        points, second = bleu(texts, pairs), seconds[form.name]
        print(
            f"| {search} | {form.name} | {form.megabytes:.1f} | {same} of {len(pairs)} "
            f"| {points:.2f} | {points - base:+.2f} | {second:.4f} | {rate / second:.2f}x |"
        )
        yield from differences(search, form, answers)


def ask_in_turn(made: list[Form], sources: list[str]) -> tuple[dict, dict[str, float]]:
    """Answers, and mean seconds, of each form."""
    answers: dict[str, list[Answer]] = {form.name: [] for form in made}
    seconds = dict.fromkeys(answers, 0.0)
    for form in made:
        form.ask(sources[0])  # what only the first request waits for
    for source in sources:
        for form in made:
            start = time.perf_counter()
            answers[form.name].append(form.ask(source))
            seconds[form.name] += time.perf_counter() - start
    return answers, {name: total / len(sources) for name, total in seconds.items()}


def bleu(texts: list[str], pairs: list[tuple[str, str]]) -> float:
    """sacreBLEU, 13a, cased."""
    import sacrebleu

    return sacrebleu.corpus_bleu(texts, [[reference for _, reference in pairs]]).score


def differences(search: str, form: Form, answers: dict[str, list[Answer]]) -> Iterator[str]:
    """Each line that the form answers otherwise than what it is compared with."""
    compared = form.compared or form.name
    for number, one in enumerate(answers[compared], 1):
        if one[0] != (other := answers[form.name][number - 1])[0]:
            yield f"{search}, line {number}: {compared} {one[1]:.5f} {one[0]!r},"
            yield f"    {form.name} {other[1]:.5f} {other[0]!r}"


if __name__ == "__main__":
    main()
