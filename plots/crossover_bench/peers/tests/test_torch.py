# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side itself, where torch is installed: the networks, their start, verification."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from crossover_bench.answers.predict.attention import written_out  # noqa: E402
from crossover_bench.answers.predict.host import calls  # noqa: E402
from crossover_bench.counts.costs import kept_cost  # noqa: E402
from crossover_bench.peers import verification  # noqa: E402
from crossover_bench.peers.pytorch import layers, networks, ranks, rows  # noqa: E402
from crossover_bench.peers.pytorch.__main__ import Rows  # noqa: E402
from crossover_bench.peers.pytorch.copies import Copies  # noqa: E402
from crossover_bench.peers.pytorch.counterparts import Wanted, counterparts  # noqa: E402
from crossover_bench.peers.pytorch.counting import Counting  # noqa: E402
from crossover_bench.peers.pytorch.forward import Forward  # noqa: E402
from crossover_bench.peers.pytorch.ranks import SharedTraining, SharesInTurn  # noqa: E402
from crossover_bench.peers.pytorch.rows import prepare  # noqa: E402
from crossover_bench.peers.pytorch.training import (  # noqa: E402
    Graphs,
    References,
    Training,
    allow_tf32,
    settle,
    where_tf32,
)
from crossover_bench.peers.pytorch.usual import Usual  # noqa: E402
from crossover_bench.peers.rows import repetition  # noqa: E402
from crossover_bench.peers.tasks import Optimizer, Task, Unsupported  # noqa: E402
from crossover_bench.peers.tests import (  # noqa: E402
    CPU,
    DISC,
    GOLDEN,
    HEART,
    NETWORKS,
    OUTPUTS,
    configuration_of,
    copies_are_verified,
    deep,
    is_golden,
    is_verified_and_timed,
    of_images,
    ours,
    trained,
)
from crossover_bench.peers.verification import (  # noqa: E402
    Mismatch,
    Tolerance,
    tolerance_of,
    verified,
)

DISC_2 = {  # what bench tells of a row of it
    **trained("disc-2"),
    **{"params": 22, "batch": 100, "rows": 200, "optimizer": "sgd lr=0.1"},
    "epoch": {"flops": 1e5},
}


@pytest.fixture(autouse=True)
def _one_thread():
    """More would wait for each other where tests run beside tests."""
    torch.set_num_threads(1)


@pytest.mark.parametrize(
    ("case", "task"), [pytest.param(case, task, id=case["name"]) for case, task in GOLDEN]
)
def test_float64_is_the_golden_run(case, task):
    training = Training(task, CPU, torch.float64)
    losses = training.run_steps(case["steps"])
    is_golden(case, task, losses, training.parameters())


@pytest.mark.parametrize(("model", "count"), [("alexnet-s", 62_378_344), ("resnet-50", 25_557_032)])
def test_networks_have_their_parameters(model, count):
    network = networks.network_of(NETWORKS[model])
    assert sum(parameter.numel() for parameter in network.parameters()) == count


@pytest.mark.parametrize(
    "model", ["disc-2", "heart", "policy", "lenet-5", "gpt-64", "vit-ti", "resnet-56"]
)
def test_calls_are_as_many_as_predictions_take(model):
    """The dispatch mode counts on a small batch what answers/predict/host.py infers from
    bench's launches; a recurrence is many calls on a CPU, and one on a GPU."""
    cost = kept_cost(model)
    label = cost.fields["optimizer"]
    task = Task(NETWORKS[model], "uniform", 2, 2, Optimizer.of(label), label, 0, 0.0)
    training = Training(task, CPU)
    training.run()
    with Counting() as counting:
        training.run()
    counted = sum(each["launches"] * each.get("count", 1) for each in counting.counts.operations)
    assert calls(cost) == pytest.approx(counted, rel=0.2)


