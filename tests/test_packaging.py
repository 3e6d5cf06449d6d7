"""The distribution: its metadata, its files, and what happens if another one overwrites them.

`make dist` does more: it builds twice, compares, and installs the result in empty environments.
"""

from __future__ import annotations

import email
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from hatch_build import absolute
from natsproto.cli import doctor, exits
from natsproto.version import VERSION
from tests.cli.programs import WAIT, Done, environment
from tests.core import ROOT
from tests.versions import VERSIONS

if TYPE_CHECKING:
    from email.message import Message
    from pathlib import Path

EXTRAS = {name for name, _, _ in doctor.EXTRAS} | {"demo", "demo-lite"}
FOREIGN = '"""Some other package."""\n'
METADATA = "Metadata-Version: 2.1\nName: google-jetstream\nVersion: 0.2.2\n"
OTHERS = "jetstream/__init__.py,,\ngoogle_jetstream-0.2.2.dist-info/METADATA,,\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 0, done.stderr
    return next(place.glob("*.whl"))


@pytest.fixture(scope="module")
def described(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        return email.message_from_bytes(files.read(f"natsproto-{VERSION}.dist-info/METADATA"))


def test_the_metadata(described):
    assert described["Author"] == "natsproto contributors"
    assert described["License-Expression"] == "Apache-2.0"
    urls = dict(each.split(", ") for each in described.get_all("Project-URL"))
    assert {"Homepage", "Documentation", "Changelog", "Issues", "Source"} <= set(urls)
    assert all(url.startswith(urls["Homepage"]) for url in urls.values())
    assert "Programming Language :: Python :: 3.14" in described.get_all("Classifier")


def test_only_extras_for_users_are_published(described):
    assert set(described.get_all("Provides-Extra")) == EXTRAS
    required = [each for each in described.get_all("Requires-Dist") if "extra ==" not in each]
    assert required == []


def test_the_description_has_no_relative_link(described):
    text = described.get_payload()
    links = re.findall(r'\]\(([^)\s]+)\)|(?:src|href|srcset)="([^"]+)"', text)
    targets = [one or other for one, other in links]
    assert len(targets) > 20
    assert [each for each in targets if not each.startswith(("https://", "#"))] == []


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("[a](docs/a.md#b)", "[a](https://github.com/o/p/blob/v1/docs/a.md#b)"),
        ("![a](docs/a.svg)", "![a](https://raw.githubusercontent.com/o/p/v1/docs/a.svg)"),
        ('<img src="a.png">', '<img src="https://raw.githubusercontent.com/o/p/v1/a.png">'),
        ("[a](#b) [c](https://d)", "[a](#b) [c](https://d)"),
    ],
)
def test_links_become_absolute(text, result):
    assert absolute(text, "https://github.com/o/p", "1") == result


def test_the_files_of_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = {"natsproto", "jetstream", "pyspark_jetstream"}
    assert {f"{each}/py.typed" for each in packages} <= names
    assert {each.partition("/")[0] for each in names} == {
        *packages,
        f"natsproto-{VERSION}.dist-info",
    }
    assert not [each for each in names if each.endswith((".pyc", ".mpy"))]


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """Return a folder with the files of the wheel, as pip would write them."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as files:
        files.extractall(site)
    return site


def overwrite(site: Path) -> None:
    """Do what pip does on `pip install google-jetstream`."""
    (site / "jetstream").mkdir(parents=True, exist_ok=True)
    (site / "jetstream" / "__init__.py").write_text(FOREIGN)
    info = site / "google_jetstream-0.2.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "RECORD").write_text(OTHERS)


def run(tmp_path: Path, path: str, *command: str) -> Done:
    """Run Python outside of the repository, with packages in another folder."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        env=environment(tmp_path, PYTHONPATH=path, NATS_URL="nats://127.0.0.1:1"),
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.rule("D-CLI-11")
def test_doctor_finds_nothing_wrong(installed, tmp_path):
    done = run(tmp_path, str(installed), "-m", "natsproto", "doctor")
    assert done.code == exits.OK, done.err
    assert f"ok      jetstream   {installed / 'jetstream'}" in done.out
    assert "missing connection  no server could be reached: nats://127.0.0.1:1" in done.out


@pytest.mark.rule("D-CLI-11")
def test_doctor_names_the_distribution_that_overwrote_the_package(installed, tmp_path):
    overwrite(installed)
    done = run(tmp_path, str(installed), "-m", "natsproto", "doctor")
    assert done.code == exits.REFUSED
    assert "__init__.py was overwritten by google-jetstream 0.2.2: pip uninstall" in done.out
    assert doctor.REPAIR in done.out
    assert done.err == "natsproto: the installation has a problem: jetstream\n"


@pytest.mark.rule("D-CLI-11")
def test_doctor_notices_a_package_that_hides_this_one(installed, tmp_path):
    other = tmp_path / "other"
    overwrite(other)
    path = f"{other}:{installed}"
    done = run(tmp_path, path, "-m", "natsproto", "doctor")
    assert done.code == exits.REFUSED
    assert f"`import jetstream` finds {other / 'jetstream' / '__init__.py'}, not" in done.out
    assert "by google-jetstream 0.2.2" in done.out


@pytest.mark.rule("D-CLI-11")
def test_the_command_says_why_it_cannot_be_imported(installed, tmp_path):
    overwrite(installed)
    code = "import sys; from jetstream.tools.cli.entry import main; sys.exit(main())"
    done = run(tmp_path, str(installed), "-c", code, "stream", "ls")
    assert done.code == exits.USAGE
    assert "cannot import name" in done.err
    assert "was overwritten by google-jetstream 0.2.2" in done.err
    assert "Traceback" not in done.err


def test_extras_are_reported():
    assert doctor.check_extra("trio", "pytest", "tests").state == "ok"
    assert doctor.check_extra("trio", "no-such-thing", "x").text == (
        "x: pip install 'natsproto[trio]'"
    )


def test_the_support_page_names_what_is_tested():
    """The table has the versions of Python in tox.ini, and the servers of `make versions`."""
    page = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    head, _, *rows = re.findall(r"^\|.*\|$", page.partition("| platform")[0], re.MULTILINE)
    assert tuple(re.findall(r"\d+\.\d+\.\d+", head)) == VERSIONS
    pythons = [re.search(r"CPython (3\.\d+)", row)[1] for row in rows]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert pythons == re.findall(r"Python :: (3\.\d+)", project)
    tox = (ROOT / "tox.ini").read_text(encoding="utf-8")
    listed = tox.partition("env_list")[2].partition("\n")[0]
    assert pythons == [f"3.{minor}" for minor in re.findall(r"\bpy3(\d+)\b", listed)]
    cells = [cell.strip() for row in rows for cell in row.split("|")[2:-1]]
    assert set(cells) <= {"tested", "untested"}
