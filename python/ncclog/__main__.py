"""`python -m ncclog`: the binary, with the same arguments and exit code."""

import os
import subprocess
import sys

from ncclog import NcclogError, find_binary


def main() -> int:
    try:
        binary = find_binary()
    except NcclogError as error:
        print(f"ncclog: {error}", file=sys.stderr)
        return 2
    command = [binary, *sys.argv[1:]]
    if os.name == "posix":
        os.execv(binary, command)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
