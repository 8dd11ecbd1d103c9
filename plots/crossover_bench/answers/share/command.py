# SPDX-License-Identifier: Apache-2.0
"""`share`: prepares a result file for everybody, and says where to send it."""

import argparse
import getpass
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from crossover_bench.answers.command import add_output, complain, named_path
from crossover_bench.answers.record import section as record
from crossover_bench.answers.share.analysis import Shared, text_of, without_private
from crossover_bench.files import again, fitness, loading
from crossover_bench.files.refusal import BadFileError
from crossover_bench.files.rows import File
from crossover_bench.place import ROOT
from crossover_bench.show.tables.formats import wrapped
from crossover_bench.words.text import printable

DESCRIPTION = (
    "Checks that a result file is fit to be committed, as validate --strict does, writes a copy "
    "without what is private (names of host and user, folders, addresses), shows what the copy "
    "says of your machine, and prints the link of the form to send it with. Sends nothing."
)
EXAMPLE = "share results/my-machine/2026-11-24-6056b93.json"
_FORM = "Result file of a machine"
_HOSTED = re.compile(r"github\.com[:/](?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?\s*$")
_MOST = 12  # fields that are named


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=named_path, metavar="FILE", help="the result file")
    add_output(parser, "to-send", "for the copy")


def run(options: argparse.Namespace) -> int:
    path = options.path
    try:
        file = loading.load_file(path)
        if faults := "; ".join(fitness.faults(file, in_place=False)):
            return complain([f"{printable(str(path))}: not fit to be committed: {faults}"])
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        shared = without_private(document, _own_names())
        copied = text_of(shared.document).encode()
        place = fitness.place(file)
        written = options.output.joinpath(*place.parts[1:])
        written.parent.mkdir(parents=True, exist_ok=True)
        is_same = not shared.removed and not shared.changed
        written.write_bytes(path.read_bytes() if is_same else copied)
        copy = loading.load_file(written)
    except BadFileError as error:
        return complain([str(error)])
    except OSError as error:
        where = printable(str(error.filename or options.output))
        return complain([f"{where}: {error.strerror}; choose another folder with -o"])
    if faults := "; ".join(fitness.faults(copy)):
        return complain([f"{printable(str(written))}: not fit to be committed: {faults}"])
    praise = fitness.praise(copy)
    print(f"{printable(str(path))}: fit to be committed: {praise}\n")
    for line in (*_machine(copy), "", *_left_out(shared), ""):
        print(line)
    print(f"wrote {printable(str(written), 400)}, whose place is {place}")
    print(f"Nothing was sent. {_where_to_send(copy, place, praise)}")
    return complain([])


def _own_names() -> set[str]:
    """What this computer and its user are called, which messages in a file may repeat."""
    host = socket.gethostname()
    names = {host, host.partition(".")[0], Path.home().name, os.environ.get("SUDO_USER", "")}
    with suppress(OSError, KeyError, ImportError):  # a user without a name; Windows has no pwd
        names.add(getpass.getuser())
        import pwd  # noqa: PLC0415

        names.add(pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0])  # such as First Last
    return names


def _machine(file: File) -> Iterator[str]:
    """What the file says of the computer it is from, a line each, as its page does."""
    yield "What it says of your machine:"
    command = ("Command", again.command(file.run))
    for key, value in (("Machine", file.machine.id), *record.facts(file), command):
        yield wrapped(printable(value, 600), " " * 14, f"  {key:<12}")


def _left_out(shared: Shared) -> Iterator[str]:
    if not shared.removed and not shared.changed:
        yield "Nothing private was found in it. Look yourself before you send it."
        return
    yield "Left out of the copy as private:"
    lines = [*shared.removed]
    changed = dict.fromkeys(shared.changed)  # often the same of many rows
    lines += [f"{place}: {before} ({after} stays)" for place, before, after in changed]
    for line in lines[:_MOST]:
        yield wrapped(printable(line, 200), "    ", "  ")
    if len(lines) > _MOST:
        yield f"  and {len(lines) - _MOST} more"
    yield "Look yourself for more before you send it."


def _where_to_send(file: File, place: Path, praise: str) -> str:
    name = _repository()
    if not name:
        return (
            f'To send it, open an issue with the form "{_FORM}" in the repository that you have '
            "this program from, and attach that file."
        )
    asked = {
        "template": "result.yml",
        "title": f"Results of {file.machine.id}",
        "place": str(place),
        "check": printable(praise, 400),
    }
    form = f"https://github.com/{name}/issues/new?{urlencode(asked)}"
    return f"To send it, attach that file to this form:\n{form}"


def _repository() -> str:
    """OWNER/NAME on GitHub of this checkout; empty where it has none."""
    if not (ROOT / ".git").exists():  # an installed copy, perhaps below somebody else's
        return ""
    for remote in ("upstream", "origin"):  # a fork has no issues of its own
        command = ["git", "-C", str(ROOT), "remote", "get-url", remote]
        with suppress(OSError):  # no git
            git = subprocess.run(command, capture_output=True, text=True, check=False)
            if match := _HOSTED.search(git.stdout):
                return match["name"]
    return ""
