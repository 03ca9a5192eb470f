"""Handlers of requests about the user's files."""

from __future__ import annotations

import numpy as np

from gpu.messages.files import LoadArray, LoadImage, LoadText, SaveArray
from gpu.messages.requests import Acknowledgment, ArrayResult
from gpu.run.handlers.registry import RequestContext, handles


@handles(LoadImage)
def _load_image(context: RequestContext, request: LoadImage) -> ArrayResult:
    from gpu.files import images

    image = images.read_image(request.path)
    arrays = {
        "image": image.pixels,
        "maxval": np.array(image.maxval, image.pixels.dtype),
        "picture": images.convert_for_display(image),
    }
    return ArrayResult(context.folder.put_all(arrays))


@handles(LoadArray)
def _load_array(context: RequestContext, request: LoadArray) -> ArrayResult:
    from gpu.files import arrays

    return ArrayResult({"values": context.folder.put(arrays.read_array(request.path, request.dimensions))})


@handles(LoadText)
def _load_text(context: RequestContext, request: LoadText) -> ArrayResult:
    from gpu.files import text

    characters = text.read_text(request.path).encode("latin-1", "replace")
    return ArrayResult({"text": context.folder.put(np.frombuffer(characters, np.uint8))})


@handles(SaveArray)
def _save_array(context: RequestContext, request: SaveArray) -> Acknowledgment:
    from gpu.run import export

    export.save_array(request.path, request.array.open(), maxval=request.maxval)
    return Acknowledgment()
