# SPDX-License-Identifier: Apache-2.0
"""Writes the module of examples/net.py as ONNX, in training, as an importer needs it.

.venv-peers/bin/python examples/to_onnx.py net.onnx
./run --network=net.onnx --batch=32
"""

import sys

import torch
from net import make

torch.onnx.export(
    make(),
    (torch.zeros(2, 3, 32, 32),),
    sys.argv[1],
    dynamo=False,  # the newer exporter folds batch normalization away
    training=torch.onnx.TrainingMode.PRESERVE,
    do_constant_folding=False,
    input_names=["images"],
    dynamic_axes={"images": {0: "batch"}},
)
