"""Image decoder that runs Pillow in its own process: python decoder.py PIXELS PACKAGES, with the file as its input.

The process isolates untrusted files: its memory and time are limited, and output of the libraries below Pillow is
discarded. It writes a line of JSON, either a refusal or a description, then the pixels, strip by strip;
`gpu.files.pillow` starts it and reads these. Only Pillow is imported, for a fast start.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import PIL.Image
    import PIL.ImageFile

MAX_BYTES = 2**30
"""Limit of the memory for decoding, in bytes, for any image."""

BYTES_PER_PIXEL = 24
"""Limit of the memory for decoding, in bytes per pixel; WebP needs it, others 1 to 4, or 8 with 16-bit colors."""

STRIP_BYTES = 2**22
"""Approximate size of a strip in bytes; a strip consists of whole rows."""

_PYTHON_BYTES = 2**28
_SMALL_PIXELS, _SMALL_BYTES = 2**22, 2**25
_MIN_SECONDS, _PIXELS_PER_SECOND = 5, 4 * 2**20
# Pillow supports more formats; some start other programs, and none of those is useful as an input.
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP")
_WEBP_BYTES_PER_PIXEL = 20
_TIFF_BITS, _TIFF_COMPRESSION, _TIFF_PHOTOMETRIC, _ORIENTATION = 258, 259, 262, 274
_WHITE_IS_ZERO = 0
# Largest expansion of one byte of a file: deflate's limit, JPEG's one bit per block of 64 pixels, and the longest LZW
# string, which has as many pixels as there are codes of 12 bits.
_DEFLATE_RATIO = 1032
_JPEG_PIXELS_PER_BYTE = 512
_LZW_PIXELS_PER_BYTE = 4096

# Raw modes with which Pillow keeps the high byte of each 16-bit value, and those that return the low byte.
_LOW_BYTES = {
    f"{colors};16{end}": f"{colors};16{other}" for colors in ("RGB", "RGBA", "RGBX") for end, other in ("LB", "BL")
}
_LOW_BYTES |= {f"{mode[:-1]}N": low for mode, low in _LOW_BYTES.items() if mode[-1] == sys.byteorder[0].upper()}
_GRAY_ALPHA = "LA;16B"
_SAMPLES = {"1": 1, "L": 1, "LA": 2, "RGB": 3, "RGBA": 4}


class _RefusedError(Exception):
    """The image is refused; the message follows the file's name in a sentence."""


def is_small(file: IO[bytes]) -> bool:
    """Return whether a file is a PNG or baseline JPEG of at most 4 Mpixel, which takes little time in any case.

    Starting a process would take longer than decoding it. For other formats the size gives no limit: a few bytes of
    WebP or of a progressive JPEG can take seconds, and libtiff prints messages.
    """
    if os.fstat(file.fileno()).st_size > _SMALL_BYTES:
        return False
    with _suppress_messages(), contextlib.suppress(Exception), _open_image(file, ("PNG", "JPEG")) as image:
        width, height = image.size
        return 0 < width * height <= _SMALL_PIXELS and not image.info.get("progressive")
    return False


def write_decoded_image(file: IO[bytes], out: IO[bytes], limit: int, *, in_own_process: bool) -> None:
    """Decode an image and write the answer.

    Parameters
    ----------
    file : file
        A regular file; Pillow may also use its file descriptor.
    out : file
        A line of JSON: {"refusal": text}, or {"width", "height", "samples", "type" (NumPy's), "planes" (1; or 2: each
        strip is followed by another with the low bytes), "alpha", "maxval", "inverted", "orientation"}; then the
        strips, each of `rows_per_strip` rows, except for the last one.
    limit : int
        Most pixels that are accepted.
    in_own_process : bool
        Whether this process decodes only this image, so that it can be limited.
    """
    import PIL.Image

    try:
        with _suppress_messages(), _open_image(file) as image:
            _check_size(image, os.fstat(file.fileno()).st_size, limit)
            if in_own_process:
                _limit_resources(image.size[0] * image.size[1])
            _decode(image, file, out)
    except _RefusedError as refusal:
        _write_header(out, refusal=str(refusal))
    except PIL.Image.DecompressionBombError:
        most = MAX_BYTES // _WEBP_BYTES_PER_PIXEL // 2**20
        _write_header(out, refusal=f"is too large: the limit for WebP is {most} Mpixel. Save it as PNG or JPEG.")
    except MemoryError:
        _write_header(out, refusal="needs too much memory to be decoded.")
    except PIL.UnidentifiedImageError:
        _write_header(out, refusal="is not a supported image; PGM, PPM, PNG, JPEG, TIFF, BMP, GIF and WebP are.")
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:  # Pillow's decoders raise many types of exceptions for damaged files
        reason = " ".join((str(error) or type(error).__name__).split("\n")[0].split())[:200].rstrip(".")
        _write_header(out, refusal=f"is damaged or truncated ({reason}).")


