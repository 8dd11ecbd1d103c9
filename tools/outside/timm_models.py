# SPDX-License-Identifier: Apache-2.0
"""Models of timm, imported and proved as a user's module is: its tiny ones, which timm tests itself
with, and one of each of other families."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import timm
import torch
from torch import nn

from crossover_bench.networks import proof
from crossover_bench.networks.importing import imported
from crossover_bench.networks.user_module import Input, readied
from crossover_bench.networks.values import Refused
from tools.outside.results import Suite, Verdict, of_refusal

TINY = "test_*"
# Of other families: convolutions of a few million parameters, and what mixes places otherwise.
OTHERS = (
    *("convnextv2_atto", "deit_tiny_patch16_224", "densenet121", "dla46_c", "edgenext_xx_small"),
    *("efficientnet_lite0", "efficientvit_b0", "ese_vovnet19b_slim_dw", "ghostnet_050"),
    *("gmlp_ti16_224", "lcnet_035", "levit_128s", "mixer_s32_224", "mnasnet_small"),
    *("mobilenetv3_small_050", "mobilenetv4_conv_small", "mobilevit_xxs", "pit_ti_224"),
    *("poolformer_s12", "regnetx_002", "repvgg_a0", "resmlp_12_224", "resnet18", "rexnet_100"),
    *("selecsls42", "starnet_s1", "swin_tiny_patch4_window7_224", "tinynet_e"),
    *("visformer_tiny", "xcit_nano_12_p16_224"),
)

_SMALL = (3, 96, 96)  # which most convolutions read as well, in a fifth of the time
_OF_PYTORCH = (
    "PyTorch's own rows with channels last can end by a signal, or be wrong, where a convolution "
    "of single pixels steps over others and reads fewer channels than a vector has lanes, as that "
    "of repvgg_a0 does: oneDNN's kernel writes outside its memory "
    "(https://github.com/uxlfoundation/oneDNN/issues/6035)."
)


def suite(tell: Callable[[str], None]) -> tuple[Suite, dict[str, dict[str, Any]]]:
    """And the networks that came in, by their case."""
    networks: dict[str, dict[str, Any]] = {}
    verdicts = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*timm.list_models(TINY), *OTHERS):
            tell(f"timm: {name}")
            verdicts.append(_of_model(name, networks))
    how = (
        "the network built again beside the model in float64, outputs and all gradients, on drawn "
        "images of 96 by 96 pixels, or of timm's size where the model is none of that size; to "
        f"{proof.TOLERANCE:g} of the largest"
    )
    unit = "models, without trained weights"
    notes = [_OF_PYTORCH]
    return Suite("timm", timm.__version__, how, verdicts, unit, notes, is_listed=True), networks


def _of_model(name: str, networks: dict[str, dict[str, Any]]) -> Verdict:
    torch.manual_seed(0)
    why = ""
    try:
        for wanted in _inputs_of(timm.create_model(name)):
            make: Callable[[], nn.Module] = partial(readied, timm.create_model(name), name, wanted)
            try:
                came = imported(
                    make, [wanted], source=name, name=name, loss_function="cross-entropy"
                )
            except Refused as refused:
                why = str(refused)
                continue
            networks[name] = came.described
            return Verdict(name, "equal", apart=came.difference)
    except Exception as error:
        return Verdict(name, "fault", f"{type(error).__name__}: {error}")
    return of_refusal(name, why)


def _inputs_of(model: nn.Module) -> list[Input]:
    """Those to be tried, the first that is not refused."""
    given, small = Input(tuple(model.pretrained_cfg["input_size"])), Input(_SMALL)
    if any("pos" in name for name, _ in model.named_parameters()):  # a table for each place
        return [given]
    try:
        with torch.no_grad():
            model(small.random().float())
    except (AssertionError, RuntimeError):
        return [given]
    return [small, given]
