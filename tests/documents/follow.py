"""Follow a page word by word in an empty folder, as its reader would."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from blocks import Block, commands
from shown import require_shown


class Reader:
    """One folder, one shell's environment and one Python session for all blocks of a page."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            **environment,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "100",
        }
        self.session: dict[str, object] = {}
        self.printed = ""

    def follow(self, block: Block) -> None:
        within = block.marks.get("within")
        if "file" in block.marks:
            (self.folder / block.marks["file"]).write_text(block.text)
        elif "output" in block.marks:
            require_shown(block.text, self.printed, within)
        elif block.language == "python":
            self._python(block.text)
        elif block.language == "sh":
            self._shell(block.text, int(block.marks.get("exit", 0)))
        elif block.language == "console":
            typed = commands(block)
            for number, (command, shown) in enumerate(typed, start=1):
                self._shell(command, int(block.marks.get("exit", 0)) if number == len(typed) else 0)
                require_shown(shown, self.printed, within)

    def _python(self, text: str) -> None:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, "<page>", "exec"), self.session)
        self.printed = printed.getvalue()

    def _shell(self, script: str, code: int) -> None:
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert ended.returncode == code, f"{script}\nended with {ended.returncode}:\n{ended.stdout}"
        self.printed = ended.stdout
