"""What the documents show is what happens: README, the reference and the examples are run."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md"))
EXAMPLES = sorted(ROOT.glob("examples/*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_python_on_the_page_gives_what_it_shows(page):
    failed, _ = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert failed == 0


def test_pages_with_python_are_among_those_run():
    shown = {page.name for page in PAGES if ">>> " in page.read_text()}
    assert {"README.md", "language.md"} <= shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_sql_on_the_page_is_in_the_language(page):
    import driftline as dl

    for block in re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL):
        for text in filter(None, map(str.strip, block.split(";"))):
            dl.parse(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_brokers_on_all_pages_call_a_journal_by_the_name_that_it_belongs_to(page):
    """Whoever follows two of them in one folder would find that it is another broker's."""
    for command in re.findall(
        r"driftline serve[^`\n]*--journal \w+\.journal[^`\n]*", page.read_text()
    ):
        name = re.search(r"--journal (\w+)\.journal", command)[1]
        assert f"--name {name} " in command


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_the_example_prints_what_stands_beside_it(example):
    printed = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True)
    assert printed.stdout == example.with_suffix(".out").read_text()


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