def test_attention_written_out_is_what_predictions_take():
    """That of gpt-64 without PyTorch's fused one: 12 samples of 64 tokens, a head of 64."""
    cost = kept_cost("gpt-64")
    fused = [each for each in cost.operations if each.kind == "product" and not each.products]
    attention = written_out(replace(cost, operations=tuple(replace(f, count=1) for f in fused)))
    query, key, value = (torch.randn(12, 64, 64, requires_grad=True) for _ in range(3))
    hidden = torch.ones(64, 64).triu(1).bool()
    with Counting() as counting:
        scores = (query @ key.transpose(1, 2)) * 0.125
        shares = scores.masked_fill(hidden, -1e9).softmax(-1)
        given = torch.dropout(shares, 0.1, True) @ value
        given.backward(torch.ones_like(given))
    counted = {kind: [0.0, 0.0] for kind in ("product", "softmax")}
    for each in counting.counts.operations:
        if each["kind"] in counted:
            counted[each["kind"]][0] += each["launches"] * each.get("count", 1)
            counted[each["kind"]][1] += each["bytes"] * each.get("count", 1)
    for kind, (launches, moved) in counted.items():
        of_kind = [each for each in attention.operations if each.kind == kind]
        assert sum(each.launches * each.count for each in of_kind) == launches
        assert sum(each.bytes * each.count for each in of_kind) == pytest.approx(moved)


def test_dropout_layers_are_numbered_as_in_bench():
    network = networks.network_of(NETWORKS["alexnet-s"])
    numbers = [place for place, m in enumerate(network) if isinstance(m, layers.Dropout)]
    assert numbers == [16, 19] == [network[place].number for place in numbers]


def test_a_mask_replaces_dropout_and_goes():
    dropout = layers.Dropout(0.5, 3, (-1, 8))
    x = torch.ones(4, 8)
    dropout.take_mask(1, 4, torch.device("cpu"))
    first = dropout(x)
    assert (first == dropout(x)).all() and set(first.flatten().tolist()) == {0.0, 2.0}
    dropout.take_mask(2, 4, torch.device("cpu"))
    assert (first != dropout(x)).any()
    dropout.mask = None
    dropout.eval()
    assert (dropout(x) == x).all()


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_a_training_is_verified(precision):
    configuration = {**CPU, "precision": precision}
    checked, loss = verified(Training(DISC, configuration), configuration, References(1))
    assert checked["steps"] == checked["steps_of"] == 10
    assert 0 < checked["relative_error"] <= checked["tolerance"]
    assert 0 < checked["parameter_error"] <= checked["parameter_tolerance"]
    exact = sum(Training(DISC, CPU, torch.float64).run_steps(10)) / 10
    assert loss == pytest.approx(exact, rel=checked["tolerance"])


@pytest.mark.parametrize(
    ("optimizer", "changes"),
    [
        (DISC.optimizer, {}),
        (DISC.optimizer, {"compiler": "inductor", "zero": "keep"}),
        (Optimizer("adamw", 1e-3, 0.1), {"precision": "bf16"}),
        (Optimizer("adamw", 1e-3, 0.1), {}),
    ],
)
def test_copies_are_what_each_is_alone(optimizer, changes):
    configuration = CPU | changes

    def spoil(training):
        training._start[1][2] *= 2 if "precision" in changes else 1.01

    task = replace(DISC, rows=250, optimizer=optimizer)  # the last batch has 50
    copies_are_verified(
        lambda copies: Copies(copies, configuration), configuration, References(1), task, spoil
    )


def test_copies_of_large_batches_are_verified_in_part():
    large = replace(DISC, rows=100, flops=1e11, copies=2)
    training = Copies(large, CPU)
    assert verified(training, CPU, References(1))[0]["batch"] == 64
    plain = training._loss
    training._loss = lambda z, y: plain(z, y) * 1.1
    with pytest.raises(Mismatch, match="step 1 of copy 1"):
        verified(training, CPU, References(1))


def test_copies_that_are_normalized_are_compared_copy_by_copy():
    task = replace(deep(1), copies=3)
    checked, _ = verified(Copies(task, CPU), CPU, References(1))
    assert 0 < checked["parameter_error"] <= checked["parameter_tolerance"]
    _, tolerance = References(1).within_roundings(task, Tolerance(1e-3, 1e-4))
    assert len(tolerance.tensors) == 3


