"""Terminal, page, JSON, Markdown and JUnit tell a finding by the same title and the same facts."""

import html
import io
import json
import re
from xml.etree import ElementTree

import pytest
from rich.console import Console

from veriformer.reports.page import Inputs, render
from veriformer.reports.runs import label
from veriformer.reports.summary import summary
from veriformer.verify.presentation.junit import write_junit
from veriformer.verify.presentation.terminal import show
from veriformer.verify.results.record import json_safe
from veriformer.verify.results.words import facts, title


@pytest.fixture
def told(run, violation, finding):
    """A finding with every fact that there may be, and the run of it."""
    row = violation()
    found = finding(
        what="the result is wrong with a mask",
        when="with a mask",
        dtypes=("fp32",),
        requirements=(row.requirement,),
        rows=(row.key,),
        counterexample=vars(row.counterexample),
        precedents=("https://a.b/1",),
        suggestion={"convention": "softmax.mask", "value": "true keeps"},
        confirmed=True,
        where={"file": "mine.py", "line": 12},
        fix="add the mask before the softmax",
    )
    return found, run([row], findings=[found])


def terminal(run, tmp_path):
    file = io.StringIO()
    show(run, Console(file=file, width=1000, color_system=None))
    return {line[4:14].strip(): line[14:].strip() for line in file.getvalue().splitlines() if line[:4] == "    "}


def page(run, tmp_path):
    entry = render(Inputs(runs=label([run]))).split('class="finding')[1]
    listed = re.search('<dl class="facts told">(.*?)</dl>', entry, re.DOTALL)[1]
    return {k: html.unescape(v) for k, v in re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", listed, re.DOTALL)}


def in_json(run, tmp_path):
    return json.loads(json.dumps(json_safe(run.to_dict())))["findings"][0]["facts"]


def markdown(run, tmp_path):
    plain = re.sub(r"\\(.)", r"\1", summary(Inputs(runs=label([run]))))
    return dict(re.findall(r"^   - ([^:]+): (.*)$", plain, re.MULTILINE))


def junit(run, tmp_path):
    write_junit(run, tmp_path / "out.xml")
    text = ElementTree.parse(tmp_path / "out.xml").getroot()[0][0][0].text
    listed = text.partition("\nfinding ")[2].partition("\n\n")[0]
    return dict(line.split(": ", 1) for line in listed.splitlines()[1:])


@pytest.mark.parametrize("teller", [terminal, page, in_json, markdown, junit])
def test_every_teller_tells_the_same_facts(told, teller, tmp_path):
    found, run = told
    expected = dict(facts(found))
    assert list(expected) == ["where", "call", "result", "change", "intended?", "explains", "demanded", "seen in"]
    assert teller(run, tmp_path) == expected


def test_every_teller_has_the_title(told, tmp_path):
    found, run = told
    write_junit(run, tmp_path / "out.xml")
    file = io.StringIO()
    show(run, Console(file=file, width=1000, color_system=None))
    inputs = Inputs(runs=label([run]))
    texts = [file.getvalue(), render(inputs), summary(inputs), (tmp_path / "out.xml").read_text()]
    assert all(title(found) in text for text in texts)


def test_files_with_facts_are_read_again(told):
    found, run = told
    document = json_safe(run.to_dict())
    assert type(run).from_dict(document).findings == [found]
