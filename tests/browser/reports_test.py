"""Opens the reports of verify, replay and hunt in a headless Chromium: reports_test.py ZEROPROOF [OUT]

All of them have one frame, which is tried at the width of a desk and of a phone: what was asked,
the verdict, the first cause, search, keys, light and dark, print. Screenshots go to OUT. Exit code
77 where no browser is installed.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from chrome import Browser, find_browser

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.join(HERE, "..", "traces", "recorder-torch2.11.0-cpu")
SUBJECT = os.path.join(HERE, "..", "data", "subject", "fake_subject.py")
WIDTHS = {"desk": (1280, 900), "phone": (390, 844)}


def zeroproof(*words, code=0):
    run = subprocess.run([ZEROPROOF, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert run.returncode == code, f"{words}: {run.returncode} {run.stderr.decode()}"


class Reports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.browser = Browser()
        cls.pages = {}

    def page(self, name):
        """Made when it is first asked for."""
        if name not in self.pages:
            out = os.path.join(self.scratch.name, name)
            ranks = [os.path.join(TRACES, f"skipped_collective__w2_r{rank}.jsonl.gz") for rank in (0, 1)]
            words = {"replay": ranks, "verify": ["--quick", "--progress", "none"],
                     "hunt": ["--engine", "differs", "--python", SUBJECT, "--budget", "20x", "--seed", "5",
                              "--progress", "none"]}
            zeroproof(name, *words[name], "--out", out, code=0 if name == "verify" else 1)
            self.pages[name] = os.path.join(out, "index.html" if name == "verify" else "report.html")
        return self.pages[name]

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.scratch.cleanup()

    def setUp(self):
        self.browser.prefer("light")
        self.browser.size(*WIDTHS["desk"])

    def value(self, script):
        return self.browser.run(script)

    def open(self, name):
        self.browser.open(self.page(name))
        self.browser.settle()
        self.assertEqual(self.browser.complaints(), [])

    def shoot(self, name):
        if OUT:
            self.browser.screenshot(os.path.join(OUT, name + ".png"))

    def test_every_report_has_the_frame_at_every_width(self):
        verdicts = {"replay": "collective.missing", "hunt": "FALSIFIED", "verify": "held"}
        for name, verdict in verdicts.items():
            for width, size in WIDTHS.items():
                with self.subTest(name=name, width=width):
                    self.browser.size(*size)
                    self.open(name)
                    self.assertEqual(self.value("document.querySelector('h1').textContent"), f"zeroproof {name}")
                    self.assertEqual(self.value("document.querySelector('.chip').textContent"), verdict)
                    asked = self.value("document.querySelector('header + p code').textContent")
                    self.assertIn(f" {name} ", asked + " ")
                    self.assertLessEqual(self.value("document.documentElement.scrollWidth"), size[0], "it scrolls sideways")
                    self.shoot(f"report-{name}-{width}")

    def test_the_first_cause_stands_first_with_its_timeline(self):
        self.open("replay")
        first = self.value("document.querySelector('main .part').textContent")
        self.assertIn("The first cause", first)
        self.assertIn("rank 1 left out the all_reduce of 64 bytes for l2.weight", first)
        self.assertIn("rank 0 waits for rank 1", first)
        self.assertEqual(self.value("document.querySelectorAll('main .part:first-child .finding svg').length"), 1)
        self.assertGreaterEqual(self.value("document.querySelectorAll('.mark').length"), 2)

    def test_lanes_open_when_they_are_asked_for(self):
        self.open("replay")
        self.assertEqual(self.value("document.querySelectorAll('iframe').length"), 0)
        self.browser.key("o")
        inner = "document.querySelector('iframe').contentDocument"
        self.browser.wait_for(f"!!document.querySelector('iframe') && !!{inner} && "
                              f"!!{inner}.documentElement.dataset.readyMs")
        self.assertEqual(self.value(f"{inner}.querySelectorAll('#ranks button').length"), 2)
        self.assertEqual(self.browser.complaints(), [])
        self.shoot("report-replay-lanes")

    def test_search_and_keys(self):
        self.open("verify")
        shown = "[...document.querySelectorAll('main tbody tr')].filter(row => row.offsetParent).length"
        whole = self.value(shown)
        self.browser.key("/")
        self.browser.type("epilogue.once_after_last_hook")
        self.assertTrue(0 < self.value(shown) < whole)
        self.assertRegex(self.value("document.getElementById('matches').textContent"), r"^\d+ of \d+$")
        self.browser.key("Escape")
        self.assertEqual(self.value(shown), whole)
        self.open("replay")
        self.browser.key("j")
        self.assertTrue(self.value("document.activeElement.classList.contains('finding')"))
        self.browser.key("?")
        self.assertFalse(self.value("document.getElementById('keys').hidden"))

    def test_is_light_and_dark_and_prints(self):
        self.open("hunt")
        paper = "getComputedStyle(document.body).backgroundColor"
        light = self.value(paper)
        self.browser.prefer("dark")
        self.assertNotEqual(self.value(paper), light)
        self.shoot("report-hunt-dark")
        pdf = self.browser.call("Page.printToPDF", printBackground=True)["data"]
        self.assertGreater(len(pdf), 8000)
        links = json.loads(self.value("JSON.stringify([...document.querySelectorAll('a')].map(a => a.getAttribute('href')))"))
        self.assertGreater(len(links), 3)
        for link in links:
            if not link.endswith(".py"):  # made by the engine's package, which is not here
                self.assertTrue(os.path.exists(os.path.join(os.path.dirname(self.page("hunt")), link)), link)


if __name__ == "__main__":
    ZEROPROOF = os.path.abspath(sys.argv[1])
    OUT = sys.argv[2] if len(sys.argv) > 2 else ""
    if OUT:
        os.makedirs(OUT, exist_ok=True)
    if find_browser() is None:
        print("skipped: no Chromium is installed (Debian package chromium), and ZP_BROWSER names none")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