def rows_per_strip(width: int) -> int:
    """Return the number of rows per strip for a width in pixels."""
    return max(1, STRIP_BYTES // (4 * width))


def _write_header(out: IO[bytes], **facts: object) -> None:
    out.write(json.dumps(facts).encode() + b"\n")


@contextlib.contextmanager
def _suppress_messages() -> Iterator[None]:
    """Suppress the decoders' messages about damaged files."""
    logging.getLogger("PIL").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _open_image(file: IO[bytes], formats: Sequence[str] = _FORMATS) -> Iterator[PIL.ImageFile.ImageFile]:
    import PIL.BmpImagePlugin
    import PIL.GifImagePlugin
    import PIL.Image
    import PIL.JpegImagePlugin
    import PIL.PngImagePlugin
    import PIL.TiffImagePlugin
    import PIL.WebPImagePlugin

    file.seek(0)
    # Sizes are checked after opening; only WebP's decoder allocates memory before that.
    is_webp = file.read(12)[8:] == b"WEBP"
    PIL.Image.MAX_IMAGE_PIXELS = MAX_BYTES // _WEBP_BYTES_PER_PIXEL // 2 if is_webp else None
    # By name, Pillow would map the file: that rotated TIFFs with the wrong row length, and truncation of the file
    # meanwhile would kill the process.
    file.seek(0)
    with PIL.Image.open(file, formats=[name for name in formats if name in PIL.Image.OPEN]) as image:
        yield image


def _check_size(image: PIL.ImageFile.ImageFile, file_bytes: int, limit: int) -> None:
    width, height = image.size
    if width < 1 or height < 1:
        raise _RefusedError(f"has no pixels: its header declares {width} x {height}.")
    mpixel = f"{width} x {height} is {width * height / 2**20:.0f} Mpixel"
    if width * height > limit:
        raise _RefusedError(f"is too large: {mpixel}; the limit is {limit // 2**20} Mpixel.")
    needed = _minimum_bytes(image, width * height)
    if needed > file_bytes:
        raise _RefusedError(
            f"is truncated: its header declares {width} x {height} pixels, at least {needed} bytes, "
            f"but only {file_bytes} follow."
        )
    most = MAX_BYTES // _bytes_per_pixel(image)
    if width * height > most:
        raise _RefusedError(f"is too large: {mpixel}; the limit for this format is {most // 2**20} Mpixel.")


def _minimum_bytes(image: PIL.ImageFile.ImageFile, pixels: int) -> int:
    """Return the minimum file size for a number of pixels in the image's format; 0 if there is no such bound."""
    if image.format == "PNG":
        bits = 1 if image.mode in ("1", "P") else 8
        return pixels * bits // 8 // _DEFLATE_RATIO
    if image.format in ("JPEG", "MPO"):
        return pixels // _JPEG_PIXELS_PER_BYTE
    if image.format == "GIF":
        _, _, right, bottom = (image.tile[0].extents if image.tile else None) or (0, 0, 0, 0)
        return right * bottom // _LZW_PIXELS_PER_BYTE
    if image.format == "BMP" and image.tile and image.tile[0].codec_name == "raw":
        return pixels * (1 if image.mode in ("1", "P", "L") else 16) // 8
    if image.format == "TIFF":
        tags: Any = image.tag_v2  # type: ignore[attr-defined]
        if tags.get(_TIFF_COMPRESSION, 1) == 1:
            return pixels * int(sum(tags.get(_TIFF_BITS, (1,)))) // 8
    return 0


def _bytes_per_pixel(image: PIL.ImageFile.ImageFile) -> int:
    """Return Pillow's memory per pixel, with the additional memory of the libraries below it."""
    if image.format == "WEBP":
        return _WEBP_BYTES_PER_PIXEL
    pillow_bytes = 1 if image.mode in ("1", "L", "P") else 2 if image.mode.startswith("I;16") else 4
    if _raw_mode(image) in _LOW_BYTES:
        pillow_bytes *= 2
    coefficients = 2 * len(image.getbands()) if image.info.get("progressive") else 0
    return pillow_bytes + coefficients


def _limit_resources(pixels: int) -> None:
    """Limit this process's memory and CPU time according to the number of pixels."""
    with contextlib.suppress(ImportError):  # on Windows only the parent process can end it
        import resource

        most = min(MAX_BYTES, _PYTHON_BYTES // 4 + pixels * BYTES_PER_PIXEL)
        _lower_limit(resource.RLIMIT_AS, _PYTHON_BYTES + most)
        _lower_limit(resource.RLIMIT_CPU, _MIN_SECONDS + pixels // _PIXELS_PER_SECOND)


def _lower_limit(kind: int, maximum: int) -> None:
    import resource

    soft, hard = resource.getrlimit(kind)
    if soft == resource.RLIM_INFINITY or maximum < soft or kind == resource.RLIMIT_CPU:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (maximum if hard == resource.RLIM_INFINITY else min(maximum, hard), hard))


def _decode(image: PIL.ImageFile.ImageFile, file: IO[bytes], out: IO[bytes]) -> None:
    mode, raw_mode = image.mode, _raw_mode(image)
    planes = [image]
    form: dict[str, object] = {"type": "u1", "alpha": False, "maxval": 255, "inverted": False}
    with contextlib.ExitStack() as stack:
        if mode.startswith("I;16"):
            tags = getattr(image, "tag_v2", {})
            form["type"] = ">u2" if mode == "I;16B" or (mode == "I;16N" and sys.byteorder == "big") else "<u2"
            form["maxval"] = 4095 if raw_mode == "I;12" else 65535
            form["inverted"] = tags.get(_TIFF_PHOTOMETRIC) == _WHITE_IS_ZERO
        elif mode in ("I", "F"):
            kind = "floating-point" if mode == "F" else "signed or 32-bit"
            raise _RefusedError(f"contains {kind} values; save it with 8 or 16 unsigned bits per value.")
        elif raw_mode == _GRAY_ALPHA:
            _set_raw_mode(image, "RGBA")
            form |= {"type": ">u2", "alpha": True, "maxval": 65535}
        elif raw_mode in _LOW_BYTES and mode in ("RGB", "RGBA"):
            form |= {"alpha": mode == "RGBA", "maxval": 65535}
        elif mode in ("LA", "RGBA"):
            form["alpha"] = True
        elif (mode == "P" and "transparency" in image.info) or mode in ("PA", "La", "RGBa"):
            mode, form["alpha"] = "RGBA", True
        elif mode not in ("L", "RGB"):
            mode = "L" if mode == "1" else "RGB"
        image.load()
        # Before the file is opened again, since reading EXIF moves the file position.
        form["orientation"] = _orientation(image)
        if raw_mode in _LOW_BYTES and form["maxval"] == 65535 and mode in ("RGB", "RGBA"):
            other = stack.enter_context(_open_image(file))
            _set_raw_mode(other, _LOW_BYTES[raw_mode])
            other.load()
            planes.append(other)
        samples = 2 if raw_mode == _GRAY_ALPHA else 1 if mode.startswith("I;16") else _SAMPLES[mode]
        width, height = image.size
        _write_header(out, width=width, height=height, samples=samples, planes=len(planes), **form)
        rows = rows_per_strip(width)
        for first in range(0, height, rows):
            for plane in planes:
                strip = plane.crop((0, first, width, min(first + rows, height)))
                needs_converting = mode in _SAMPLES and strip.mode != mode and raw_mode != _GRAY_ALPHA
                out.write((strip.convert(mode) if needs_converting else strip).tobytes())


def _orientation(image: PIL.Image.Image) -> int:
    """Return EXIF's orientation, 1 to 8; an invalid EXIF block is ignored."""
    with contextlib.suppress(Exception):
        return int(image.getexif().get(_ORIENTATION, 1))
    return 1


def _raw_mode(image: PIL.ImageFile.ImageFile) -> str:
    """Return Pillow's name of the pixel format in the file."""
    arguments = image.tile[0].args if image.tile else ""
    first = arguments[0] if isinstance(arguments, tuple) and arguments else arguments
    return first if isinstance(first, str) else ""


def _set_raw_mode(image: PIL.ImageFile.ImageFile, raw_mode: str) -> None:
    """Decode other bytes of each pixel; `raw_mode` must have the width of the file's own mode."""
    tiles = []
    for tile in image.tile:
        arguments = (raw_mode, *tile.args[1:]) if isinstance(tile.args, tuple) else raw_mode
        tiles.append(tile._replace(args=arguments))
    image.tile = tiles


def _main(limit: int, packages: str) -> None:
    sys.path.append(packages)
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _lower_limit(resource.RLIMIT_AS, _PYTHON_BYTES + MAX_BYTES)
        _lower_limit(resource.RLIMIT_CPU, _MIN_SECONDS)
    # A duplicate, since Pillow does not accept descriptor 0 as a file.
    with open(os.dup(0), "rb") as file, open(1, "wb") as out, contextlib.suppress(BrokenPipeError):
        write_decoded_image(file, out, limit, in_own_process=True)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
