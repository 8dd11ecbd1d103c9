# SPDX-License-Identifier: Apache-2.0
"""What the stage `outside` makes of the cases of others' suites, without the suites."""

import json
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scripts import script

from tools import test
from tools.outside import page
from tools.outside.kernels import Kernels
from tools.outside.results import Kept, Suite, Verdict, of_refusal, whole, worst

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
    seconds=12.3,
)


def test_the_page_counts_and_gives_reasons():
    text = page.text_of([NODES], "Run somewhere.")
    assert "| nodes | 1.0 | 6 | 2 | 2 | 0 | 1 | 1 | 12 |" in text
    assert "The largest difference is 3.0e-06." in text
    assert "- `e`: TypeError: a \\| b" in text
    assert "| 2 | Sum: its input '…' is […] | `c` |" in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_suite_of_few_has_a_line_for_each_case():
    text = page.text_of([replace(NODES, is_listed=True)], "Run somewhere.")
    assert "| `a` | equal |  |" in text
    assert "| `c` | refused | c (Sum): its input 'x' is [3, 4] |" in text
    assert "| 2 | Sum" not in text


@pytest.mark.parametrize(
    ("sentence", "outcome"),
    [
        ("x (Sum): there is no such layer", "refused"),
        ("x (Sum): it can't be imported as it is used here (TypeError: no)", "fault"),
        ("resnet can't be imported: TypeError: no", "fault"),
        ("the imported network gives other gradients than the original", "different"),
    ],
)
def test_what_an_importer_says_is_a_refusal_or_a_finding(sentence, outcome):
    assert of_refusal("x", sentence).outcome == outcome


def test_a_part_that_breaks_keeps_its_suites_and_is_a_fault():
    def part() -> Iterator[Suite]:
        yield NODES
        raise ValueError("no such file")

    first, broken = whole("nodes", part)
    assert first is NODES
    assert broken.of("fault") == [Verdict("nodes", "fault", "ValueError: no such file")]


def test_a_stage_that_is_stopped_goes_on(tmp_path):
    """What has finished is in the page, and is not run again at the same commit."""
    runs, path = [], tmp_path / "page.md"

    def part(name: str, stops: bool) -> Iterator[Suite]:
        runs.append(name)
        if stops:
            raise KeyboardInterrupt
        yield replace(NODES, name=name)

    def page_with(measured: str, stops: bool, is_commit: bool = True) -> str:
        parts = {"a": lambda: part("a", False), "b": lambda: part("b", stops)}
        page.written(path, measured, parts, Kept(tmp_path, measured, is_commit))
        return path.read_text("utf-8")

    with pytest.raises(KeyboardInterrupt):
        page_with("Here.", True)
    assert "| a | 1.0 | 6 |" in path.read_text("utf-8")
    assert "Here. Still to run: b." in path.read_text("utf-8")
    text = page_with("Here.", False)
    assert text == page.text_of([replace(NODES, name=name) for name in "ab"], "Here.")
    assert runs == ["a", "b", "b"]
    page_with("There.", False)
    page_with("There.", False, is_commit=False)
    assert runs == ["a", "b", "b", *"ab", *"ab"]


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
    kernels = Kernels(bench, "--peer=x", tmp_path, batch=8)
    verdicts = {
        v.case: v
        for v in kernels.verified(suite, {n.case: {"layers": []} for n in known}, names).verdicts
    }
    assert [v.outcome for v in verdicts.values()] == ["equal", *["fault"] * 3, "equal", "refused"]
    assert verdicts["wrong"].reason == "pytorch: loss of step 1 differs"
    assert verdicts["alone"].reason == "only bench has a row"
    assert verdicts["odd"].reason == "bench refuses it: bench: no such layer"


def test_the_weights_of_a_light_graph_are_drawn():
    """Also those behind an Unsqueeze; factors and variances are above zero. What nothing reads is
    left out."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed here")
    pytest.importorskip("torch", reason="torch is not installed here")
    light_graphs = pytest.importorskip("tools.outside.light_graphs")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    value, sizes = onnx.TensorProto.FLOAT, {"w": (4, 3), "f": (4,), "b": (4,)}
    node, info = helper.make_node, helper.make_tensor_value_info
    of_sizes = [node("ConstantOfShape", [f"{name} size"], [name]) for name in sizes]
    nodes = [
        *of_sizes,
        node("Unsqueeze", ["f"], ["g"], axes=[0]),
        node("Gemm", ["x", "w", "b"], ["y"], transB=1),
        node("Mul", ["y", "g"], ["z"]),
    ]
    shapes = [numpy_helper.from_array(np.array(s), f"{name} size") for name, s in sizes.items()]
    shapes.append(numpy_helper.from_array(np.zeros(3, np.float32), "a queue that nothing reads"))
    inputs = [info("x", value, [1, 3])]
    inputs += [info(s.name, s.data_type, s.dims) for s in shapes]
    graph = helper.make_graph(nodes, "g", inputs, [info("z", value, [1, 4])], shapes)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=3)
    drawn = light_graphs.with_weights(model, np.random.default_rng(0))
    onnx.checker.check_model(drawn)
    weights = {each.name: numpy_helper.to_array(each) for each in drawn.graph.initializer}
    assert {name: numbers.shape for name, numbers in weights.items()} == sizes
    assert all(len(set(numbers.ravel())) == numbers.size for numbers in weights.values())
    assert weights["f"].min() > 0 and [read.name for read in drawn.graph.input] == ["x"]


def test_without_a_network_the_stage_is_skipped_with_the_reason(monkeypatch, tmp_path):
    def fails(_: object) -> None:
        raise test.CommandFailed("pip install", 1, ["no route to host"], tmp_path / "pip.log")

    monkeypatch.setattr(test.environment, "PEERS", SimpleNamespace(ensure=fails))
    with pytest.raises(test.Missing, match=r"(?s)could not be installed: .*no route to host"):
        test._outside(None)
