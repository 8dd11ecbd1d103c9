# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as a worker: `bench --peer="PYTHON -m peers.onnxruntime"` (docs/method/peers.md)."""

from __future__ import annotations

import io
import platform
import sys
import warnings
from typing import Any

import numpy as np
import onnxruntime
import torch

from peers.forward import Passes, forward_row
from peers.protocol import Answer, Configuration, serve
from peers.pytorch import forward as pytorch
from peers.rows import Prepared, Served
from peers.tasks import Task, Unsupported

_OPSET = 20
# How bench computes; a row of ONNX Runtime's that does the same work is one for all of its ways.
_WAYS = ("execution", "products")


def counterparts(ours: Configuration) -> list[Configuration]:
    """The row that does the work of a row of bench's: of forward passes in f32 on the CPU alone."""
    if (ours["family"], ours["device"], ours["precision"]) != ("Forward", "cpu", "f32"):
        return []
    shared = {key: value for key, value in ours.items() if key not in _WAYS}
    return [{**shared, "program": "onnxruntime", "execution": "eager"}]


class Forward(Passes):
    """A network that PyTorch has exported, and a batch and its outputs that are bound once: of the
    ways to call a session that with the least work in a pass."""

    def __init__(self, task: Task, configuration: Configuration) -> None:
        plain = {"device": "cpu", "precision": "f32"}
        torch.set_num_threads(1)
        exported = pytorch.Forward(task, plain)
        exported.run()
        self.parameters, self.products = exported.parameters, exported.products
        self._outputs = np.empty(exported.outputs().shape, np.float32)
        self._x = exported.x.numpy()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(configuration["cpu_threads"])
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors
        session = onnxruntime.InferenceSession(
            _exported(exported.network, exported.x), options, providers=["CPUExecutionProvider"]
        )
        self._bound = session.io_binding()
        (read,), (written,) = session.get_inputs(), session.get_outputs()
        self._bound.bind_cpu_input(read.name, self._x)
        y = self._outputs
        self._bound.bind_output(written.name, "cpu", 0, y.dtype, y.shape, y.ctypes.data)
        self._session = session

    def run(self) -> None:
        self._session.run_with_iobinding(self._bound)

    def outputs(self) -> np.ndarray:
        return self._outputs.astype(np.float64)


def _exported(network: torch.nn.Module, x: torch.Tensor) -> bytes:
    """The network as ONNX has it, for batches of this size."""
    file = io.BytesIO()
    with torch.inference_mode(), warnings.catch_warnings():
        # It says that there is a newer exporter, which needs more packages.
        warnings.simplefilter("ignore")
        try:
            torch.onnx.export(network, (x,), file, dynamo=False, opset_version=_OPSET)
        except Exception as error:
            said = str(error).strip().partition("\n")[0]
            raise Unsupported(f"PyTorch can't export it to ONNX: {said}") from error
    return file.getvalue()


class Rows(Served):
    """The rows of one process. What a request asks for is a method; its answer is one object."""

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

    def rows(self, configuration: Configuration) -> Answer:
        """Those that do the work of a row of bench's."""
        return {"rows": [{"configuration": own} for own in counterparts(configuration)]}

    def made(self, configuration: Configuration, counted: dict[str, Any] | None) -> Prepared:
        prepared = forward_row(*(Forward, pytorch.exact_outputs, "PyTorch", configuration, counted))
        prepared.facts["cpu_threads"] = int(configuration["cpu_threads"])
        return prepared


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("python -m peers.onnxruntime takes no arguments")
    serve(Rows())