def test_copies_have_a_row_where_vmap_takes_the_network():
    (configuration,) = counterparts(ours("disc-2", copies="4"), Wanted())
    made = prepare(configuration, DISC_2, References(1), 0)
    assert repetition(made, 0.001)["real_time"] > 0
    assert (made.facts["params"], made.facts["flops"]) == (22, 4e5)
    assert (made.facts["rows"], made.facts["steps"]) == (200, 2)
    with pytest.raises(Unsupported, match="does not take this network: Batching rule"):
        prepare(configuration, DISC_2 | trained("lstm"), References(1), 0)
    with pytest.raises(Unsupported, match=r"does not take this network: vmap: .*random"):
        drops = {"name": "drops", "type": "dropout", "p": 0.5}
        network = {**NETWORKS["disc-2"], "layers": [*NETWORKS["disc-2"]["layers"], drops]}
        prepare(configuration, {**DISC_2, "network": network}, References(1), 0)


def test_gradients_that_are_kept_are_added_to():
    configuration = {**CPU, "zero": "keep"}
    training = Training(DISC, configuration)
    checked, _ = verified(training, configuration, References(1))
    assert 0 < checked["parameter_error"] <= checked["parameter_tolerance"]
    places = [p.grad.data_ptr() for p in training.network.parameters()]
    training.run()
    assert [p.grad.data_ptr() for p in training.network.parameters()] == places


def test_ranks_are_verified_as_one_process():
    configuration = {**CPU, "ranks": "2", "cpu_threads": "1"}
    shared = SharedTraining(DISC, configuration)
    checked, loss = verified(shared, configuration, References(1))
    assert 0 < checked["parameter_error"] <= checked["parameter_tolerance"]
    assert loss == pytest.approx(verified(Training(DISC, CPU), CPU, References(1))[1])
    shared.restart()
    shared.expect(2)
    shared.run()
    shared.run()
    assert shared.losses_are_finite() and shared.parameters_are_finite()
    with pytest.raises(Unsupported, match="averages gradients"):
        SharedTraining(replace(DISC, batch=99), configuration)


def test_ranks_normalize_and_drop_by_shares():
    counted = of_images() | {"batch": 8, "rows": 24, "epoch": {"flops": 1e5}}
    task = Task.of("Epoch", counted)
    configuration = {**CPU, "ranks": "2"}  # as on a GPU, without a number of threads
    shared = SharedTraining(task, configuration)
    checked, _ = verified(shared, configuration, References(1, SharesInTurn, ranks="2"))
    assert checked["steps"] == 3 and 0 < checked["relative_error"] < 1e-5
    with pytest.raises(Mismatch):
        verified(shared, configuration, References(1))


def test_ranks_on_gpus_are_refused_where_they_cannot_sum(monkeypatch):
    """No GPU is asked for anything: these never ran on one."""
    configuration = {**CPU, "device": "cuda", "ranks": "2"}
    sees = "there are more ranks than GPUs: each of 2 ranks needs one of its own, and PyTorch sees"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(Unsupported, match=f"{sees} 1; start as many ranks as there are GPUs"):
        SharedTraining(DISC, configuration)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    with pytest.raises(Unsupported, match="this PyTorch has no NCCL"):
        SharedTraining(DISC, configuration)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    assert (ranks.backend_of("cuda", 2), ranks.backend_of("cpu", 64)) == ("nccl", "gloo")


def test_each_rank_joins_with_its_own_gpu(monkeypatch):
    done = []
    monkeypatch.setattr(torch.cuda, "set_device", done.append)
    monkeypatch.setattr(
        torch.distributed,
        "init_process_group",
        lambda backend, **told: done.append((backend, told)),
    )
    told = {"init_method": "tcp://here", "rank": 1, "world_size": 2}
    ranks._join("nccl", "tcp://here", 1, 2)
    ranks._join("gloo", "tcp://here", 1, 2)
    assert done == [1, ("nccl", told), ("gloo", told)]


def test_ranks_of_each_number_and_device_have_a_process():
    def process(**changes: str) -> dict[str, str]:
        (row,) = Rows().rows(ours("disc-4", **changes))["rows"]
        return row["environment"]

    processes = [process(), process(ranks="2"), process(ranks="4")]
    processes.append(process(ranks="2", device="cuda", data="resident"))
    assert all(process not in processes[:place] for place, process in enumerate(processes))


def test_no_product_is_in_tf32_once_it_is_settled():
    libraries = (torch.backends.cudnn, torch.backends.cuda.matmul)
    for library in libraries:
        library.allow_tf32 = True
    settle()
    assert not any(library.allow_tf32 for library in libraries)


