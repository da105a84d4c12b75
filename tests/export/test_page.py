"""The development server's page in a real browser: typed at, read, and watched on the network."""

import json
import os
import shutil

import pytest
import tensorflow as tf

from export.server import Server
from tests.tiny_translator import FRENCH, export_unchecked
from tests.trained_translator import trained_translator

selenium = pytest.importorskip("selenium", reason="no browser test: selenium is not installed")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

SECONDS = 60  # for what takes none, on a machine that has much to do
SIGNATURES = ["translate", "translate_n_best", "translate_with_alignments", "source_length"]


@pytest.fixture(scope="module")
def translator():
    return trained_translator().with_options(num_beams=3, max_source_length=40)


@pytest.fixture(scope="module")
def server(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    version = export_unchecked(translator, folder, signatures=SIGNATURES)
    with Server(version.parent, name="fr-en", max_bytes=2000) as running:
        yield running


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Headless Chromium without a memory of its own."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip(
            "NO BROWSER TEST: Chromium and chromedriver are not installed (CONTRIBUTING.md)"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    profile = tmp_path_factory.mktemp("profile")
    for argument in ("headless=new", "disable-dev-shm-usage", f"user-data-dir={profile}"):
        options.add_argument(f"--{argument}")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's has no place for root
    running = webdriver.Chrome(options, Service(driver))
    yield running
    running.quit()


@pytest.fixture
def page(browser, server):
    """The page, as it is when it has just been opened."""
    browser.get(f"http://127.0.0.1:{server.rest_port}/")
    return Page(browser)


class Page:
    """What a person can do with it and see on it."""

    def __init__(self, browser):
        self.browser = browser

    def all(self, selector):
        """Their texts, with every blank that the model wrote."""
        found = self.browser.find_elements(By.CSS_SELECTOR, selector)
        return [one.get_attribute("textContent") for one in found]

    def translate(self, text):
        """Types it, presses the button, and gives what is said in the end."""
        self.browser.find_element(By.ID, "text").send_keys(text)
        self.browser.find_element(By.TAG_NAME, "button").click()
        return self.said()

    def said(self):
        wait = WebDriverWait(self.browser, SECONDS)
        return wait.until(lambda _: (text := self.all("#said")[0]) not in ("", "…") and text)

    def rows(self):
        """Rank, translation, score, log P, tokens of each hypothesis."""
        cells = self.all("#best td")
        return [cells[place : place + 5] for place in range(0, len(cells), 5)]


@pytest.mark.parametrize("text", [FRENCH[0], FRENCH[7]])
def test_a_sentence_is_translated_with_alternatives_and_alignments(page, translator, text):
    expected = translator.translate_with_alignments(tf.constant([text]))
    texts = [one.decode() for one in expected["texts"].numpy()[0]]
    assert page.translate(text) == texts[0]
    for rank, row in enumerate(page.rows()):
        numbers = [expected[key].numpy()[0, rank] for key in ("scores", "log_probs", "lengths")]
        assert row[:2] == [str(rank + 1), texts[rank]]
        assert [float(cell) for cell in row[2:]] == pytest.approx(numbers, abs=2e-3)
    assert len(page.rows()) == 3
    source, target = text.split(), texts[0].split()
    places = expected["word_alignment"].numpy()[0, 0, : len(target)]
    pairs = [f"{word}{source[place]}" for word, place in zip(target, places, strict=True)]
    assert page.all("#words .word") == pairs


def test_nothing_comes_from_another_host(page, server, browser):
    browser.get_log("performance")
    browser.refresh()
    page.translate(FRENCH[1])
    events = [json.loads(one["message"])["message"] for one in browser.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    home = f"http://127.0.0.1:{server.rest_port}/"
    assert len(asked) >= 4 and all(url.startswith(home) for url in asked), asked
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


def test_markup_is_text(page, browser):
    page.translate("le <b>chat</b> dort <img src=x> .")
    assert any("<b>chat</b>" in word for word in page.all("#words .word"))
    assert browser.find_elements(By.CSS_SELECTOR, "#words b, img") == []


def test_a_text_that_is_cut_is_told(page):
    assert page.translate("le chat " * 40).endswith("(the text was too long and is cut)")


def test_a_refusal_is_told_and_the_next_sentence_is_translated(page, translator):
    said = page.translate("x" * 2500)
    assert "capacity limit" in said and page.all(".error") == [said]
    assert (page.rows(), page.all(".word")) == ([], [])
    page.browser.find_element(By.ID, "text").clear()
    assert page.translate(FRENCH[2]) == translator([FRENCH[2]])[0]
    assert page.all(".error") == []
