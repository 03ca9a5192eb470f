"""Write the page that plays a recording: python -m gui.driving.player_page RECORDING PAGE TITLE SETTINGS."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gpu.base.errors import InputError
from gpu.files.file_access import replace_file
from gpu.recording.recording import Recording
from gui.step_view.export.files import Caption
from gui.step_view.export.html_player import write_page
from gui.step_view.recording.models import build_models


def main(arguments: Sequence[str]) -> int:
    """Write a recording's page; return 0, or 2 if the recording cannot be read or the page not be written."""
    recording, page, title, settings = arguments
    try:
        text = write_page(build_models(Recording.load(recording)), Caption(title, settings))
        with replace_file(Path(page)) as file:
            file.write(text.encode("utf-8"))
    except InputError as error:
        print(f"lockstep: {error.message}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