def test_shares_in_turn_are_the_whole_batch():
    whole = References(1).of(DISC)
    shares = References(1, SharesInTurn, ranks="3").of(DISC)
    assert shares.losses == pytest.approx(whole.losses, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        *(("disc-4", "Epoch"), ("disc-4", "Minibatch"), ("surrogate", "Epoch")),
        *(("lenet-5", "Epoch"), ("gpt-16", "Epoch"), ("gpt-16", "Minibatch")),
    ],
)
def test_a_loop_as_people_write_it_is_verified_and_so_is_its_loader(model, family):
    """Numbers for labels, images, and tokens by time with labels of places are among them."""
    rows = 10 if family == "Epoch" else 4  # two batches and a short one, or a step
    sizes = {"batch": 4, "rows": rows, "params": 1, "flops": 1e6}
    task = Task(**trained(model), **sizes, optimizer=Optimizer("sgd", 0.01), label="")
    configuration = {**CPU, "family": family, "script": "usual"}
    training = Usual(task, configuration)
    checked, _ = verified(training, configuration, References(1))
    assert 0 < checked["parameter_error"] <= checked["parameter_tolerance"]
    training.check_loader()
    training.restart()
    training.run()
    assert len(training.taken) == task.steps and training.losses_are_finite()
    again = training.taken
    training.restart()
    training.run()
    assert training.taken == again  # the order is that of a seed
    training.run()
    assert training.taken != again
    data = training._loader.dataset
    data.tensors[1][0] = data.tensors[1][0] + 1
    with pytest.raises(Mismatch, match="does not have each row of the data once"):
        training.check_loader()


def test_a_row_as_people_write_it_is_made_like_others():
    (configuration,) = counterparts(ours("disc-2"), Wanted(scripts=("usual",)))
    made = prepare(configuration, DISC_2, References(1), 0)
    assert isinstance(made.work, Usual) and made.facts["steps"] == 2
    assert made.once["first_call_seconds"] > 0
    assert repetition(made, 0.001)["real_time"] > 0 and len(made.work.taken) == 2
    made.work.taken[1] = float("nan")
    with pytest.raises(Mismatch, match="a loss is not finite"):
        made.check()


def test_a_compiled_row_says_how_many_graphs_were_in_a_cache(monkeypatch):
    """Nothing is compiled."""
    counters = importlib.import_module("torch._dynamo.utils").counters["inductor"]

    def compiled(forward, **_):
        counters["fxgraph_cache_hit"] += 2
        return forward

    monkeypatch.setattr(torch, "compile", compiled)
    rows = counterparts(ours("disc-2"), Wanted(modes=("eager", "compile")))
    plain, other = (prepare(row, DISC_2, References(1), 0).once for row in rows)
    assert "cached_graphs" not in plain and other["cached_graphs"] == 2
    assert other["first_call_seconds"] > 0


