# SPDX-License-Identifier: Apache-2.0
"""What the stage `outside` makes of the cases of others' suites, without the suites."""

import json
from types import SimpleNamespace

import pytest
from scripts import script

from tools import test
from tools.outside import page
from tools.outside.kernels import Kernels
from tools.outside.results import Suite, Verdict, worst

NODES = Suite(
    "nodes",
    "1.0",
    "numbers",
    [
        Verdict("a", "equal", apart=1e-7),
        Verdict("b", "equal", apart=3e-6),
        Verdict("c", "refused", "c (Sum): its input 'x' is [3, 4]"),
        Verdict("d", "refused", "node_d (Sum): its input 'yy' is [2]"),
        Verdict("e", "fault", "TypeError: a | b"),
        Verdict("f", "other"),
    ],
)


def test_the_page_counts_and_gives_reasons():
    text = page.text_of([NODES], "Run somewhere.")
    assert "| nodes | 1.0 | 6 | 2 | 2 | 0 | 1 | 1 |" in text
    assert "The largest difference is 3.0e-06." in text
    assert "- `e`: TypeError: a \\| b" in text
    assert "| 2 | Sum: its input '…' is […] | `c` |" in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_case_that_is_read_in_several_ways_is_the_worst_of_them():
    ways = [Verdict("a", "refused"), Verdict("a", "equal"), Verdict("a", "other")]
    assert worst(ways).outcome == "equal"
    assert worst([*ways, Verdict("a", "fault")]).outcome == "fault"
    assert worst([*ways, Verdict("a", "fault"), Verdict("a", "different")]).outcome == "different"


def test_a_network_without_a_verified_row_is_a_fault(tmp_path):
    """Refused by bench, failed in one program, or without PyTorch's row."""
    rows = [
        {"configuration": {"model": "good"}},
        {"configuration": {"model": "good", "program": "pytorch"}},
        {"configuration": {"model": "wrong"}},
        {
            "configuration": {"model": "wrong", "program": "pytorch"},
            "outcome": "failed",
            "error_message": "loss of step 1 differs",
        },
        {"configuration": {"model": "alone"}},
    ]
    bench = script(
        tmp_path / "bench",
        f"""
import json, sys
if "--describe" in sys.argv:
    texts = {{"odd": "no such layer", "bare": "x.json: network 'x': there is nothing to train"}}
    sys.exit(next((f"bench: {{what}}" for name, what in texts.items() if name in sys.argv[-1]), 0))
out = sys.argv[-1].removeprefix("--out=")
assert "odd.json" not in " ".join(sys.argv)
open(out, "w").write(json.dumps({{"rows": {json.dumps(rows).replace("true", "True")}}}))
""",
    )
    names = ("good", "wrong", "alone", "odd")
    known = [Verdict(name, "equal") for name in (*names, "bare")]
    suite = Suite("s", "1", "how", [*known, Verdict("r", "refused")])
    kernels = Kernels(bench, "--peer=x", tmp_path)
    verdicts = {
        v.case: v
        for v in kernels.verified(suite, {n.case: {"layers": []} for n in known}, names).verdicts
    }
    assert [v.outcome for v in verdicts.values()] == ["equal", *["fault"] * 3, "equal", "refused"]
    assert verdicts["wrong"].reason == "pytorch: loss of step 1 differs"
    assert verdicts["alone"].reason == "only bench has a row"
    assert verdicts["odd"].reason == "bench refuses it: bench: no such layer"


def test_without_a_network_the_stage_is_skipped_with_the_reason(monkeypatch, tmp_path):
    def fails(_: object) -> None:
        raise test.CommandFailed("pip install", 1, ["no route to host"], tmp_path / "pip.log")

    monkeypatch.setattr(test.environment, "PEERS", SimpleNamespace(ensure=fails))
    with pytest.raises(test.Missing, match=r"(?s)could not be installed: .*no route to host"):
        test._outside(None)
