# SPDX-License-Identifier: Apache-2.0
"""Another commit's bench, measured in turn with this one as a peer: peers/bench.py."""

import subprocess
from pathlib import Path

from tools.console import HOME, ROOT, Failure, friendly, say

FOLDER = HOME / "build" / "other"


def git(*words: str | Path) -> subprocess.CompletedProcess[str]:
    # safe.directory: in containers the checkout often belongs to another user.
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *words]
    # As os.fsdecode() has names of files.
    return subprocess.run(
        command, capture_output=True, text=True, errors="surrogateescape", check=False
    )


def commit_named(word: str) -> str:
    """In full; Failure where there is none."""
    told = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
    # A copy without .git may lie in somebody else's repository.
    if told.returncode != 0 or not (ROOT / ".git").exists():
        raise Failure(f"--compare-with={word}: git knows no such commit here", 2)
    return told.stdout.strip()


def built(commit: str, cuda: str) -> tuple[str, Path]:
    """Check a commit out beside this one, and build it; its short name and its bench."""
    name = commit[:7]
    folder = FOLDER / name
    if not (folder / "run").exists():
        cloned = git("clone", "--quiet", "--shared", "--no-checkout", ROOT, folder)
        moved = git("-C", folder, "checkout", "--quiet", "--detach", commit)
        if cloned.returncode or moved.returncode:
            raise Failure(f"--compare-with={name}: {(cloned.stderr or moved.stderr).strip()}")
    say(f"building {name} in {friendly(folder)}")
    set_up = [str(folder / "run"), "--setup-only", f"--cuda={cuda}"]
    if subprocess.run(set_up, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise Failure(f"--compare-with={name}: it can't be built (above); name a later commit")
    return name, folder / "build" / "bench"