def test_a_loop_as_people_write_it_has_torchs_defaults_in_tf32(monkeypatch):
    """Where it computes in TF32 it has its tolerances. No GPU is asked: it never ran on one."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))

    def rounds(name: str) -> bool:
        return rows._rounds_to_tf32({"device": "cuda"}, trained(name))

    settle()
    assert where_tf32() == [] and not rounds("lenet-5")
    allow_tf32(as_torch=True)
    assert where_tf32() == ["cudnn"]
    assert rounds("lenet-5") and rounds("lstm")
    assert not rounds("disc-2")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 5))
    assert not rounds("lenet-5")
    assert tolerance_of(DISC, "tf32").parameters == 2.0**-10
    (lean,) = counterparts(ours("disc-2"), Wanted())
    prepare(lean, DISC_2, References(1), 0).begin()
    assert where_tf32() == []


def _other_rate(training: Training) -> None:
    training.optimizer.param_groups[0]["lr"] *= 1.01


def _frozen_bias(training: Training) -> None:
    next(p for p in training.network.parameters() if p.ndim == 1).requires_grad_(False)


def _other_start(training: Training) -> None:
    training._start[0] *= 1.001


def _no_activation(training: Training) -> None:
    training.network[1] = torch.nn.Identity()


@pytest.mark.parametrize("wrong", [_other_rate, _frozen_bias, _other_start, _no_activation])
def test_a_training_that_differs_is_refused(wrong):
    training = Training(DISC, CPU)
    wrong(training)
    with pytest.raises(Mismatch):
        verified(training, CPU, References(1))


@pytest.mark.parametrize("norm", ["batch_norm", "group_norm"])
def test_where_rounding_decides_the_tolerance_is_what_roundings_do(norm, monkeypatch):
    usual = Tolerance(1e-3, 1e-4)
    assert References(1).within_roundings(deep(1, norm), usual)[1].parameters == 1e-4
    longer = replace(deep(norm=norm), rows=20)
    trajectory, wide = References(1).within_roundings(longer, usual)
    assert wide.parameters > 2e-4 and wide.loss <= 1e-2
    assert 2 <= len(trajectory.losses) < 10, "rounding decides the last losses"
    monkeypatch.setattr(verification, "tolerance_of", lambda *_: Tolerance(1e-12, 1e-12))
    checked, _ = verified(Training(longer, CPU), CPU, References(1))
    assert checked["steps"] == len(trajectory.losses) and checked["steps_of"] == 10
    assert checked["parameter_error"] <= checked["parameter_tolerance"]
    training = Training(deep(1, norm), CPU)
    _other_rate(training)
    with pytest.raises(Mismatch):
        verified(training, CPU, References(1))


def test_large_batches_are_verified_in_part_and_their_first_loss_whole():
    large = replace(DISC, rows=100, flops=1e11)
    checked, loss = verified(Training(large, CPU), CPU, References(1))
    assert checked["batch"] == 64 and checked["steps"] == checked["steps_of"] == 2
    assert loss == pytest.approx(Training(large, CPU, torch.float64).loss(), rel=1e-5)


def test_tolerances_are_those_of_bench():
    adamw = replace(DISC, optimizer=Optimizer("adamw", 1e-3))
    assert tolerance_of(DISC, "f32").loss == 1e-5
    assert tolerance_of(adamw, "f32").loss == pytest.approx(5e-5)
    assert tolerance_of(deep(1), "f32").loss == 1e-3
    assert tolerance_of(DISC, "bf16").loss == 2.0**-7
    assert tolerance_of(adamw, "bf16").parameters == 5 * 2.0**-7
    assert tolerance_of(deep(1), "bf16").loss == 2e-2


def test_repetitions_begin_at_the_start_and_keep_their_iterations():
    (configuration,) = counterparts(ours("heart", batch="10"), Wanted())
    made = prepare(configuration, HEART, References(1), 0)
    first = repetition(made, 0.001)
    losses = [float(loss) for loss in made.work.losses]
    second = repetition(made, 0.001)
    assert first["iterations"] == second["iterations"] and first["time_unit"] == "ms"
    assert losses == [float(loss) for loss in made.work.losses]
    assert made.facts["steps"] == 5 and made.once["first_call_seconds"] > 0
    with pytest.raises(Mismatch, match="has 1522 parameters, and bench's has 7"):
        prepare(configuration, {**HEART, "params": 7}, References(1), 0)


def test_a_training_that_diverges_is_refused_behind_its_repetition():
    (configuration,) = counterparts(ours("disc-2"), Wanted())
    made = prepare(configuration, DISC_2, References(1), 0)
    made.work.optimizer.param_groups[0]["lr"] = float("inf")
    with pytest.raises(Mismatch, match="not finite after the timed steps"):
        repetition(made, 0.001)


@pytest.mark.parametrize("precision", ["f32", "bf16"])
@pytest.mark.parametrize("transpose", ["nn", "nt", "tn"])
def test_products_are_verified(precision, transpose):
    name = f"Gemm/m:17/n:33/k:65/transpose:{transpose}/precision:{precision}/cache:warm/"
    (configuration,) = counterparts(
        configuration_of(name + "device:cpu/execution:eager/cpu_threads:1"), Wanted()
    )
    made = prepare(configuration, None, References(1), 0)
    assert made.facts["count"] == 100 and made.facts["flops"] == 2 * 17 * 33 * 65
    assert made.facts["verification"]["entries"] == 17 * 33
    made.work.a = made.work.a * 1.1
    with pytest.raises(Mismatch):
        wrong = made.work.c.clone()
        made.work.run()
        made.work.a = made.work.a / 1.1
        assert not torch.equal(wrong, made.work.c)
        made.work.run = lambda: None
        made.work.verify()


def test_a_graph_reads_where_each_of_its_batches_is_copied_to(monkeypatch):
    """Its step is computed again in place of a replay: there is no GPU here."""
    made = []

    class Graph:
        def replay(self):
            x, y, loss = made[-1]
            loss.copy_(x[0].sum() + y.sum())

    def step(x, y):
        made.append((x, y, x[0].sum() + y.sum()))
        return made[-1][-1]

    for name in ("Stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, lambda: SimpleNamespace(wait_stream=id))
    for name in ("stream", "graph"):
        monkeypatch.setattr(torch.cuda, name, lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    batches = [((torch.full((3,), float(i)),), torch.full((3,), 10.0)) for i in range(1, 4)]
    graphs = Graphs(step, optimizer, batches)
    losses = [float(graphs(*batch)) for batch in batches]
    assert losses == [33.0, 36.0, 39.0] and len(made) == 4  # three to warm up, one captured
    assert [float(x[0][0]) for x, _ in batches] == [1.0, 2.0, 3.0]


def test_copies_are_compared_byte_by_byte():
    name = "Copy/direction:h2h/bytes:4096/device:cpu/memory:pageable/mode:sync/cpu_threads:1"
    (configuration,) = counterparts(configuration_of(name), Wanted())
    made = prepare(configuration, None, References(1), 0)
    assert (made.facts["bytes"], made.facts["count"]) == (4096, 1)
    repetition(made, 0.0001)
    with pytest.raises(Mismatch, match="not what was copied"):
        made.check()  # nothing was copied since the last one


def test_a_row_that_ends_says_how():
    from crossover_bench.peers.pytorch.__main__ import (  # noqa: PLC0415 - it sets up the process
        Rows,
    )

    rows, configuration = Rows(), {**ours("alexnet-s"), **CPU, "execution": "graph"}
    counted = {
        **trained("alexnet-s"),
        "params": 62_378_344,
        "batch": 1,
        "rows": 1,
        "optimizer": "sgd lr=0.01",
        "epoch": {"flops": 1.0},
    }
    answer = rows.prepare("graph", configuration, counted)
    assert answer["outcome"] == "skipped" and "masks" in answer["error_message"]
    small = {**counted, **trained("disc-2"), "params": 23, "batch": 10, "rows": 10}
    answer = rows.prepare("other", {**ours("disc-2"), **CPU}, small)
    assert answer["outcome"] == "failed" and answer["error_message"].startswith("it has 22")
    layers = [{"name": "layer 0", "type": "swish"}]
    unknown = {**small, "network": {**small["network"], "layers": layers}}
    answer = rows.prepare("unknown", {**ours("disc-2"), **CPU}, unknown)
    assert answer["outcome"] == "skipped"
    assert answer["error_message"].startswith("layer 0 (swish): peers/pytorch/layers.py has no")
    layers[0] |= {"type": "linear", "rank": 1}
    answer = rows.prepare("unknown", {**ours("disc-2"), **CPU}, unknown)
    assert answer["outcome"] == "skipped" and "it has no rank" in answer["error_message"]
    assert rows.describe()["version"] == torch.__version__
    assert rows.describe()["flush_to_zero"] in (True, False)


def test_channels_last_is_what_is_computed():
    sizes = {"batch": 2, "rows": 2, "params": 89578, "flops": 1e6}
    task = Task(**trained("alexnet-r"), **sizes, optimizer=Optimizer("sgd", 0.05), label="")
    configuration = {**CPU, "layout": "channels-last"}
    training = Training(task, configuration)
    x, _ = training.batches[0]
    assert x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    checked, _ = verified(training, configuration, References(1))
    assert checked["steps"] == 2


def test_a_network_in_use_comes_to_what_bench_comes_to():
    made = Forward(Task.of("Forward", of_images()), CPU, torch.float64)
    made.run()
    assert made.outputs().tolist() == OUTPUTS


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_a_network_in_use_is_verified_and_timed_pass_by_pass(precision):
    counted = of_images()
    configuration = {**CPU, "family": "Forward", "precision": precision, "cpu_threads": "1"}
    prepared = prepare(configuration, counted, References(1), 0.0)

    def spoil(work):
        with torch.no_grad():
            work.network[-1].bias[1] += 0.1

    is_verified_and_timed(prepared, "PyTorch", spoil)
