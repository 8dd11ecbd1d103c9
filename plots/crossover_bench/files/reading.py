# SPDX-License-Identifier: Apache-2.0
"""The text of a file, and the JSON in it, whoever wrote it; what is wrong is told in words."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from crossover_bench.files.refusal import FaultError
from crossover_bench.words.text import printable

OF_BENCH = "give a file written by bench"
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a character that JSON writes in two escapes


def text_of(path: Path, remedy: str = OF_BENCH) -> str:
    """The text of a file, which is not empty; raises FaultError, which `remedy` may end."""
    try:
        if path.exists() and not path.is_file():
            raise FaultError("is not a regular file; name a result file or a folder")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise FaultError("no such file; check the path") from None
    except UnicodeDecodeError:
        raise FaultError(f"is not UTF-8 text; {remedy}") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FaultError(f"cannot be read ({reason}); check path and permissions") from None
    if not text.strip():
        raise FaultError("the file is empty; delete it, or measure again")
    return text


def parsed(text: str, remedy: str = OF_BENCH) -> Any:
    """The JSON that `text` is; raises FaultError, which `remedy` may end."""
    try:
        document = json.loads(text, object_pairs_hook=_unique)
        if _HALF.search(text):
            _check_characters(document)
        return document
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            raise FaultError(
                f"line {error.lineno}",
                "the JSON ends too early, so the file was cut off; copy it again from its "
                "source, or measure again",
            ) from None
        raise FaultError(
            f"line {error.lineno}, column {error.colno}", f"is not JSON ({error.msg}); {remedy}"
        ) from None
    except RecursionError:
        raise FaultError(f"is nested too deeply; {remedy}") from None
    except ValueError:  # Python refuses integers of more than 4300 digits
        raise FaultError("holds a number that is too large; measure again") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # A counter named like a field of Google Benchmark's would silently replace it.
    result = dict(pairs)
    if len(result) != len(pairs):
        ((key, _),) = Counter(key for key, _ in pairs).most_common(1)
        name = result.get("name")
        row = f' of row "{printable(name)}"' if isinstance(name, str) else ""
        raise FaultError(
            f'field "{printable(key)}"{row} occurs twice in one object; rename one of them and '
            "measure again"
        )
    return result


def _check_characters(document: Any) -> None:
    """No text can be written anywhere that has half of a character in it."""
    try:
        json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = printable(error.object[error.start])
        raise FaultError(f"holds {half}, half of a character; correct the text") from None
