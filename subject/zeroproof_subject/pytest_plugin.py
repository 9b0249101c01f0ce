"""pytest --zeroproof-engine NAME: a failing test for each program that the engine trains wrongly.

`zeroproof hunt` draws the programs, runs them and makes the findings small; docs/tutorial/property_tests.md.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

HELD, FALSIFIED, CANNOT_RUN = 0, 1, 77  # exit codes of zeroproof


class HuntError(Exception):
    """The hunt did not come to its end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """All options begin with --zeroproof."""
    group = parser.getgroup("zeroproof", "programs that an engine trains wrongly")
    group.addoption(
        "--zeroproof-engine",
        metavar="NAME",
        help="ddp, fsdp2, deepspeed, or package.module:make of your own; without it no engine is run",
    )
    group.addoption("--zeroproof-stage", metavar="N", help="deepspeed: short for a setting stage=N")
    group.addoption(
        "--zeroproof-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the engine",
    )
    group.addoption(
        "--zeroproof-budget",
        default="50x",
        metavar="LIMITS",
        help="50x programs (default), 60s, 30m, with commas",
    )
    group.addoption("--zeroproof-seed", default="0", metavar="N", help="default 0")
    group.addoption(
        "--zeroproof-corpus",
        metavar="DIR",
        help="keep findings and progress there, and go on from them",
    )
    group.addoption(
        "--zeroproof-known",
        choices=("xfail", "fail"),
        default="xfail",
        help="what becomes of a finding that has a public report (default xfail)",
    )
    group.addoption(
        "--zeroproof-binary",
        metavar="PATH",
        help="default: $ZP_ZEROPROOF, or zeroproof in PATH",
    )


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Adds one test, whose findings are tests of their own."""
    engine = config.getoption("zeroproof_engine")
    if engine:
        name = f"zeroproof/{engine}"
        item = HuntItem.from_parent(session, name=name, nodeid=name)
        items.append(item)
        collected = pytest.CollectReport(name, "passed", None, [item])
        config.hook.pytest_collectreport(report=collected)  # "collected 1 item"


class HuntItem(pytest.Item):
    """Runs the hunt, and reports each finding as if it were a test that failed."""

    def runtest(self) -> None:
        """Fails only where the hunt itself does."""
        document = hunt(self.config)
        self.session.testscollected += len(document["findings"])  # for the percentages
        for finding in document["findings"]:
            for report in self.reports_of(finding):
                self.ihook.pytest_runtest_logreport(report=report)
        self.add_report_section("call", "zeroproof", summary(document))
        self.user_properties.append(("zeroproof", summary(document)))

    def reports_of(self, finding: dict[str, Any]) -> Iterator[pytest.TestReport]:
        """Those of a test: its set-up, its call, its end."""
        verdict = finding["verdict"]
        known = verdict.get("known")
        is_expected = known and self.config.getoption("zeroproof_known") == "xfail"
        for when in ("setup", "call", "teardown"):
            is_call = when == "call"
            outcome = ("skipped" if is_expected else "failed") if is_call else "passed"
            report = pytest.TestReport(
                nodeid=f"{self.nodeid}::{verdict['signature']}",
                location=(self.name, None, verdict["signature"]),
                keywords={self.name: 1},
                outcome=outcome,
                longrepr=text_of(finding) if is_call else None,
                when=when,
            )
            if is_call and is_expected:
                report.wasxfail = "known: " + (known["issue"] or known["name"])
            yield report

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:
        """The hunt's own words."""
        if isinstance(excinfo.value, HuntError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[str, None, str]:
        """It stands in no file."""
        return self.name, None, self.name


def hunt(config: pytest.Config) -> dict[str, Any]:
    """The document of `zeroproof hunt --json`. Skips the test where this machine cannot run it."""
    ended = subprocess.run(
        command_of(config),
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ, PYTHONPATH=search_path(config)),
    )
    if ended.returncode == CANNOT_RUN:
        pytest.skip(ended.stderr.strip())
    if ended.returncode not in (HELD, FALSIFIED):
        raise HuntError(f"zeroproof hunt: exit code {ended.returncode}\n{ended.stderr}")
    document = json.loads(ended.stdout)
    if document["problem"]:
        raise HuntError(f"zeroproof hunt: {document['problem']}")
    return document


def command_of(config: pytest.Config) -> list[str]:
    """The command line of the hunt."""
    given = config.getoption("zeroproof_binary") or os.environ.get("ZP_ZEROPROOF")
    binary = given or shutil.which("zeroproof")
    if not binary:
        raise HuntError("no zeroproof in PATH: give --zeroproof-binary, or set ZP_ZEROPROOF")
    words = [binary, "hunt", "--json", "--progress", "none", "--python", python_word()]
    words += ["--engine", config.getoption("zeroproof_engine")]
    for option in ("stage", "budget", "seed", "corpus"):
        value = config.getoption(f"zeroproof_{option}")
        if value:
            words += [f"--{option}", value]
    for setting in config.getoption("zeroproof_set"):
        words += ["--set", setting]
    return words


def python_word() -> str:
    """This Python; by the name that it has in PATH, where that is the same environment's."""
    found = shutil.which("python3")
    is_this = found and os.path.dirname(found) == os.path.dirname(sys.executable)
    return "python3" if is_this else sys.executable


def search_path(config: pytest.Config) -> str:
    """An engine is found where tests find it."""
    folders = [
        str(config.invocation_params.dir),
        str(config.rootpath),
        os.environ.get("PYTHONPATH"),
    ]
    return os.pathsep.join(dict.fromkeys(folder for folder in folders if folder))


def text_of(finding: dict[str, Any]) -> str:
    """The program, and what is wrong."""
    verdict = finding["verdict"]
    difference = verdict.get("difference") or {}
    versions = ", ".join(f"{name} {version}" for name, version in finding["versions"].items())
    flaky = " FLAKY" if finding["is_flaky"] else ""
    return "\n".join(
        [
            f"{verdict['signature']}: rank {difference.get('rank')} at {difference.get('at')}: "
            f"{difference.get('text')}",
            f"{' '.join([finding['engine'], *finding['settings']])}: {versions}; "
            f"{finding['same_runs']} of {finding['runs']} runs{flaky}",
            "",
            finding["text"].rstrip(),
            "",
            f"reproduce: zeroproof {finding['reproduce']}",
        ]
    )


def summary(document: dict[str, Any]) -> str:
    """How many programs, and what became of them."""
    counts = ", ".join(f"{count} {name}" for name, count in document["statuses"].items())
    return f"{document['engine']}: {document['versions']}: {document['cases']} programs: {counts}"
