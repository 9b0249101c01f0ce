"""Opens the pages that zeroproof makes in a headless Chromium: pages_test.py ZEROPROOF [OUT]

Every page has to come up without a word on the console, draw what its trace holds, and do what a
reader does: search, jump to a finding, filter, zoom, pan, select, print. Screenshots go to OUT. Exit
code 77, with the reason, where no browser is installed.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

from chrome import Browser, find_browser
import large_run

HERE = os.path.dirname(os.path.abspath(__file__))
TRACES = os.path.join(HERE, "..", "traces", "deepspeed-edaa7221-cuda")
ELEMENTS_MAX = 10_000  # of a page of 100,000 events: they are drawn, and have no element each


def zeroproof(*words, code=0, program=""):
    run = subprocess.run([ZEROPROOF + program, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert run.returncode == code, f"{words}: {run.returncode} {run.stderr.decode()}"
    return run.stdout.decode()


def colors_of(png):
    """How many different pixels an 8-bit RGB or RGBA picture has, counting every 64th."""
    at, data, width = 8, b"", 0
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            width, _, depth, color = struct.unpack(">IIBB", png[at + 8:at + 18])
            assert depth == 8 and color in (2, 6)
            channels = 3 if color == 2 else 4
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += 12 + length
    raw = zlib.decompress(data)
    stride = 1 + width * channels
    found = set()
    for line in range(0, len(raw) // stride, 8):  # filtered bytes differ wherever the picture does
        row = raw[line * stride + 1:(line + 1) * stride]
        found.update(row[i:i + channels] for i in range(0, len(row), channels * 8))
    return len(found)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = cls.scratch.name
        cls.browser = Browser()
        cls.browser.prefer("light")

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.scratch.cleanup()

    def page(self, name, *words):
        path = os.path.join(self.folder, name + ".html")
        zeroproof("show", *words, "--html", "--out", path)
        return path

    def trace(self, name):
        return os.path.join(TRACES, name + ".jsonl.gz")

    def facts(self):
        return json.loads(self.browser.run("JSON.stringify(document.documentElement.dataset)"))

    def text(self, selector):
        return self.browser.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def shoot(self, name):
        path = os.path.join(OUT, name + ".png") if OUT else None
        colors = colors_of(self.browser.screenshot(path))
        self.assertGreater(colors, 40, f"{name} is blank")

    def open(self, path, fragment=""):
        seconds = self.browser.open(path + fragment)
        self.browser.settle()
        self.assertEqual(self.browser.complaints(), [])
        return seconds

    def retained(self):
        path = self.page("retained", self.trace("two_losses_retain__z1_fp32_w1_r0"))
        self.open(path)
        return path

    def test_draws_every_event_of_a_run_of_two_ranks(self):
        path = self.page("mlp", self.trace("mlp__z3_fp32_w2_r0"), self.trace("mlp__z3_fp32_w2_r1"))
        self.open(path)
        facts = self.facts()
        self.assertEqual(facts["events"], "1136")
        self.assertEqual(int(facts["findings"]), 6)
        self.assertEqual(facts["drawnMarks"], "6", "each finding frames a shape")
        # Everything that the lanes hold is there once all of it is wide enough.
        count = self.browser.run("""(() => {
          const { picture, view, painter } = zeroproof;
          const seen = new Set();
          for (let at = 0; at < view.all[1]; at += 30) {
            view.set_range(at - 2, at + 32);
            zeroproof.draw();
            painter.shapes.forEach(shape => { if (shape.event !== undefined) seen.add(shape.bar >= 0 ? 'b' + shape.bar : shape.event); });
          }
          const moments = picture.is_moment.reduce((sum, one) => sum + one, 0);
          return [seen.size, picture.bar_count + moments];
        })()""")
        self.assertEqual(count[0], count[1])
        self.assertEqual(self.text("#title"), "mlp · stage 3 · fp32 · 2 ranks")
        self.assertEqual(self.browser.run("document.querySelectorAll('#ranks button').length"), 2)
        self.shoot("two-ranks")

    def test_jumps_to_a_finding(self):
        self.retained()
        self.assertEqual(self.facts()["findings"], "9")
        self.assertEqual(self.text("#verdict"), "P28 broken, 3 places")
        self.browser.run("document.querySelectorAll('.finding')[1].click()")
        self.browser.settle()
        selected = int(self.facts()["selected"])
        self.assertEqual(self.browser.run(f"zeroproof.picture.lc[{selected}]"), 475)
        inside = self.browser.run(f"(v => v.start < v.place_of({selected}) && v.place_of({selected}) < v.stop)(zeroproof.view)")
        self.assertTrue(inside)
        self.assertIn("accumulate.retained_graph_sums", self.text("#details"))
        self.assertIn("overwrote the gradient", self.text("#details"))
        self.assertEqual(self.browser.run("document.querySelectorAll('.finding.is-current').length"), 1)
        self.shoot("finding")

    def test_searches_and_goes_from_match_to_match(self):
        self.retained()
        self.browser.key("/")
        self.browser.type("coll.issue all_reduce")
        matches = int(self.facts()["matches"])
        self.assertEqual(matches, 9)
        self.browser.key("Enter")
        first = int(self.facts()["selected"])
        self.browser.key("Enter")
        second = int(self.facts()["selected"])
        self.assertLess(first, second)
        self.assertEqual(self.text("#matches"), f"{self.browser.run('zeroproof.view.matches.indexOf(zeroproof.view.selected)') + 1} of {matches}")
        self.assertEqual(self.browser.run(f"zeroproof.picture.kind_of({second})"), "coll.issue")
        self.browser.run("zeroproof.search('no such word')")
        self.assertEqual(self.text("#matches"), "no match")

    def test_filters_by_kind_and_rank(self):
        path = self.page("filter", self.trace("mlp__z3_fp32_w2_r0"), self.trace("mlp__z3_fp32_w2_r1"))
        self.open(path)
        before = int(self.facts()["drawnBars"])
        self.browser.run("[...document.querySelectorAll('#legend button')].find(b => b.textContent.startsWith('manager')).click()")
        self.browser.settle()
        without = int(self.facts()["drawnBars"])
        self.assertLess(without, before)
        self.browser.run("document.querySelectorAll('#ranks button')[1].click()")
        self.browser.settle()
        self.assertEqual(int(self.facts()["drawnBars"]) * 2, without, "the ranks did the same")

    def test_zooms_pans_and_selects_with_keys_and_pointer(self):
        self.retained()
        span = "zeroproof.view.stop - zeroproof.view.start"
        self.browser.key("f")
        whole = self.browser.run(span)
        self.browser.key("w")
        self.assertLess(self.browser.run(span), whole)
        start = self.browser.run("zeroproof.view.start")
        self.browser.key("d")
        self.assertGreater(self.browser.run("zeroproof.view.start"), start)
        before = self.browser.run(span)
        self.browser.mouse("mouseWheel", 900, 400, deltaX=0, deltaY=-120, modifiers=2)
        self.browser.settle()
        self.assertLess(self.browser.run(span), before)
        self.browser.run("zeroproof.select(-1)")
        x, y = self.browser.run("""(() => {
          const shape = zeroproof.painter.shapes.filter(s => s.bar >= 0 && s.x1 - s.x0 > 30 && s.x0 > 220)[0];
          const box = document.getElementById('lanes').getBoundingClientRect();
          return [box.x + shape.x0 + 12, box.y + shape.y0 + 6];
        })()""")
        self.browser.mouse("mouseMoved", x, y)
        self.browser.settle()
        self.assertFalse(self.browser.run("document.getElementById('tip').hidden"), "the tip shows")
        self.browser.click(x, y)
        self.assertGreaterEqual(int(self.facts()["selected"]), 0)
        here = int(self.facts()["selected"])
        self.browser.key(".")
        self.assertEqual(int(self.facts()["selected"]), here + 1)
        self.browser.key("Escape")
        self.assertEqual(self.facts()["selected"], "-1")

    def test_shows_all_fields_of_an_event(self):
        self.retained()
        event = self.browser.run("[...Array(zeroproof.picture.count).keys()].find(e => zeroproof.picture.kind_of(e) === 'bhs.call')")
        self.browser.run(f"zeroproof.jump_to({event})")
        self.browser.settle()
        fields = self.browser.run(f"zeroproof.picture.fields_of({event})")
        shown = self.text("#details")
        for key, value in fields["state"].items():
            self.assertIn(f"state.{key}", shown)
            self.assertIn(json.dumps(value), shown)

    def test_is_light_and_dark_and_remembers_what_is_seen(self):
        path = self.retained()
        self.browser.key("l")
        self.assertEqual(self.facts()["theme"], "dark")
        self.shoot("dark")
        self.browser.key("l")
        self.browser.run("zeroproof.jump_to(100)")
        self.browser.settle()
        link = self.browser.run("location.hash")
        self.assertIn("event=100", link)
        self.open(os.path.join(self.folder, "retained.html"), "#q=hook&event=42")
        self.assertEqual(self.facts()["selected"], "42")
        self.assertGreater(int(self.facts()["matches"]), 0)
        self.assertTrue(os.path.exists(path))

    def test_prints_all_lanes(self):
        self.retained()
        pdf = self.browser.call("Page.printToPDF", landscape=True, printBackground=True)["data"]
        self.assertGreater(len(pdf), 40000)
        self.assertEqual(self.browser.complaints(), [])

    def test_shows_the_order_of_a_schedule(self):
        out = os.path.join(self.folder, "found")
        found = zeroproof("explore", "S2", "--policy", "deepspeed-0.18.3", "--out", out, code=1)
        schedule = found.splitlines()[-1].split()[-1]
        self.open(self.page("schedule", schedule))
        self.assertEqual(self.facts()["findings"], "2")
        self.assertGreaterEqual(int(self.facts()["selected"]), 0, "it opens at its finding")
        self.assertIn(schedule, self.text("#reproduce"))
        self.assertTrue(self.browser.run("document.getElementById('by-time').disabled"), "it has no clock")
        self.shoot("schedule")
        self.open(os.path.join(out, "S2-deepspeed-0.18.3-P2.html"))
        self.assertIn("P2", self.text("#findings"))
        self.browser.visit(os.path.join(out, "S2-deepspeed-0.18.3-P2.svg"))
        self.assertEqual(self.browser.run("document.querySelectorAll('.bad-ring').length"), 1)
        self.shoot("chart")

    def test_shows_a_counterexample_of_a_fault(self):
        out = os.path.join(self.folder, "mutation")
        zeroproof("mutation", "C13", "--unmutated", "1x", "--progress", "none", "--out", out)
        self.open(os.path.join(out, "C13.html"))
        self.assertGreaterEqual(int(self.facts()["findings"]), 1)
        self.assertGreaterEqual(int(self.facts()["selected"]), 0, "it opens at its finding")
        self.assertIn("mutation --replay " + os.path.join(out, "C13.json"), self.text("#reproduce"))
        self.assertEqual(self.browser.complaints(), [])
        self.shoot("counterexample")
        self.browser.visit(os.path.join(out, "C13.svg"))
        self.assertGreaterEqual(self.browser.run("document.querySelectorAll('.bad-ring').length"), 1)
        shown = os.path.join(self.folder, "shown.html")
        zeroproof("show", os.path.join(out, "C13.json"), "--html", "--out", shown, program="-mutation")
        self.open(shown)
        self.assertIn("C13", self.browser.run("document.title"))

    def test_a_hostile_trace_stays_text(self):
        bad = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
        path = os.path.join(self.folder, "hostile.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for line in (
                    {"rec": "header", "format": "hooktrace", "version": [1, 0], "rank": 0, "world": 1,
                     "clock": {"unit": "ns", "mono0": 0, "unix0": 0}, "program": bad, "desc": bad, "dtype": bad},
                    {"rec": "thread", "th": 0, "name": bad},
                    {"rec": "ev", "lc": 1, "t": 1, "r": 0, "th": 0, "k": "mark", "gt": -1, "d": 0, "label": bad, bad: bad},
                    {"rec": "ev", "lc": 2, "t": 2, "r": 0, "th": 0, "k": "later.kind", "gt": -1, "d": 0, "x": {bad: [bad]}},
                    {"rec": "end", "events": 2, "records": 3}):
                file.write(json.dumps(line) + "\n")
        self.open(self.page("hostile", path))
        self.browser.run("zeroproof.jump_to(0)")
        self.browser.settle()
        self.assertIn(bad, self.text("#details"))
        self.browser.run("zeroproof.jump_to(1)")
        self.browser.settle()
        self.assertIn("later.kind", self.text("#details"))
        self.assertEqual(self.browser.run("window.hit === undefined"), True)
        self.assertEqual(self.browser.complaints(), [])

    def test_opens_a_hundred_thousand_events_without_an_element_each(self):
        folder = os.path.join(self.folder, "large")
        os.mkdir(folder)
        large_run.main(folder, 4, 100_000)
        path = self.page("large", folder)
        self.assertLess(os.path.getsize(path), 3_000_000)
        seconds = min(self.open(path) for _ in range(2))
        facts = self.facts()
        print(f"\n{facts['events']} events, {os.path.getsize(path)} bytes: ready after {facts['readyMs']} ms, {seconds:.2f} s in all")
        self.assertGreaterEqual(int(facts["events"]), 100_000)
        # Times are printed: a loaded machine has others.
        self.assertLess(self.browser.run("document.getElementsByTagName('*').length"), ELEMENTS_MAX)
        search = self.browser.run("(() => { const start = performance.now(); zeroproof.search('h.7.bias hook'); return performance.now() - start; })()")
        self.browser.settle()
        self.assertGreater(int(self.facts()["matches"]), 100)
        frame = min(self.browser.run("(() => { const start = performance.now(); zeroproof.draw(); return performance.now() - start; })()")
                    for _ in range(5))
        print(f"first search {search:.0f} ms, frame of everything {frame:.0f} ms")
        self.shoot("large")

    def test_the_report_of_verify_leads_everywhere(self):
        folder = os.path.join(self.folder, "report")
        zeroproof("verify", "--quick", "--out", folder, "--progress", "none")
        self.browser.visit(f"{folder}/index.html")
        links = self.browser.run("[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))")
        self.assertGreater(len(links), 100)
        for link in set(links):
            self.assertTrue(os.path.exists(os.path.join(folder, link.split("#")[0])), link)
        self.assertEqual(self.browser.run("document.querySelector('.chip').textContent"), "held")
        self.shoot("report")
        self.browser.run("document.querySelector('a.rule').click()")
        self.browser.wait_for("document.querySelectorAll('.finding svg').length >= 1")
        self.assertEqual(self.browser.complaints(), [])
        self.shoot("falsified")


if __name__ == "__main__":
    ZEROPROOF = os.path.abspath(sys.argv[1])
    OUT = sys.argv[2] if len(sys.argv) > 2 else ""
    if OUT:
        os.makedirs(OUT, exist_ok=True)
    if find_browser() is None:
        print("skipped: no Chromium is installed (Debian package chromium), and ZP_BROWSER names none")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
