# SPDX-License-Identifier: Apache-2.0
"""A GPU of PyTorch's that is none (stand_in.cpp), compiled where a compiler is, under the name
"standin". A process that has loaded it keeps it: tests load it in one of their own."""

import ctypes
import subprocess
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KIND, NAME = "standin", "Stand-in GT 1"
SOURCE = Path(__file__).with_name("stand_in.cpp")


def compiled(compiler: str, into: Path) -> Path:
    """The library, for the PyTorch of this Python."""
    import torch  # noqa: PLC0415 - who only asks for NAME needs none

    root, library = Path(torch.__file__).parent, into / "stand_in.so"
    linked = (f"-L{root / 'lib'}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{root / 'lib'}")
    command = [compiler, "-std=c++20", "-O0", "-fPIC", "-shared", f"-I{root / 'include'}"]
    subprocess.run([*command, "-o", library, SOURCE, *linked], check=True)
    return library


class StandIn:
    """The device of this process, from now on."""

    def __init__(self, library: Path) -> None:
        import torch  # noqa: PLC0415

        torch.ops.load_library(library)
        self._functions = ctypes.CDLL(str(library))
        self._functions.stand_in_sleep.argtypes = [ctypes.c_long]
        for name in ("kernels", "pending"):
            getattr(self._functions, f"stand_in_{name}").restype = ctypes.c_long
        torch.utils.rename_privateuse1_backend(KIND)
        torch._register_device_module(KIND, self._module())

    def _module(self) -> Any:
        """torch.standin."""
        module: Any = types.ModuleType(f"torch.{KIND}")
        module.is_available = lambda: True
        module.device_count = lambda: 1
        module.current_device = lambda: 0
        module.synchronize = lambda _=None: self._functions.stand_in_wait()
        module.get_device_name = lambda _=None: NAME
        module.is_initialized = lambda: True
        module._is_in_bad_fork = lambda: False
        module.manual_seed_all = lambda _: None
        module.get_amp_supported_dtype = lambda: []
        return module

    def sleep(self, seconds: float) -> None:
        """Of each kernel, before it computes."""
        self._functions.stand_in_sleep(round(1e9 * seconds))

    @contextmanager
    def held(self) -> Iterator[None]:
        """It begins nothing; who waits for it in the body waits for ever."""
        self._functions.stand_in_hold(1)
        try:
            yield
        finally:
            self._functions.stand_in_hold(0)

    @property
    def pending(self) -> int:
        """What it has not done yet."""
        return int(self._functions.stand_in_pending())

    @property
    def kernels(self) -> int:
        """That were computed so far."""
        return int(self._functions.stand_in_kernels())
