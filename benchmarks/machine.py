"""Describes the machine that runs the benchmarks."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from options import parse_options
from trees import HERE

LIBRARIES = ("torch", "onnxruntime", "torch_geometric", "transformers")
KERNELS = ("avx2", "avx512f", "avx512_vnni", "amx_bf16")


def main() -> None:
    parse_options(argparse.ArgumentParser(description=__doc__))
    info = Path("/proc/cpuinfo")
    flags = info.read_text().split() if info.exists() else []
    print(f"{os.cpu_count()} cores, {platform.machine()}, {' '.join(each for each in KERNELS if each in flags)}")
    print(", ".join(f"{name} {version(name)}" for name in LIBRARIES))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True)
    print(f"modgraph at commit {commit.stdout.strip()}")


if __name__ == "__main__":
    main()
