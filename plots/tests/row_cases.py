# SPDX-License-Identifier: Apache-2.0
"""Names of rows of every family, and what is asked of the sentence about a bad file."""

from pathlib import Path

import pytest

from plots.file import loading
from plots.file.refusal import BadFileError

NAME = "Epoch/model:disc-3/batch:100/precision:f32/device:cpu/execution:eager/cpu_threads:2"
PROBES = {  # configuration: the counter that it needs
    "Peak/quantity:fma/precision:f32/device:cpu/cpu_threads:2": "flops",
    "Peak/quantity:triad/device:cuda": "bytes",
    "Peak/quantity:copy/direction:h2d/device:cuda": "bytes",
    "Peak/quantity:launch/device:cuda": None,
    "Copy/direction:h2d/bytes:4096/device:cuda/memory:pinned/mode:async": "bytes",
    "Copy/direction:h2h/model:heart/batch:10/device:cpu/memory:pageable/mode:sync/cpu_threads:1": (
        "bytes"
    ),
    "Collective/op:allreduce/bytes:4096/device:cpu/ranks:2": "bytes",
}
OPERATIONS = [
    "Gemm/m:100/n:64/k:32/transpose:nt/precision:f32/cache:warm"
    "/device:cpu/execution:eager/cpu_threads:2",
    "Gemm/m:64/n:32/k:100/transpose:tn/precision:tf32/cache:cold/device:cuda/execution:graph",
    "Layer/width:256/batch:100/activation:relu/pass:backward/form:fused/precision:f32"
    "/device:cpu/execution:eager/cpu_threads:1",
]


def fault(path: Path) -> str:
    """The sentence about the bad file `path`, checked for what every such sentence has."""
    with pytest.raises(BadFileError) as caught:
        loading.load_file(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path)) and "\n" not in sentence and ";" in sentence
    return sentence
