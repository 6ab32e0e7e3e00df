"""Names the root cause of a hanging, crashing or slow multi-GPU job from its NCCL or RCCL logs.

>>> import ncclog
>>> report = ncclog.analyze("logs/")
>>> report["verdict"], [finding["id"] for finding in report["findings"]]

The work is done by the binary that the wheel brings: `ncclog --help`, `python -m ncclog --help`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from typing import Any, Dict, Iterable, List, Optional, Union

__all__ = ["NcclogError", "analyze", "find_binary"]

_Path = Union[str, "os.PathLike[str]"]
_Option = Union[None, bool, int, float, _Path, Iterable[_Path]]

# These decide what comes out and where; `analyze` needs JSON on standard output.
_RESERVED = frozenset({"format", "output", "for", "for_", "quiet", "color", "width", "fail_on"})


class NcclogError(RuntimeError):
    """The analysis failed, or an input could not be read.

    `analysis` holds what was found in the inputs that could be read, or None.
    """

    def __init__(self, message: str, analysis: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(message)
        self.analysis = analysis


def find_binary() -> str:
    """The path of the installed `ncclog` binary."""
    name = "ncclog" + (sysconfig.get_config_var("EXE") or "")
    # The environment's own folder, then the user's (`pip install --user`).
    schemes = [sysconfig.get_default_scheme() if hasattr(sysconfig, "get_default_scheme") else None]
    schemes.append({"posix": "posix_user", "nt": "nt_user"}.get(os.name))
    for scheme in schemes:
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    # `pip install --target DIR` puts it beside the package.
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin", name)
    if os.path.isfile(path):
        return path
    found = shutil.which(name)
    if found:
        return found
    raise NcclogError("the ncclog binary is missing; reinstall the package with `pip install --force-reinstall ncclog`")


def analyze(
    paths: Union[_Path, Iterable[_Path]],
    *,
    input: Union[None, str, bytes] = None,
    timeout: Optional[float] = None,
    **options: _Option,
) -> Dict[str, Any]:
    """Analyses log files, directories of them and quoted globs; returns the report as parsed JSON.

    `paths` is one path or several; `"-"` is `input`, a log in memory. `timeout` is in seconds.
    Further options are those of `ncclog analyze`: `expect=["net=IB", "nranks=16"]`, `why_not="tcp-fallback"`,
    `config="ncclog.toml"`, `no_config=True`, `refine=True`, `threads=4`, `max_bytes="20G"`.

    Findings are no exception: look at `report["verdict"]`. `NcclogError` is raised for a wrong option, or if an input
    cannot be read; it carries what was found in the others.
    """
    command = [find_binary(), "analyze", "--format", "json", "--fail-on", "never", *_arguments(options), "--"]
    command += [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    if command[-1] == "--":
        raise ValueError("no path to analyze")
    data = input.encode() if isinstance(input, str) else input
    done = subprocess.run(command, input=data or b"", capture_output=True, timeout=timeout, check=False)
    try:
        report: Optional[Dict[str, Any]] = json.loads(done.stdout) if done.stdout else None
    except ValueError:
        report = None
    if done.returncode not in (0, 1) or report is None:
        said = done.stderr.decode(errors="replace").strip()
        raise NcclogError(said or f"ncclog ended with status {done.returncode}", report)
    return report


def _arguments(options: Dict[str, _Option]) -> List[str]:
    """Keyword arguments as options of the command line."""
    arguments: List[str] = []
    for name, value in options.items():
        if name in _RESERVED:
            raise TypeError(f"analyze() takes no option {name!r}: it returns the report as a dict")
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(flag)
        elif isinstance(value, (str, int, float, os.PathLike)):
            arguments.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
        else:
            arguments += [f"{flag}={os.fspath(item)}" for item in value]
    return arguments
