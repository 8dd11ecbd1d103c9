# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as a worker: `bench --peer="PYTHON -m peers.onnxruntime"` (docs/method/peers.md)."""

from __future__ import annotations

import argparse
import io
import platform
import sys
import warnings
from typing import Any

import numpy as np
import onnxruntime
import torch

from crossover_bench.peers.axes import DEVICES, same_work, values_among
from crossover_bench.peers.forward import Passes, copies, forward_row
from crossover_bench.peers.protocol import Answer, Configuration, serve
from crossover_bench.peers.pytorch import forward as pytorch
from crossover_bench.peers.rows import Prepared, Served
from crossover_bench.peers.tasks import Task, Unsupported

_OPSET = 20
# What computes on a device. Products in f32 are in f32: TF32 is off, as in bench's rows.
_CUDA = "CUDAExecutionProvider"
_PROVIDERS: dict[str, list[Any]] = {
    "cpu": ["CPUExecutionProvider"],
    "cuda": [(_CUDA, {"use_tf32": "0"}), "CPUExecutionProvider"],
}


def counterparts(ours: Configuration, devices: tuple[str, ...] = DEVICES) -> list[Configuration]:
    """The row that does the work of a row of bench's: of forward passes in f32, whose batch lies
    where they compute."""
    is_alike = (ours["family"], ours["precision"]) == ("Forward", "f32")
    if not is_alike or ours["device"] not in devices or copies(ours):
        return []
    return [{**same_work(ours, "onnxruntime"), "execution": "eager"}]


class Forward(Passes):
    """A network that PyTorch has exported, and a batch and its outputs that are bound once: of the
    ways to call a session that with the least work in a pass."""

    def __init__(self, task: Task, configuration: Configuration) -> None:
        plain = {"device": "cpu", "precision": "f32"}
        torch.set_num_threads(1)
        exported = pytorch.Forward(task, plain)
        exported.run()
        self.parameters, self.products = exported.parameters, exported.products
        device = configuration["device"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(configuration.get("cpu_threads", 1))
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        session = onnxruntime.InferenceSession(
            _exported(exported.network, exported.x), options, providers=_PROVIDERS[device]
        )
        if device == "cuda" and _CUDA not in session.get_providers():
            raise Unsupported("ONNX Runtime does not start CUDA here")
        value = onnxruntime.OrtValue
        self.x = value.ortvalue_from_numpy(exported.x.numpy(), device, 0)
        shape = exported.outputs().shape
        self._y = value.ortvalue_from_shape_and_type(shape, np.float32, device, 0)
        self._bound = session.io_binding()
        (read,), (written,) = session.get_inputs(), session.get_outputs()
        self._bound.bind_ortvalue_input(read.name, self.x)
        self._bound.bind_ortvalue_output(written.name, self._y)
        self._session = session

    def run(self) -> None:
        self._session.run_with_iobinding(self._bound)  # waits for the device

    def outputs(self) -> np.ndarray:
        return self._y.numpy().astype(np.float64)


def _exported(network: torch.nn.Module, x: torch.Tensor) -> bytes:
    """The network as ONNX has it, for batches of this size."""
    file = io.BytesIO()
    with torch.inference_mode(), warnings.catch_warnings():
        # It says that there is a newer exporter, which needs more packages.
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(network, (x,), file, dynamo=False, opset_version=_OPSET)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            raise Unsupported(f"PyTorch can't export it to ONNX: {reason}") from error
    return file.getvalue()


class Rows(Served):
    """The rows of one process. What a request asks for is a method; its answer is one object."""

    def __init__(self, devices: tuple[str, ...] = DEVICES) -> None:
        super().__init__()
        self._devices = devices

    def describe(self) -> Answer:
        """What a result file records of ONNX Runtime."""
        return {
            "program": "onnxruntime",
            "libraries": {"ONNX Runtime": onnxruntime.__version__},
            "axes": [],
            "version": onnxruntime.__version__,
            "exporter": f"PyTorch {torch.__version__}, opset {_OPSET}",
            "python": platform.python_version(),
        }

    def rows(self, configuration: Configuration, **_: Any) -> Answer:
        """Those that do the work of a row of bench's."""
        rows = counterparts(configuration, self._devices)
        return {"rows": [{"configuration": row} for row in rows]}

    def made(self, configuration: Configuration, counted: dict[str, Any] | None) -> Prepared:
        is_on_gpu = configuration["device"] == "cuda"
        if is_on_gpu and _CUDA not in onnxruntime.get_available_providers():
            raise Unsupported(
                "this ONNX Runtime has no CUDA: install onnxruntime-gpu in place of onnxruntime"
            )
        prepared = forward_row(*(Forward, pytorch.exact_outputs, "PyTorch", configuration, counted))
        if not is_on_gpu:
            prepared.facts["cpu_threads"] = int(configuration["cpu_threads"])
        return prepared


def _rows(arguments: list[str]) -> Rows:
    parser = argparse.ArgumentParser(
        prog="python -m peers.onnxruntime",
        description="Answers bench's requests for rows of ONNX Runtime's on standard input.",
        allow_abbrev=False,
    )
    among = values_among(DEVICES)
    parser.add_argument("--devices", type=among, default=DEVICES, help="of bench's rows those on")
    return Rows(parser.parse_args(arguments).devices)


if __name__ == "__main__":
    serve(_rows(sys.argv[1:]))
